"""What was once proven about the paths of projects: remembered, and added to by trying hashes on folders."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.library import folders

if TYPE_CHECKING:
    from pollux.model import Problem, Session


def memory_path() -> Path:
    """Return where proven project paths are remembered."""
    return folders.data() / "projects.json"


def recalled() -> dict[str, str]:
    """Return the pairs of hash and path that were proven before."""
    from pollux.sessions.projects import claims

    return claims.load_memory(memory_path())


def known_here() -> dict[str, str]:
    """Return the pairs proven before, and those of the current folder and the folders above it."""
    from pollux.sessions.projects.paths import project_hash, spellings

    pairs = recalled()
    here = folders.current()
    for folder in (here, *here.parents):
        for spelling in spellings(str(folder)):
            pairs.setdefault(project_hash(spelling), spelling)
    return pairs


def remember(sessions: Iterable[Session], known: dict[str, str]) -> Problem | None:
    """Keep what these sessions prove and memory does not know yet; where it cannot be kept, it is found again."""
    from pollux.sessions.projects import claims

    proven = {one.project.hash: one.project.path for one in sessions if one.project.proven}
    new = {digest: path for digest, path in proven.items() if digest and path and known.get(digest) != path}
    return claims.remember(memory_path(), new) if new else None


def unproven(sessions: Iterable[Session]) -> set[str]:
    """Return the hashes that nobody knows the path of for sure."""
    return {one.project.hash for one in sessions if one.project.hash and not one.project.proven}


def proven(sessions: Sequence[Session], roots: Iterable[Path], *, depth: int = 4) -> tuple[Session, ...]:
    """Try folders on the projects without a proven path."""
    from pollux.sessions.projects import search

    paths = search.scan(roots, unproven(sessions), depth=depth)
    return tuple(_with_path(one, paths) for one in sessions)


def _with_path(session: Session, paths: dict[str, str]) -> Session:
    import msgspec

    path = paths.get(session.project.hash or "")
    if not path or session.project.proven:
        return session
    project = msgspec.structs.replace(session.project, path=path, how="scan", proven=True)
    return msgspec.structs.replace(session, project=project)
