"""Disagreements between surfaces that the law found, each with the smallest home that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.builders import call, gemini, header, log, put, tokens, user

from pollux.library.config import DEMO_HOME, configure
from pollux.library.library import Library
from pollux.library.stats import StatsQuery
from pollux.library.usage import UsageQuery
from pollux.reports.filters import Filter
from pollux.reports.sessions import Page

FIRST, SECOND, THIRD = (f"{digit * 8}-1111-4222-8333-444455556666" for digit in "abc")


@pytest.fixture(params=["archive.db", None])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / request.param if request.param else None


def library(archive: Path | None, *homes: Path) -> Library:
    return Library(configure(named_homes=homes, archive=archive, zone="UTC", environ={}))


def test_tool_call_of_a_shared_message_is_in_usage_and_in_stats(tmp_path: Path, archive: Path | None) -> None:
    """The model call is counted once; the tool call is counted where `ls` and `stats` count it."""
    answer = gemini(tokens=tokens(), toolCalls=[call()])
    for session_id in (FIRST, SECOND):
        name = f"session-2026-11-15T19-30-{session_id[:8]}.jsonl"
        put(builders.chats(tmp_path) / name, log(header(session_id), user(f"u-{session_id}"), answer))
    with library(archive, tmp_path) as opened:
        (row,) = opened.usage(UsageQuery("tool")).rows
        (table,) = opened.stats(StatsQuery("tool")).sections
        assert row.outcomes is not None
        assert row.outcomes.calls == table.rows[0].numbers[0] == sum(one.tool_calls for one in opened.sessions().rows)
        assert row.billed.calls == 1


def test_subagents_of_each_other_are_not_added_to_each_other(tmp_path: Path, archive: Path | None) -> None:
    for number, (session_id, parent) in enumerate(((SECOND, THIRD), (THIRD, SECOND))):
        path = builders.chats(tmp_path) / parent / f"{session_id}.jsonl"
        put(path, log(header(session_id, kind="subagent"), gemini(f"g{number}", tokens=tokens(number))))
    with library(archive, tmp_path) as opened:
        rows = opened.sessions(Filter(subagents=True, empty=True), Page(None)).rows
        reported = {row.key: row.billed.calls for row in opened.usage(UsageQuery("session")).rows}
        assert {row.id: row.usage.calls for row in rows} == reported == {SECOND: 1, THIRD: 1}


def test_subagent_of_another_home_is_not_added_to_a_session(tmp_path: Path) -> None:
    main = f"session-2026-11-15T19-30-{FIRST[:8]}.jsonl"
    put(builders.chats(tmp_path / "one") / main, log(header(FIRST), user(), gemini(tokens=tokens())))
    path = builders.chats(tmp_path / "two") / FIRST / f"{SECOND}.jsonl"
    put(path, log(header(SECOND, kind="subagent"), gemini("g2", tokens=tokens(20))))
    archive = tmp_path / "archive.db"
    with library(archive, tmp_path / "one", tmp_path / "two") as both:
        assert both.session(FIRST).usage.calls == 2
    with library(archive, tmp_path / "one") as opened:
        assert opened.session(FIRST).usage.calls == opened.usage(UsageQuery("session")).billed.calls == 1


def test_session_in_two_bundles_is_counted_as_one(tmp_path: Path, archive: Path | None) -> None:
    """Two files of one session have different counts of a message: every report counts it once, in the same way."""
    first, second = tokens(10), tokens(20)
    for parent, counts, records in ((SECOND, first, ()), (THIRD, second, ({"$rewindTo": "g1"},))):
        path = builders.chats(tmp_path) / parent / f"{FIRST}.jsonl"
        put(path, log(header(FIRST, kind="subagent"), user(), gemini(tokens=counts), *records))
    with library(archive, tmp_path) as opened:
        by_day = opened.usage(UsageQuery("day"))
        by_session = opened.usage(UsageQuery("session"))
        assert (by_day.billed, by_day.active) == (by_session.billed, by_session.active)
        assert by_day.billed.calls == 1


def test_names_like_those_shown_are_those_of_all_projects(archive: Path | None) -> None:
    """Tables ask only for the names that they show; each project must have the same name as in a full list."""
    with library(archive, DEMO_HOME) as opened:
        names = opened.project_names()
        rows = opened.sessions(Filter(), Page(None)).rows
        assert len({row.project.name for row in rows}) > 1
        for row in rows:
            alike = {key: name for key, name in names.items() if name == row.project.name}
            assert opened.project_names([row.project]) == alike
