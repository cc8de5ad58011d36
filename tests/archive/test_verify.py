"""Each kind of damage is reported with its bytes, and only the lost bytes are restored."""
# ruff: noqa: S608  the statements contain only values of these tests

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.refreshing import refresh

from pollux import prices
from pollux.archive import open_session, raw, schema, store
from pollux.archive import verify as module
from pollux.archive.damage import Damage, StoredSegment, VerifyReport, stored_segment
from pollux.archive.lock import WriterLock
from pollux.archive.pricing import price_calls
from pollux.archive.readings import load_reading
from pollux.archive.verify import rebuild, verify
from pollux.archive.verify_facts import verify_deeply
from pollux.errors import ArchiveError, DamagedArchiveError
from pollux.formats.source import Source
from pollux.sessions.replay.reading import FileReading

CHILD = "0c1d2e3f-4a5b-4c6d-8e7f-901234567890"
MARKER = "xylophone-quartz-4711-zeppelin"
LOG = f"tmp/webapp/chats/{builders.NAME}.jsonl"
DOCUMENT = f"tmp/{builders.HASH}/chats/session-2026-11-14T08-00-b3e2640d.json"


def answer(number: int = 1, **more: Any) -> builders.Wire:  # noqa: ANN401  fields of the client
    return builders.gemini(f"g{number}", "the answer " * 40, second=2 * number, tokens=builders.tokens(number), **more)


def lived_in(root: Path) -> Path:
    """Write a home with a session that has each kind of file, and another session."""
    gemini = root / ".gemini"
    agent = builders.call("c1", "codebase_investigator", agentId=CHILD)
    first = builders.user("u1", f"look into {MARKER}, see run_shell_17.txt")
    asked = builders.log(builders.header(), first, answer(toolCalls=[agent, builders.call("c2")]))
    builders.chats(root)
    builders.put(gemini / LOG, asked)
    builders.put(gemini / "tmp/webapp/chats/session-2026-11-15T19-45-6ece72aa.jsonl", builders.log(builders.header()))
    subagent_log = builders.log(builders.header(CHILD, kind="subagent"), builders.user("s1", MARKER), answer(7))
    builders.put(gemini / f"tmp/webapp/chats/{builders.SESSION}/{CHILD}.jsonl", subagent_log)
    for place in (
        f"tool-outputs/session-{builders.SESSION}/run.txt",
        f"{builders.SESSION}/plans/plan.md",
        f"logs/session-{builders.SESSION}.jsonl",
        "run_shell_17.txt",
    ):
        builders.put(gemini / "tmp/webapp" / place, f"all about {MARKER}".encode())
    builders.put(gemini / "tmp/webapp/run_shell_18.txt", b"of somebody else")
    logged = [{"sessionId": builders.SESSION, "messageId": 0, "type": "user", "message": "hi", "timestamp": "x"}]
    builders.put(gemini / "tmp/webapp/logs.json", builders.line(logged))
    builders.put(gemini / DOCUMENT, builders.document(answer(11), sessionId=builders.OTHER))
    return root


def grown(root: Path, path: str, data: bytes) -> None:
    with (root / ".gemini" / path).open("ab") as file:
        file.write(data)


def rewritten(root: Path, *numbers: int) -> None:
    place = root / ".gemini" / DOCUMENT
    place.write_bytes(builders.document(*map(answer, numbers), sessionId=builders.OTHER))


def synced(archive: Path, *roots: Path) -> None:
    with store.open_archive(archive) as opened:
        assert opened.is_writable
        refresh(opened, [builders.home(root) for root in roots])


def archived_home(tmp_path: Path) -> tuple[Path, Path]:
    """Return a home and its archive, with a log of two segments and a document with a version based on another."""
    root, archive = lived_in(tmp_path / "home"), tmp_path / "archive.db"
    synced(archive, root)
    grown(root, LOG, builders.log(builders.user("u2", "go on", second=3), answer(2)))
    rewritten(root, 11, 12)
    synced(archive, root)
    return root, archive


@contextmanager
def changed(archive: Path, *statements: str) -> Iterator[sqlite3.Connection]:
    """Change an archive with SQL, without Pollux."""
    database = sqlite3.connect(archive, isolation_level=None)
    try:
        for statement in statements:
            database.execute(statement)
        yield database
    finally:
        database.close()


def damage(archive: Path, *statements: str) -> None:
    with changed(archive, *statements):
        pass


def looked_at(archive: Path, root: Path | None = None, *, repair: bool = False) -> VerifyReport:
    with store.open_archive(archive, write=repair) as opened:
        return verify(opened, [builders.home(root)] if root else [], repair=repair)


def deeply(archive: Path) -> VerifyReport:
    with store.open_archive(archive, write=False) as opened:
        report = verify(opened)
        verify_deeply(opened, report, memory={})
        return report


def segments_of(archive: Path, path: str) -> list[tuple[int, int, int, int]]:
    with changed(archive) as database:
        return database.execute(
            "SELECT segments.id, number, start, length "
            "FROM segments JOIN versions ON versions.id = segments.version_id JOIN files ON files.id = file_id "
            "WHERE path = ? ORDER BY number, start",
            (path,),
        ).fetchall()


def flip(archive: Path, segment_id: int) -> None:
    with changed(archive) as database:
        data = bytearray(database.execute("SELECT data FROM segments WHERE id = ?", (segment_id,)).fetchone()[0])
        data[-1] ^= 0x55
        database.execute("UPDATE segments SET data = ? WHERE id = ?", (bytes(data), segment_id))


def content_of(archive: Path, path: str) -> list[bytes]:
    with store.open_archive(archive, write=False) as opened:
        versions = opened.database.execute(
            "SELECT versions.id, archived_bytes FROM versions JOIN files ON files.id = file_id WHERE path = ? "
            "ORDER BY number",
            (path,),
        ).fetchall()
        return [version_bytes(opened.database, version_id, n_bytes) for version_id, n_bytes in versions]


def version_bytes(database: sqlite3.Connection, version_id: int, n_bytes: int) -> bytes:
    """Return the bytes of a version, or `damaged` if they are."""
    try:
        return raw.reader(database, version_id)(0, n_bytes)
    except DamagedArchiveError:
        return b"damaged"


def only_damage(report: VerifyReport) -> Damage:
    (damage_,) = report.damage
    return damage_


def test_undamaged_archive_has_no_findings(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    report = looked_at(archive)
    assert (report.damage, report.notes) == ([], [])
    assert report.is_ok
    with changed(archive) as database:
        assert report.n_segments == database.execute("SELECT count(*) FROM segments").fetchone()[0]
        assert database.execute("SELECT count(base_id) FROM segments").fetchone()[0]
    assert deeply(archive).is_ok


def test_progress_is_reported(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    steps: list[tuple[int, int]] = []
    with store.open_archive(archive, write=False) as opened:
        report = verify(opened, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (report.n_bytes, report.n_bytes)


def test_flipped_byte_is_restored_from_the_live_file(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    before = content_of(archive, LOG)
    segment_id, number, start, length = segments_of(archive, LOG)[1]
    flip(archive, segment_id)
    damage_ = only_damage(looked_at(archive))
    place = str(root / ".gemini" / LOG)
    assert (damage_.code, damage_.file, damage_.version) == ("bytes", place, number)
    assert (damage_.start, damage_.end, damage_.source) == (start, start + length, place)
    assert damage_.machine
    assert str(start) in damage_.message
    report = looked_at(archive, repair=True)
    assert report.is_ok
    assert report.damage[0].is_repaired
    assert looked_at(archive).damage == []
    assert content_of(archive, LOG) == before


def test_segments_based_on_damage_are_repaired_with_it(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    before = content_of(archive, DOCUMENT)
    (first, *_), (second, *_) = segments_of(archive, DOCUMENT)
    copy = builders.put(tmp_path / "other" / ".gemini" / DOCUMENT, before[0])
    flip(archive, first)
    base, leaning = looked_at(archive).damage
    assert (base.version, base.source) == (1, None)
    assert leaning.version == 2
    assert "compressed against is damaged" in leaning.message
    assert leaning.source == str(root / ".gemini" / DOCUMENT)
    base, leaning = looked_at(archive, tmp_path / "other").damage
    assert base.source == str(copy)
    report = looked_at(archive, tmp_path / "other", repair=True)
    assert [damage.source for damage in report.damage] == [str(copy)]
    assert report.is_ok
    assert content_of(archive, DOCUMENT) == before
    with changed(archive) as database:
        assert database.execute("SELECT base_id FROM segments WHERE id = ?", (second,)).fetchone()[0] == first


def test_bytes_are_restored_from_another_version_or_copy(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    other = lived_in(tmp_path / "second")
    grown(other, LOG, builders.log(builders.user("u3", "elsewhere")))
    synced(archive, root, other)
    before = content_of(archive, LOG)
    for home in (root, other):
        (home / ".gemini" / LOG).unlink()
    first, *_ = segments_of(archive, LOG)
    flip(archive, first[0])
    damage_ = only_damage(looked_at(archive))
    assert damage_.source is not None
    assert damage_.source.startswith(f"version 1 of {tmp_path}")
    assert looked_at(archive, repair=True).is_ok
    assert content_of(archive, LOG) == before


def test_bytes_are_restored_from_a_segment_with_the_same_hash(tmp_path: Path) -> None:
    root, archive = lived_in(tmp_path / "home"), tmp_path / "archive.db"
    twin = "tmp/webapp/plans/same.txt"
    builders.put(root / ".gemini" / twin, f"all about {MARKER}".encode())
    synced(archive, root)
    before = content_of(archive, twin)
    for place in root.rglob("*.*"):
        if place.is_file() and "chats" not in place.parts:
            place.unlink()
    flip(archive, segments_of(archive, twin)[0][0])
    damage_ = only_damage(looked_at(archive))
    assert damage_.source is not None
    assert "bytes 0–" in damage_.source
    assert looked_at(archive, repair=True).is_ok
    assert content_of(archive, twin) == before


def test_different_live_file_is_not_used_for_repair(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    flip(archive, segments_of(archive, LOG)[0][0])
    place = root / ".gemini" / LOG
    place.write_bytes(place.read_bytes().replace(b"answer", b"ANSWER"))
    assert only_damage(looked_at(archive, repair=True)).source is None


def test_copy_of_another_machine_is_used_for_repair(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    second = lived_in(tmp_path / "second")
    grown(second, LOG, builders.log(answer(3)))
    synced(archive, second)
    damage(archive, f"UPDATE files SET machine = 'far away' WHERE home NOT LIKE '{root}%'")
    (root / ".gemini" / LOG).unlink()
    flip(archive, segments_of(archive, LOG)[0][0])
    damage_ = only_damage(looked_at(archive, repair=True))
    assert damage_.is_repaired
    assert damage_.source is not None
    assert damage_.source.startswith(f"version 1 of {second}")


def test_unreadable_row_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, archive = archived_home(tmp_path)

    def torn(database: sqlite3.Connection, segment_id: int) -> StoredSegment:
        if segment_id == 2:
            raise sqlite3.DatabaseError("database disk image is malformed")
        return stored_segment(database, segment_id)

    monkeypatch.setattr(module, "stored_segment", torn)
    assert only_damage(looked_at(archive)).message == "segment 2 cannot be read: database disk image is malformed"


def test_file_that_only_looks_like_a_session_has_no_facts(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    for name in ("notes.json", "a/b/c.json"):
        builders.put(root / ".gemini/tmp/webapp/chats" / name, b"{}")
    synced(archive, root)
    assert looked_at(archive).is_ok


def test_changed_hash_is_reported_and_not_accepted(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    segment_id, *_ = segments_of(archive, LOG)[0]
    damage(archive, f"UPDATE segments SET sha256 = zeroblob(32) WHERE id = {segment_id}")
    damage_ = only_damage(looked_at(archive, repair=True))
    assert "SHA-256" in damage_.message
    assert damage_.source is None


def test_bytes_of_another_machine_are_not_searched_on_this_one(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    flip(archive, segments_of(archive, LOG)[0][0])
    damage(archive, "UPDATE files SET machine = 'far away'")
    assert only_damage(looked_at(archive)).source is None


def test_missing_segment_is_a_gap(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    before = content_of(archive, LOG)
    segment_id, number, start, length = segments_of(archive, LOG)[0]
    damage(archive, f"DELETE FROM segments WHERE id = {segment_id}")
    damage_ = only_damage(looked_at(archive))
    assert (damage_.code, damage_.version, damage_.start, damage_.end) == ("gap", number, start, start + length)
    assert damage_.source == str(root / ".gemini" / LOG)  # the hash of the beginning proves it
    assert looked_at(archive, repair=True).is_ok
    assert looked_at(archive).damage == []
    assert content_of(archive, LOG) == before


def test_missing_end_is_a_gap(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    grown(root, LOG, builders.log(builders.user("u3", "long " * 3000, second=5), builders.user("u4", "short")))
    synced(archive, root)
    grown(root, LOG, builders.log(builders.user("u5", "end", second=6)))
    synced(archive, root)
    segment_id, _, start, length = segments_of(archive, LOG)[-1]
    damage(archive, f"DELETE FROM segments WHERE id = {segment_id}")
    assert only_damage(looked_at(archive)).end == start + length
    assert looked_at(archive, repair=True).is_ok
    assert looked_at(archive).damage == []
    assert (start, length) == segments_of(archive, LOG)[-1][2:]


def test_gap_without_proof_is_archived_as_a_new_version(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    for number in (3, 4):
        grown(root, LOG, builders.log(builders.user(f"u{number}", "long " * 3000, second=5)))
        synced(archive, root)
    content = (root / ".gemini" / LOG).read_bytes()
    segment_id, *_ = segments_of(archive, LOG)[2]
    damage(archive, f"DELETE FROM segments WHERE id = {segment_id}")
    damage_ = only_damage(looked_at(archive))
    assert damage_.source is not None
    assert "new version" in damage_.source
    assert not looked_at(archive, repair=True).is_ok
    synced(archive, root)
    assert content_of(archive, LOG)[-1] == content
    damage_ = only_damage(
        looked_at(archive, repair=True)
    )  # the lost bytes cannot be restored, and the file is not archived again
    assert (damage_.version, damage_.source) == (1, None)
    synced(archive, root)
    assert len(content_of(archive, LOG)) == 2


def test_gap_is_repaired_while_facts_are_outdated(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    grown(root, LOG, builders.log(builders.user("u3", "long " * 3000, second=5)))
    synced(archive, root)
    segment_id, *_ = segments_of(archive, LOG)[2]
    damage(archive, f"DELETE FROM segments WHERE id = {segment_id}", "DELETE FROM facts_meta")
    report = looked_at(archive, repair=True)
    assert report.notes
    synced(archive, root)
    assert len(content_of(archive, LOG)) == 2


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        ("UPDATE segments SET start = start - 5 WHERE start > 0", "overlap", "twice"),
        ("UPDATE versions SET archived_bytes = archived_bytes - 7 WHERE number = 2", "length", "the version has only"),
        ("UPDATE segments SET version_id = 999 WHERE id = 1", "dangling", "segments belong"),
        ("UPDATE files SET version_id = 999 WHERE id = 1", "dangling", "files name"),
        ("DELETE FROM files", "dangling", "versions belong"),
        ("UPDATE files SET forgotten_us = 1 WHERE id = 1", "dangling", "forgotten"),
        ("UPDATE segments SET base_id = 999 WHERE base_id IS NOT NULL", "bytes", "compressed"),
        ("UPDATE segments SET base_id = id WHERE base_id IS NOT NULL", "bytes", "compressed"),
        ("UPDATE segments SET length = 3 WHERE id = 1", "bytes", "decompressed"),
        ("UPDATE segments SET length = length + 3 WHERE id = 1", "bytes", "SHA-256"),
        ("UPDATE segments SET data = 'x' WHERE id = 1", "bytes", "decompressed"),
        ("DELETE FROM messages WHERE seq = 0", "facts", "of 4 rows of messages"),
        ("DELETE FROM tool_calls", "facts", "has 0 of 2 rows of tool_calls"),
        ("DELETE FROM session_files", "facts", "rows of session_files"),
        ("DELETE FROM sessions", "facts", "which is missing"),
        ("UPDATE messages SET file_version_id = 999", "facts", "version 999"),
        ("UPDATE sessions SET extra = x'c1'", "facts", "rows of"),
        ("UPDATE sessions SET extra = x'01'", "facts", "rows of"),
    ],
)
def test_inconsistent_rows_are_reported(tmp_path: Path, statement: str, code: str, words: str) -> None:
    _, archive = archived_home(tmp_path)
    damage(archive, "PRAGMA foreign_keys = OFF", statement)
    faults = [damage for damage in looked_at(archive).damage if damage.code == code]
    assert faults
    assert any(words in damage.message for damage in faults), faults


def test_sessions_missing_in_the_facts_are_reported(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(archive, *(f"DELETE FROM {table}" for table in schema.OF_SESSIONS))
    files = [damage.file for damage in looked_at(archive).damage if "no session" in damage.message]
    assert len(files) == 4
    damage(archive, f"INSERT INTO tombstones VALUES ('{builders.SESSION}', 1)")
    assert len(looked_at(archive).damage) == 1


def test_many_dangling_rows_are_counted(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(archive, "PRAGMA foreign_keys = OFF", "UPDATE segments SET version_id = 900 + id")
    assert "…" in looked_at(archive).damage[0].message


def test_facts_are_compared_with_a_rebuild(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(
        archive,
        "UPDATE messages SET n_chars = n_chars + 1 WHERE message_id = 'g1'",
        "DELETE FROM model_calls WHERE message_id = 'g2'",
        "INSERT INTO problems VALUES (1, 99, 'code', 1, 'words')",
        "UPDATE sessions SET title = 'another'",
        "UPDATE projects SET path = 'found later'",
    )
    assert [damage.code for damage in looked_at(archive).damage] == ["facts"] * 3
    report = deeply(archive)
    messages = " ".join(damage.message for damage in report.damage)
    assert {damage.code for damage in report.damage} == {"facts"}
    assert f"messages {builders.SESSION} g1: differs from a rebuild in n_chars" in messages
    assert f"model_calls {builders.SESSION} g2: is missing" in messages
    assert "problems 1 99: is in no rebuild" in messages
    assert "in title" in messages
    assert "projects" not in messages
    with store.open_archive(archive) as opened:
        rebuild(opened, memory={})
    assert deeply(archive).is_ok


def test_facts_are_compared_with_the_messages_that_show_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, archive = archived_home(tmp_path)
    rewritten(root, 11)
    synced(archive, root)
    assert deeply(archive).is_ok
    monkeypatch.setattr(open_session, "compare_versions", lambda _versions: [])
    assert [damage.message for damage in deeply(archive).damage] == [
        f"session {builders.OTHER}: message g12: `show` and the rows differ in fate",
        f"session {builders.OTHER}: model call g12: `show` and the rows differ in fate",
    ]


def test_snapshot_without_a_message_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, archive = archived_home(tmp_path)

    def without_the_last(source: Source, snapshot: bytes) -> FileReading:
        reading = load_reading(source, snapshot)
        del reading.replay.timeline[-1:]
        return reading

    monkeypatch.setattr(open_session, "load_reading", without_the_last)
    words = " ".join(damage.message for damage in deeply(archive).damage)
    assert f"session {builders.SESSION}: message g2 is in the rows, but not in what `show` reads" in words


def test_many_differences_of_a_session_are_counted(tmp_path: Path) -> None:
    root, archive = lived_in(tmp_path / "home"), tmp_path / "archive.db"
    grown(root, LOG, builders.log(*map(answer, range(2, 9))))
    synced(archive, root)
    damage(archive, "UPDATE messages SET fate = 'rewound'")
    words = f"session {builders.SESSION}: 4 more differences from what `show` reads"
    assert words in [damage.message for damage in deeply(archive).damage]


def test_session_that_show_cannot_open_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, archive = archived_home(tmp_path)

    def cannot_open(_source: Source, _snapshot: bytes) -> FileReading:
        raise DamagedArchiveError("it cannot be unpacked")

    monkeypatch.setattr(open_session, "load_reading", cannot_open)
    messages = [damage.message for damage in deeply(archive).damage]
    assert any(words.startswith(f"session {builders.OTHER}: ") and "cannot be unpacked" in words for words in messages)


def test_many_differences_are_counted(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(archive, "UPDATE messages SET line = 77")
    assert any("more rows" in damage.message for damage in deeply(archive).damage)


def test_facts_are_not_compared_while_bytes_are_damaged(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    flip(archive, 1)
    assert "not compared" in deeply(archive).notes[0]


def test_facts_of_another_reader_version_are_not_damage(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(archive, "UPDATE facts_meta SET value = 'old' WHERE key = 'reader'")
    report = deeply(archive)
    assert report.is_ok
    assert len(report.notes) == 1


def test_archive_changed_during_a_comparison_is_not_damage(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(archive, "UPDATE messages SET line = 77")

    def somebody_writes(_done: int, _all: int) -> None:
        damage(archive, "UPDATE files SET last_us = last_us + 1")

    with store.open_archive(archive, write=False) as opened:
        report = VerifyReport()
        verify_deeply(opened, report, memory={}, progress=somebody_writes)
    assert report.is_ok
    assert "during the comparison" in report.notes[0]


def test_rows_being_written_are_not_damage(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(archive, "UPDATE readings SET n_bytes = 1")
    lock = WriterLock(archive)
    assert lock.take()
    report = looked_at(archive)
    assert report.is_ok
    assert "being read by pollux" in report.notes[0]
    lock.release()
    assert "not read yet" in looked_at(archive).notes[0]
    lock.path.write_text("a process that was killed")
    assert "not read yet" in looked_at(archive).notes[0]


@pytest.mark.parametrize("what", ["DELETE FROM readings", "UPDATE readings SET n_bytes = 1"])
def test_archived_bytes_without_facts_are_not_damage(tmp_path: Path, what: str) -> None:
    root, archive = archived_home(tmp_path)
    damage(archive, what)
    report = looked_at(archive)
    assert report.is_ok
    assert "not read yet; run `pollux sync` to read them." in report.notes[0]
    synced(archive, root)
    assert not looked_at(archive).notes


def test_stored_prices_are_not_damage(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    with store.open_archive(archive) as opened:
        price_calls(opened.database, prices.load())
        assert opened.database.execute("SELECT count(*) FROM model_calls WHERE price_id IS NOT NULL").fetchone()[0]
    assert deeply(archive).is_ok


def test_concurrent_writer_does_not_disturb_verification(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    grown(root, LOG, builders.log(builders.user("u9", "more", second=9)))
    with store.open_archive(archive, write=False) as opened:
        report = verify(opened, progress=lambda _done, _all: synced(archive, root))
    assert report.is_ok


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="folders that take no files")
def test_archive_on_a_read_only_disk_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, archive = archived_home(tmp_path)
    connect = sqlite3.connect

    class NoShm(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:  # noqa: ANN401
            if rest and "mode=ro" in str(rest[0]) and "immutable" not in str(rest[0]):
                raise sqlite3.OperationalError("unable to open database file")
            return super().execute(sql, *rest)

    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, factory=NoShm, **more))
    assert deeply(archive).is_ok


def test_truncated_archive_is_reported_in_one_sentence(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    data = archive.read_bytes()
    for place in tmp_path.glob("archive.db-*"):
        place.unlink()
    for size in (0, 1, 100, 1000, 4096, len(data) // 2, len(data) - 4096, len(data) - 1):
        archive.write_bytes(data[:size])
        try:
            is_ok = looked_at(archive, root).is_ok
        except ArchiveError:
            is_ok = False
        assert not is_ok, size


def test_overwritten_pages_are_reported(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    data = archive.read_bytes()
    for place in tmp_path.glob("archive.db-*"):
        place.unlink()
    for page in range(1, len(data) // 4096):
        archive.write_bytes(data[: page * 4096] + b"\xaa" * 4096 + data[(page + 1) * 4096 :])
        try:
            report = looked_at(archive, root)
        except ArchiveError:
            continue
        assert not report.is_ok, page
        with store.open_archive(archive) as opened:  # repair raises nothing, whether it succeeds or not
            verify(opened, repair=opened.is_writable)


def test_other_file_is_reported_in_one_sentence(tmp_path: Path) -> None:
    archive = builders.put(tmp_path / "archive.db", b"this is a letter, and not a database at all" * 100)
    with pytest.raises(ArchiveError, match="not a valid archive"):
        looked_at(archive)
