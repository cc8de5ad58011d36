"""The health of homes and archive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.builders import NAME, OTHER, SESSION, at, chats, gemini, header, log, put, tokens, user

from pollux.library.config import configure
from pollux.library.library import Library
from pollux.library.verified import last_verification
from pollux.reports.health import files_changed_after, known_sessions

LOST = "10570000-0000-4000-8000-000000000000"
_OTHER_FILE = "session-2026-11-15T19-40-b3e2640d.jsonl"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with two sessions, a torn line, and a log that knows a third session."""
    home = tmp_path / "home"
    put(chats(home) / f"{NAME}.jsonl", log(header(), user("u1"), gemini("g1", tokens=tokens()), b'{"broken'))
    put(chats(home) / _OTHER_FILE, log(header(OTHER), user("x1", "the deleted one"), gemini("y1")))
    prompts = []
    for number, (session_id, text) in enumerate([(LOST, "/chat"), (LOST, "a lost prompt"), (SESSION, "hello")]):
        prompts.append(
            {"sessionId": session_id, "messageId": number, "type": "user", "message": text, "timestamp": at(number)}
        )
    put(chats(home).parent / "logs.json", json.dumps(prompts).encode())
    return home


def opened(home: Path, archive: Path | None) -> Library:
    return Library(configure(named_homes=[home], archive=archive))


def test_deleted_sessions_are_those_that_only_the_archive_has(home: Path, tmp_path: Path) -> None:
    with opened(home, tmp_path / "archive.db") as library:
        before = library.health()
        assert (before.deleted, before.n_deleted) == ((), 0)
    (chats(home) / _OTHER_FILE).unlink()
    with opened(home, tmp_path / "archive.db") as library:
        report = library.health()
        assert [row.id for row in report.deleted] == [OTHER]
        assert report.n_deleted == 1
        assert library.health(n_deleted=0).n_deleted == 1


@pytest.mark.parametrize("has_archive", [True, False])
def test_lost_sessions_and_problems_are_reported(home: Path, tmp_path: Path, *, has_archive: bool) -> None:
    with opened(home, tmp_path / "archive.db" if has_archive else None) as library:
        report = library.health()
    (lost,) = report.lost
    assert (lost.id, lost.prompts) == (LOST, ("/chat", "a lost prompt"))
    assert "torn-line" in {problem.code for problem in report.problems}
    assert (report.archive is not None) == has_archive
    assert (report.n_bytes > 0) == has_archive
    assert (report.last_change is not None) == has_archive
    assert report.seal is None
    assert report.verified is None


def test_sessions_that_the_client_deletes_are_counted_by_time(home: Path, tmp_path: Path) -> None:
    with opened(home, tmp_path / "archive.db") as library:
        report, status = library.health(), library.status()
        times = [str(row.deletion_time) for row in status.rows if row.session.kind == "main"]
        assert (report.n_next, report.n_soon, report.n_later) == tuple(map(times.count, ("next", "soon", "later")))
        assert len(report.expiring) == report.n_next + report.n_soon + report.n_later
        assert all(entry.is_archived for entry in report.expiring)
        assert len(library.health(n_expiring=1).expiring) <= 1


def test_last_verification_is_remembered(home: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    with opened(home, archive) as library:
        library.sync()
        result = library.verify(deep=True)
        verified = library.health().verified
        assert verified is not None
        assert (verified.is_deep, verified.n_bytes, verified.n_damaged) == (True, result.n_bytes, 0)
        file = tmp_path / "archive.db.verified"
        assert file.stat().st_mode & 0o077 == 0
        for content in (b"", b"{}", b"\xff", b'{"at": 1}'):
            file.write_bytes(content)
            assert last_verification(library.config) is None


def test_known_sessions_and_changed_files(home: Path, tmp_path: Path) -> None:
    with opened(home, tmp_path / "archive.db") as library, library.snapshot() as snapshot:
        assert known_sessions(snapshot.database, [SESSION, LOST]) == {SESSION}
        last = library.health().last_change
        assert last is not None
        assert files_changed_after(snapshot.database, last) == 0
        assert files_changed_after(snapshot.database, last.replace(year=2000)) > 0
