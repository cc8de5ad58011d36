"""Documents of sessions, their messages and their projects."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pollux.model import Json, Message, Session, Usage
from pollux.prices import Prices
from pollux.reports.projects import ProjectList, ProjectRow
from pollux.reports.sessions import SavedPage, SessionPage
from pollux.sessions.family import SessionTree
from pollux.views.contracts import (
    described,
    listed_row,
    message_row,
    problem_row,
    project_row,
    rfc3339,
    session_row,
)


class TreeDocument(msgspec.Struct, frozen=True):
    """A session with its subagents."""

    tree: SessionTree
    prices: Prices


class MessageDocument(msgspec.Struct, frozen=True):
    """A message of a running session."""

    session_id: str
    message: Message


def sessions_json(page: SessionPage) -> dict[str, Json]:
    """Return the keys of `pollux ls --json`."""
    return {
        "sessions": [listed_row(row) for row in page.rows],
        "problems": [problem_row(problem) for problem in page.problems],
    }


def saved_json(page: SavedPage) -> dict[str, Json]:
    """Return the keys of `pollux ls --saved --json`; saved conversations have no model calls."""
    return {
        "sessions": [
            described(session, session.parent, Usage(), Usage(), deleted=session.deleted) for session in page.rows
        ],
        "problems": [problem_row(problem) for problem in page.problems],
    }


def tree_json(document: TreeDocument) -> dict[str, Json]:
    """Return the keys of `pollux tree --json`."""
    return {"tree": _branch(document.tree, document.tree.by_id(), document.prices)}


def message_json(document: MessageDocument) -> dict[str, Json]:
    """Return the keys of a line of `pollux tail --json`."""
    return {"session": document.session_id, **message_row(document.message)}


def projects_json(projects: ProjectList) -> dict[str, Json]:
    """Return the keys of `pollux projects --json`."""
    return {"projects": [_project_row(row) for row in projects.rows]}


def _branch(tree: SessionTree, by_id: Mapping[str, Session], prices: Prices) -> dict[str, Json]:
    below = [_branch(child, by_id, prices) for child in tree.children]
    return {**session_row(tree.session, by_id, prices), "call": tree.session.parent_call, "children": below}


def _project_row(row: ProjectRow) -> dict[str, Json]:
    return {
        **project_row(row.project),
        "sessions": row.n_sessions,
        "prompts": row.n_prompts,
        "tokens": row.n_tokens,
        "last": rfc3339(row.last),
    }
