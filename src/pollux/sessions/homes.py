"""Choose the Gemini homes to read: those that the user names, else those of a variable, else the user's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from pollux.sessions.projects.paths import is_project_hash


class Home(msgspec.Struct, frozen=True):
    """A `.gemini` folder; it may have another name."""

    root: Path
    tmp: Path
    """The folder that contains the project folders."""
    source: str
    """What named it: `--home`, a variable or `user home`; with `, sandbox` for the home inside macOS Seatbelt."""

    @property
    def link_limit(self) -> Path | None:
        """The folder in which links to settings and registries must stay; None in the user's own home.

        A dotfile manager may have put links into the user's own home. Any other home may be a copy from another person,
        with links to private files of the reader.
        """
        return None if self.source.removesuffix(", sandbox") in _OWN else self.root


USER_HOME = "user home"
"""`Home.source` if neither an option nor a variable names a home."""
_OWN = (USER_HOME, "GEMINI_CLI_HOME")
_HOME_MARKS = ("projects.json", "trustedFolders.json", "installation_id", "google_accounts.json")


def homes(named: Sequence[Path], environ: Mapping[str, str], user_home: Path) -> tuple[Home, ...]:
    """Return the named homes, else those of the first variable that is set, else the user's; each real folder once."""
    by_path: dict[str, Home] = {}
    for home in _named_homes(named, environ, user_home):
        for variant in (home, *_sandbox(home)):
            by_path.setdefault(os.path.realpath(variant.tmp), variant)
    return tuple(by_path.values())


def _named_homes(named: Sequence[Path], environ: Mapping[str, str], user_home: Path) -> Iterator[Home]:
    listed = [part for part in environ.get("POLLUX_HOME", "").split(os.pathsep) if part]
    if named:
        for path in named:
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
    return Path(os.path.abspath(expanded))  # noqa: PTH100  # removes `..`, which Path.absolute() keeps


def _existing(path: Path) -> Path:
    if not _is_folder(path):
        fault = "is not a folder" if os.path.lexists(path) else "does not exist"
        raise FileNotFoundError(f"--home {path} {fault}: name the folder that contains .gemini, or .gemini itself")
    return path


def _recognised(folder: Path, source: str) -> Home:
    """Return the home that a folder contains, is, or is the `tmp` folder of, judging by its entries."""
    inner = folder / ".gemini"
    if _is_folder(inner / "tmp"):
        root = inner
    elif _has_projects(folder / "tmp"):
        root = folder
    elif _has_projects(folder) or (folder.name == "tmp" and _is_home(folder.parent)):
        return Home(folder.parent, folder, source)
    elif _is_home(folder) and not (_is_folder(inner) and folder.name != ".gemini"):
        root = folder
    else:
        root = inner
    return Home(root, root / "tmp", source)


def _is_home(folder: Path) -> bool:
    return folder.name == ".gemini" or any(os.path.lexists(folder / mark) for mark in _HOME_MARKS)


def _has_projects(folder: Path) -> bool:
    return any(_is_surely_project(entry) for entry in _entries(str(folder)))


def _is_surely_project(entry: os.DirEntry[str]) -> bool:
    """Return whether a folder can only be a project's; stricter than the client, as any folder may be passed here."""
    if not _is_folder(entry.path):
        return False
    if is_project_hash(entry.name) or os.path.lexists(f"{entry.path}{os.sep}.project_root"):
        return True
    return any(file.name.startswith("session-") for file in _entries(f"{entry.path}{os.sep}chats"))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [*entries]
    except OSError:
        return []


def _is_folder(path: str | Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112  # Path.is_dir() raises without permission


def _sandbox(home: Home) -> Iterator[Home]:
    """Yield the home that the client uses inside macOS Seatbelt, if it exists next to this one."""
    root = home.root.parent / ".cache" / ".gemini"
    if home.root.name == ".gemini" and _is_folder(root):
        yield Home(root, root / "tmp", f"{home.source}, sandbox")
