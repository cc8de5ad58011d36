"""A session whose rows are damaged is left out and named; the others are listed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.archive.test_verify import damage, kept

from pollux.archive import store
from pollux.archive.open_session import history, opened
from pollux.errors import DamagedArchiveError, PolluxError
from pollux.sessions.locate import locate
from pollux.sessions.reader import History


def listed(archive: Path) -> History:
    with store.opened(archive, write=False) as found:
        return history(found.database, locate(()))


@pytest.mark.parametrize(
    "change",
    [
        "sessions SET body = x'c1'",
        "sessions SET body = 'text'",
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
def test_a_session_with_damaged_rows_is_left_out_and_named(tmp_path: Path, change: str) -> None:
    _, archive = kept(tmp_path)
    n_sessions = len(listed(archive).sessions)
    damage(archive, f"UPDATE {change} WHERE session_id = '{builders.OTHER}'")
    found = listed(archive)
    assert builders.OTHER not in {session.id for session in found.sessions}
    assert len(found.sessions) == n_sessions - 1
    (problem,) = found.problems
    assert problem.code == "damaged-facts"
    assert builders.OTHER in problem.message
    assert "verify --repair" in problem.message


def test_the_body_of_another_session_is_damage(tmp_path: Path) -> None:
    _, archive = kept(tmp_path)
    damage(
        archive,
        f"UPDATE sessions SET body = (SELECT body FROM sessions WHERE session_id = '{builders.SESSION}') "  # noqa: S608
        f"WHERE session_id = '{builders.OTHER}'",
    )
    assert [problem.code for problem in listed(archive).problems] == ["damaged-facts"]


@pytest.mark.parametrize("statement", ["DELETE FROM session_files", "DELETE FROM readings"])
def test_a_session_that_lost_a_file_is_not_opened(tmp_path: Path, statement: str) -> None:
    _, archive = kept(tmp_path)
    session = next(one for one in listed(archive).sessions if one.id == builders.SESSION)
    damage(archive, statement)
    with store.opened(archive, write=False) as found, pytest.raises(PolluxError, match=builders.SESSION):
        opened(found.database, session)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM versions",
        "DELETE FROM files",
        "UPDATE versions SET mtime_ns = 'late'",
        "UPDATE versions SET kept = kept - 7",
        "UPDATE versions SET kept = kept + 7",
        "UPDATE files SET path = CAST(path AS BLOB)",
        "DELETE FROM segments",
    ],
)
def test_a_session_whose_files_are_damaged_is_not_opened(tmp_path: Path, statement: str) -> None:
    _, archive = kept(tmp_path)
    session = next(one for one in listed(archive).sessions if one.id == builders.SESSION)
    damage(archive, "PRAGMA foreign_keys = OFF", statement)
    with store.opened(archive, write=False) as found, pytest.raises(DamagedArchiveError, match="is damaged"):
        opened(found.database, session)
