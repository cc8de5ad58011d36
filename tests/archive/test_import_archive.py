"""An import loses no byte of either archive, and changes nothing that this machine has read itself."""
# ruff: noqa: S608  the statements contain only values of these tests

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests import builders
from tests.archive.older import revert
from tests.archive.test_verify import (
    CHILD,
    DOCUMENT,
    LOG,
    answer,
    archived_home,
    changed,
    content_of,
    damage,
    deeply,
    flip,
    grown,
    lived_in,
    looked_at,
    rewritten,
    segments_of,
    synced,
)

from pollux.archive import foreign, forget, import_archive, maintenance, open_session, raw, schema, store
from pollux.archive.import_archive import ImportResult
from pollux.archive.migrations import STEPS
from pollux.archive.verify import rebuild
from pollux.archive.verify_facts import comparable
from pollux.errors import ArchiveError
from pollux.model import Role, Session
from pollux.sessions.locate import locate

NOW_US = 1_794_800_000_000_000
ELSEWHERE = "/home/bob/.gemini"


def merged(archive: Path, other: Path) -> ImportResult:
    with store.open_archive(archive) as ours, foreign.open_foreign(other) as theirs:
        return import_archive.import_archive(ours, theirs, memory={}, now_us=NOW_US)


def copied(archive: Path, name: str) -> Path:
    return maintenance.backup(archive, archive.with_name(name)).path


def moved(archive: Path, machine: str = "laptop", home: str = ELSEWHERE) -> None:
    """Set another machine as the reader of all files of an archive."""
    damage(archive, f"UPDATE files SET machine = '{machine}', home = '{home}'", "DELETE FROM facts_meta")


def facts_in(archive: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all facts, with versions identified by their contents instead of numbers."""
    with store.open_archive(archive, write=False) as opened:
        database = opened.database
        names = {
            row[0]: row[1:]
            for row in database.execute(
                "SELECT versions.id, machine, home, path, number FROM versions JOIN files ON files.id = file_id"
            )
        }
        return {
            table: sorted(_rows(database, table, names), key=repr) for table in schema.TABLES if table != "readings"
        }


def _rows(database: sqlite3.Connection, table: str, names: dict[int, Any]) -> Iterable[tuple[Any, ...]]:
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    for row in schema.rows(database, table):
        compared = comparable(table, columns, row)
        yield tuple(
            names[value] if column == "file_version_id" else value
            for column, value in zip(columns, compared, strict=True)
        )


def state(archive: Path) -> list[Any]:
    """Return all rows without the times of the last comparison, because new files are compared twice."""
    with changed(archive) as database:
        files, *others = (
            database.execute(f"SELECT * FROM {text}").fetchall() for text in ("files", "versions", "segments")
        )
        columns = [row[1] for row in database.execute("PRAGMA table_info(files)")]
    left_out = [columns.index(name) for name in ("last_us", "ctime_ns")]
    return [[[value for place, value in enumerate(row) if place not in left_out] for row in files], *others]


def test_import_into_an_empty_archive_copies_everything(tmp_path: Path) -> None:
    root, other = archived_home(tmp_path)
    archive = tmp_path / "mine.db"
    result = merged(archive, other)
    with changed(other) as database:
        n_files, n_bytes = database.execute(
            "SELECT count(*), (SELECT sum(archived_bytes) FROM versions) FROM files"
        ).fetchone()
    assert (result.n_files, result.n_versions, result.n_bytes) == (n_files, n_files + 1, n_bytes)
    assert result.problems == []
    assert content_of(archive, DOCUMENT) == content_of(other, DOCUMENT)
    assert facts_in(archive) == facts_in(other)
    assert deeply(archive).is_ok
    with changed(archive) as database:
        assert database.execute("SELECT count(base_id) FROM segments").fetchone()[0] == 1
    synced(archive, root)
    assert facts_in(archive) == facts_in(other)


def test_second_import_changes_nothing(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    moved(other)
    synced(other, lived_in(tmp_path / "second"))
    assert merged(archive, other).n_files
    before, facts_before = state(archive), facts_in(archive)
    assert merged(archive, other) == ImportResult()
    assert state(archive) == before
    assert facts_in(archive) == facts_before


def test_import_of_a_copy_of_itself_adds_nothing(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    before = state(archive)
    assert merged(archive, other) == ImportResult()
    assert state(archive) == before


def test_order_of_two_archives_of_one_machine_does_not_matter(tmp_path: Path) -> None:
    root, one = archived_home(tmp_path)
    two = copied(one, "two.db")
    grown(root, LOG, builders.log(answer(3)))
    rewritten(root, 11, 12, 13)
    synced(one, root)
    rewritten(root, 11, 14)
    second = lived_in(tmp_path / "second")
    grown(second, LOG, builders.log(answer(5)))
    synced(two, root, second)
    copies = copied(one, "one-copy.db"), copied(two, "two-copy.db")
    merged(one, copies[1])
    merged(two, copies[0])
    assert keys_of(one, "messages") == keys_of(two, "messages")
    assert keys_of(one, "model_calls") == keys_of(two, "model_calls")
    assert set(content_of(one, DOCUMENT)) == set(content_of(two, DOCUMENT))
    assert len(content_of(one, DOCUMENT)) == 5
    for archive in (one, two):
        assert deeply(archive).is_ok


def keys_of(archive: Path, table: str) -> set[tuple[str, str]]:
    with changed(archive) as database:
        return set(database.execute(f"SELECT session_id, message_id FROM {table}").fetchall())


def test_session_of_two_machines_is_one_session(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    moved(other)
    grown(root, LOG, builders.log(answer(3)))
    synced(archive, root)
    result = merged(archive, other)
    assert result.n_files
    with changed(archive) as database:
        ids = [row[0] for row in database.execute("SELECT session_id FROM sessions")]
        machines = {row[0] for row in database.execute("SELECT machine FROM files")}
        calls = database.execute("SELECT count(*) FROM model_calls").fetchone()[0]
    assert sorted(ids) == sorted([builders.SESSION, CHILD, builders.OTHER])
    assert len(machines) == 2
    assert calls == 6
    assert looked_at(archive).is_ok


def test_longer_copy_of_an_own_file_becomes_another_version(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    before = content_of(archive, LOG)
    grown(root, LOG, builders.log(answer(3)))
    synced(other, root)
    result = merged(archive, other)
    assert (result.n_files, result.n_versions) == (1, 1)
    content = (root / ".gemini" / LOG).read_bytes()
    assert [(item.file, item.n_bytes) for item in result.not_read_here] == [(str(root / ".gemini" / LOG), len(content))]
    assert content_of(archive, LOG) == [content, *before]
    assert marks(archive) == [(LOG, 1, str(other), NOW_US)]
    assert roles(archive, builders.SESSION, LOG) == {"main", "import"}
    assert keys_of(archive, "model_calls") == keys_of(other, "model_calls")
    assert merged(archive, other) == ImportResult()
    assert merged(other, archive) == ImportResult()
    synced(archive, root)  # now this machine has also read the remaining bytes
    assert content_of(archive, LOG)[-1] == content
    assert roles(archive, builders.SESSION, LOG) == {"main"}
    assert keys_of(archive, "messages") == keys_of(other, "messages")
    assert deeply(archive).is_ok


def marks(archive: Path) -> list[tuple[str, int, str, int]]:
    """Return the imported versions: path, number, source and time."""
    with changed(archive) as database:
        return database.execute(
            "SELECT path, number, source, at_us FROM imported JOIN versions ON versions.id = imported.version_id "
            "JOIN files ON files.id = file_id ORDER BY path, number"
        ).fetchall()


def roles(archive: Path, session_id: str, path: str) -> set[str]:
    with changed(archive) as database:
        rows = database.execute(
            "SELECT role FROM session_files JOIN versions ON versions.id = file_version_id "
            "JOIN files ON files.id = file_id WHERE session_id = ? AND path = ?",
            (session_id, path),
        )
        return {row[0] for row in rows}


def test_import_continues_an_earlier_import(tmp_path: Path) -> None:
    root, other = archived_home(tmp_path)
    archive = tmp_path / "mine.db"
    moved(other)
    merged(archive, other)
    again = tmp_path / "again.db"
    grown(root, LOG, builders.log(answer(3)))
    synced(again, root)  # in one piece
    moved(again)
    result = merged(archive, again)
    assert (result.n_versions, result.n_bytes) == (0, len(builders.log(answer(3))))
    assert result.not_read_here == []
    assert content_of(archive, LOG) == [(root / ".gemini" / LOG).read_bytes()]
    assert facts_in(archive)["messages"]
    assert deeply(archive).is_ok
    assert merged(archive, again) == ImportResult()


def test_version_based_on_a_segment_stored_differently_is_imported(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    rewritten(root, 11, 12, 13)
    synced(other, root)
    (first, *_), (second, *_) = segments_of(archive, DOCUMENT)
    with store.open_archive(archive) as opened:  # the same bytes in two pieces
        database = opened.database
        data = raw.content(database, second)
        database.execute("DELETE FROM segments WHERE id = ?", (second,))
        version_id = database.execute("SELECT id FROM versions WHERE number = 2").fetchone()[0]
        for start, piece in ((0, data[:100]), (100, data[100:])):
            raw._insert(database, version_id, raw._packed(start, piece))
    assert first
    assert merged(archive, other).n_versions == 1
    assert sorted(content_of(archive, DOCUMENT)) == sorted(content_of(other, DOCUMENT))
    assert deeply(archive).is_ok


def test_damaged_own_segment_is_not_used_as_a_base(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    rewritten(root, 11, 12, 13)
    synced(other, root)
    flip(archive, segments_of(archive, DOCUMENT)[1][0])
    n_damaged = len(looked_at(archive).damage)
    assert merged(archive, other).n_versions == 1
    assert len(looked_at(archive).damage) == n_damaged
    assert (root / ".gemini" / DOCUMENT).read_bytes() in readable_of(archive, DOCUMENT)


def readable_of(archive: Path, path: str) -> list[bytes]:
    with store.open_archive(archive, write=False) as opened:
        rows = opened.database.execute(
            "SELECT versions.id FROM imported JOIN versions ON versions.id = imported.version_id "
            "JOIN files ON files.id = file_id WHERE path = ?",
            (path,),
        ).fetchall()
        readers = [raw.reader(opened.database, row[0]) for row in rows]
        return [read(0, read.size) for read in readers]


def test_older_backup_does_not_become_the_newest_version(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    damage(archive, "UPDATE versions SET mtime_ns = 1000 WHERE number = 1", "UPDATE versions SET mtime_ns = 2000")
    other = copied(archive, "other.db")
    rewritten(root, 15)
    synced(other, root)
    damage(other, "UPDATE versions SET mtime_ns = 1500 WHERE number = 3")
    rewritten(root, 16)
    synced(archive, root)
    merged(archive, other)
    assert content_of(archive, DOCUMENT)[-1] == (root / ".gemini" / DOCUMENT).read_bytes()
    assert len(content_of(archive, DOCUMENT)) == 4
    grown(root, DOCUMENT, b" ")
    rewritten(root, 17)
    synced(archive, root)
    assert content_of(archive, DOCUMENT)[-1] == (root / ".gemini" / DOCUMENT).read_bytes()


def test_contradicting_orders_of_versions_are_merged() -> None:
    def version(number: int, mtime_ns: int) -> import_archive._Version:
        return import_archive._Version(number, 1, mtime_ns, [], is_import=True)

    versions_ = {number: version(number, 100 - number) for number in range(1, 6)}
    assert [*import_archive._merged_order([1, 2], [2, 1], versions_)] == [
        *import_archive._merged_order([2, 1], [1, 2], versions_)
    ]
    assert [*import_archive._merged_order([1, 2], [3, 2, 4], versions_)] == [3, 1, 2, 4]
    assert [*import_archive._merged_order([], [3, 3], versions_)] == [3]


def test_own_forgotten_session_is_not_imported(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    elsewhere = copied(archive, "elsewhere.db")
    moved(elsewhere)
    with maintenance.writable(archive) as opened:
        forget.forget(opened, [builders.SESSION], now_us=1, memory={})
    before = state(archive)
    result = merged(archive, other)
    assert (result.n_files, result.n_forgotten) == (0, 7)
    assert state(archive) == before
    result = merged(archive, elsewhere)  # only by the names of its files
    assert result.n_forgotten == 6
    with changed(archive) as database:
        assert database.execute("SELECT session_id FROM sessions").fetchall() == [(builders.OTHER,)]
    assert segments_of(archive, LOG) == []


def test_session_forgotten_in_the_imported_archive_is_kept(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    with maintenance.writable(other) as opened:
        forget.forget(opened, [builders.SESSION], now_us=1, memory={})
    before = facts_in(archive)
    assert merged(archive, other).n_files == 0
    assert facts_in(archive) == before
    assert len(segments_of(archive, LOG)) == 2


def test_only_undamaged_bytes_are_imported(tmp_path: Path) -> None:
    root, other = archived_home(tmp_path)
    archive = tmp_path / "mine.db"
    content = (root / ".gemini" / LOG).read_bytes()
    start = segments_of(other, LOG)[1][2]
    flip(other, segments_of(other, LOG)[1][0])
    flip(other, segments_of(other, DOCUMENT)[0][0])
    result = merged(archive, other)
    assert {Path(problem.file or "").name for problem in result.problems} == {Path(LOG).name, Path(DOCUMENT).name}
    assert content_of(archive, LOG) == [content[:start]]
    assert content_of(archive, DOCUMENT)[0] == b""
    assert looked_at(archive).is_ok
    before = state(archive)
    assert merged(archive, other).n_files == 0
    assert state(archive) == before
    synced(archive, root)
    assert content_of(archive, LOG)[-1] == content
    assert deeply(archive).is_ok


def test_import_of_a_file_stops_at_a_gap(tmp_path: Path) -> None:
    root, other = archived_home(tmp_path)
    grown(root, LOG, builders.log(answer(3)))
    synced(other, root)
    damage(other, f"DELETE FROM segments WHERE id = {segments_of(other, LOG)[1][0]}")
    first, *_ = segments_of(other, LOG)
    archive = tmp_path / "mine.db"
    result = merged(archive, other)
    assert "missing" in result.problems[0].message
    assert len(content_of(archive, LOG)[0]) == first[3]
    damage(other, f"DELETE FROM segments WHERE id = {first[0]}")
    assert merged(tmp_path / "third.db", other).problems


def test_own_version_with_a_gap_is_not_extended(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    damage(archive, f"DELETE FROM segments WHERE id = {segments_of(archive, LOG)[1][0]}")
    before = state(archive)
    merged(archive, other)
    assert state(archive) == before


def test_archive_that_saw_a_file_last_decides_whether_it_is_deleted(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    moved(other)
    merged(archive, other)
    damage(other, "UPDATE files SET deleted_us = last_us + 5")
    merged(archive, other)
    with changed(archive) as database:
        rows = database.execute("SELECT machine, count(deleted_us), count(*) FROM files GROUP BY machine").fetchall()
    assert [gone for machine, gone, n_files in rows if machine == "laptop" and gone == n_files]
    assert [gone for machine, gone, _ in rows if machine != "laptop"] == [0]


def test_interrupted_import_changes_nothing(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    grown(root, LOG, builders.log(answer(3)))
    synced(other, root, lived_in(tmp_path / "second"))
    before, facts_before = state(archive), facts_in(archive)
    n_told = 0

    def stop(_done: int, _whole: int) -> None:
        nonlocal n_told
        n_told += 1
        if n_told == 5:
            raise KeyboardInterrupt

    with store.open_archive(archive) as ours, foreign.open_foreign(other) as theirs, pytest.raises(KeyboardInterrupt):
        import_archive.import_archive(ours, theirs, memory={}, now_us=NOW_US, progress=stop)
    assert (state(archive), facts_in(archive), marks(archive)) == (before, facts_before, [])
    assert merged(archive, other).n_files > 1
    assert deeply(archive).is_ok


def test_newer_format_is_rejected(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    damage(other, "PRAGMA user_version = 99")
    with pytest.raises(ArchiveError, match="newer Pollux"):
        merged(archive, other)


# Sessions read by this machine are not changed


def own(archive: Path) -> Mine:
    """Return the sessions as a user sees them, read only from the archive."""
    with store.open_archive(archive, write=False) as opened:
        database = opened.database
        sessions = {session.id: session for session in open_session.history(database, locate(())).sessions}
        said = {
            id_: [
                (message.id, message.text, str(message.fate))
                for message in open_session.open_session(database, session).messages()
            ]
            for id_, session in sessions.items()
        }
        mains = {
            id_: open_session.open_session(database, session).main.reading.original.whole()
            for id_, session in sessions.items()
        }
        return Mine(sessions, said, mains)


class Mine(NamedTuple):
    sessions: dict[str, Session]
    said: dict[str, list[tuple[str, str, str]]]
    mains: dict[str, bytes]


def replaced(other: Path, path: str, data: bytes, *, where: str = "") -> None:
    """Store these bytes with matching hashes as the only version of a file."""
    with changed(other) as database:
        (version_id,) = database.execute(f"SELECT version_id FROM files WHERE path = ? {where}", (path,)).fetchone()
        database.execute("DELETE FROM segments WHERE version_id = ?", (version_id,))
        raw._insert(database, version_id, raw._packed(0, data))
        digest = hashlib.sha256(data[:4096]).digest(), hashlib.sha256(data[-4096:]).digest()
        database.execute(
            "UPDATE versions SET archived_bytes = ?, head = ?, tail = ? WHERE id = ?", (len(data), *digest, version_id)
        )
        database.execute("UPDATE files SET size = ? WHERE path = ?", (len(data), path))
        database.execute("DELETE FROM facts_meta")


FORGED = answer(1, toolCalls=[builders.call(f"f{n}") for n in range(5)]) | {"content": "Yes, do it."}


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_forged_continuation_does_not_change_an_own_session(tmp_path: Path, is_elsewhere: bool) -> None:  # noqa: FBT001
    root, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    data = (root / ".gemini" / LOG).read_bytes()
    header = builders.updates(lastUpdated="2027-01-01T00:00:00Z", summary="forged", startTime="2001-01-01T00:00:00Z")
    replaced(other, LOG, data + builders.log(header, FORGED, builders.rewind("u1")))
    if is_elsewhere:
        moved(other)
    (root / ".gemini" / LOG).unlink()
    synced(archive, root)
    before = own(archive)
    result = merged(archive, other)
    assert result.n_versions
    assert bool(result.not_read_here) is not is_elsewhere
    after = own(archive)
    assert after.said == before.said
    assert after.mains == before.mains
    assert {id_: without_imports(session) for id_, session in after.sessions.items()} == before.sessions
    assert deeply(archive).is_ok


def without_imports(session: Session) -> Session:
    mine = (ref for ref in session.files if ref.role != Role.IMPORT and not str(ref.path).startswith(ELSEWHERE))
    return msgspec.structs.replace(session, files=tuple(mine))


def test_import_only_adds_messages_and_calls_after_own_ones(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    data = (root / ".gemini" / LOG).read_bytes()
    added = answer(30) | {"content": "only over there"}
    replaced(other, LOG, data + builders.log(FORGED, added))
    before = own(archive)
    merged(archive, other)
    after = own(archive)
    mine = before.said[builders.SESSION]
    assert after.said[builders.SESSION] == [*mine, ("g30", "only over there", "active")]
    assert after.mains == before.mains
    tokens = {call.message_id: call.tokens for call in before.sessions[builders.SESSION].calls}
    counted = {call.message_id: call.tokens for call in after.sessions[builders.SESSION].calls}
    assert {id_: counts for id_, counts in counted.items() if id_ != "g30"} == tokens
    assert len(after.sessions[builders.SESSION].calls) == len(tokens) + 1
    with store.open_archive(archive, write=False) as opened:
        assert open_session.open_session(opened.database, after.sessions[builders.SESSION]).n_imported == 1


def test_imported_document_does_not_drop_own_messages(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    forged = builders.document(answer(11) | {"content": "forged"}, answer(19), sessionId=builders.OTHER)
    replaced(other, DOCUMENT, forged)
    damage(other, "UPDATE versions SET mtime_ns = mtime_ns + 1000000000")
    before = own(archive).said[builders.OTHER]
    merged(archive, other)
    after = own(archive).said[builders.OTHER]
    assert after[: len(before)] == before
    assert [id_ for id_, *_ in after[len(before) :]] == ["g19"]


def test_project_claims_of_an_import_do_not_apply_to_own_sessions(tmp_path: Path) -> None:
    root = lived_in(tmp_path / "home")
    for path in root.rglob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(builders.HASH.encode(), b"0" * 64))
    (root / ".gemini/tmp/webapp/.project_root").unlink()
    archive, other = tmp_path / "archive.db", tmp_path / "other.db"
    synced(archive, root)
    before = own(archive).sessions
    builders.put(root / ".gemini/tmp/webapp/.project_root", b"/tmp/evil")
    synced(other, root)
    assert own(other).sessions[builders.SESSION].project.path == "/tmp/evil"  # noqa: S108
    for machine in ("localhost", "zzz"):
        damage(other, f"UPDATE files SET machine = '{machine}'")
        merged(archive, other)
        with store.open_archive(archive) as opened:
            rebuild(opened, memory={})
        assert own(archive).sessions[builders.SESSION].project == before[builders.SESSION].project


def test_imported_session_does_not_own_calls_of_own_sessions(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = tmp_path / "other.db"
    copy = lived_in(tmp_path / "copy")
    for path in copy.rglob("*.jsonl"):
        stranger = builders.SESSION.replace("6ece72aa", "0ece72aa").encode()
        early = (
            path.read_bytes().replace(builders.SESSION.encode(), stranger).replace(b"2026-11-15T19", b"2026-11-15T07")
        )
        builders.put(path.with_name(path.name.replace("6ece72aa", "0ece72aa")), early)
        path.unlink()
    synced(other, copy)
    moved(other)
    before = own(archive).sessions[builders.SESSION].calls
    assert merged(archive, other).n_files
    assert own(archive).sessions[builders.SESSION].calls == before
    assert root.exists()


def test_own_file_is_read_despite_matching_imported_times(tmp_path: Path) -> None:
    root = lived_in(tmp_path / "home")
    archive, other = tmp_path / "archive.db", tmp_path / "other.db"
    synced(other, root)
    place = root / ".gemini" / LOG
    forged = place.read_bytes().replace(b"the answer the", b"THE ANSWER the")
    replaced(other, LOG, forged)  # of the same length, with the time and the inode of the file
    damage(other, "UPDATE files SET last_us = last_us + 3600000000")
    merged(archive, other)
    assert content_of(archive, LOG) == [forged]
    synced(archive, root)
    assert content_of(archive, LOG) == [forged, place.read_bytes()]
    assert own(archive).mains[builders.SESSION] == place.read_bytes()
    assert b"THE ANSWER" not in repr(own(archive).said).encode()


def test_restored_backup_is_own_again_while_its_files_exist(tmp_path: Path) -> None:
    root, other = archived_home(tmp_path)
    (root / ".gemini" / DOCUMENT).unlink()
    synced(other, root)
    archive = tmp_path / "mine.db"
    merged(archive, other)
    assert own(archive) == own(other)
    n_marked = len(marks(archive))
    synced(archive, root)
    assert own(archive) == own(other)
    left = {path for path, *_ in marks(archive)}
    assert n_marked > len(left)
    assert left == {DOCUMENT}
    assert len(content_of(archive, LOG)) == 1
    grown(root, LOG, builders.log(answer(3)))
    synced(archive, root)
    assert content_of(archive, LOG) == [(root / ".gemini" / LOG).read_bytes()]
    assert deeply(archive).is_ok


def test_import_does_not_undelete_a_file(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    moved(other)
    (root / ".gemini" / LOG).unlink()
    synced(archive, root)
    assert own(archive).sessions[builders.SESSION].deleted
    damage(other, "UPDATE files SET last_us = last_us + 3600000000")
    merged(archive, other)
    assert own(archive).sessions[builders.SESSION].deleted
    with store.open_archive(archive, write=False) as opened:
        assert maintenance.info(opened).n_deleted == 1


def test_import_does_not_change_the_state_of_an_own_file(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    before = state(archive)
    damage(other, "UPDATE files SET last_us = last_us + 1, deleted_us = last_us + 5, size = 1, inode = 1, first_us = 0")
    assert merged(archive, other) == ImportResult()
    assert state(archive) == before


def test_own_file_rewritten_after_an_import_is_read(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    rewritten(root, 11, 17)
    synced(other, root)
    rewritten(root, 11, 12)
    merged(archive, other)
    rewritten(root, 11, 18)
    synced(archive, root)
    assert content_of(archive, DOCUMENT)[-1] == (root / ".gemini" / DOCUMENT).read_bytes()
    assert deeply(archive).is_ok


def test_forgetting_a_session_removes_its_imports(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = copied(archive, "other.db")
    grown(root, LOG, builders.log(answer(3)))
    synced(other, root)
    merged(archive, other)
    assert marks(archive)
    with maintenance.writable(archive) as opened:
        forget.forget(opened, [builders.SESSION], now_us=1, memory={})
    assert marks(archive) == []
    assert looked_at(archive).is_ok


@pytest.mark.parametrize("last", [*STEPS][:-1])
def test_archive_of_an_older_pollux_is_imported_and_read(tmp_path: Path, last: str) -> None:
    _, other = archived_home(tmp_path)
    expected = facts_in(other)
    revert(other, last)
    assert facts_in(other) == expected
    assert deeply(other).is_ok
    assert merged(tmp_path / "mine.db", other).n_files
    assert facts_in(tmp_path / "mine.db") == expected
