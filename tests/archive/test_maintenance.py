"""Compacting keeps each byte, backups are complete, and forgotten sessions leave no trace."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path

import pytest
from tests import builders
from tests.archive.test_verify import (
    CHILD,
    DOCUMENT,
    LOG,
    MARKER,
    answer,
    archived_home,
    changed,
    content_of,
    damage,
    deeply,
    flip,
    grown,
    looked_at,
    rewritten,
    segments_of,
    synced,
)
from tests.refreshing import refresh

from pollux.archive import forget, inventory, maintenance, raw, store
from pollux.archive.forget import ForgetResult
from pollux.archive.lock import WriterLock
from pollux.archive.maintenance import ArchiveInfo, BackupResult, CompactResult
from pollux.archive.open_session import history
from pollux.errors import ArchiveError, PolluxError
from pollux.sessions.locate import locate

IMPORTED = "c0ffee00-1111-4222-8333-444455556666"


def info_of(archive: Path) -> ArchiveInfo:
    with maintenance.readable(archive) as opened:
        return maintenance.info(opened)


def compacted(archive: Path) -> CompactResult:
    with maintenance.writable(archive) as opened:
        return maintenance.compact(opened)


def forgotten(archive: Path, *ids: str) -> ForgetResult:
    with maintenance.writable(archive) as opened:
        return forget.forget(opened, ids, now_us=17, memory={})


def sessions(archive: Path) -> set[str]:
    with changed(archive) as database:
        return {row[0] for row in database.execute("SELECT session_id FROM sessions")}


def leaks(folder: Path) -> list[str]:
    """Return the names of the files of an archive that still contain words of the session."""
    words = (MARKER.encode(), MARKER[:9].encode(), MARKER[-8:].encode())
    return [
        path.name
        for path in folder.glob("archive.db*")
        if path.is_file() and any(word in path.read_bytes() for word in words)
    ]


def digests(archive: Path) -> dict[tuple[str, int], str]:
    """Return the hash of each version."""
    with store.open_archive(archive, write=False) as opened:
        rows = opened.database.execute(
            "SELECT path, number, versions.id, archived_bytes FROM versions JOIN files ON files.id = file_id"
        ).fetchall()
        return {
            (path, number): hashlib.sha256(raw.reader(opened.database, version_id)(0, size)).hexdigest()
            for path, number, version_id, size in rows
        }


def test_info_counts_files_sessions_and_bytes(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    (root / ".gemini" / DOCUMENT).unlink()
    synced(archive, root)
    info = info_of(archive)
    with changed(archive) as database:
        n_files, n_kept = database.execute("SELECT count(*), (SELECT sum(length) FROM segments) FROM files").fetchone()
    assert (info.n_files, info.n_deleted_files, info.n_bytes) == (n_files, 1, n_kept)
    assert (info.n_sessions, info.n_subagents, info.n_deleted, info.n_forgotten) == (2, 1, 1, 0)
    assert info.n_versions == n_files + 1
    assert info.ratio
    assert info.last_us
    assert info.writer is None
    (place,) = info.homes
    assert (place.home, place.n_files, place.n_deleted) == (str(root / ".gemini"), n_files, 1)
    assert place.n_bytes == n_kept


def test_info_of_an_empty_archive_is_zero(tmp_path: Path) -> None:
    store.open_archive(tmp_path / "archive.db").close()
    info = info_of(tmp_path / "archive.db")
    assert (info.n_files, info.n_sessions, info.homes, info.ratio, info.last_us) == (0, 0, (), None, None)
    assert not info.facts_are_current


def test_info_names_the_current_writer(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    lock = WriterLock(archive)
    assert lock.take()
    assert info_of(archive).writer == lock.owner()
    with pytest.raises(PolluxError, match="cannot be changed now: pollux") as raised:
        maintenance.writable(archive)
    assert raised.value.status == 1
    lock.release()
    maintenance.writable(archive).close()


@pytest.mark.parametrize("opened", [maintenance.writable, maintenance.readable])
def test_info_of_a_missing_archive_raises(tmp_path: Path, opened: object) -> None:
    assert callable(opened)
    with pytest.raises(PolluxError, match="no archive"):
        opened(tmp_path / "archive.db")
    assert not [*tmp_path.iterdir()]


def test_small_segments_are_merged_and_no_byte_changes(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    for number in range(3, 9):
        grown(root, LOG, builders.log(answer(number)))
        rewritten(root, *range(11, 11 + number))
        synced(archive, root)
    before = digests(archive)
    n_segments = len(segments_of(archive, LOG))
    result = compacted(archive)
    assert result.n_merged == n_segments - 1
    assert result.is_clean
    assert result.damaged == []
    assert result.after <= result.before
    assert result.after == archive.stat().st_size
    assert digests(archive) == before
    assert len(segments_of(archive, LOG)) == 1
    assert deeply(archive).is_ok
    assert compacted(archive).n_merged == 0
    grown(root, LOG, builders.log(answer(9)))
    synced(archive, root)
    assert content_of(archive, LOG) == [(root / ".gemini" / LOG).read_bytes()]


@pytest.mark.parametrize("statement", [None, "UPDATE segments SET sha256 = zeroblob(32)"])
def test_damaged_segments_are_not_merged(tmp_path: Path, statement: str | None) -> None:
    root, archive = archived_home(tmp_path)
    if statement:
        damage(archive, statement)
    else:
        flip(archive, segments_of(archive, LOG)[0][0])
    result = compacted(archive)
    (sentence,) = result.damaged
    assert result.n_merged == 0
    assert sentence.startswith(
        f"Version 1 of {root / '.gemini' / LOG}, bytes from 0 on, is damaged in the archive {archive}"
    )
    assert "verify --repair" in sentence
    assert len(segments_of(archive, LOG)) == 2


def test_merge_that_changes_bytes_is_rolled_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, archive = archived_home(tmp_path)
    before = digests(archive)

    def careless(database: sqlite3.Connection, version_id: int) -> int:
        return database.execute("DELETE FROM segments WHERE version_id = ? AND start > 0", (version_id,)).rowcount

    monkeypatch.setattr(raw, "merge", careless)
    with pytest.raises(ArchiveError, match="was undone"):
        compacted(archive)
    assert digests(archive) == before


def test_open_reader_keeps_the_old_file(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    with changed(archive, "BEGIN", "SELECT count(*) FROM files"), maintenance.writable(archive) as opened:
        opened.database.execute("PRAGMA busy_timeout = 1")
        assert not maintenance.compact(opened).is_clean
    assert compacted(archive).is_clean


def test_full_disk_is_reported_in_one_sentence(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    with maintenance.writable(archive) as opened, changed(archive, "BEGIN IMMEDIATE"):
        opened.database.execute("PRAGMA busy_timeout = 1")
        with pytest.raises(PolluxError, match="could not be rewritten"):
            maintenance.vacuum(opened.database)


def test_backup_equals_the_archive(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    builders.put(tmp_path / ".copy.db.part", b"of one that was killed")
    steps: list[tuple[int, int]] = []
    result = maintenance.backup(archive, tmp_path / "copy.db", progress=lambda done, total: steps.append((done, total)))
    assert result == BackupResult(tmp_path / "copy.db", (tmp_path / "copy.db").stat().st_size, is_ok=True)
    assert steps[-1][0] == steps[-1][1] > 0
    assert digests(result.path) == digests(archive)
    assert deeply(result.path).is_ok
    if os.name == "posix":
        assert result.path.stat().st_mode & 0o777 == 0o600
    assert [place.name for place in tmp_path.iterdir() if "copy" in place.name] == ["copy.db"]


def test_backup_is_created_while_another_process_writes(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    before = digests(archive)
    grown(root, LOG, builders.log(answer(3)))
    result = maintenance.backup(archive, tmp_path / "copy.db", progress=lambda _done, _all: synced(archive, root))
    assert digests(result.path) == before
    assert digests(archive) != before


def test_backup_overwrites_only_with_force(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    target = builders.put(tmp_path / "copy.db", b"dear to me")
    builders.put(tmp_path / "copy.db-wal", b"of the old one")
    with pytest.raises(PolluxError, match="exists already"):
        maintenance.backup(archive, target)
    assert target.read_bytes() == b"dear to me"
    assert maintenance.backup(archive, target, force=True).is_ok
    assert not (tmp_path / "copy.db-wal").exists()
    assert looked_at(target).is_ok


def test_backup_into_a_folder_takes_the_name_of_the_archive(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    (tmp_path / "backups").mkdir()
    assert maintenance.backup(archive, tmp_path / "backups").path == tmp_path / "backups" / "archive.db"


def test_backup_of_a_damaged_archive_replaces_nothing(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    good = maintenance.backup(archive, tmp_path / "copy.db").path
    flip(archive, 1)
    with pytest.raises(PolluxError, match="does not replace"):
        maintenance.backup(archive, good, force=True)
    assert looked_at(good).is_ok
    assert not maintenance.backup(archive, tmp_path / "damaged.db").is_ok


def test_backup_onto_the_archive_itself_is_rejected(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    with pytest.raises(PolluxError, match="itself"):
        maintenance.backup(archive, archive, force=True)


def test_backup_into_a_missing_folder_is_reported(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    with pytest.raises(PolluxError, match="cannot be written"):
        maintenance.backup(archive, tmp_path / "no" / "such" / "folder.db")


def test_forgotten_session_leaves_no_byte(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = content_of(archive, DOCUMENT)
    assert sessions(archive) == {builders.SESSION, builders.OTHER, CHILD}
    assert MARKER.encode() in archive.read_bytes()
    with maintenance.writable(archive) as opened:
        result = forget.forget(opened, [builders.SESSION], now_us=17, memory={})
        assert {place.name for place in tmp_path.glob("archive.db*")} >= {"archive.db", "archive.db-wal"}
        assert not leaks(tmp_path)
    assert set(result.sessions) == {builders.SESSION, CHILD}
    assert {str(Path(place).relative_to(root / ".gemini/tmp/webapp")) for place in result.files} == {
        f"chats/{builders.NAME}.jsonl",
        "chats/session-2026-11-15T19-45-6ece72aa.jsonl",
        f"chats/{builders.SESSION}/{CHILD}.jsonl",
        f"tool-outputs/session-{builders.SESSION}/run.txt",
        f"{builders.SESSION}/plans/plan.md",
        f"logs/session-{builders.SESSION}.jsonl",
        "run_shell_17.txt",
    }
    assert result.n_versions == 7
    assert result.n_bytes > 0
    assert result.is_clean
    assert result.mentions == [str(root / ".gemini/tmp/webapp/logs.json")]
    assert not leaks(tmp_path)
    assert sessions(archive) == {builders.OTHER}
    assert content_of(archive, DOCUMENT) == other
    assert deeply(archive).is_ok
    with changed(archive) as database:
        assert database.execute("SELECT count(*) FROM tombstones").fetchone()[0] == 2


def test_forgotten_session_is_not_archived_again(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    forgotten(archive, builders.SESSION)
    synced(archive, root)
    grown(root, LOG, builders.log(answer(3)))
    synced(archive, root)
    assert sessions(archive) == {builders.OTHER}
    assert segments_of(archive, LOG) == []
    with maintenance.readable(archive) as opened:
        assert [session.id for session in history(opened.database, locate(())).sessions] == [builders.OTHER]
    assert deeply(archive).is_ok
    assert info_of(archive).n_forgotten == 2


def test_only_the_subagent_is_forgotten(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    result = forgotten(archive, CHILD)
    assert result.sessions == [CHILD]
    assert len(result.files) == 1
    assert sessions(archive) == {builders.OTHER, builders.SESSION}
    assert deeply(archive).is_ok


def test_forgetting_the_only_session_of_a_project_forgets_the_project(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    result = forgotten(archive, builders.SESSION, builders.OTHER)
    assert len(result.sessions) == 3
    with changed(archive) as database:
        assert database.execute("SELECT count(*) FROM projects").fetchone()[0] == 0
    assert deeply(archive).is_ok


def test_session_that_repeats_a_forgotten_one_owns_its_calls(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    repeated = builders.log(
        builders.header(IMPORTED, startTime=builders.at(50)),
        builders.notice("import-1", "Imported session from x"),
        answer(1),
    )
    builders.put(root / ".gemini/tmp/webapp/chats/session-1794418000167-c0ffee00.jsonl", repeated)
    synced(archive, root)
    with changed(archive) as database:
        assert (
            database.execute("SELECT count(*) FROM model_calls WHERE owner_session_id IS NOT NULL").fetchone()[0] == 1
        )
    result = forgotten(archive, builders.SESSION)
    assert result.repeats == [IMPORTED]
    with changed(archive) as database:
        assert (
            database.execute("SELECT count(*) FROM model_calls WHERE owner_session_id IS NOT NULL").fetchone()[0] == 0
        )
    assert deeply(archive).is_ok


def lean_across(archive: Path) -> bytes:
    """Base segments of the other session on two files that will be forgotten, as no writer of Pollux does."""
    output = f"tmp/webapp/tool-outputs/session-{builders.SESSION}/run.txt"
    (log, *_), (plan, *_) = segments_of(archive, LOG)[0], segments_of(archive, output)[0]
    (document, *_), *_ = segments_of(archive, DOCUMENT)
    with store.open_archive(archive) as opened:
        database = opened.database
        data = {segment: raw.content(database, segment) for segment in (log, plan, document)}
        for segment, base, depth in ((plan, log, 1), (document, plan, 2)):
            packed = raw._packed(0, data[segment], (base, depth, data[base]))
            database.execute(
                "UPDATE segments SET data = ?, base_id = ?, depth = ? WHERE id = ?", (packed.data, base, depth, segment)
            )
        database.execute("UPDATE segments SET depth = 3 WHERE base_id = ?", (document,))
        return data[document]


def test_segments_based_on_a_forgotten_session_are_repacked(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    before = lean_across(archive)
    assert looked_at(archive).is_ok
    forgotten(archive, builders.SESSION)
    assert content_of(archive, DOCUMENT)[0] == before
    assert deeply(archive).is_ok


def test_session_is_not_forgotten_if_others_would_be_damaged(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    lean_across(archive)
    flip(archive, segments_of(archive, DOCUMENT)[0][0])
    with pytest.raises(PolluxError, match="nothing was removed"):
        forgotten(archive, builders.SESSION)
    assert builders.SESSION in sessions(archive)
    assert segments_of(archive, LOG)


def test_damaged_session_can_be_forgotten(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    flip(archive, segments_of(archive, LOG)[0][0])
    assert forgotten(archive, builders.SESSION).n_bytes
    assert deeply(archive).is_ok


def test_session_whose_id_begins_alike_is_kept(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    alike = f"{builders.SESSION[:-4]}ffff"
    builders.put(
        root / ".gemini/tmp/webapp/chats/session-2026-11-15T20-00-6ece72aa.jsonl",
        builders.log(builders.header(alike), builders.user("n1", "me too"), answer(21)),
    )
    synced(archive, root)
    forgotten(archive, builders.SESSION)
    assert sessions(archive) == {builders.OTHER, alike}
    assert deeply(archive).is_ok


@pytest.mark.parametrize(
    ("path", "does"),
    [
        (LOG, True),
        (f"tmp/webapp/chats/{builders.SESSION}/x.jsonl", True),
        (f"tmp/webapp/{builders.SESSION}/tracker/1.json", True),
        (f"tmp/webapp/logs/session-{builders.SESSION}.jsonl", True),
        (DOCUMENT, False),
        ("tmp/webapp/logs.json", False),
        ("projects.json", False),
        ("history/webapp/.project_root", False),
        ("tmp/webapp/chats/notes.txt", False),
        ("tmp/webapp/general/general.txt", False),
    ],
)
def test_owner_of_a_file_is_derived_from_its_name(path: str, *, does: bool) -> None:
    assert inventory.belongs_to(path, [builders.SESSION, "general"]) is does


def test_interrupted_removal_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, archive = archived_home(tmp_path)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(forget, "rederive", killed)
    with pytest.raises(KeyboardInterrupt):
        forgotten(archive, builders.SESSION)
    monkeypatch.undo()
    with store.open_archive(archive) as opened:
        refresh(opened, [builders.home(root)])
    assert sessions(archive) == {builders.OTHER}
    assert not leaks(tmp_path)
    assert deeply(archive).is_ok


def test_info_counts_the_sessions_that_a_list_shows(tmp_path: Path) -> None:
    """A session without messages is not listed, neither before nor after the client deletes it."""
    stub = builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header()))
    other = f"session-2026-11-15T19-30-{builders.OTHER[:8]}.jsonl"
    head = builders.header(builders.OTHER)
    builders.put(builders.chats(tmp_path) / other, builders.log(head, builders.user(), builders.gemini()))
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)], memory={})
        before = maintenance.info(archive)
        stub.unlink()
        refresh(archive, [builders.home(tmp_path)], memory={})
        after = maintenance.info(archive)
    assert [(info.n_sessions, info.n_deleted) for info in (before, after)] == [(1, 0), (1, 0)]
