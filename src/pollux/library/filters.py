"""Parse filters, and find the sessions of a project."""
# ruff: noqa: PLC0415  imported when a filter needs it

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.errors import PolluxError, ProjectNotFoundError
from pollux.library import project_memory
from pollux.library.config import UsageError
from pollux.model import Project
from pollux.reports.filters import ALL, Filter

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from pollux.library.config import Config
    from pollux.library.snapshot import Snapshot
    from pollux.reports.projects import KnownProjects

__all__ = ["ALL", "Announce", "Filter", "ignore_note", "parse_filter", "prove_projects", "sessions_of_project"]

Announce = Callable[[str], None]


class NoSessionsInFolderError(ProjectNotFoundError):
    """The folder that `--project` names has no sessions."""

    def __init__(self, config: Config, query: str) -> None:
        """Build the message from the folder that the user typed."""
        folder = os.path.normpath(config.cwd / os.path.expanduser(query))  # noqa: PTH111  does not fail for `~nobody`
        name = f"the current folder, {folder}" if folder == str(config.cwd) else folder
        PolluxError.__init__(
            self, f"No sessions in {name}. Run `pollux projects` to list the projects that have sessions."
        )


def ignore_note(_sentence: str) -> None:
    """Discard a note."""


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
    """Return the filter for the options that the user typed. Raises `UsageError`.

    Dates are days in `zone`, or in the system's own zone.
    """
    from pollux.reports import filters

    if since and last:
        raise UsageError("--since and --last both set the start: use only one.")
    start = filters.parse_date("--since", since, now=now, zone=zone) if since else None
    start = filters.parse_age("--last", last, now=now) if last else start
    end = filters.parse_date("--until", until, now=now, zone=zone) if until else None
    if start and end and end <= start:
        first = f"--since {since}" if since else f"--last {last}"
        raise UsageError(f"--until {until} is before {first}, so no session can match.")
    return Filter(project, start, end, model)


def sessions_of_project(
    snapshot: Snapshot, query: str | None, announce: Announce = ignore_note
) -> Collection[str] | None:
    """Return the IDs of a project's sessions; None if no project is given and the snapshot covers everything.

    A project of which only the hash is known is found by hashing the folder that was typed and, if no known project
    has exactly this name, folders in which projects usually are. Raises `ProjectNotFoundError`.
    """
    if query is None:
        return snapshot.ids
    return snapshot.once(("sessions of project", query), lambda: _matching_sessions(snapshot, query, announce))


def _matching_sessions(snapshot: Snapshot, query: str, announce: Announce) -> frozenset[str]:
    from pollux.sessions.projects import search

    config = snapshot.config
    all_projects = snapshot.known_projects()
    if snapshot.ids is None and not unproven_hashes(all_projects.by_hash.values()):
        return _sessions_by_hash(snapshot, all_projects, query)
    projects = snapshot.projects()
    if snapshot.ids is not None:
        projects = {session_id: projects[session_id] for session_id in snapshot.ids if session_id in projects}
    if unproven_hashes(projects.values()):
        projects = _prove(snapshot, projects, query, announce)
    matching = set(search.find(tuple(dict.fromkeys(projects.values())), query, config.cwd, config.user_home))
    if not matching and projects:
        raise _no_project(config, query)
    return frozenset(session_id for session_id, project in projects.items() if project in matching)


def _sessions_by_hash(snapshot: Snapshot, known: KnownProjects, query: str) -> frozenset[str]:
    """Return the sessions of the projects that match; none of them has to be proven first."""
    from pollux.reports.projects import sessions_with_hashes, used_hashes
    from pollux.sessions.projects import search

    config = snapshot.config
    used = {project_hash: known.of(project_hash, None) for project_hash in used_hashes(snapshot.database)}
    projects = dict.fromkeys([*used.values(), *known.lone.values()])
    matching = set(search.find(tuple(projects), query, config.cwd, config.user_home))
    if not matching and projects:
        raise _no_project(config, query)
    hashes = [project_hash for project_hash, project in used.items() if project in matching]
    lone = (session_id for session_id, project in known.lone.items() if project in matching)
    return frozenset([*sessions_with_hashes(snapshot.database, hashes), *lone])


def _no_project(config: Config, query: str) -> ProjectNotFoundError:
    return NoSessionsInFolderError(config, query) if _is_folder(query) else ProjectNotFoundError(query)


def _is_folder(query: str) -> bool:
    return query in (".", "..", "~") or os.sep in query or (os.altsep is not None and os.altsep in query)


def unproven_hashes(projects: Iterable[Project]) -> set[str]:
    """Return the hashes of the projects whose path is not proven."""
    return {project.hash for project in projects if project.hash and not project.proven}


def prove_projects(projects: dict[str, Project], roots: Iterable[Path], *, depth: int = 4) -> dict[str, Project]:
    """Return the projects with the paths of folders below some roots whose hash they have."""
    from pollux.sessions.projects import search

    paths = search.scan(roots, unproven_hashes(projects.values()), depth=depth)
    proven = {}
    for session_id, project in projects.items():
        path = paths.get(project.hash or "")
        if path and not project.proven:
            project = msgspec.structs.replace(project, path=path, source="scan", proven=True)  # noqa: PLW2901
        proven[session_id] = project
    return proven


def _prove(snapshot: Snapshot, known: dict[str, Project], query: str, announce: Announce) -> dict[str, Project]:
    from pollux.sessions.projects import search

    config = snapshot.config
    typed = Path(os.path.expanduser(query))  # noqa: PTH111  does not fail for `~nobody`
    proven = prove_projects(known, [typed], depth=0)
    if not search.is_exact(set(proven.values()), query, config.cwd, config.user_home):
        # A folder with exactly this name may belong to a project that is known by its hash alone.
        announce("No known project has this name; searching likely folders …")
        roots = [typed] if typed.is_dir() else search.likely_roots(config.user_home)
        proven = prove_projects(proven, roots)
    project_memory.store(config, proven.values())
    snapshot.learn(proven)
    return proven
