"""`ChangeTracker` finds new and changed messages by the places of their recordings, without reading them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.builders import asks, call, checkpoint, gemini, header, log, rewind, tokens, user

from pollux.sessions import grouping
from pollux.sessions.grouping import OpenSession, open_readings
from pollux.sessions.live import ChangeTracker
from pollux.sessions.replay import reading


@pytest.fixture
def memory() -> ChangeTracker:
    return ChangeTracker()


def group(folder: Path, *records: object) -> OpenSession:
    return open_readings("main", builders.SESSION, [builders.read_bytes(folder, log(header(), *records))])


def look(memory: ChangeTracker, folder: Path, *records: object) -> list[tuple[int, str]]:
    return [(change.number, change.entry.id) for change in memory.changes(group(folder, *records).timeline)]


def test_each_message_is_new_once(tmp_path: Path, memory: ChangeTracker) -> None:
    records = [user("u1"), gemini("g1"), user("u2")]
    assert look(memory, tmp_path, *records[:2]) == [(0, "u1"), (1, "g1")]
    assert look(memory, tmp_path, *records[:2]) == []
    assert look(memory, tmp_path, *records) == [(2, "u2")]


@pytest.mark.parametrize(
    "more",
    [
        {"toolCalls": [call()]},
        {"thoughts": [{"subject": "a", "description": "b"}]},
        {"tokens": tokens()},
        {"model": "x"},
    ],
    ids=["calls", "thoughts", "tokens", "model"],
)
def test_addition_to_a_message_is_a_change(tmp_path: Path, memory: ChangeTracker, more: builders.Wire) -> None:
    look(memory, tmp_path, user("u1"), gemini("g1"))
    assert look(memory, tmp_path, user("u1"), gemini("g1"), gemini("g1") | more) == [(1, "g1")]


def test_results_in_another_message_are_a_change(tmp_path: Path, memory: ChangeTracker) -> None:
    asked = gemini("g1", [asks("c1")], model=None)
    assert look(memory, tmp_path, user("u1"), checkpoint(user("u1"), asked)) == [(0, "u1"), (1, "g1")]
    answered = checkpoint(user("u1"), asked, user("r1", [builders.answers("c1")]))
    assert look(memory, tmp_path, user("u1"), checkpoint(user("u1"), asked), answered) == [(1, "g1"), (2, "r1")]


def test_response_to_a_call_without_a_record_is_a_change(tmp_path: Path, memory: ChangeTracker) -> None:
    records = [user("u1"), gemini("g1", [asks("c1")], tokens=tokens()), user("r1", [builders.answers("c1")])]
    look(memory, tmp_path, *records[:2])
    assert look(memory, tmp_path, *records) == [(1, "g1"), (2, "r1")]


def test_change_of_fate_is_reported_and_only_active_to_rewound_is_dropped(
    tmp_path: Path, memory: ChangeTracker
) -> None:
    records = [user("u1"), gemini("g1"), rewind("g1"), gemini("g1")]
    memory.changes(group(tmp_path, *records[:2]).timeline)
    for number, (was, fate, is_dropped) in enumerate([("active", "rewound", True), ("rewound", "active", False)], 3):
        (change,) = memory.changes(group(tmp_path, *records[:number]).timeline)
        assert (change.was, change.entry.fate, change.is_dropped) == (was, fate, is_dropped)
    assert not any(later.is_dropped for later in ChangeTracker().changes(group(tmp_path, *records[:3]).timeline))


def test_numbers_of_vanished_messages_are_not_reused(tmp_path: Path, memory: ChangeTracker) -> None:
    look(memory, tmp_path, user("u1"), user("u2", "other"))
    assert look(memory, tmp_path, user("u3", "third")) == [(2, "u3")]


def test_changes_are_found_without_reading_messages(
    tmp_path: Path, memory: ChangeTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = group(tmp_path, user("u1"), gemini("g1", toolCalls=[call()]))
    for module in (reading, grouping):
        monkeypatch.setattr(module, "build_message", lambda *_: pytest.fail("a message was read"))
    assert len(memory.changes(opened.timeline)) == 2


@pytest.mark.parametrize(
    ("records", "is_in_doubt"),
    [
        ([], False),
        ([user("u2", "two")], False),
        ([user("u2", "one")], True),
        ([user("u2", "one"), gemini("g2", "bare", model=None)], True),
        ([user("u2", "one"), gemini("g2", "answer", tokens=tokens(20))], False),
        ([user("u2", "two"), user("u3", "two")], True),
    ],
)
def test_possible_copy_of_earlier_history_is_in_doubt(
    tmp_path: Path,
    memory: ChangeTracker,
    records: list[builders.Wire],
    is_in_doubt: bool,  # noqa: FBT001
) -> None:
    recorded = [user("u1", "one"), gemini("g1", tokens=tokens()), user("u0", "one"), gemini("g0", tokens=tokens(11))]
    memory.changes(group(tmp_path, *recorded).timeline)
    assert memory.is_in_doubt(group(tmp_path, *recorded, *records).timeline) is is_in_doubt
