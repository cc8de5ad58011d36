"""Search for the folders of projects by hash, and for the project that a user's query names."""

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
"""Rank of a match by name: worse than any match by path."""
_SIMILARITY = 0.75
"""At which a name counts as a misspelling of another."""
_ABBREVIATION = 3
"""Letters that an abbreviated name needs at least."""


def likely_roots(user_home: Path) -> tuple[Path, ...]:
    """Return the folders to scan: those in a user's home with a name such as `projects` or `src`, then the home."""
    named = (Path(path) for path, _ in _subfolders(str(user_home)))
    return (*(path for path in named if _LIKELY.fullmatch(path.name)), user_home)


def scan(roots: Iterable[Path], wanted: Collection[str], *, depth: int = 4, limit: int = 50_000) -> dict[str, str]:
    """Return the paths of folders with the wanted hashes, by hash; a breadth-first search.

    Args:
        roots: folders to start from. Links are resolved only here, as the client sees no links in its path.
        wanted: hashes of projects.
        depth: levels below a root.
        limit: number of folders after which to give up.

    """
    hashes = frozenset(wanted)
    paths: dict[str, str] = {}
    seen: set[str] = set()
    queue = deque((os.path.realpath(root), depth) for root in roots)
    while queue and len(seen) < limit and len(paths) < len(hashes):
        path, levels = queue.popleft()
        if path in seen:
            continue
        seen.add(path)
        for spelling in spellings(path):
            digest = project_hash(spelling)
            if digest in hashes:
                paths[digest] = spelling
        if levels:
            queue.extend((child, levels - 1 if is_entered else 0) for child, is_entered in _subfolders(path))
    return paths


def find(projects: Iterable[Project], query: str, cwd: Path, user_home: Path) -> tuple[Project, ...]:
    """Return the projects that match a query best, else the one of which it is a misspelling or an abbreviation.

    Raises `AmbiguousProjectError` if it may abbreviate several.
    """
    ranked = [(rank(project, query, cwd, user_home), project) for project in projects]
    best = min((position for position, _ in ranked if position is not None), default=None)
    if best is not None or _has_separator(query):
        return tuple(project for position, project in ranked if position is not None and position == best)
    names = {project.name for _, project in ranked}
    matches = _similar(names, query)
    if not matches:
        matches = _abbreviated(names, query)
        is_any_hidden = any(project.path is None and project.slug is None for _, project in ranked)
        if len(matches) > 1 or (matches and is_any_hidden):  # a project known by hash only may have this very name
            raise AmbiguousProjectError(query, matches)
    return tuple(project for _, project in ranked if project.name in matches)


def is_exact(projects: Iterable[Project], query: str, cwd: Path, user_home: Path) -> bool:
    """Return whether a query is the path, the name, the slug or a prefix of the hash of one of the projects."""
    ranks = (rank(project, query, cwd, user_home) for project in projects)
    return any(position is not None and position <= _NAMED + 1 for position in ranks)


def rank(project: Project, query: str, cwd: Path, user_home: Path) -> int | None:
    """Return how well a project matches a query: 0 is best, None is no match.

    A path matches the project in that very folder, else those below it; `.` may also be inside a project.
    A name matches a folder's name or slug, else the start of a hash (four digits or more), else a part of the path.
    Case and punctuation do not matter: `my app` matches `My-App`.
    """
    distances = [_distance(project, path, is_cwd=query == ".") for path in _typed_paths(query, cwd, user_home)]
    nearest = min((distance for distance in distances if distance is not None), default=None)
    if nearest is not None or _is_anchored(query) or not query.strip():
        return nearest
    name = query.casefold().replace("\\", "/")
    if name in {project.name.casefold(), (project.slug or "").casefold()}:
        return _NAMED
    prefix = _HASH_PREFIX.fullmatch(name)
    if prefix and (project.hash or "").startswith(prefix[1]):
        return _NAMED + 1
    if any(name in text.casefold().replace("\\", "/") for text in (project.path, project.slug) if text):
        return _NAMED + 2
    letters = _letters(name)
    if letters and any(letters in _letters(text) for text in (project.path and project.name, project.slug) if text):
        return _NAMED + 3
    return None


def moved_to(project: Project, paths: Iterable[str], exists: Callable[[str], bool]) -> str | None:
    """Return the path that a project seems to have moved to: its folder is missing, and one with its name exists."""
    if project.path is None or exists(project.path):
        return None
    name = base_name(path_key(project.path))
    others = {path for path in paths if base_name(path_key(path)) == name and exists(path)}
    return others.pop() if len(others) == 1 else None


def _subfolders(folder: str) -> list[tuple[str, bool]]:
    """Return the folders in a folder, each with whether to search inside it; [] if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted((entry.path, not (entry.name.startswith(".") or entry.name in _NOT_ENTERED)) for entry in folders)


def _similar(names: Collection[str], query: str) -> list[str]:
    """Return the name of which a query is a misspelling, in every case in which it occurs."""
    folded = {name: name.casefold() for name in sorted(names)}
    closest = difflib.get_close_matches(query.casefold(), folded.values(), n=1, cutoff=_SIMILARITY)
    return [name for name, word in folded.items() if word in closest]


def _abbreviated(names: Collection[str], query: str) -> list[str]:
    """Return the names that start with the query's first letter and contain its other letters in order."""
    letters = _letters(query)
    if len(letters) < _ABBREVIATION:
        return []
    words = {name: name.casefold() for name in sorted(names)}
    return [name for name, word in words.items() if word[:1] == letters[0] and _has_in_order(word, letters)]


def _has_in_order(word: str, letters: str) -> bool:
    remaining = iter(word)
    return all(letter in remaining for letter in letters)


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _has_separator(query: str) -> bool:
    return "/" in query or "\\" in query


def _is_anchored(query: str) -> bool:
    return _ANCHORED.match(query) is not None or is_windows(query)


def _typed_paths(query: str, cwd: Path, user_home: Path) -> Iterator[str]:
    """Yield the path that a query may be, as typed and with links resolved; nothing for a bare name."""
    if is_windows(query):
        yield query
    elif _is_anchored(query) or _has_separator(query):
        is_in_home = query == "~" or query.startswith(("~/", "~\\"))
        typed = os.path.normpath(user_home / query[2:] if is_in_home else cwd / query)
        yield typed
        yield os.path.realpath(typed)


def _distance(project: Project, path: str, *, is_cwd: bool) -> int | None:
    if _is_at(project, path):
        return 0
    if project.path and path_key(project.path).startswith(path_key(path).rstrip("\\/") + separator(path)):
        return 1
    for levels, parent in enumerate(lineage(path) if is_cwd else ()):
        if _is_at(project, parent):
            return 1 + levels
    return None


def _is_at(project: Project, path: str) -> bool:
    if project.path:
        return path_key(project.path) == path_key(path)
    return project.hash is not None and any(project_hash(spelling) == project.hash for spelling in spellings(path))
