"""A session with damaged rows is reported and left out of lists; the others are listed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import builders
from tests.archive.test_verify import archived_home, damage
from tests.refreshing import refresh

from pollux.archive import store
from pollux.archive.open_session import history, open_session
from pollux.errors import DamagedArchiveError, PolluxError
from pollux.sessions.locate import locate
from pollux.sessions.reader import History


def listed(archive: Path) -> History:
    with store.open_archive(archive, write=False) as opened:
        return history(opened.database, locate(()))


@pytest.mark.parametrize(
    "change",
    [
        "sessions SET extra = x'c1'",
        "sessions SET extra = 'text'",
        "sessions SET title = x'00'",
        "sessions SET last_prompt = x'07'",
        "model_calls SET tok_input = 'many'",
        "model_calls SET fate = 'lost'",
        "model_calls SET at_us = 'late'",
        "model_calls SET at_us = 4611686018427387904",
        "model_calls SET file_version_id = 999",
        "model_calls SET model = x'07'",
    ],
)
def test_session_with_damaged_rows_is_left_out_and_reported(tmp_path: Path, change: str) -> None:
    _, archive = archived_home(tmp_path)
    n_sessions = len(listed(archive).sessions)
    damage(archive, f"UPDATE {change} WHERE session_id = '{builders.OTHER}'")
    history = listed(archive)
    assert builders.OTHER not in {session.id for session in history.sessions}
    assert len(history.sessions) == n_sessions - 1
    (problem,) = history.problems
    assert problem.code == "damaged-facts"
    assert builders.OTHER in problem.message
    assert "verify --repair" in problem.message


def test_row_with_the_body_of_another_session_is_damage(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(
        archive,
        f"UPDATE sessions SET extra = (SELECT extra FROM sessions WHERE session_id = '{builders.SESSION}') "  # noqa: S608
        f"WHERE session_id = '{builders.OTHER}'",
    )
    assert [problem.code for problem in listed(archive).problems] == ["damaged-facts"]


@pytest.mark.parametrize("statement", ["DELETE FROM session_files", "DELETE FROM readings"])
def test_a_session_that_lost_a_file_is_not_opened(tmp_path: Path, statement: str) -> None:
    _, archive = archived_home(tmp_path)
    session = next(session for session in listed(archive).sessions if session.id == builders.SESSION)
    damage(archive, statement)
    with store.open_archive(archive, write=False) as opened, pytest.raises(PolluxError, match=builders.SESSION):
        open_session(opened.database, session)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM versions",
        "DELETE FROM files",
        "UPDATE versions SET mtime_ns = 'late'",
        "UPDATE versions SET archived_bytes = archived_bytes - 7",
        "UPDATE versions SET archived_bytes = archived_bytes + 7",
        "UPDATE files SET path = CAST(path AS BLOB)",
        "DELETE FROM segments",
    ],
)
def test_a_session_whose_files_are_damaged_is_not_opened(tmp_path: Path, statement: str) -> None:
    _, archive = archived_home(tmp_path)
    session = next(session for session in listed(archive).sessions if session.id == builders.SESSION)
    damage(archive, "PRAGMA foreign_keys = OFF", statement)
    with store.open_archive(archive, write=False) as opened, pytest.raises(DamagedArchiveError, match="is damaged"):
        open_session(opened.database, session)


_messages = st.lists(st.sampled_from(["u1", "g1", "u2", "g2", "u3", "g3"]), min_size=1, unique=True)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(_messages, min_size=1, max_size=4))
def test_rewritten_document_has_the_fates_in_usage_that_it_has_when_it_is_shown(versions: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder, store.open_archive(Path(folder) / "archive.db") as archive:
        database = archive.database
        for n, ids in enumerate(versions):
            messages = [
                builders.user(id_, f"prompt {id_}", second=int(id_[1]))
                if id_.startswith("u")
                else builders.gemini(id_, f"answer {id_}", second=int(id_[1]), tokens=builders.tokens(int(id_[1])))
                for id_ in ids
            ]
            data = builders.document(*messages, lastUpdated=builders.at(n))
            builders.put(builders.chats(Path(folder)) / f"{builders.NAME}.json", data)
            refresh(archive, [builders.home(Path(folder))], memory={})
        (session,) = history(database, locate(())).sessions
        group = open_session(database, session)
        shown = {message.id: str(message.fate) for message in group.messages()}
        assert dict(database.execute("SELECT message_id, fate FROM messages")) == shown
        counted = dict(database.execute("SELECT message_id, fate FROM model_calls"))
        assert counted == {id_: fate for id_, fate in shown.items() if id_.startswith("g")}
        assert counted == {call.message_id: str(call.fate) for call in session.calls}
