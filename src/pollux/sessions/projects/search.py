"""Where a project may be, and which one is meant: folders tried by their hash, projects ranked by what a user typed."""

from __future__ import annotations

import difflib
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from pollux.errors import AmbiguousProjectError
from pollux.model import Project
from pollux.sessions.projects.paths import base_name, is_windows, lineage, path_key, project_hash, separator, spellings

_LIKELY = re.compile(
    r"dev|develop|developer|development|projects?|src|source|sources|code|coding|work|workspaces?|documents|repos?"
    r"|repositories|git|github|gitlab|go|sites|www|desktop",
    re.IGNORECASE,
)
_NOT_ENTERED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "Library", "AppData"})
_HASH_PREFIX = re.compile(r"\[?([0-9a-f]{4,64})\]?")
_ANCHORED = re.compile(r"\.{1,2}$|\.{1,2}[\\/]|~$|~[\\/]|/")
_NAMED = 1000
"""Rank of a project by name: behind all that a path may mean."""


_ALIKE = 0.75
"""A slip of the finger is this much like what was meant; another word is not."""
_LETTERS = 3
"""So many letters of a name may stand for it."""


def likely_roots(user_home: Path) -> tuple[Path, ...]:
    """Give the folders worth a scan: those in a home that are named like a place for projects, then the home itself."""
    named = (Path(path) for path, _ in _subfolders(str(user_home)))
    return (*(path for path in named if _LIKELY.fullmatch(path.name)), user_home)


def scan(roots: Iterable[Path], wanted: Collection[str], *, depth: int = 4, limit: int = 50_000) -> dict[str, str]:
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
        for spelling in spellings(path):
            digest = project_hash(spelling)
            if digest in wanted:
                found[digest] = spelling
        if levels:
            queue.extend((child, levels - 1 if is_entered else 0) for child, is_entered in _subfolders(path))
    return found


def find(projects: Iterable[Project], query: str, cwd: Path, user_home: Path) -> tuple[Project, ...]:
    """Give the projects that fit best to what a user typed; if there are none, the one that it may be short for.

    Raises `AmbiguousProjectError` where it may be short for several.
    """
    ranked = [(rank(project, query, cwd, user_home), project) for project in projects]
    best = min((place for place, _ in ranked if place is not None), default=None)
    if best is not None or _has_separator(query):
        return tuple(project for place, project in ranked if place is not None and place == best)
    names = {project.name for _, project in ranked}
    meant = _alike(names, query)
    if not meant:
        meant = _abbreviated(names, query)
        is_any_hidden = any(project.path is None and project.slug is None for _, project in ranked)
        if len(meant) > 1 or (meant and is_any_hidden):  # a project known by its hash alone may have this very name
            raise AmbiguousProjectError(query, meant)
    return tuple(project for _, project in ranked if project.name in meant)


def is_exact(projects: Iterable[Project], query: str, cwd: Path, user_home: Path) -> bool:
    """Return whether a query is the path, the name, the slug or a prefix of the hash of one of the projects."""
    ranks = (rank(project, query, cwd, user_home) for project in projects)
    return any(place is not None and place <= _NAMED + 1 for place in ranks)


def rank(project: Project, query: str, cwd: Path, user_home: Path) -> int | None:
    """Tell how well a project fits to what a user typed: 0 is best, nothing is not at all.

    The project of a path is the one in that very folder, else those below it; `.` may also be inside a project.
    A name is a folder's name or slug, else the beginning of a hash (four digits or more), else a piece of the path;
    neither case nor what stands between words matters: `my app` is `My-App`.
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
    words = _joined(name)
    if words and any(words in _joined(known) for known in (project.path and project.name, project.slug) if known):
        return _NAMED + 3
    return None


def moved_to(project: Project, paths: Iterable[str], exists: Callable[[str], bool]) -> str | None:
    """Guess where a project went: its folder is gone, and one other of the same name is there."""
    if project.path is None or exists(project.path):
        return None
    name = base_name(path_key(project.path))
    others = {path for path in paths if base_name(path_key(path)) == name and exists(path)}
    return others.pop() if len(others) == 1 else None


def _subfolders(folder: str) -> list[tuple[str, bool]]:
    """List the folders in a folder, each with whether to look inside; a folder that may not be listed has none."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted((entry.path, not (entry.name.startswith(".") or entry.name in _NOT_ENTERED)) for entry in found)


def _alike(names: Collection[str], query: str) -> list[str]:
    """Give the name that a query may be meant for with a slip of the finger, in all its spellings."""
    folded = {name: name.casefold() for name in sorted(names)}
    alike = difflib.get_close_matches(query.casefold(), folded.values(), n=1, cutoff=_ALIKE)
    return [name for name, word in folded.items() if word in alike]


def _abbreviated(names: Collection[str], query: str) -> list[str]:
    """Give the names of which a query has some letters, the first one among them, in their order."""
    letters = _joined(query)
    if len(letters) < _LETTERS:
        return []
    words = {name: name.casefold() for name in sorted(names)}
    return [name for name, word in words.items() if word[:1] == letters[0] and _has_in_order(word, letters)]


def _has_in_order(word: str, letters: str) -> bool:
    rest = iter(word)
    return all(letter in rest for letter in letters)


def _joined(text: str) -> str:
    """Leave out all that stands between words."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _has_separator(query: str) -> bool:
    return "/" in query or "\\" in query


def _is_anchored(query: str) -> bool:
    return _ANCHORED.match(query) is not None or is_windows(query)


def _typed_paths(query: str, cwd: Path, user_home: Path) -> Iterator[str]:
    """Give the path that a query may mean, as typed and with its links followed; a bare name means none."""
    if is_windows(query):
        yield query
    elif _is_anchored(query) or _has_separator(query):
        base, rest = (user_home, query[2:]) if query.startswith(("~/", "~\\")) or query == "~" else (cwd, query)
        typed = os.path.normpath(base / rest)
        yield typed
        yield os.path.realpath(typed)


def _distance(project: Project, here: str, *, is_cwd: bool) -> int | None:
    if _is_at(project, here):
        return 0
    if project.path and path_key(project.path).startswith(path_key(here).rstrip("\\/") + separator(here)):
        return 1
    for levels, parent in enumerate(lineage(here) if is_cwd else ()):
        if _is_at(project, parent):
            return 1 + levels
    return None


def _is_at(project: Project, path: str) -> bool:
    if project.path:
        return path_key(project.path) == path_key(path)
    return project.hash is not None and any(project_hash(spelling) == project.hash for spelling in spellings(path))
