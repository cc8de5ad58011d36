"""The settings of a library: the one place that reads the environment, the clock and the user's folders."""
# ruff: noqa: PLC0415  imported when a setting needs it: a start should not pay for the others

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.errors import InvalidFilterError, PolluxError
from pollux.sessions.homes import USER_HOME, Home, homes

if TYPE_CHECKING:
    from pollux.prices import Prices

Clock = Callable[[], datetime]

_NAME = "pollux"
_LOCALTIME = Path("/etc/localtime")
PASSPHRASE = "POLLUX_PASSPHRASE"  # noqa: S105  the name of a variable
DEFAULT = Path()
"""Placeholder for the archive that the environment names, else the user's own."""
DEMO = "POLLUX_DEMO"
"""Names the temporary folder of a running demo, which replaces every other folder and variable of the user."""
DEMO_HOME = Path(__file__).parents[1] / "demo" / "home"


class UsageError(PolluxError):
    """The user combined options that contradict each other, or passed a value that cannot be used."""

    status = 2


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a library, created once by `configure`."""

    homes: tuple[Home, ...]
    named_homes: tuple[Path, ...] = ()
    """The folders that the user named; empty if the environment decided."""
    all_homes: bool = False
    """Include every home in the archive, not only `homes`."""
    archive: Path | None
    """The archive's file; None to read session files directly and store nothing."""
    price_file: Path | None
    zone_named: str | None
    """Name of a time zone; None for the system's own."""
    user_home: Path
    cwd: Path
    machine: str
    data_dir: Path
    config_dir: Path
    keys_dir: Path
    runtime_dir: Path
    """Folder of files that describe running processes."""
    environ: Mapping[str, str]
    """Variables that settings of the client may refer to."""
    user_environ: Mapping[str, str]
    """The same, also during a demo, which replaces some of them."""
    clock: Clock = utc_now

    @property
    def is_own_history(self) -> bool:
        """Whether the user's own home is read; sessions imported from other archives are then included."""
        return any(home.source == USER_HOME for home in self.homes)

    @property
    def project_memory(self) -> Path:
        """The file that caches proven project paths."""
        return self.data_dir / "projects.json"

    def current_homes(self) -> tuple[Home, ...]:
        """Return the homes that exist now; the initial ones if a named home was removed or unmounted."""
        try:
            return homes(self.named_homes, self.environ, self.user_home)
        except FileNotFoundError:
            return self.homes

    def has_session_files(self) -> bool:
        """Return whether the homes contain a session file."""
        from pollux.sessions.locate import locate

        return any(True for _ in locate(self.homes).files)

    def prices(self) -> Prices:
        """Return the price table, with the user's own prices applied."""
        from pollux import prices

        return prices.load(self.price_file)

    def user_name(self) -> str | None:
        """Return the user's login name; None if the system has none, as in some containers."""
        from getpass import getuser

        try:
            return getuser()
        except (KeyError, OSError):
            return None

    def zone(self) -> tuple[tzinfo | None, str]:
        """Return the time zone and its name; the zone is None for a system zone without an IANA name."""
        return find_zone(self.zone_named, self.environ, self.clock)


def configure(
    *,
    named_homes: Sequence[Path] = (),
    all_homes: bool = False,
    archive: Path | None = DEFAULT,
    prices: Path | None = None,
    zone: str | None = None,
    environ: Mapping[str, str] | None = None,
    clock: Clock = utc_now,
) -> Config:
    """Combine arguments and environment into settings. Raises `UsageError`."""
    environ = user_environ = os.environ if environ is None else environ
    user_home = user_home_folder()
    if demo := demo_folder():
        if named_homes or archive not in (DEFAULT, None):
            option = "--home" if named_homes else "--archive"
            raise UsageError(f"The demo has its own home and archive: leave {option} out.")
        environ = _demo_environ(environ, demo)
        user_home = demo
    data_dir = data_folder()
    path = archive_path(data_dir, environ) if archive is DEFAULT else archive
    path = Path(os.path.expanduser(path)) if path else None  # noqa: PTH111  which does not fail over `~nobody`
    if all_homes and named_homes:
        raise UsageError("--home and --all-homes contradict each other: use only one.")
    if all_homes and path is None:
        raise UsageError("--all-homes reads every home in the archive, so it needs an archive.")
    _check_archive(path)
    return Config(
        homes=_find_homes(named_homes, environ, user_home),
        named_homes=tuple(named_homes),
        all_homes=all_homes,
        archive=path,
        price_file=_price_file(prices, environ),
        zone_named=zone,
        user_home=user_home,
        cwd=current_folder(),
        machine=platform.node(),
        data_dir=data_dir,
        config_dir=config_folder(),
        keys_dir=keys_folder(environ),
        runtime_dir=runtime_folder(),
        environ=environ,
        user_environ=user_environ,
        clock=clock,
    )


def user_home_folder() -> Path:
    """Return the user's home. A user without one, as in some containers, gets `/`, which Docker would set too."""
    try:
        return Path.home()
    except RuntimeError:
        os.environ["HOME"] = os.sep
        return Path(os.sep)


def demo_folder() -> Path | None:
    """Return the folder of the running demo; None if the user's own history is read."""
    folder = os.environ.get(DEMO)
    return Path(folder) if folder else None


@contextmanager
def demo_in(folder: str) -> Iterator[None]:
    """Make `configure` return the settings of a demo in this folder."""
    before = os.environ.get(DEMO, "")
    os.environ[DEMO] = folder
    try:
        yield
    finally:
        os.environ[DEMO] = before
        if not before:
            del os.environ[DEMO]


def program_name() -> str:
    """Return how the user calls Pollux, for hints."""
    return "pollux demo" if demo_folder() else "pollux"


def _demo_environ(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the variables of the system, and the home of the demo: its copy, if a command may write to it."""
    own = {name: value for name, value in environ.items() if not name.startswith(("POLLUX_", "GEMINI_"))}
    copy = folder / "home"
    return {**own, "POLLUX_HOME": str(copy if copy.exists() else DEMO_HOME)}


def data_folder() -> Path:
    """Return the folder in which Pollux stores the archive, keys and project paths."""
    return demo_folder() or user_data_folder()


def user_data_folder() -> Path:
    """Return the user's own data folder, also during a demo."""
    folder = _on_linux("XDG_DATA_HOME", ".local/share")
    if folder is not None:
        return folder / _NAME
    import platformdirs

    return platformdirs.user_data_path(_NAME, appauthor=False)


def config_folder() -> Path:
    """Return the folder of the user's settings."""
    if demo := demo_folder():
        return demo / "config" / _NAME
    folder = _on_linux("XDG_CONFIG_HOME", ".config")
    if folder is not None:
        return folder / _NAME
    import platformdirs

    return platformdirs.user_config_path(_NAME, appauthor=False)


def current_folder() -> Path:
    """Return the current folder; its last known path if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD") or user_home_folder())


def archive_path(data_dir: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the archive that `POLLUX_ARCHIVE` names, else the user's own; `-` means none."""
    named = environ.get("POLLUX_ARCHIVE")
    if named:
        return None if named == "-" else Path(named)
    return data_dir / "archive.db"


def keys_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of keys that `POLLUX_KEYS` names, else the user's own."""
    named = None if demo_folder() else (os.environ if environ is None else environ).get("POLLUX_KEYS")
    return Path(named).expanduser().absolute() if named else data_folder() / "keys"


def runtime_folder() -> Path:
    """Return the folder of files that describe running processes: the system deletes it at logout where it has one."""
    folder = None if demo_folder() else _on_linux("XDG_RUNTIME_DIR", "")
    if folder is not None and os.environ.get("XDG_RUNTIME_DIR") and os.access(folder, os.W_OK | os.X_OK):
        return folder / _NAME
    return data_folder() / "run"


def stored_passphrase() -> str | None:
    """Return the passphrase of `POLLUX_PASSPHRASE`, or None."""
    return os.environ.get(PASSPHRASE)


def find_zone(name: str | None, environ: Mapping[str, str], clock: Clock = utc_now) -> tuple[tzinfo | None, str]:
    """Return the named time zone, else the system's own, and its name. Raises `InvalidFilterError`."""
    from zoneinfo import ZoneInfo

    for candidate in (name,) if name else (environ.get("TZ", "").lstrip(":"), _linked_zone()):
        try:
            if candidate:
                return ZoneInfo(candidate), candidate
        except (KeyError, OSError, ValueError):  # no such zone
            if name:
                raise _unknown_zone(name) from None
    return None, clock().astimezone().tzname() or "local"


def _find_homes(named: Sequence[Path], environ: Mapping[str, str], user_home: Path) -> tuple[Home, ...]:
    try:
        return homes(named, environ, user_home)
    except FileNotFoundError as error:
        if error.errno is not None:  # a relative path in a deleted current folder
            raise
        raise UsageError(f"{error}.") from None


def _check_archive(path: Path | None) -> None:
    if path is None:
        return
    if os.path.isdir(path):  # noqa: PTH112  Path.is_dir() raises PermissionError
        raise UsageError(f"The archive {path} is a folder: name a file, such as {path / 'archive.db'}.")
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
        raise UsageError(f"The archive {path} is a pipe or a device: name a regular file.")


def _price_file(named: Path | None, environ: Mapping[str, str]) -> Path | None:
    variable = environ.get("POLLUX_PRICES")
    if named or variable:
        return named or Path(str(variable))
    usual = config_folder() / "prices.toml"
    return usual if usual.is_file() else None


def _on_linux(variable: str, usual: str) -> Path | None:
    """Return a folder as the XDG specification defines it; None if `platformdirs`, which loads slowly, must decide."""
    if sys.platform != "linux" or "ANDROID_DATA" in os.environ:
        return None
    folder = os.environ.get(variable) or os.path.join(os.environ.get("HOME", ""), usual)  # noqa: PTH118
    return Path(folder) if os.path.isabs(folder) else None  # noqa: PTH117


def _linked_zone() -> str:
    """Return the name of the system's zone, taken from the target of its symbolic link."""
    _, _, name = os.path.realpath(_LOCALTIME).partition("/zoneinfo/")
    return name


def _unknown_zone(name: str) -> PolluxError:
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    names = sorted(available_timezones())
    if not names:
        return PolluxError(
            f"Cannot look up --timezone '{name}': this system has no time zone database. Run `pip install tzdata`."
        )
    cities = [zone for zone in names if zone.rpartition("/")[2].casefold() == name.casefold()]
    near = cities or get_close_matches(name, names, 3)
    return InvalidFilterError("--timezone", name, " or ".join(near) or "Europe/Berlin, America/New_York or UTC")
