"""Which homes to read: those that the user names, else those of a variable, else the user's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from pollux.sessions.projects.paths import is_project_hash


class Home(msgspec.Struct, frozen=True):
    """One `.gemini` folder, under whatever name."""

    root: Path
    tmp: Path
    """Where the project folders are."""
    how: str
    """What decided: `--home`, a variable, `user home`; `…, sandbox` for what macOS Seatbelt keeps apart."""

    @property
    def link_limit(self) -> Path | None:
        """The folder that links to the settings and registries of this home may not lead out of.

        None in the user's own home, where a manager of settings may have put links. Any other home may be a copy from
        somebody else, whose links lead to files of the reader.
        """
        return None if self.how.removesuffix(", sandbox") in _OWN else self.root


USER_HOME = "user home"
"""The value of `Home.how` for the home that is read when neither an option nor a variable names one."""
_OWN = (USER_HOME, "GEMINI_CLI_HOME")
_HOME_MARKS = ("projects.json", "trustedFolders.json", "installation_id", "google_accounts.json")


def homes(given: Sequence[Path], environ: Mapping[str, str], user_home: Path) -> tuple[Home, ...]:
    """Tell which homes to read: those given, else those of the first variable that is set, else the user's."""
    found: dict[str, Home] = {}
    for home in _named_homes(given, environ, user_home):
        for each in (home, *_sandbox(home)):
            found.setdefault(os.path.realpath(each.tmp), each)
    return tuple(found.values())


def _named_homes(given: Sequence[Path], environ: Mapping[str, str], user_home: Path) -> Iterator[Home]:
    listed = [part for part in environ.get("POLLUX_HOME", "").split(os.pathsep) if part]
    if given:
        for path in given:
            yield _recognised(_existing(_absolute(path, user_home)), "--home")
    elif listed:
        for part in listed:
            yield _recognised(_absolute(part, user_home), "POLLUX_HOME")
    elif value := environ.get("GEMINI_CLI_HOME"):
        yield _recognised(_absolute(value, user_home), "GEMINI_CLI_HOME")
    elif value := environ.get("GEMINI_DIR"):
        root = _absolute(value, user_home)
        yield Home(root, root / "tmp", "GEMINI_DIR")
    elif value := environ.get("GEMINI_SESSIONS_DIR"):
        tmp = _absolute(value, user_home)
        yield Home(tmp.parent, tmp, "GEMINI_SESSIONS_DIR")
    else:
        yield Home(user_home / ".gemini", user_home / ".gemini" / "tmp", USER_HOME)


def _absolute(path: str | Path, user_home: Path) -> Path:
    parts = Path(path).parts
    expanded = user_home.joinpath(*parts[1:]) if parts[:1] == ("~",) else Path(path)
    return Path(os.path.abspath(expanded))  # noqa: PTH100  # takes out `..`, which Path.absolute() keeps


def _existing(path: Path) -> Path:
    if not _is_folder(path):
        found = "is not a folder" if os.path.lexists(path) else "does not exist"
        raise FileNotFoundError(f"--home {path} {found}: name the folder that contains .gemini, or .gemini itself")
    return path


def _recognised(folder: Path, how: str) -> Home:
    """Tell by what a folder holds whether it contains `.gemini`, is that, or is its `tmp`."""
    inner = folder / ".gemini"
    if _is_folder(inner / "tmp"):
        root = inner
    elif _has_projects(folder / "tmp"):
        root = folder
    elif _has_projects(folder) or (folder.name == "tmp" and _is_home(folder.parent)):
        return Home(folder.parent, folder, how)
    elif _is_home(folder) and not (_is_folder(inner) and folder.name != ".gemini"):
        root = folder
    else:
        root = inner
    return Home(root, root / "tmp", how)


def _is_home(folder: Path) -> bool:
    return folder.name == ".gemini" or any(os.path.lexists(folder / mark) for mark in _HOME_MARKS)


def _has_projects(folder: Path) -> bool:
    return any(_is_surely_project(entry) for entry in _entries(str(folder)))


def _is_surely_project(entry: os.DirEntry[str]) -> bool:
    """Be stricter than the client: this looks at folders that may not be Gemini's at all."""
    if not _is_folder(entry.path):
        return False
    if is_project_hash(entry.name) or os.path.lexists(f"{entry.path}{os.sep}.project_root"):
        return True
    return any(file.name.startswith("session-") for file in _entries(f"{entry.path}{os.sep}chats"))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """List a folder; one that is none, or may not be listed, holds nothing that tells what it is."""
    try:
        with os.scandir(folder) as entries:
            return [*entries]
    except OSError:
        return []


def _is_folder(path: str | Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112  # Path.is_dir() raises where it may not look


def _sandbox(home: Home) -> Iterator[Home]:
    """Give the home that the client uses inside the macOS Seatbelt, if there is one beside this."""
    root = home.root.parent / ".cache" / ".gemini"
    if home.root.name == ".gemini" and _is_folder(root):
        yield Home(root, root / "tmp", f"{home.how}, sandbox")
