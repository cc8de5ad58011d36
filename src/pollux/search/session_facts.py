"""Find sessions by their project, their ID, their models, their cost and their tokens."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from pollux.model import Project
from pollux.search.conditions import has_text, matches
from pollux.search.ranges import Bounds
from pollux.search.terms import FieldTest
from pollux.sessions.projects.paths import is_absolute
from pollux.sessions.projects.search import rank
from pollux.sessions.reader import short_id_of

_OWN_FOLDER, _FOLDER_ABOVE = 0, 1
"""Ranks of a project in a folder, and of one below it."""


class FactPlace(msgspec.Struct, frozen=True):
    """What a test needs besides the facts."""

    projects: Mapping[str, Project]
    """The project of each session, with paths that were proven since the facts were written."""
    cwd: Path
    user_home: Path


def sessions_of_projects(test: FieldTest, place: FactPlace) -> set[str]:
    """Return the sessions whose project passes a test of `project:` or `dir:`."""
    matching: set[Project] = set()
    projects = set(place.projects.values())
    for value in test.values:
        if "*" in value:
            matching.update(project for project in projects if _is_named(project, value, is_dir=test.name == "dir"))
        elif test.name == "dir":
            matching.update(_in_folder(projects, value, place))
        else:
            matching.update(_best(projects, value, place))
    return {session_id for session_id, project in place.projects.items() if project in matching}


def _is_named(project: Project, value: str, *, is_dir: bool) -> bool:
    names = (project.path,) if is_dir else (project.path, project.name, project.slug)
    return any(has_text(name, value) for name in names if name)


def _in_folder(projects: Iterable[Project], value: str, place: FactPlace) -> Iterator[Project]:
    is_path = is_absolute(value) or value in {".", "..", "~"} or value.startswith(("./", "../", "~/", "~\\", ".\\"))
    for project in projects:
        if is_path:
            if rank(project, value, place.cwd, place.user_home) in (_OWN_FOLDER, _FOLDER_ABOVE):
                yield project
        elif project.path and has_text(project.path, value):
            yield project


def _best(projects: Iterable[Project], value: str, place: FactPlace) -> list[Project]:
    """Return the projects that match a value best, as `--project` does: `app` itself before `webapp`."""
    ranked = [(rank(project, value, place.cwd, place.user_home), project) for project in projects]
    best = min((position for position, _ in ranked if position is not None), default=None)
    return [project for position, project in ranked if position is not None and position == best]


def sessions_with_id(database: sqlite3.Connection, test: FieldTest) -> set[str]:
    """Return the sessions whose ID begins with a value, and the subagents of those."""
    prefixes = tuple(value.lower().rstrip("*") for value in test.values)
    ids = set()
    for session_id, root_id in database.execute("SELECT session_id, root_session_id FROM sessions"):
        for name in (session_id, root_id):
            if name.lower().startswith(prefixes) or short_id_of(name).lower().startswith(prefixes):
                ids.add(session_id)
    return ids


def sessions_with_model(database: sqlite3.Connection, test: FieldTest) -> set[str]:
    """Return the sessions with a model whose name passes a test; each list of models is compared once."""
    names = [matches("value", value) for value in test.values]
    condition = " OR ".join(text for text, _ in names)
    values = [value for _, own_values in names for value in own_values]
    query = f"SELECT EXISTS (SELECT 1 FROM json_each(?) WHERE {condition})"  # noqa: S608  ours
    passes: dict[str, bool] = {}
    ids = set()
    for session_id, models in database.execute("SELECT session_id, models FROM sessions").fetchall():
        if models not in passes:
            passes[models] = bool(database.execute(query, [models, *values]).fetchone()[0])
        if passes[models]:
            ids.add(session_id)
    return ids


class _FamilySum(NamedTuple):
    """The sums of a session with its subagents."""

    calls: int = 0
    unpriced_calls: int = 0
    tokens: int = 0
    nanousd: int = 0


_OWN_SUMS = """
    SELECT session_id, sum(calls), sum(unpriced_calls), sum(tok_total), sum(cost_nanousd)
    FROM session_usage GROUP BY session_id
"""
_PARENTS = """
    SELECT session_id, parent_session_id FROM sessions
    WHERE parent_session_id IS NOT NULL AND root_session_id <> session_id
"""
"""The parents of subagents; members of a cycle are none."""


def sessions_with_sum(database: sqlite3.Connection, test: FieldTest) -> set[str]:
    """Return the sessions whose cost or tokens, with those of their subagents, pass a test."""
    ids = set()
    for session_id, (calls, unpriced_calls, tokens, nanousd) in _family_sums(database).items():
        if test.name == "cost" and calls and calls == unpriced_calls:
            continue  # no price is known
        number = nanousd if test.name == "cost" else tokens
        if any(_is_within(number, bounds) for bounds in test.bounds):
            ids.add(session_id)
    return ids


def _is_within(number: int, bounds: Bounds) -> bool:
    return (bounds.low is None or number >= bounds.low) and (bounds.high is None or number < bounds.high)


def _family_sums(database: sqlite3.Connection) -> dict[str, _FamilySum]:
    """Return the usage of each session with all its subagents, as lists show it."""
    own = dict.fromkeys((row[0] for row in database.execute("SELECT session_id FROM sessions")), _FamilySum())
    own.update((session_id, _FamilySum._make(sums)) for session_id, *sums in database.execute(_OWN_SUMS))
    parents: dict[str, str] = dict(database.execute(_PARENTS))
    families = dict(own)
    for session_id in parents:
        ancestor = parents.get(session_id)
        while ancestor is not None and ancestor in families:
            families[ancestor] = _FamilySum._make(map(sum, zip(families[ancestor], own[session_id], strict=True)))
            ancestor = parents.get(ancestor)
    return families
