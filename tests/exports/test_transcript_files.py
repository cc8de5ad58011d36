"""The facts above a transcript, and the facts of an index of sessions."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

import pytest
from tests.builders import PRICES
from tests.exports.everything import made
from tests.views.build import START

from pollux.exports import ExportedSession
from pollux.exports.site import MOST_DAYS, build_site
from pollux.exports.transcript_files import header_facts
from pollux.model import Fate, ModelCall, Project, Session, Tokens
from pollux.prices import usage_of
from pollux.views.session_text import cost_text, period


def session(**more: Any) -> Session:  # noqa: ANN401
    return Session(**{"id": "abc", "kind": "main", "project": Project(hash="8d46cd8e00"), **more})


def one_call(days: int = 0, model: str = "gemini-2.5-pro") -> ModelCall:
    return ModelCall(
        "abc", "m", START + timedelta(days=days), model, Fate.ACTIVE, Tokens(1_000_000, 0, 0, 0, 0, 1_000_000)
    )


def test_a_minimal_session_has_few_facts() -> None:
    assert [*header_facts(made((), session(kind="subagent")))] == [
        ("Kind", "subagent"),
        ("Project", "[8d46cd8e]"),
        ("Messages", "0 answers"),
        ("Session", "abc"),
    ]


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (None, "Sun 15 Nov 2026, 19:02 UTC"),
        (timedelta(), "Sun 15 Nov 2026, 19:02 UTC"),
        (timedelta(hours=2), "Sun 15 Nov 2026, 19:02 to 21:02 UTC (2 h 0 min)"),
        (timedelta(days=2), "Sun 15 Nov 2026, 19:02 to Tue 17 Nov 2026, 19:02 UTC (2 d 0 h)"),
    ],
)
def test_times_are_in_utc(ended: timedelta | None, words: str) -> None:
    timed = session(started=START, ended=None if ended is None else START + ended)
    assert period(timed, UTC, "UTC") == words


def test_cost_names_calls_without_a_price() -> None:
    """A million tokens of a prompt of this length cost $2.50."""
    unpriced = one_call(model="gemini-99")
    assert cost_text(usage_of([one_call()], PRICES)) == "$2.50"
    assert cost_text(usage_of([one_call(), unpriced], PRICES)) == "$2.50+"
    assert cost_text(usage_of([unpriced], PRICES)) == "no price"


def test_site_has_one_bar_for_each_day_up_to_a_limit() -> None:
    two = session(calls=(one_call(), one_call(3), one_call().__class__("abc", "n", None, None, Fate.ACTIVE, Tokens())))
    days = build_site([ExportedSession(two, "a")], PRICES).days
    assert [(day.day, used.calls) for day, used in days] == [(15, 1), (16, 0), (17, 0), (18, 1)]
    old = session(calls=(one_call(-9999), one_call()))
    assert len(build_site([ExportedSession(old, "a")], PRICES).days) == MOST_DAYS
    assert build_site([ExportedSession(session(), "a")], PRICES).days == ()


def test_site_counts_subagents_with_their_session() -> None:
    agent = session(id="agent", kind="subagent", calls=(one_call(),))
    site = build_site(
        [
            ExportedSession(session(calls=(one_call(),)), "a", (agent,)),
            ExportedSession(session(project=Project(path="/x")), "b"),
        ],
        PRICES,
    )
    assert (site.usage.calls, site.n_sessions, len(site.groups)) == (2, 2, 2)
    assert [shelf.usage.calls for shelf in site.groups] == [2, 0]


def test_site_groups_sessions_by_project_last_used_first() -> None:
    recent = session(id="one", project=Project("h1", "web"), started=START, updated=START + timedelta(days=2))
    two = session(id="two", project=Project("h2", "web"), started=START, ended=START + timedelta(days=1))
    site = build_site([ExportedSession(two, "b"), ExportedSession(recent, "a")], PRICES)
    assert [shelf.rows[0].session.id for shelf in site.groups] == ["one", "two"]
