"""Who says where a project is: markers, the registry and the trusted folders of a home, and our own memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from pollux.disk.private_files import make_private_folder, write_private
from pollux.disk.regular_files import is_missing, problem_of, read_side_file
from pollux.model import Problem
from pollux.sessions.projects.paths import LONGEST_PATH, is_absolute, project_hash, spellings


class Claim(NamedTuple):
    """Somebody's word that a project is at a path."""

    how: str
    path: str
    folder: str | None = None
    """Name of the project folder that the word is about; without it, only a matching hash makes it one."""


class Known(msgspec.Struct, frozen=True):
    """What one home says about paths, best word first."""

    claims: tuple[Claim, ...] = ()
    by_folder: Mapping[str, Claim] = msgspec.field(default_factory=dict)
    by_hash: Mapping[str, Claim] = msgspec.field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


NOTHING_KNOWN = Known()
MARKER, REGISTRY, TRUSTED = ".project_root", "projects.json", "trustedFolders.json"
_MEMORY_SCHEMA = "pollux.project-paths/1"
_LARGEST_MEMORY = 64 << 20


def known_paths(root: Path, tmp: Path, link_limit: Path | None) -> Known:
    """Return what a home says about paths in its markers, registry and trusted folders.

    Links to the registry and the trusted folders may not lead out of `link_limit`, if there is one.
    """
    problems: list[Problem] = []
    files = dict(_files(root, tmp, link_limit, problems))
    found = known_from_files(str(root), files)
    return msgspec.structs.replace(found, problems=(*problems, *found.problems))


def known_from_files(root: str, files: Mapping[str, bytes]) -> Known:
    """Take what a home says about paths out of the files that say it, by their paths below the home."""
    problems: list[Problem] = []
    markers = sorted(path for path in files if path.endswith(f"/{MARKER}"))
    markers.sort(key=lambda path: not path.startswith("tmp/"))  # before those of the snapshots
    claims = [claim for path in markers for claim in _marker_claims(root, path, files[path], problems)]
    registry = _place(root, REGISTRY)
    projects = _json_object(files.get(REGISTRY), registry, problems).get("projects", {})
    for path, name in projects.items() if isinstance(projects, dict) else ():
        if isinstance(name, str) and is_absolute(path):
            claims.append(Claim(REGISTRY, path, name))
        else:
            problems.append(Problem("broken-registry", f"{path!r}: is no path with a folder's name", registry))
    if not isinstance(projects, dict):
        problems.append(Problem("broken-registry", "holds no table of projects", registry))
    trusted = _json_object(files.get(TRUSTED), _place(root, TRUSTED), problems)
    claims += [Claim(TRUSTED, path) for path in trusted if is_absolute(path)]
    return known_from_claims(claims, problems)


def known_from_claims(claims: Iterable[Claim], problems: Iterable[Problem] = ()) -> Known:
    """Sort claims, best first, for `resolve`."""
    claims = tuple(claims)
    by_folder: dict[str, Claim] = {}
    by_hash: dict[str, Claim] = {}
    for claim in claims:
        if claim.folder is not None:
            by_folder.setdefault(claim.folder, claim)
        for spelling in spellings(claim.path):
            by_hash.setdefault(project_hash(spelling), claim._replace(path=spelling))
    return Known(claims, by_folder, by_hash, tuple(problems))


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
        make_private_folder(path.parent)
        text = json.dumps({"schema": _MEMORY_SCHEMA, "paths": new}, indent=1, sort_keys=True)
        write_private(path, [text.encode()])
    except OSError as error:
        return Problem("memory-not-kept", f"cannot be written: {error.strerror}", str(path))
    return None


def _files(root: Path, tmp: Path, link_limit: Path | None, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """Read the files of a home that say where projects are."""
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


def _marker_claims(root: str, path: str, data: bytes, problems: list[Problem]) -> Iterator[Claim]:
    project = data.decode("utf-8", "replace")[:LONGEST_PATH].strip()
    if is_absolute(project):
        yield Claim("project_root", project, path.split("/")[1])
    else:
        problems.append(Problem("broken-marker", "names no absolute path", _place(root, path)))


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


def _remembered(path: Path) -> dict[str, str] | None:
    try:
        data: bytes | None = read_side_file(path, limit=_LARGEST_MEMORY)
    except OSError:
        data = None
    document = _json_object(data, str(path), [])  # a broken memory is none: it is only there to save work
    paths = document.get("paths")
    if document.get("schema", _MEMORY_SCHEMA) != _MEMORY_SCHEMA:
        return None
    pairs = paths.items() if isinstance(paths, dict) else ()
    return {digest: path for digest, path in pairs if isinstance(path, str) and project_hash(path) == digest}
