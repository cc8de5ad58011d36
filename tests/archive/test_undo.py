"""A forgotten session is restored with the same bytes, facts and seals while its undo copy exists."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.archive.growing import content
from tests.archive.test_maintenance import digests, leaks, sessions
from tests.archive.test_verify import CHILD, archived_home, damage, looked_at, synced

from pollux.archive import forget, maintenance, undo
from pollux.archive.undo import LIFETIME_US, UndoCopy, UndoResult
from pollux.errors import PolluxError

NOW = 1_794_700_000_000_000


def forgotten(archive: Path, *ids: str, now_us: int = NOW) -> UndoCopy:
    with maintenance.writable(archive) as opened:
        copy = forget.forget(opened, ids, now_us=now_us, memory={}, undo=True).undo
    assert copy is not None
    return copy


def restore_copy(archive: Path, copy: UndoCopy) -> UndoResult:
    with maintenance.writable(archive) as opened:
        return undo.bring_back(opened, copy, memory={})


def facts(archive: Path) -> dict[str, list[Any]]:
    with maintenance.readable(archive) as opened:
        return {table: sorted(rows, key=repr) for table, rows in content(opened).items()}


@pytest.mark.parametrize("session_id", [builders.SESSION, builders.OTHER, CHILD])
def test_undo_restores_bytes_and_facts(tmp_path: Path, session_id: str) -> None:
    _, archive = archived_home(tmp_path)
    before = sessions(archive), digests(archive), facts(archive)
    copy = forgotten(archive, session_id)
    assert session_id not in sessions(archive)
    result = restore_copy(archive, copy)
    assert session_id in result.sessions
    assert result.files
    assert (sessions(archive), digests(archive), facts(archive)) == before
    assert looked_at(archive).is_ok
    assert not copy.path.parent.exists()


def test_restored_session_continues_to_grow(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    copy = forgotten(archive, builders.SESSION)
    synced(archive, root)
    assert builders.SESSION not in sessions(archive)
    restore_copy(archive, copy)
    synced(archive, root)
    assert builders.SESSION in sessions(archive)
    assert looked_at(archive).is_ok


def test_numbers_assigned_meanwhile_are_kept(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    before = digests(archive)
    copy = forgotten(archive, builders.SESSION)
    data = builders.log(builders.header("aaaaaaaa-1111-4222-8333-444455556666"), builders.user("u1", "new"))
    builders.put(root / ".gemini/tmp/webapp/chats/session-2026-11-16T10-00-aaaaaaaa.jsonl", data)
    synced(archive, root)
    restore_copy(archive, copy)
    assert before.items() <= digests(archive).items()
    assert looked_at(archive).is_ok


def test_session_that_shares_a_file_is_restored(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    lines = [
        builders.log(builders.header(f"nightly-{letter}"), builders.user(f"u{letter}", "a word")) for letter in "AB"
    ]
    builders.put(root / ".gemini/tmp/webapp/chats/session-2026-11-15T19-30-nightly-.jsonl", b"".join(lines))
    synced(archive, root)
    before = facts(archive)
    copy = forgotten(archive, "nightly-A")
    assert "nightly-A" not in sessions(archive)
    restore_copy(archive, copy)
    assert facts(archive) == before


def test_undo_copy_of_an_older_pollux_is_restored(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    before = digests(archive)
    copy = forgotten(archive, builders.SESSION)
    damage(copy.path, "ALTER TABLE versions RENAME COLUMN archived_bytes TO kept")
    restore_copy(archive, copy)
    assert digests(archive) == before
    assert looked_at(archive).is_ok


def test_archive_itself_keeps_no_trace_of_a_forgotten_session(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    copy = forgotten(archive, builders.SESSION)
    assert leaks(tmp_path) == []
    assert copy.path.stat().st_mode & 0o777 == 0o600
    assert copy.path.parent.stat().st_mode & 0o777 == 0o700


def test_undo_copies_are_listed_newest_first_and_expire(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    first = forgotten(archive, builders.OTHER)
    second = forgotten(archive, CHILD)
    third = forgotten(archive, builders.SESSION, now_us=NOW + 1)
    assert undo.undo_copies(archive) == [third, second, first]
    undo.remove_expired(archive, NOW + LIFETIME_US - 1)
    assert len(undo.undo_copies(archive)) == 3
    undo.remove_expired(archive, NOW + LIFETIME_US)
    assert undo.undo_copies(archive) == [third]
    assert undo.remove_all(archive) == 1
    assert not third.path.parent.exists()


def test_session_is_not_forgotten_without_room_for_its_undo_copy(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    (tmp_path / "archive.db.forgotten").write_text("in the way")
    with pytest.raises(PolluxError, match="pass --no-undo"):
        forgotten(archive, builders.SESSION)
    assert builders.SESSION in sessions(archive)


def test_interrupted_undo_copy_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_args: object) -> None:
        raise KeyboardInterrupt

    _, archive = archived_home(tmp_path)
    monkeypatch.setattr(undo, "_copy_files", interrupted)
    with pytest.raises(KeyboardInterrupt):
        forgotten(archive, builders.SESSION)
    assert undo.undo_copies(archive) == []
    assert builders.SESSION in sessions(archive)


@pytest.mark.parametrize("data", [b"", b"not a database", b"SQLite format 3\0" + bytes(200)])
def test_damaged_undo_copy_changes_nothing(tmp_path: Path, data: bytes) -> None:
    _, archive = archived_home(tmp_path)
    copy = forgotten(archive, builders.SESSION)
    before = digests(archive)
    copy.path.write_bytes(data)
    (listed,) = undo.undo_copies(archive)
    assert listed.sessions == ()
    with pytest.raises(PolluxError, match="cannot be used"):
        restore_copy(archive, copy)
    assert digests(archive) == before
    assert looked_at(archive).is_ok


def test_damaged_segment_is_restored_as_it_was(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(archive, "UPDATE segments SET data = x'00' WHERE base_id IS NOT NULL")
    with sqlite3.connect(archive) as database:
        n_segments = database.execute("SELECT count(*) FROM segments").fetchone()
    copy = forgotten(archive, builders.SESSION)
    restore_copy(archive, copy)
    with sqlite3.connect(archive) as database:
        assert database.execute("SELECT count(*) FROM segments").fetchone() == n_segments
    assert not looked_at(archive).is_ok
