"""What was used today, for one short line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from pollux.reports import usage, usage_sql
from pollux.reports.periods import start_of_day
from pollux.sessions.projects import search
from pollux.sessions.projects.paths import project_hash, spellings

if TYPE_CHECKING:
    from pollux.library.config import Config
    from pollux.library.snapshot import Snapshot
    from pollux.model import Project
    from pollux.reports.usage import Sums


class Today(msgspec.Struct, frozen=True):
    """The usage of the current day."""

    project: str
    """The name of the current project; empty if all are counted."""
    billed: Sums
    active: Sums


def used_today(snapshot: Snapshot, *, everywhere: bool) -> Today:
    """Add up what the project of the current folder has used today, or all projects."""
    config = snapshot.config
    start = start_of_day(config.clock(), config.zone()[0])
    parts = usage_sql.parts(snapshot.database, start)
    if everywhere:
        return Today("", *usage.billed_and_kept(parts))
    here = _sessions_here(snapshot.projects(), config)
    name = next((project.name for project in here.values() if project.path), config.cwd.name)
    return Today(name, *usage.billed_and_kept(part for part in parts if part.session_id in here))


def _sessions_here(projects: dict[str, Project], config: Config) -> dict[str, Project]:
    """Return the sessions of the project that the current folder is in, also if only its hash is known."""
    matching = set(search.find(tuple(dict.fromkeys(projects.values())), ".", config.cwd, config.user_home))
    digests = {project_hash(spelling) for spelling in spellings(os.path.realpath(config.cwd))}
    return {
        session_id: project
        for session_id, project in projects.items()
        if project in matching or project.hash in digests
    }
