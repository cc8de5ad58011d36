"""Hash or slug of a project → its path, and how the path is known.

A session file names its project only by `sha256(path)`. So a path is *proven* when it has that hash and *inferred*
when something merely says so; a proof from any source beats every inference.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import ntpath
import os
import posixpath
import re
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pollux.locate import Home
from pollux.model import Json, Problem, Project


class Claim(NamedTuple):
    """Somebody's word that a project is at a path."""

    how: str
    path: str
    folder: str | None = None
    """Name of the project folder that the word is about; without it, only a matching hash makes it one."""


@dataclass(frozen=True, slots=True)
class Known:
    """What one home says about paths, best word first."""

    claims: tuple[Claim, ...] = ()
    by_folder: Mapping[str, Claim] = field(default_factory=dict)
    by_hash: Mapping[str, Claim] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


NOTHING_KNOWN = Known()

_MEMORY_SCHEMA = "pollux.project-paths/1"
_LIKELY = re.compile(
    r"dev|develop|developer|development|projects?|src|source|sources|code|coding|work|workspaces?|documents|repos?"
    r"|repositories|git|github|gitlab|go|sites|www|desktop",
    re.IGNORECASE,
)
_NOT_ENTERED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "Library", "AppData"})
_NO_PATHS: Mapping[str, str] = MappingProxyType({})

_HASH = re.compile(r"[0-9a-f]{64}")
_HASH_PREFIX = re.compile(r"\[?([0-9a-f]{4,64})\]?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")
_ANCHORED = re.compile(r"\.{1,2}$|\.{1,2}[\\/]|~$|~[\\/]|/")
_IN_COMMAND = re.compile(r"""(?<![\w.:/\\~-])(?:/|[A-Za-z]:[\\/])[^\s'"`;&|<>()$*?]*""")
_LONGEST_PATH = 4096
_NAMED = 1000
"""Rank of a project by name: behind all that a path may mean."""
_ONE_DIRECTORY = re.compile(r"^[ \t]*I'm currently working in the directory: (.+)$", re.MULTILINE)
_DIRECTORIES = re.compile(
    r"^[ \t]*(?:- \*\*Workspace Directories:\*\*|I'm currently working in the following directories:)[ \t\r]*\n"
    r"((?:[ \t]+- .+(?:\n|\Z))+)",
    re.MULTILINE,
)


def project_hash(path: str) -> str:
    """Hash a path as the client does."""
    # a name that is not Unicode reaches the client as U+FFFD
    return hashlib.sha256(_SURROGATE.sub("\ufffd", path).encode()).hexdigest()


def slug(path: str) -> str:
    """Make the folder name that the client wants for a path; if it is taken, `-1`, `-2` … follow."""
    return re.sub(r"[^a-z0-9]+", "-", _base_name(path).lower()).strip("-") or "project"


def known_paths(home: Home) -> Known:
    """Read what a home says about paths: markers, registry, trusted folders."""
    problems: list[Problem] = []
    claims = [*_markers(home.tmp, problems), *_markers(home.root / "history", problems)]
    registry = home.root / "projects.json"
    projects = _json_object(registry, problems).get("projects", {})
    for path, name in projects.items() if isinstance(projects, dict) else ():
        if isinstance(name, str) and is_absolute(path):
            claims.append(Claim("projects.json", path, name))
        else:
            problems.append(Problem("broken-registry", f"{path!r}: is no path with a folder's name", str(registry)))
    if not isinstance(projects, dict):
        problems.append(Problem("broken-registry", "holds no table of projects", str(registry)))
    trusted = _json_object(home.root / "trustedFolders.json", problems)
    claims += [Claim("trustedFolders.json", path) for path in trusted if is_absolute(path)]
    return known_from_claims(claims, problems)


def known_from_claims(claims: Iterable[Claim], problems: Iterable[Problem] = ()) -> Known:
    """Sort claims, best first, for `resolve`."""
    claims = tuple(claims)
    by_folder: dict[str, Claim] = {}
    by_hash: dict[str, Claim] = {}
    for claim in claims:
        if claim.folder is not None:
            by_folder.setdefault(claim.folder, claim)
        for spelling in _spellings(claim.path):
            by_hash.setdefault(project_hash(spelling), claim._replace(path=spelling))
    return Known(claims, by_folder, by_hash, tuple(problems))


def resolve(
    digest: str | None,
    folder: str | None,
    known: Known = NOTHING_KNOWN,
    *,
    directories: Sequence[str] = (),
    session_context: Sequence[str] = (),
    scanned: Mapping[str, str] = _NO_PATHS,
    arguments: Iterable[str] = (),
    memory: Mapping[str, str] = _NO_PATHS,
) -> Project:
    """Tell the project of one session.

    Args:
        digest: `projectHash` of the session; without it, the folder's name where that is a hash.
        folder: name of the project folder.
        known: what the session's home says.
        directories: the field of that name in the session.
        session_context: what `workspace_directories` found.
        scanned: what `scan` found.
        arguments: absolute paths in tool calls, whose ancestors are tried; only read if nothing better is a proof.
        memory: what `load_memory` gave.

    """
    is_hash = folder is not None and _HASH.fullmatch(folder) is not None
    digest = digest or (folder if is_hash else None)
    name = None if is_hash else folder
    told = {
        "directories": tuple(filter(is_absolute, directories)),
        "session_context": tuple(filter(is_absolute, session_context)),
    }
    claim = known.by_hash.get(digest) if digest else None
    claim = claim or _proof(digest, {**told, "scan": _entry(scanned, digest)})
    ancestors = () if claim else tuple(_ancestors(filter(is_absolute, arguments)))
    claim = claim or _proof(digest, {"arguments": ancestors, "memory": _entry(memory, digest)})
    is_proven = claim is not None
    claim = claim or (known.by_folder.get(folder) if folder else None) or _inference(digest, name, told, ancestors)
    if claim is None:
        return Project(digest, name)
    return Project(digest, name or claim.folder, claim.path, claim.how, is_proven)


def workspace_directories(text: str) -> tuple[str, ...]:
    """Read the directories out of the context that the client puts before the first prompt, in any of its wordings."""
    if listed := _DIRECTORIES.search(text):
        lines = (line.strip().removeprefix("- ") for line in listed[1].rstrip("\n").split("\n"))
        return tuple(filter(is_absolute, lines))
    one = _ONE_DIRECTORY.search(text)
    return tuple(filter(is_absolute, [one[1].strip()] if one else []))


def argument_paths(arguments: Json) -> Iterator[str]:
    """Give the absolute paths in the arguments of a tool call, also those inside a shell command."""
    match arguments:
        case str() if is_absolute(arguments) and len(arguments) <= _LONGEST_PATH and "\n" not in arguments:
            yield arguments
        case Mapping():
            for key, value in arguments.items():
                if key == "command" and isinstance(value, str):
                    yield from _IN_COMMAND.findall(value)
                else:
                    yield from argument_paths(value)
        case list() | tuple():
            for value in arguments:
                yield from argument_paths(value)
        case _:
            pass


def is_absolute(path: str) -> bool:
    """Tell whether a path is absolute on any system."""
    return path.startswith("/") or _is_windows(path)


def load_memory(path: Path) -> dict[str, str]:
    """Read the proven pairs of hash and path that were remembered; what is no proof is not believed."""
    return _remembered(path) or {}


def remember(path: Path, pairs: Mapping[str, str]) -> Problem | None:
    """Add the proven ones of some pairs of hash and path to the memory; a failure is told, not raised."""
    old = _remembered(path)
    if old is None:
        return Problem("newer-memory", "was written by a newer Pollux: please update", str(path))
    new = old | {digest: project for digest, project in pairs.items() if project_hash(project) == digest}
    if new == old:
        return None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, json.dumps({"schema": _MEMORY_SCHEMA, "paths": new}, indent=1, sort_keys=True))
    except OSError as error:
        return Problem("memory-not-kept", f"cannot be written: {error.strerror}", str(path))
    return None


def likely_roots(user_home: Path) -> tuple[Path, ...]:
    """Give the folders worth a scan: those in a home that are named like a place for projects, then the home itself."""
    named = (Path(path) for path, _ in _subfolders(str(user_home)))
    return (*(path for path in named if _LIKELY.fullmatch(path.name)), user_home)


def scan(roots: Iterable[Path], wanted: Collection[str], *, depth: int = 3, limit: int = 50_000) -> dict[str, str]:
    """Look for the folders that have the wanted hashes, nearest first.

    Args:
        roots: where to begin; links are resolved here and nowhere below, as the client sees no links in its path.
        wanted: hashes of projects.
        depth: levels below a root.
        limit: number of folders after which to give up.

    """
    wanted = frozenset(wanted)
    found: dict[str, str] = {}
    seen: set[str] = set()
    queue = deque((os.path.realpath(root), depth) for root in roots)
    while queue and len(seen) < limit and len(found) < len(wanted):
        path, levels = queue.popleft()
        if path in seen:
            continue
        seen.add(path)
        for spelling in _spellings(path):
            digest = project_hash(spelling)
            if digest in wanted:
                found[digest] = spelling
        if levels:
            queue.extend((child, levels - 1 if is_entered else 0) for child, is_entered in _subfolders(path))
    return found


def find(projects: Iterable[Project], query: str, cwd: Path, user_home: Path) -> tuple[Project, ...]:
    """Give the projects that fit best to what a user typed; those that merely sound alike if there are no others."""
    ranked = [(rank(project, query, cwd, user_home), project) for project in projects]
    best = min((place for place, _ in ranked if place is not None), default=None)
    if best is not None or _has_separator(query):
        return tuple(project for place, project in ranked if place is not None and place == best)
    names = {project.name.casefold() for _, project in ranked}
    alike = difflib.get_close_matches(query.casefold(), names, n=1)
    return tuple(project for _, project in ranked if project.name.casefold() in alike)


def rank(project: Project, query: str, cwd: Path, user_home: Path) -> int | None:
    """Tell how well a project fits to what a user typed: 0 is best, nothing is not at all.

    The project of a path is the one in that very folder, else those below it; `.` may also be inside a project.
    A name is a folder's name or slug, else the beginning of a hash (four digits or more), else a piece of the path.
    """
    places = [_distance(project, here, is_cwd=query == ".") for here in _typed_paths(query, cwd, user_home)]
    nearest = min((place for place in places if place is not None), default=None)
    if nearest is not None or _is_anchored(query) or not query.strip():
        return nearest
    name = query.casefold().replace("\\", "/")
    if name in {project.name.casefold(), (project.slug or "").casefold()}:
        return _NAMED
    prefix = _HASH_PREFIX.fullmatch(name)
    if prefix and (project.hash or "").startswith(prefix[1]):
        return _NAMED + 1
    if any(name in known.casefold().replace("\\", "/") for known in (project.path, project.slug) if known):
        return _NAMED + 2
    return None


def moved_to(project: Project, paths: Iterable[str], exists: Callable[[str], bool]) -> str | None:
    """Guess where a project went: its folder is gone, and one other of the same name is there."""
    if project.path is None or exists(project.path):
        return None
    name = _base_name(_key(project.path))
    others = {path for path in paths if _base_name(_key(path)) == name and exists(path)}
    return others.pop() if len(others) == 1 else None


def _markers(base: Path, problems: list[Problem]) -> Iterator[Claim]:
    try:
        with os.scandir(base) as entries:
            folders = sorted(entry.name for entry in entries)
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(Problem("unreadable-folder", f"cannot be listed: {error.strerror}", str(base)))
        return
    for name in folders:
        file = f"{base}{os.sep}{name}{os.sep}.project_root"
        try:
            with open(file, encoding="utf-8", errors="replace") as marker:  # noqa: PTH123  # thousands of them
                path = marker.read(_LONGEST_PATH).strip()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problems.append(Problem("unreadable-marker", f"cannot be read: {error.strerror}", file))
            continue
        if is_absolute(path):
            yield Claim("project_root", path, name)
        else:
            problems.append(Problem("broken-marker", "names no absolute path", file))


def _json_object(file: Path, problems: list[Problem]) -> dict[str, object]:
    try:
        value = json.loads(file.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        problems.append(Problem("unreadable-file", f"cannot be read: {error.strerror}", str(file)))
        return {}
    except (ValueError, RecursionError) as error:
        problems.append(Problem("broken-json", f"is not JSON: {error}", str(file)))
        return {}
    if isinstance(value, dict):
        return value
    problems.append(Problem("broken-json", "is not a JSON object", str(file)))
    return {}


def _remembered(path: Path) -> dict[str, str] | None:
    document = _json_object(path, [])  # a broken memory is none: it is only there to save work
    paths = document.get("paths")
    if document.get("schema", _MEMORY_SCHEMA) != _MEMORY_SCHEMA:
        return None
    pairs = paths.items() if isinstance(paths, dict) else ()
    return {digest: path for digest, path in pairs if isinstance(path, str) and project_hash(path) == digest}


def _replace(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink()
        raise


def _entry(paths: Mapping[str, str], digest: str | None) -> tuple[str, ...]:
    return (paths[digest],) if digest is not None and digest in paths else ()


def _proof(digest: str | None, told: Mapping[str, Iterable[str]]) -> Claim | None:
    for how, paths in told.items():
        for path in paths:
            for spelling in _spellings(path):
                if project_hash(spelling) == digest:
                    return Claim(how, spelling)
    return None


def _inference(
    digest: str | None, name: str | None, told: Mapping[str, Iterable[str]], ancestors: Iterable[str]
) -> Claim | None:
    """Believe a path whose slug is the folder's; beside a hash, only one that Windows may have spelled otherwise."""
    for how, paths in told.items():
        for path in paths:
            if _has_slug(path, name) if name else digest is None or _is_windows(path):
                return Claim(how, path)
    fitting = {path for path in ancestors if name and _has_slug(path, name)}
    return Claim("arguments", fitting.pop()) if len(fitting) == 1 else None


def _has_slug(path: str, name: str) -> bool:
    return re.fullmatch(rf"{re.escape(slug(path))}(?:-\d+)?", name) is not None


def _is_windows(path: str) -> bool:
    return _WINDOWS.match(path) is not None


def _separator(path: str) -> str:
    return "\\" if _is_windows(path) else "/"


def _normal(path: str) -> str:
    if _is_windows(path):
        return ntpath.normpath(path)
    return posixpath.normpath("/" + path.lstrip("/"))


def _key(path: str) -> str:
    """Give what two spellings of one path have in common."""
    return _normal(path).lower() if _is_windows(path) else _normal(path)


def _split(path: str) -> tuple[str, str]:
    return ntpath.split(path) if _is_windows(path) else posixpath.split(path)


def _base_name(path: str) -> str:
    return _split(_normal(path))[1]


def _spellings(path: str) -> tuple[str, ...]:
    """Give the ways the client may have spelled a path: on Windows a drive is `C:` or `c:` as the shell likes."""
    path = _normal(path)
    return (path, path[0].swapcase() + path[1:]) if _is_windows(path) else (path,)


def _lineage(path: str) -> Iterator[str]:
    """Give a path and its ancestors, nearest first."""
    path = _normal(path)
    yield path
    while (parent := _split(path)[0]) != path:
        path = parent
        yield path


def _ancestors(paths: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for path in paths:
        for ancestor in _lineage(path):
            if ancestor in seen:
                break  # and so are those above it
            seen.add(ancestor)
            yield ancestor


def _subfolders(folder: str) -> list[tuple[str, bool]]:
    """List the folders in a folder, each with whether to look inside; a folder that may not be listed has none."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted((entry.path, not (entry.name.startswith(".") or entry.name in _NOT_ENTERED)) for entry in found)


def _has_separator(query: str) -> bool:
    return "/" in query or "\\" in query


def _is_anchored(query: str) -> bool:
    return _ANCHORED.match(query) is not None or _is_windows(query)


def _typed_paths(query: str, cwd: Path, user_home: Path) -> Iterator[str]:
    """Give the path that a query may mean, as typed and with its links followed; a bare name means none."""
    if _is_windows(query):
        yield query
    elif _is_anchored(query) or _has_separator(query):
        base, rest = (user_home, query[2:]) if query.startswith(("~/", "~\\")) or query == "~" else (cwd, query)
        typed = os.path.normpath(base / rest)
        yield typed
        yield os.path.realpath(typed)


def _distance(project: Project, here: str, *, is_cwd: bool) -> int | None:
    if _is_at(project, here):
        return 0
    if project.path and _key(project.path).startswith(_key(here).rstrip("\\/") + _separator(here)):
        return 1
    for levels, parent in enumerate(_lineage(here) if is_cwd else ()):
        if _is_at(project, parent):
            return 1 + levels
    return None


def _is_at(project: Project, path: str) -> bool:
    if project.path:
        return _key(project.path) == _key(path)
    return project.hash is not None and any(project_hash(spelling) == project.hash for spelling in _spellings(path))
