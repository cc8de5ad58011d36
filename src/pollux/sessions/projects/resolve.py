"""Resolve the hash or slug of a project to its path, and record how the path is known.

A session file names its project only by `sha256(path)`. A path is *proven* if it has that hash, and *inferred* if a
source merely claims it: a marker, the registry or the trusted folders of a home, or the session itself. A proof from
any source beats every inference.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from pollux.disk.read import is_missing, problem_of, read_side_file
from pollux.disk.write import make_private_folder, write_private
from pollux.model import Json, Problem, Project, Session
from pollux.sessions.projects.paths import (
    LONGEST_PATH,
    is_absolute,
    is_project_hash,
    is_windows,
    lineage,
    project_hash,
    slug,
    spellings,
)
from pollux.text.escape import escape_surrogates

__all__ = ["ProjectClaims", "argument_paths", "project_hash", "read_claims", "resolve", "slug", "workspace_directories"]


class PathClaim(NamedTuple):
    """A source's claim that a project is at a path."""

    source: str
    path: str
    folder: str | None = None
    """Name of the project folder that the claim is about; None if only a matching hash can confirm it."""


class ProjectClaims(msgspec.Struct, frozen=True):
    """The path claims of one home, best first."""

    claims: tuple[PathClaim, ...] = ()
    by_folder: Mapping[str, PathClaim] = msgspec.field(default_factory=dict)
    by_hash: Mapping[str, PathClaim] = msgspec.field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


NO_CLAIMS = ProjectClaims()
MARKER, REGISTRY, TRUSTED = ".project_root", "projects.json", "trustedFolders.json"
_MEMORY_SCHEMA = "pollux.project-paths/1"
_LARGEST_MEMORY = 64 << 20
_NO_PATHS: Mapping[str, str] = MappingProxyType({})
_IN_COMMAND = re.compile(r"""(?<![\w.:/\\~-])(?:/|[A-Za-z]:[\\/])[^\s'"`;&|<>()$*?]*""")
_ONE_DIRECTORY = re.compile(r"^[ \t]*I'm currently working in the directory: (.+)$", re.MULTILINE)
_DIRECTORIES = re.compile(
    r"^[ \t]*(?:- \*\*Workspace Directories:\*\*|I'm currently working in the following directories:)[ \t\r]*\n"
    r"((?:[ \t]+- .+(?:\n|\Z))+)",
    re.MULTILINE,
)


def read_claims(root: Path, tmp: Path, link_limit: Path | None) -> ProjectClaims:
    """Return the claims in the markers, the registry and the trusted folders of a home.

    Links to the registry and the trusted folders must stay in `link_limit`, unless it is None.
    """
    problems: list[Problem] = []
    files = dict(_files(root, tmp, link_limit, problems))
    claims = claims_from_files(str(root), files)
    return msgspec.structs.replace(claims, problems=(*problems, *claims.problems))


def claims_from_files(root: str, files: Mapping[str, bytes]) -> ProjectClaims:
    """Return the claims in some files of a home, given by their paths relative to the home."""
    problems: list[Problem] = []
    markers = sorted(path for path in files if path.endswith(f"/{MARKER}"))
    markers.sort(key=lambda path: not path.startswith("tmp/"))  # `tmp` before `history`
    claims = [claim for path in markers for claim in _marker_claims(root, path, files[path], problems)]
    registry = _place(root, REGISTRY)
    projects = _json_object(files.get(REGISTRY), registry, problems).get("projects", {})
    for path, name in projects.items() if isinstance(projects, dict) else ():
        if isinstance(name, str) and is_absolute(path):
            claims.append(PathClaim(REGISTRY, path, name))
        else:
            text = f"{path!r}: is not an absolute path with the name of a folder"
            problems.append(Problem("broken-registry", text, registry))
    if not isinstance(projects, dict):
        problems.append(Problem("broken-registry", "contains no table of projects", registry))
    trusted = _json_object(files.get(TRUSTED), _place(root, TRUSTED), problems)
    claims += [PathClaim(TRUSTED, path) for path in trusted if is_absolute(path)]
    return index_claims(claims, problems)


def index_claims(claims: Iterable[PathClaim], problems: Iterable[Problem] = ()) -> ProjectClaims:
    """Return claims, given best first, with indexes by folder and hash."""
    claims = tuple(claims)
    by_folder: dict[str, PathClaim] = {}
    by_hash: dict[str, PathClaim] = {}
    for claim in claims:
        if claim.folder is not None:
            by_folder.setdefault(claim.folder, claim)
        for spelling in spellings(claim.path):
            by_hash.setdefault(project_hash(spelling), claim._replace(path=spelling))
    return ProjectClaims(claims, by_folder, by_hash, tuple(problems))


def load_project_paths(path: Path) -> dict[str, str]:
    """Return the stored project paths by hash; entries whose path does not have the hash are ignored."""
    return _stored_paths(path) or {}


def save_project_paths(path: Path, pairs: Mapping[str, str]) -> Problem | None:
    """Add project paths to the stored ones, if they have the given hash; a failure is returned as a problem."""
    old = _stored_paths(path)
    if old is None:
        return Problem("newer-memory", "was written by a newer release of Pollux: please update", str(path))
    new = old | {digest: project for digest, project in pairs.items() if project_hash(project) == digest}
    if new == old:
        return None
    try:
        make_private_folder(path.parent)
        text = json.dumps({"schema": _MEMORY_SCHEMA, "paths": new}, indent=1, sort_keys=True)
        write_private(path, [text.encode()])
    except OSError as error:
        return Problem("memory-not-stored", f"cannot be written: {error.strerror}", str(path))
    return None


def _files(root: Path, tmp: Path, link_limit: Path | None, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    for name in (REGISTRY, TRUSTED):
        yield from _file(str(root / name), name, link_limit, problems)
    history = root / "history"
    for above, base, limit in (("tmp", tmp, tmp), ("history", history, root)):
        for name in _names(str(base), problems):
            yield from _file(str(base / name / MARKER), f"{above}/{name}/{MARKER}", limit, problems)


def _names(base: str, problems: list[Problem]) -> list[str]:
    try:
        return sorted(os.listdir(base))  # noqa: PTH208  thousands of them
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(Problem("unreadable-folder", f"cannot be listed: {error.strerror}", base))
        return []


def _file(place: str, path: str, within: Path | None, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    try:
        yield path, read_side_file(place, within=within)
    except OSError as error:
        if not is_missing(error):
            problems.append(problem_of(error, place))


def _marker_claims(root: str, path: str, data: bytes, problems: list[Problem]) -> Iterator[PathClaim]:
    project = data.decode("utf-8", "replace")[:LONGEST_PATH].strip()
    if is_absolute(project):
        yield PathClaim("project_root", project, path.split("/")[1])
    else:
        problems.append(Problem("broken-marker", "does not contain an absolute path", _place(root, path)))


def _place(root: str, path: str) -> str:
    return str(Path(root, *path.split("/")))


def _json_object(data: bytes | None, place: str, problems: list[Problem]) -> dict[str, object]:
    if data is None:
        return {}
    try:
        value = json.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        problems.append(Problem("broken-json", f"is not JSON: {error}", place))
        return {}
    if isinstance(value, dict):
        return value
    problems.append(Problem("broken-json", "is not a JSON object", place))
    return {}


def _stored_paths(path: Path) -> dict[str, str] | None:
    try:
        data: bytes | None = read_side_file(path, limit=_LARGEST_MEMORY)
    except OSError:
        data = None
    document = _json_object(data, str(path), [])  # a broken file is ignored: it only saves work
    paths = document.get("paths")
    if document.get("schema", _MEMORY_SCHEMA) != _MEMORY_SCHEMA:
        return None
    pairs = paths.items() if isinstance(paths, dict) else ()
    return {digest: path for digest, path in pairs if isinstance(path, str) and project_hash(path) == digest}


def resolve(
    digest: str | None,
    folder: str | None,
    known: ProjectClaims = NO_CLAIMS,
    *,
    directories: Sequence[str] = (),
    session_context: Sequence[str] = (),
    scanned: Mapping[str, str] = _NO_PATHS,
    arguments: Iterable[str] = (),
    memory: Mapping[str, str] = _NO_PATHS,
) -> Project:
    """Return the project of a session.

    Args:
        digest: the session's `projectHash`; if None, the folder's name if that is a hash.
        folder: name of the project folder.
        known: the claims of the session's home.
        directories: the session's field of that name.
        session_context: the result of `workspace_directories`.
        scanned: the result of `search.scan`.
        arguments: absolute paths in tool calls, whose ancestors are tried; read only without a better proof.
        memory: the result of `load_project_paths`.

    """
    is_hash = folder is not None and is_project_hash(folder)
    digest = digest or (folder if is_hash else None)
    name = None if is_hash else folder
    recorded = {
        "directories": tuple(filter(is_absolute, directories)),
        "session_context": tuple(filter(is_absolute, session_context)),
    }
    claim = known.by_hash.get(digest) if digest else None
    claim = claim or _proof(digest, {**recorded, "scan": _entry(scanned, digest)})
    ancestors = () if claim else tuple(_ancestors(filter(is_absolute, arguments)))
    claim = claim or _proof(digest, {"arguments": ancestors, "memory": _entry(memory, digest)})
    is_proven = claim is not None
    claim = claim or (known.by_folder.get(folder) if folder else None)
    claim = claim or _inference(digest, name, recorded, ancestors)
    if claim is None:
        return Project(_escaped(digest), _escaped(name))
    path = escape_surrogates(claim.path)
    return Project(_escaped(digest), _escaped(name or claim.folder), path, claim.source, is_proven)


def _escaped(text: str | None) -> str | None:
    return text and escape_surrogates(text)


def certainty(project: Project) -> tuple[bool, bool, bool, str, str, str]:
    """Return a value that is greater the more is known of a project; ties are broken by the texts themselves."""
    facts = (project.proven, project.path is not None, project.slug is not None)
    return *facts, project.path or "", project.slug or "", project.source or ""


def with_path_of(project: Project, best: Project) -> Project:
    """Return a project with the path that is known best for its hash; the slug is its own folder's name."""
    return Project(project.hash, project.slug, best.path, best.source, best.proven)


def agreed_projects(sessions: Iterable[Session]) -> list[Session]:
    """Return sessions so that those of one project hash have one path: the one that is most certain."""
    sessions = list(sessions)
    best: dict[str | None, Project] = {}
    for session in sessions:
        project = session.project
        best[project.hash] = max(project, best.get(project.hash, project), key=certainty)
    agreed = []
    for session in sessions:
        own = session.project
        project = with_path_of(own, best[own.hash]) if own.hash else own
        agreed.append(session if project == own else msgspec.structs.replace(session, project=project))
    return agreed


def workspace_directories(text: str) -> tuple[str, ...]:
    """Return the directories in the context that the client sends before the first prompt, in any of its wordings."""
    if listed := _DIRECTORIES.search(text):
        lines = (line.strip().removeprefix("- ") for line in listed[1].rstrip("\n").split("\n"))
        return tuple(filter(is_absolute, lines))
    match = _ONE_DIRECTORY.search(text)
    return tuple(filter(is_absolute, [match[1].strip()] if match else []))


def argument_paths(arguments: Json) -> Iterator[str]:
    """Yield the absolute paths in the arguments of a tool call, including those in shell commands."""
    match arguments:
        case str() if is_absolute(arguments) and len(arguments) <= LONGEST_PATH and "\n" not in arguments:
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


def _entry(paths: Mapping[str, str], digest: str | None) -> tuple[str, ...]:
    return (paths[digest],) if digest is not None and digest in paths else ()


def _proof(digest: str | None, candidates: Mapping[str, Iterable[str]]) -> PathClaim | None:
    for source, paths in candidates.items():
        for path in paths:
            for spelling in spellings(path):
                if project_hash(spelling) == digest:
                    return PathClaim(source, spelling)
    return None


def _inference(
    digest: str | None, name: str | None, recorded: Mapping[str, Iterable[str]], ancestors: Iterable[str]
) -> PathClaim | None:
    """Return a path whose slug is the folder's name; if a hash is known, only one that Windows may spell otherwise."""
    for source, paths in recorded.items():
        for path in paths:
            if _has_slug(path, name) if name else digest is None or is_windows(path):
                return PathClaim(source, path)
    matches = {path for path in ancestors if name and _has_slug(path, name)}
    return PathClaim("arguments", matches.pop()) if len(matches) == 1 else None


def _has_slug(path: str, name: str) -> bool:
    return re.fullmatch(rf"{re.escape(slug(path))}(?:-\d+)?", name) is not None


def _ancestors(paths: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for path in paths:
        for ancestor in lineage(path):
            if ancestor in seen:
                break  # and so are those above it
            seen.add(ancestor)
            yield ancestor
