"""Lists, reports and tables count the same prompts and tool calls of any home."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from tests import builders
from tests.builders import asks, call, checkpoint, gemini, header, log, notice, put, tokens, user
from tests.corpus.trees import SELECTED, Tree, all_trees
from tests.recorder.strategies import Conversation, conversations
from tests.refreshing import refresh

import pollux
from pollux.archive import open_session
from pollux.archive.load_sessions import lone_projects, projects_by_hash
from pollux.archive.memory import in_memory
from pollux.archive.store import open_archive
from pollux.model import Origin, Session
from pollux.reports.overview import overview
from pollux.reports.projects import KnownProjects, project_rows
from pollux.reports.sessions import SessionQuery
from pollux.reports.stats import Statistics, statistics
from pollux.reports.stats_sql import read
from pollux.sessions import reader
from pollux.sessions.homes import Home, homes
from pollux.sessions.locate import locate

DEMO = Path(pollux.__file__).parent / "demo" / "home"
NOW = datetime(2026, 12, 31, tzinfo=UTC)


class Counts(NamedTuple):
    prompts: int
    tool_calls: int


def checked(*homes_: Home) -> Counts:
    """Return the counts of some homes, after a check that lists, reports and tables agree."""
    sessions = reader.history(homes_).sessions
    expected = listed(sessions)
    groups = [reader.opened(session) for session in sessions]
    human = [entry for group in groups for entry in group.entries if entry.origin == Origin.HUMAN]
    assert len(human) == expected.prompts
    shown = 0
    for group in groups:
        for entry, message in zip(group.entries, group.messages(), strict=True):
            assert len(entry.tool_calls) in (0, len(message.tool_calls))
            shown += len(message.tool_calls) if entry.is_own else 0
    assert shown == expected.tool_calls
    with closing(in_memory(sessions, [], reader.opened)) as database:
        projects = KnownProjects(projects_by_hash(database, {}), lone_projects(database, {}))
        rows_of_projects = project_rows(database, projects, SessionQuery(subagents=True, empty=True))
        assert sum(row.n_prompts for row in rows_of_projects) == expected.prompts
        assert overview(database, None, now=NOW).n_prompts == expected.prompts
        query = SessionQuery(subagents=True, empty=True)
        assert sum(row.n_prompts for row in project_rows(database, projects, query)) == expected.prompts
        assert totals(statistics(read(database), {})) == expected
    with tempfile.TemporaryDirectory() as folder, open_archive(Path(folder) / "archive.db") as archive:
        refresh(archive, homes_)
        database = archive.database
        assert listed(open_session.history(database, locate(homes_)).sessions) == expected
        assert totals(statistics(read(database), {})) == expected
        rows = database.execute(
            "SELECT count(*) FROM tool_calls JOIN messages USING (session_id, message_id) WHERE is_own"
        )
        assert rows.fetchone()[0] == expected.tool_calls
    return expected


def listed(sessions: Sequence[Session]) -> Counts:
    return Counts(
        sum(session.counts.get("user", 0) for session in sessions), sum(session.tool_calls for session in sessions)
    )


def totals(report: Statistics) -> Counts:
    assert report.summary is not None
    return Counts(report.summary.totals["prompts"], report.summary.totals["tool_calls"])


def test_counts_of_the_demo_agree() -> None:
    assert checked(*homes([DEMO], {}, DEMO)) == Counts(55, 88)


@pytest.mark.parametrize("tree", all_trees(SELECTED), ids=lambda tree: tree.name)
def test_counts_of_the_corpus_agree(tree: Tree) -> None:
    home = tree.folder / "gemini"
    if home.is_dir():
        checked(*homes([home], {}, tree.folder))


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(conversations())
def test_counts_of_any_conversation_agree(conversation: Conversation) -> None:
    client = conversation.played()
    with tempfile.TemporaryDirectory() as folder:
        project = builders.chats(Path(folder)).parent
        for path, data in client.files.items():
            put(project / path, data)
        checked(builders.home(Path(folder)))


def test_import_counts_only_new_messages(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    records = (user("u1", "one"), gemini("g1", tokens=tokens(10), toolCalls=[call()]), gemini("g2", toolCalls=[call()]))
    put(chats / f"{builders.NAME}.jsonl", log(header(), *records))
    new = (user("u2", "two", second=61), gemini("g3", second=62, toolCalls=[call("c2")]))
    imported = log(
        header(builders.OTHER, startTime=builders.at(60)),
        notice("import-1794418000167", "x", second=60),
        *records,
        *new,
    )
    put(chats / "session-1794418000167-b3e2640d.jsonl", imported)
    assert checked(builders.home(tmp_path)) == Counts(2, 3)


def test_import_without_its_original_counts_only_new_messages(tmp_path: Path) -> None:
    records = (user("u1", "one"), gemini("g1", tokens=tokens(10), toolCalls=[call()]))
    imported = log(header(startTime=builders.at(60)), notice("import-1", "x", second=60), *records)
    put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", imported)
    assert checked(builders.home(tmp_path)) == Counts(0, 0)


def test_call_that_is_recorded_only_as_a_request_is_counted(tmp_path: Path) -> None:
    asking = gemini("g1", [{"text": "a"}, asks("c1"), asks("c2")], tokens=tokens(10))
    path = put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), asking))
    assert checked(builders.home(tmp_path)) == Counts(1, 2)
    _, group = reader.from_file(path)
    assert [call.status for message in group.messages() for call in message.tool_calls] == ["pending", "pending"]


def test_late_response_completes_a_call(tmp_path: Path) -> None:
    asking = gemini("g1", [{"text": "a"}, asks("c1"), asks("c2")], tokens=tokens(10))
    lines = log(header(), user(), asking)
    answer = log(user("u2", [builders.answers("c1")], second=3))
    path = builders.chats(tmp_path) / f"{builders.NAME}.jsonl"
    home = builders.home(tmp_path)
    query = "SELECT call_id, status FROM tool_calls ORDER BY call_id"
    with open_archive(tmp_path / "archive.db") as archive:
        put(path, lines)
        refresh(archive, [home])
        assert archive.database.execute(query).fetchall() == [("c1", "pending"), ("c2", "pending")]
        put(path, lines + answer)
        refresh(archive, [home])
        assert archive.database.execute(query).fetchall() == [("c1", "success"), ("c2", "pending")]
    assert checked(home) == Counts(1, 2)


def test_answer_only_in_a_checkpoint_is_counted_in_its_session(tmp_path: Path) -> None:
    """A checkpoint keeps model and counts of answers of this session; loaded answers have none."""
    asking = gemini("g1", [asks("c1")], tokens=tokens(10))
    loaded = gemini("g2", [asks("c2")], model=None)
    lines = log(header(), user("u1"), checkpoint(user("u1"), asking, loaded))
    put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", lines)
    assert checked(builders.home(tmp_path)) == Counts(1, 1)
