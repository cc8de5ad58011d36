"""The settings of a library: the one place that reads the environment, the clock and the user's folders."""
# ruff: noqa: PLC0415  imported when a setting needs it: a start should not pay for the others

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.errors import BadFilterError, PolluxError
from pollux.sessions.homes import USER_HOME, Home, homes

if TYPE_CHECKING:
    from pollux.prices import Prices

Clock = Callable[[], datetime]

_NAME = "pollux"
_LOCALTIME = Path("/etc/localtime")
PASSPHRASE = "POLLUX_PASSPHRASE"  # noqa: S105  the name of a variable
DEFAULT = Path()
"""Stands for the archive that the environment names, or else the user's own."""


class UsageError(PolluxError):
    """Settings that contradict each other, or cannot be used."""

    status = 2


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What a library works with; made once by `configure`."""

    homes: tuple[Home, ...]
    named_homes: tuple[Path, ...] = ()
    """The folders that the user named; empty if the environment decided."""
    all_homes: bool = False
    """Whether questions are about every home in the archive, not only about `homes`."""
    archive: Path | None
    """The archive's file; None to read session files directly and store nothing."""
    price_file: Path | None
    zone_named: str | None
    """The time zone asked for, or None for the system's own."""
    user_home: Path
    cwd: Path
    machine: str
    data_dir: Path
    config_dir: Path
    keys_dir: Path
    environ: Mapping[str, str]
    """Variables that settings of the client may refer to."""
    clock: Clock = utc_now

    @property
    def is_own_history(self) -> bool:
        """Whether nothing names a home, so that questions include what was imported from other archives."""
        return any(home.how == USER_HOME for home in self.homes)

    @property
    def project_memory(self) -> Path:
        """The file of project paths that were proven before."""
        return self.data_dir / "projects.json"

    def current_homes(self) -> tuple[Home, ...]:
        """Return the homes that are there now; one that was removed or unmounted is returned as it was."""
        try:
            return homes(self.named_homes, self.environ, self.user_home)
        except FileNotFoundError:
            return self.homes

    def has_session_files(self) -> bool:
        """Return whether there is a session file in the homes."""
        from pollux.sessions.locate import locate

        return any(True for _ in locate(self.homes).files)

    def prices(self) -> Prices:
        """Return the price table with the user's own prices."""
        from pollux import prices

        return prices.load(self.price_file)

    def user_name(self) -> str | None:
        """Return the name of the user; None if the system knows none, as in some containers."""
        from getpass import getuser

        try:
            return getuser()
        except (KeyError, OSError):
            return None

    def zone(self) -> tuple[tzinfo | None, str]:
        """Return the time zone and its name; no zone stands for the system's own if that has no known name."""
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
    """Return the settings that arguments and the environment lead to. Raises `UsageError`."""
    environ = os.environ if environ is None else environ
    user_home = Path.home()
    data_dir = data_folder()
    path = archive_path(data_dir, environ) if archive is DEFAULT else archive
    path = Path(os.path.expanduser(path)) if path else None  # noqa: PTH111  which does not fail over `~nobody`
    if all_homes and named_homes:
        raise UsageError("--home and --all-homes contradict each other: use one of them.")
    if all_homes and path is None:
        raise UsageError("--all-homes reads every home in the archive, so it cannot work without one.")
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
        environ=environ,
        clock=clock,
    )


def data_folder() -> Path:
    """Return the folder in which Pollux stores the archive, keys and project paths."""
    known = _on_linux("XDG_DATA_HOME", ".local/share")
    if known is not None:
        return known / _NAME
    import platformdirs

    return platformdirs.user_data_path(_NAME, appauthor=False)


def config_folder() -> Path:
    """Return the folder of the user's settings."""
    known = _on_linux("XDG_CONFIG_HOME", ".config")
    if known is not None:
        return known / _NAME
    import platformdirs

    return platformdirs.user_config_path(_NAME, appauthor=False)


def current_folder() -> Path:
    """Return the current folder; if it was deleted, its last known path, so that commands still work there."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD") or Path.home())


def archive_path(data_dir: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the archive that `POLLUX_ARCHIVE` names, else the user's own; `-` means none."""
    named = environ.get("POLLUX_ARCHIVE")
    if named:
        return None if named == "-" else Path(named)
    return data_dir / "archive.db"


def keys_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of keys that `POLLUX_KEYS` names, else the user's own."""
    named = (os.environ if environ is None else environ).get("POLLUX_KEYS")
    return Path(named).expanduser().absolute() if named else data_folder() / "keys"


def stored_passphrase() -> str | None:
    """Return the passphrase of `POLLUX_PASSPHRASE`, or None."""
    return os.environ.get(PASSPHRASE)


def find_zone(name: str | None, environ: Mapping[str, str], clock: Clock = utc_now) -> tuple[tzinfo | None, str]:
    """Return a time zone and its name: the one named, else the system's own. Raises `BadFilterError`."""
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
        if error.errno is not None:  # the current folder was deleted, so a relative path means nothing
            raise
        raise UsageError(f"{error}.") from None


def _check_archive(path: Path | None) -> None:
    if path is None:
        return
    if os.path.isdir(path):  # noqa: PTH112  which does not fail where it may not look
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
    """Return a folder as the XDG specification defines it, without loading `platformdirs`; None if it must decide."""
    if sys.platform != "linux" or "ANDROID_DATA" in os.environ:
        return None
    folder = os.environ.get(variable) or os.path.join(os.environ.get("HOME", ""), usual)  # noqa: PTH118
    return Path(folder) if os.path.isabs(folder) else None  # noqa: PTH117


def _linked_zone() -> str:
    """Return the name of the system's zone, which is where its file links to."""
    _, _, name = os.path.realpath(_LOCALTIME).partition("/zoneinfo/")
    return name


def _unknown_zone(name: str) -> PolluxError:
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    known = available_timezones()
    if not known:
        return PolluxError(
            f"--timezone '{name}' cannot be looked up, since there are no time zones on this system; "
            "`pip install tzdata` adds them."
        )
    cities = [zone for zone in sorted(known) if zone.rpartition("/")[2].casefold() == name.casefold()]
    near = cities or get_close_matches(name, sorted(known), 3)
    return BadFilterError("--timezone", name, " or ".join(near) or "Europe/Berlin, America/New_York or UTC")
