"""Archive, files and quick count choose the same owner of a model call that several sessions contain."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import builders
from tests.builders import gemini, header, log, put, user
from tests.refreshing import refresh

from pollux.archive import store
from pollux.reports import usage_quick
from pollux.reports.usage_quick import CountedSession
from pollux.sessions import reader
from pollux.sessions.family import find_owners, holder


class SessionRecording(NamedTuple):
    """A session as it is written to disk."""

    calls: dict[str, tuple[int, int]]
    """By message ID: the input and the output tokens, whose sum may be that of another call."""
    started: int | None
    is_loaded: bool


calls = st.dictionaries(st.sampled_from("abc"), st.sampled_from([(10, 5), (5, 10), (10, 6)]), max_size=3)
recordings = st.builds(SessionRecording, calls, st.none() | st.integers(0, 3), st.booleans())


def write(root: Path, sessions: Sequence[SessionRecording]) -> None:
    for number, session in enumerate(sessions):
        id_ = f"{number:08}-5955-4bdb-8380-88eda48ac048"
        at = "never" if session.started is None else builders.at(session.started)
        first = user("import-1" if session.is_loaded else "u1") | {"timestamp": at}
        answers = [
            gemini(message_id, tokens={"input": n, "output": m, "cached": 0, "thoughts": 0, "tool": 0, "total": n + m})
            | {"timestamp": at}
            for message_id, (n, m) in session.calls.items()
        ]
        name = f"session-2026-11-15T19-30-{id_[:8]}.jsonl"
        put(builders.chats(root) / name, log(header(id_, startTime=at), first, *answers))


def owners_in_archive(root: Path) -> set[tuple[str, str]]:
    with store.open_archive(root / "archive.db") as archive:
        refresh(archive, [builders.home(root)], memory={})
        rows = archive.database.execute("SELECT session_id, message_id FROM model_calls WHERE owner_session_id IS NULL")
        return set(rows.fetchall())


def owners_in_files(root: Path) -> set[tuple[str, str]]:
    sessions = reader.history([builders.home(root)]).sessions
    return {(session.id, call.message_id) for session in sessions for call in session.calls}


def owners_in_quick_count(root: Path) -> set[tuple[str, str]]:
    counted: list[CountedSession] = []

    def add_up(sessions: Sequence[CountedSession]) -> list[list[CountedSession]]:
        counted[:] = sessions
        return []

    usage_quick.counts([builders.home(root)], lambda *_: (None, ""), add_up)  # type: ignore[arg-type]
    return {(str(call[0]), str(call[1])) for session in counted for call in session.calls}


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(recordings, max_size=4))
def test_archive_files_and_quick_count_give_the_same_owners(sessions: list[SessionRecording]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, sessions)
        owners = owners_in_files(root)
        assert owners_in_archive(root) == owners
        assert owners_in_quick_count(root) == owners


def test_calls_with_equal_totals_but_different_counts_are_two(tmp_path: Path) -> None:
    write(
        tmp_path,
        [SessionRecording({"a": (10, 5)}, 0, is_loaded=False), SessionRecording({"a": (5, 10)}, 1, is_loaded=False)],
    )
    assert len(owners_in_files(tmp_path)) == 2
    assert len(owners_in_archive(tmp_path)) == 2
    assert len(owners_in_quick_count(tmp_path)) == 2


def test_owner_is_local_then_not_loaded_then_earliest_then_lowest_id() -> None:
    ranked = [
        holder("e", 9, is_loaded=False),
        holder("a", None, is_loaded=False),
        holder("b", None, is_loaded=False),
        holder("c", 1, is_loaded=True),
        holder("a", 0, is_loaded=False, is_imported=True),
        holder("a", 0, is_loaded=True, is_imported=True),
    ]
    while ranked:
        assert find_owners((candidate, "call") for candidate in reversed(ranked)) == {"call": ranked[0]}
        ranked.pop(0)
