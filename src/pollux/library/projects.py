"""List projects, and search for the folders of those of which only the hash is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.library import project_memory
from pollux.library.filters import prove_projects, unproven_hashes
from pollux.library.select import session_query
from pollux.reports.projects import ProjectList, ProjectRow, project_rows
from pollux.sessions.projects import search

if TYPE_CHECKING:
    from pollux.library.filters import Announce
    from pollux.library.snapshot import Snapshot
    from pollux.reports.filters import Filter


def project_list(snapshot: Snapshot, wanted: Filter, announce: Announce, *, scan: bool) -> ProjectList:
    """Return the projects of the sessions that match a filter.

    With `scan`, likely folders are hashed first to find the paths of projects that have none; proven paths are cached.
    """
    every = msgspec.structs.replace(wanted, subagents=True, empty=True)
    query = session_query(snapshot, every, announce)
    all_projects = snapshot.known_projects()
    projects = snapshot.projects() if scan or query.ids is not None else {**all_projects.by_hash, **all_projects.lone}
    if query.ids is not None:
        projects = {session_id: projects[session_id] for session_id in query.ids if session_id in projects}
    unknown = unproven_hashes(projects.values())
    problem = None
    if scan:
        projects = prove_projects(projects, search.likely_roots(snapshot.config.user_home))
        snapshot.learn(projects)
        all_projects = snapshot.known_projects()
        problem = project_memory.store(snapshot.config, projects.values())
    n_found = len(unknown) - len(unproven_hashes(projects.values()))

    def make() -> tuple[ProjectRow, ...]:
        return project_rows(snapshot.database, all_projects, query)

    rows = make() if scan else snapshot.once(("projects of", wanted), make)
    return ProjectList(rows, _moved(rows), len(unknown), n_found, (problem,) if problem else (), snapshot.freshness)


def _moved(rows: tuple[ProjectRow, ...]) -> dict[str, str]:
    paths = [row.project.path for row in rows if row.project.path]
    moved = {}
    for row in rows:
        target = search.moved_to(row.project, paths, lambda path: Path(path).is_dir())
        if row.project.path and target:
            moved[row.project.path] = target
    return moved
