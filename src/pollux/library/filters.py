"""Filters resolved to sessions: which of the sessions in scope belong to a project."""
# ruff: noqa: PLC0415  imported when a filter needs it

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.errors import NoSuchProjectError
from pollux.library import project_memory
from pollux.library.config import UsageError
from pollux.model import Project
from pollux.reports.filters import ALL, Filter

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from pollux.library.snapshot import Snapshot

__all__ = ["ALL", "Announce", "Filter", "ignore_note", "parse_filter", "prove_projects", "sessions_of_project"]

Announce = Callable[[str], None]


def ignore_note(_sentence: str) -> None:
    """Drop a note."""


def parse_filter(
    *,
    project: str | None = None,
    since: str | None = None,
    until: str | None = None,
    last: str | None = None,
    model: str | None = None,
    now: datetime,
    zone: tzinfo | None = None,
) -> Filter:
    """Return the filter that a user has typed. Raises `UsageError`.

    Dates are days of a zone, or of the system's own.
    """
    from pollux.reports import filters

    if since and last:
        raise UsageError("--since and --last both say where to begin: give one of them.")
    start = filters.moment("--since", since, now=now, zone=zone) if since else None
    start = filters.before("--last", last, now=now) if last else start
    end = filters.moment("--until", until, now=now, zone=zone) if until else None
    if start and end and end <= start:
        first = f"--since {since}" if since else f"--last {last}"
        raise UsageError(f"--until {until} is before {first}: nothing lies between them.")
    return Filter(project, start, end, model)


def sessions_of_project(
    snapshot: Snapshot, query: str | None, announce: Announce = ignore_note
) -> Collection[str] | None:
    """Return the IDs of the sessions of a project within the scope; None if the scope is everything.

    A project that is known by its hash alone is found by hashing the folder that was typed and, if the query names no
    known project exactly, the folders where projects usually are. Raises `NoSuchProjectError`.
    """
    if query is None:
        return snapshot.ids
    from pollux.sessions.projects import search

    config = snapshot.config
    known = snapshot.projects()
    if snapshot.ids is not None:
        known = {session_id: known[session_id] for session_id in snapshot.ids if session_id in known}
    if unproven_hashes(known.values()):
        known = _prove(snapshot, known, query, announce)
    matching = set(search.find(tuple(dict.fromkeys(known.values())), query, config.cwd, config.user_home))
    if not matching and known:
        raise NoSuchProjectError(query)
    return {session_id for session_id, project in known.items() if project in matching}


def unproven_hashes(projects: Iterable[Project]) -> set[str]:
    """Return the hashes of the projects whose path is not proven."""
    return {project.hash for project in projects if project.hash and not project.proven}


def prove_projects(projects: dict[str, Project], roots: Iterable[Path], *, depth: int = 4) -> dict[str, Project]:
    """Return the projects of sessions with the paths of folders below some roots that have their hash."""
    from pollux.sessions.projects import search

    paths = search.scan(roots, unproven_hashes(projects.values()), depth=depth)
    proven = {}
    for session_id, project in projects.items():
        path = paths.get(project.hash or "")
        if path and not project.proven:
            project = msgspec.structs.replace(project, path=path, how="scan", proven=True)  # noqa: PLW2901
        proven[session_id] = project
    return proven


def _prove(snapshot: Snapshot, known: dict[str, Project], query: str, announce: Announce) -> dict[str, Project]:
    from pollux.sessions.projects import search

    config = snapshot.config
    typed = Path(os.path.expanduser(query))  # noqa: PTH111  which does not fail over `~nobody`
    proven = prove_projects(known, [typed], depth=0)
    if not search.is_exact(set(proven.values()), query, config.cwd, config.user_home):
        # A folder with exactly this name may belong to a project that is known by its hash alone.
        announce("No such project is known yet; looking through likely folders …")
        roots = [typed] if typed.is_dir() else search.likely_roots(config.user_home)
        proven = prove_projects(proven, roots)
    project_memory.store(config, proven.values())
    snapshot.learn(proven)
    return proven
