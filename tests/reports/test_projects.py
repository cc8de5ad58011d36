"""The projects that have sessions, as rows."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from pollux import prices
from pollux.archive.memory import in_memory
from pollux.model import Fate, ModelCall, Project, Session, Tokens
from pollux.reports.freshness import Freshness, FreshnessState
from pollux.reports.projects import KnownProjects, ProjectList, ProjectRow, project_rows
from pollux.reports.sessions import SessionQuery
from pollux.views.contracts.sessions import projects_json


def session(
    id_: str, project: Project, day: int | None = None, *, kind: str = "main", is_stub: bool = False
) -> Session:
    at = datetime(2026, 11, day, tzinfo=UTC) if day else None
    calls = (ModelCall(id_, id_, at, None, Fate.ACTIVE, Tokens(total=5), file="f", line=1),)
    return Session(id=id_, kind=kind, project=project, ended=at, counts={"user": 2}, calls=calls, is_stub=is_stub)


def rows_of(*sessions: Session) -> tuple[ProjectRow, ...]:
    by_hash = {one.project.hash: one.project for one in sessions if one.project.hash}
    lone = {one.id: one.project for one in sessions if not one.project.hash}
    known = KnownProjects(by_hash, lone)
    return project_rows(in_memory(sessions, []), known, SessionQuery(subagents=True, empty=True))


PROVEN = Project("h", "web", "/src/web", "project_root", proven=True)
INFERRED = Project(None, None, "/src/web", "arguments")
UNKNOWN = Project("abcdef0123")


def test_two_folders_of_one_path_are_one_project_and_the_proof_wins() -> None:
    rows = rows_of(session("a", INFERRED, 3), session("b", PROVEN, 2), session("c", UNKNOWN, 9))
    assert [row.project for row in rows] == [UNKNOWN, PROVEN]
    assert (rows[1].n_sessions, rows[1].n_prompts, rows[1].n_tokens) == (2, 4, 10)


def test_subagents_cost_but_are_no_sessions() -> None:
    (row,) = rows_of(session("a", PROVEN), session("b", PROVEN, kind="subagent"), session("c", PROVEN, is_stub=True))
    assert (row.n_sessions, row.n_tokens, row.last) == (1, 15, None)
    assert projects_json(ProjectList((row,), {}, 0, 0, (), Freshness(FreshnessState.CURRENT)))["projects"] == [
        {
            "path": "/src/web",
            "hash": "h",
            "slug": "web",
            "source": "project_root",
            "proven": True,
            "sessions": 1,
            "prompts": 2,
            "tokens": 15,
            "last": None,
        }
    ]


def test_subagent_belongs_where_its_session_does() -> None:
    agent = msgspec.structs.replace(session("b", Project("h", None, "/SRC/Web"), kind="subagent"), parent="a")
    deeper = msgspec.structs.replace(session("c", UNKNOWN, kind="subagent"), parent="b")
    (row,) = rows_of(session("a", INFERRED), agent, deeper)
    assert (row.project, row.n_sessions, row.n_tokens) == (INFERRED, 1, 15)


def test_project_was_last_used_when_a_session_of_it_began_if_no_more_is_known() -> None:
    began = datetime(2026, 11, 3, tzinfo=UTC)
    (row,) = rows_of(msgspec.structs.replace(session("a", PROVEN), started=began))
    assert row.last == began


def test_project_without_a_name_is_one_too() -> None:
    assert [row.n_sessions for row in rows_of(session("a", Project()), session("b", Project()))] == [2]


def test_project_has_a_cost_if_a_call_has_a_price() -> None:
    (unpriced,) = rows_of(session("a", PROVEN))
    assert unpriced.nanousd is None
    priced = msgspec.structs.replace(
        session("b", PROVEN),
        calls=(
            ModelCall("b", "b", datetime(2026, 11, 1, tzinfo=UTC), "gemini-2.5-pro", Fate.ACTIVE, Tokens(1000), "f", 1),
        ),
    )
    known = KnownProjects({"h": PROVEN}, {})
    database = in_memory([session("a", PROVEN), priced], [], prices=prices.load())
    (row,) = project_rows(database, known, SessionQuery())
    assert row.nanousd == 1_250_000
