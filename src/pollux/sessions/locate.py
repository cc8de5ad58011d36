"""Find the project folders and session files of Gemini homes, by name and `stat`; no file is opened."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from pollux.disk.read import is_within
from pollux.model import Problem
from pollux.sessions.homes import Home
from pollux.sessions.projects.paths import is_project_hash
from pollux.text.numbers import LARGEST, clamped, fits

__all__ = [
    "Home",
    "HomeScan",
    "ProjectFolder",
    "ScanCache",
    "SessionFile",
    "entries",
    "id8_in",
    "link_outside",
    "locate",
    "name_facts",
    "no_regular_file",
    "session_file_kind",
    "vanished",
]


class SessionFile(NamedTuple):
    """A file of a session or of a subagent, or what remains of one."""

    place: str
    """The path as a string: creating thousands of `Path` objects takes longer than the rest of a scan."""
    home: Home
    folder: str
    """Name of the project folder: a hash or a slug."""
    parent: str | None
    """ID of the session that started this subagent."""
    size: int
    mtime_ns: int
    inode: int
    what: str
    """`session`, `subagent`, or `leftover` for a backup copy or an unfinished rewrite."""
    ctime_ns: int = 0

    @property
    def path(self) -> Path:
        """The path as an object."""
        return Path(self.place)


class ProjectFolder(msgspec.Struct, frozen=True):
    """The client's files of one project."""

    path: Path
    name: str
    home: Home
    has_marker: bool = False
    files: tuple[SessionFile, ...] = ()
    logs: Path | None = None
    checkpoints: tuple[Path, ...] = ()
    """Saved by `/chat save`."""
    restore_points: tuple[Path, ...] = ()
    """Saved for `/restore`."""
    tool_outputs: tuple[Path, ...] = ()
    """Long tool outputs: one folder per session, or files."""
    shell_history: Path | None = None
    activity_logs: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()
    """Everything else: plans, memory, bug reports, backups of `logs.json`, unknown names."""


class HomeScan(msgspec.Struct, frozen=True):
    """Project folders and session files, sorted; a file that several links lead to is listed once."""

    homes: tuple[Home, ...]
    folders: tuple[ProjectFolder, ...]
    problems: tuple[Problem, ...] = ()

    def without_files(self) -> HomeScan:
        """Return the same homes and folders without their session files, which take a kilobyte of memory each."""
        folders = tuple(msgspec.structs.replace(folder, files=()) for folder in self.folders)
        return msgspec.structs.replace(self, folders=folders)

    @property
    def files(self) -> Iterator[SessionFile]:
        """The session files of all folders."""
        return (file for folder in self.folders for file in folder.files)


class ScanCache(msgspec.Struct):
    """Problems and folder listings of one scan, for code that lists more folders of the same homes."""

    problems: list[Problem] = []
    listings: dict[str, list[_Entry]] = {}
    """Entries of each folder, sorted by name."""
    roots: tuple[str, ...] = ()
    """The real folders of one home; links may not lead anywhere else."""

    def inside(self, home: Home) -> ScanCache:
        """Return the same cache, limited to one home: links that lead out of it are reported and not followed."""
        folders = [home.tmp, home.root] if home.root.name == ".gemini" else [home.tmp]
        return ScanCache(self.problems, self.listings, tuple(os.path.realpath(folder) for folder in folders))


class _Place(NamedTuple):
    """The path of an entry, and the path with all links resolved."""

    path: str
    real: str
    is_linked: bool

    def below(self, entry: _Entry) -> _Place:
        return _Place(entry.path, *self.real_of(entry))

    def real_of(self, entry: _Entry) -> tuple[str, bool]:
        if entry.is_symlink():
            return os.path.realpath(entry.path), True
        return f"{self.real}{os.sep}{entry.name}", self.is_linked


class _Find(NamedTuple):
    """A session file that may also be reachable through another path."""

    real: str
    is_linked: bool
    file: SessionFile


class _Draft(NamedTuple):
    real: str
    is_linked: bool
    folder: ProjectFolder
    files: list[SessionFile]
    links: dict[str, str]
    """The real paths of the files that a link leads to, by path."""


_Entry: TypeAlias = "os.DirEntry[str]"
_Found = TypeVar("_Found", _Find, _Draft)
_CHECKPOINT = re.compile(r"checkpoint(?:-.*)?\.json", re.DOTALL)
_LEFTOVER = re.compile(r".+\.(?:unreadable|tmp)-[\w-]+", re.DOTALL)
_TIME = re.compile(r"session-(?:(\d{4}-\d\d-\d\dT\d\d-\d\d)|(\d{13}))(?!\d)")
_NAME = re.compile(
    r"session-(?:\d{4}-\d\d-\d\dT\d\d-\d\d(?:-\d\d)??|\d{13})-([^./\\]{1,8})(?:-p[0-9a-f]{7})?\.jsonl?(?:\.(?:unreadable|tmp)-[\w-]+)?",
)
_SUFFIXES = (".json", ".jsonl")
_FOLDERS = {
    "chats": "chats",
    "checkpoints": "restore_points",
    "logs": "activity_logs",
    "tool-outputs": "tool_outputs",
    "tool_output": "tool_outputs",
}
_FILES = {".project_root": "marker", "logs.json": "logs", "shell_history": "shell_history"}
_NOT_PROJECTS = frozenset({"bin", "background-processes"})


def locate(
    homes: Iterable[Home], look: ScanCache | None = None, *, of_folders: Callable[[str], bool] = lambda _path: True
) -> HomeScan:
    """Return the project folders of the homes, with the session files of all, or of those whose paths are chosen."""
    homes, look = tuple(homes), look or ScanCache()
    drafts = [draft for home in homes for draft in _drafts(home, look.inside(home), of_folders)]
    return HomeScan(homes, tuple(_without_doubles(drafts)), tuple(look.problems))


def name_facts(filename: str) -> tuple[datetime | None, str | None]:
    """Return the start time and the first 8 characters of the session ID that a file's name contains.

    `pollux restore` appends `-p` and seven digits to the names of files that it writes.
    """
    match = _TIME.match(filename)
    if match is None:
        return None, None
    minute, milliseconds = match.groups()
    if milliseconds:
        started = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(milliseconds))
        return started, id8_in(filename)
    try:
        return datetime.fromisoformat(f"{minute[:13]}:{minute[14:]}+00:00"), id8_in(filename)
    except ValueError:
        return None, id8_in(filename)


def id8_in(filename: str) -> str | None:
    """Return the first 8 characters of the session ID that a file's name contains."""
    match = _NAME.fullmatch(filename)
    return match[1] if match else None


def entries(folder: str, look: ScanCache) -> list[_Entry]:
    """Return the entries of a folder, sorted by name and cached, without links that lead out of its home."""
    if folder not in look.listings:
        look.listings[folder] = []
        try:
            with os.scandir(folder) as folder_entries:
                listed = sorted(folder_entries, key=attrgetter("name"))
        except OSError as error:
            look.problems.append(Problem("unreadable-folder", f"cannot be listed: {error.strerror}", folder))
        else:
            look.listings[folder] = [entry for entry in listed if not (entry.is_symlink() and _leads_out(entry, look))]
    return look.listings[folder]


def no_regular_file(place: str) -> Problem:
    """Return the problem for a pipe, device or other entry in place of a regular file."""
    return Problem("not-a-file", "is a pipe, a device or the like, not a regular file, and is not read", place)


def link_outside(place: str) -> Problem:
    """Return the problem for a link that leads out of its home."""
    return Problem(
        "link-outside", f"is a link out of the home, to {os.path.realpath(place)}, and is not followed", place
    )


def _leads_out(entry: _Entry, look: ScanCache) -> bool:
    """Return whether a link leads out of its home, and report it: a copied home may link to private files."""
    if any(is_within(entry.path, root) for root in look.roots):
        return False
    look.problems.append(link_outside(entry.path))
    return True


def vanished(entry: _Entry, error: OSError) -> Problem:
    """Return the problem for a file that was deleted or became unreachable after its folder was listed."""
    return Problem("vanished-file", f"was listed but cannot be reached: {error.strerror}", entry.path)


def _drafts(home: Home, look: ScanCache, of_folders: Callable[[str], bool]) -> Iterator[_Draft]:
    tmp = str(home.tmp)
    if not os.path.lexists(tmp):  # an unused home is not a problem
        return
    place = _Place(tmp, os.path.realpath(tmp), is_linked=False)
    for entry in entries(tmp, look):
        if _leads_to_folder(entry, look):
            draft = _draft(home, entry.name, place.below(entry), look, has_files=of_folders(entry.path))
            if draft is not None:
                yield draft


def _draft(home: Home, name: str, place: _Place, look: ScanCache, *, has_files: bool) -> _Draft | None:
    """Sort the entries of a folder below `tmp` by role; return None if it is not a project's folder."""
    by_role: dict[str, list[_Entry]] = {}
    for entry in entries(place.path, look):
        by_role.setdefault(_role(entry, is_folder=_leads_to_folder(entry, look)), []).append(entry)
    is_used = not by_role.keys().isdisjoint(("chats", "logs", "checkpoints"))
    if not ("marker" in by_role or is_project_hash(name) or (is_used and name not in _NOT_PROJECTS)):
        return None
    folder = ProjectFolder(
        path=Path(place.path),
        name=name,
        home=home,
        has_marker="marker" in by_role,
        logs=_path(by_role.get("logs")),
        checkpoints=_paths(by_role.get("checkpoints")),
        restore_points=_contents(by_role.get("restore_points"), look, ".json"),
        tool_outputs=_contents(by_role.get("tool_outputs"), look) + _paths(by_role.get("loose_outputs")),
        shell_history=_path(by_role.get("shell_history")),
        activity_logs=_contents(by_role.get("activity_logs"), look, ".jsonl"),
        others=_paths(by_role.get("others")),
    )
    files: list[SessionFile] = []
    links: dict[str, str] = {}
    for chats in by_role.get("chats", ()) if has_files else ():
        files += _session_files(home, name, place.below(chats), look, links)
    return _Draft(place.real, place.is_linked, folder, files, links)


def _role(entry: _Entry, *, is_folder: bool) -> str:
    name = entry.name
    if is_folder:
        return _FOLDERS.get(name, "others")
    if _CHECKPOINT.fullmatch(name):
        return "checkpoints"
    if name.endswith((".output", ".txt")):  # where 0.5 to 0.27 put them
        return "loose_outputs"
    return _FILES.get(name, "others")


def session_file_kind(name: str, *, is_nested: bool) -> str | None:
    """Return the kind of a file below `chats` by its name: `session`, `subagent`, `leftover`, or None for any other.

    Files in folders below `chats` belong to subagents.
    """
    if name.endswith(_SUFFIXES):
        if is_nested:
            return "subagent"
        return "session" if name.startswith("session-") else None
    return "leftover" if _LEFTOVER.fullmatch(name) else None


def _session_files(
    home: Home, folder: str, chats: _Place, look: ScanCache, links: dict[str, str]
) -> Iterator[SessionFile]:
    """Yield the session files of a folder; add the real paths of those that a link leads to."""
    for entry, place, parent, what in _candidates(chats, look):
        try:
            status = os.stat(entry.path)  # noqa: PTH116  the entry would keep what its own method returns
        except OSError as error:
            look.problems.append(vanished(entry, error))
            continue
        if not stat.S_ISREG(status.st_mode):
            look.problems.append(no_regular_file(entry.path))
            continue
        if place.is_linked or entry.is_symlink():
            links[entry.path] = place.real_of(entry)[0]
        mtime_ns, ctime_ns, inode = status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        if not (0 <= mtime_ns <= LARGEST and 0 <= ctime_ns <= LARGEST and inode <= LARGEST):
            mtime_ns = held_time(mtime_ns, entry.path, look)
            inode, ctime_ns = held_inode(inode), clamped(ctime_ns)
        yield SessionFile(entry.path, home, folder, parent, status.st_size, mtime_ns, inode, what, ctime_ns)


def held_time(mtime_ns: int, place: str, look: ScanCache) -> int:
    """Return a modification time clamped to 64-bit nanoseconds; report one that was clamped."""
    if fits(mtime_ns):
        return mtime_ns
    text = "its modification time is outside the years 1677 to 2262; the nearest time in that range is used"
    look.problems.append(Problem("value-out-of-range", text, place))
    return clamped(mtime_ns)


def held_inode(inode: int) -> int:
    """Return an inode number reduced to 63 bits: some file systems use 64 or more."""
    return inode if fits(inode) else inode % LARGEST


def _candidates(chats: _Place, look: ScanCache) -> Iterator[tuple[_Entry, _Place, str | None, str]]:
    """Yield the files with a session's name in `chats`, and those of subagents one level deeper."""
    for entry in entries(chats.path, look):
        if _leads_to_folder(entry, look):
            parent = chats.below(entry)
            for inner in entries(parent.path, look):
                if kind := session_file_kind(inner.name, is_nested=True):
                    yield inner, parent, entry.name, kind
        elif kind := session_file_kind(entry.name, is_nested=False):
            yield entry, chats, None, kind


def _leads_to_folder(entry: _Entry, look: ScanCache) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # a loop of links
        look.problems.append(Problem("unreadable-folder", f"cannot be followed: {error.strerror}", entry.path))
        return False


def _path(entries: Sequence[_Entry] | None) -> Path | None:
    return Path(entries[0].path) if entries else None


def _paths(entries: Iterable[_Entry] | None, suffix: str = "") -> tuple[Path, ...]:
    return tuple([Path(entry.path) for entry in entries if entry.name.endswith(suffix)]) if entries else ()


def _contents(folders: Iterable[_Entry] | None, look: ScanCache, suffix: str = "") -> tuple[Path, ...]:
    if not folders:
        return ()
    return tuple(path for folder in folders for path in _paths(entries(folder.path, look), suffix))


def _without_doubles(drafts: Sequence[_Draft]) -> Iterator[ProjectFolder]:
    """Yield each real folder and file once, under the first path that reaches it without a link, else the first."""
    folders = _owners(drafts)
    chosen = [draft for draft in drafts if folders[draft.real] is draft]
    owners = _owners(list(_finds(chosen))) if any(draft.links for draft in chosen) else None
    for draft in chosen:
        own = tuple([file for file in draft.files if owners is None or file is owners[_real(draft, file)].file])
        yield msgspec.structs.replace(draft.folder, files=own) if own else draft.folder


def _finds(drafts: Iterable[_Draft]) -> Iterator[_Find]:
    for draft in drafts:
        for file in draft.files:
            yield _Find(_real(draft, file), file.place in draft.links, file)


def _real(draft: _Draft, file: SessionFile) -> str:
    """Return the path of a file with all links resolved."""
    return draft.links.get(file.place) or draft.real + file.place[len(str(draft.folder.path)) :]


def _owners(found: Sequence[_Found]) -> dict[str, _Found]:
    owners: dict[str, _Found] = {}
    for each in sorted(found, key=attrgetter("is_linked")):
        owners.setdefault(each.real, each)
    return owners
