"""An imported archive is checked before its rows are used, and its faults are reported under its name."""
# ruff: noqa: S608  the statements contain only values of these tests

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.archive.test_import_archive import copied, merged, own, state
from tests.archive.test_verify import DOCUMENT, LOG, archived_home, changed, content_of, damage, looked_at, segments_of

from pollux.archive import foreign, raw, store
from pollux.errors import ArchiveError

ENDLESS = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT i AS id FROM c"
BOMB = 1 << 30


@pytest.fixture
def other(tmp_path: Path) -> Path:
    _, archive = archived_home(tmp_path)
    return copied(archive, "other.db")


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE files RENAME TO f", f"CREATE VIEW files AS {ENDLESS}"),
        (f"CREATE VIEW beside AS {ENDLESS}",),
        ("CREATE VIRTUAL TABLE words USING fts5(text)",),
        ("DROP TABLE session_files", "CREATE VIRTUAL TABLE session_files USING fts5(session_id, file_version_id)"),
        ("CREATE TRIGGER t AFTER INSERT ON files BEGIN DELETE FROM versions; END",),
        ("DROP TABLE segments",),
        ("DROP TABLE facts_meta",),
        ("ALTER TABLE versions DROP COLUMN head",),
        ("ALTER TABLE versions RENAME COLUMN head TO face",),
        (
            "ALTER TABLE files DROP COLUMN deleted_us",
            "ALTER TABLE files ADD COLUMN deleted_us INTEGER AS (length(zeroblob(900000000)))",
        ),
        ("DROP TABLE seals", "CREATE TABLE seals (number INTEGER PRIMARY KEY)"),
        (
            "ALTER TABLE files RENAME TO f",
            "CREATE TABLE files AS SELECT * FROM f",  # without a key, so that two rows may have the same number
        ),
        ("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET rootpage = 3 WHERE name = 'versions'"),
        (
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET sql = 'CREATE TABLE ' || CAST(x'b0a0' AS TEXT) WHERE name = 'projects'",
        ),
    ],
)
def test_unknown_schema_is_rejected(tmp_path: Path, other: Path, statements: tuple[str, ...]) -> None:
    damage(other, *statements)
    archive = tmp_path / "archive.db"
    before = state(archive)
    with pytest.raises(ArchiveError) as refused:
        merged(archive, other)
    assert str(other) in str(refused.value)
    assert str(archive) not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.status == 2
    assert state(archive) == before


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("files", "machine", b"m"),
        ("files", "home", b"/h"),
        ("files", "home", ""),
        ("files", "path", b"tmp/x"),
        ("files", "path", "tmp/../../etc/passwd"),
        ("files", "path", "tmp/a\0b"),
        ("files", "path", "x" * 5000),
        ("files", "mtime_ns", "zz"),
        ("files", "first_us", "q"),
        ("files", "first_us", -1),
        ("files", "last_us", 2**63 - 1),
        ("files", "deleted_us", 1.5),
        ("files", "version_id", "a"),
        ("versions", "archived_bytes", -1),
        ("versions", "archived_bytes", 2**62),
        ("versions", "head", "text"),
        ("versions", "tail", b"x" * 33),
        ("versions", "mtime_ns", "zz"),
        ("versions", "number", "first"),
        ("versions", "first_us", 2**62),
        ("segments", "start", -1),
        ("segments", "start", "a"),
        ("segments", "length", 0),
        ("segments", "length", BOMB),
        ("segments", "sha256", "ab"),
        ("segments", "sha256", b"ab"),
        ("segments", "base_id", "x"),
        ("segments", "base_id", 99999),
        ("segments", "depth", 65),
        ("segments", "data", "text"),
        ("segments", "data", b""),
        ("segments", "data", 5),
    ],
)
def test_row_with_a_wrong_type_is_left_out_and_reported(
    tmp_path: Path, other: Path, table: str, column: str, value: object
) -> None:
    archive = tmp_path / "archive.db"
    with changed(other) as database:
        database.execute("UPDATE files SET machine = 'laptop'")
        which = f"SELECT id FROM {table} ORDER BY id LIMIT 1"
        database.execute(f"UPDATE {table} SET {column} = ? WHERE id = ({which})", (value,))
    before = own(archive)
    result = merged(archive, other)
    assert result.problems
    assert all("\n" not in problem.message for problem in result.problems)
    assert own(archive).mains == before.mains
    assert looked_at(archive).is_ok
    assert merged(archive, other).n_files == 0


def test_invalid_text_is_left_out(tmp_path: Path, other: Path) -> None:
    damage(other, "UPDATE files SET home = CAST(x'ff2f61' AS TEXT) WHERE id = 1")
    result = merged(tmp_path / "new.db", other)
    assert len(result.problems) == 1
    assert "home" in result.problems[0].message


def repacked(other: Path, path: str, length: int, packed: bytes, digest: bytes, **more: Any) -> None:  # noqa: ANN401
    with changed(other) as database:
        segment_id = segments_of(other, path)[0][0]
        values = {"length": length, "sha256": digest, "data": packed, **more}
        names = ", ".join(f"{name} = ?" for name in values)
        database.execute(f"UPDATE segments SET {names} WHERE id = ?", (*values.values(), segment_id))


@pytest.mark.parametrize("is_said", [True, False])
def test_compression_bomb_is_not_unpacked(
    tmp_path: Path,
    other: Path,
    is_said: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, write_content_size=is_said)
    bomb = zstandard.ZstdCompressor(compression_params=parameters).compress(bytes(64 << 20))
    digest = hashlib.sha256(bytes(64 << 20)).digest()
    repacked(other, LOG, 4096, bomb, digest)
    largest = 0

    def content(*arguments: Any, unpack: Any = raw.content) -> bytes:  # noqa: ANN401
        nonlocal largest
        data: bytes = unpack(*arguments)
        largest = max(largest, len(data))
        return data

    monkeypatch.setattr(raw, "content", content)
    result = merged(tmp_path / "new.db", other)
    assert [problem.message for problem in result.problems if "damaged" in problem.message]
    assert largest <= raw.SEGMENT
    assert content_of(tmp_path / "new.db", LOG) == [b""]


def test_segments_based_on_each_other_are_left_out(tmp_path: Path, other: Path) -> None:
    (first, *_), (second, *_) = segments_of(other, DOCUMENT)
    for depth in (0, 1, 5):
        damage(other, f"UPDATE segments SET base_id = {second}, depth = {depth} WHERE id = {first}")
        result = merged(tmp_path / f"new{depth}.db", other)
        assert len(result.problems) == 2
        assert looked_at(tmp_path / f"new{depth}.db").is_ok


def test_segment_with_a_false_hash_is_not_used_as_a_base(tmp_path: Path, other: Path) -> None:
    """The own archive has a segment with the same hash, so that a segment based on it would be copied unchanged."""
    archive = tmp_path / "archive.db"
    (first, *_), (second, *_) = segments_of(other, DOCUMENT)
    with store.open_archive(other) as opened:
        database = opened.database
        lie = raw._packed(0, b"another document " * 200)
        database.execute("UPDATE segments SET data = ? WHERE id = ?", (lie.data, first))
        leaning = raw._packed(0, b"another document " * 300, (first, 1, b"another document " * 200))
        database.execute(
            "UPDATE segments SET data = ?, length = ?, sha256 = ? WHERE id = ?",
            (leaning.data, leaning.length, leaning.sha256, second),
        )
    merged(archive, other)
    assert looked_at(archive).is_ok


def test_import_of_a_file_stops_at_overlapping_segments(tmp_path: Path, other: Path) -> None:
    first, second = segments_of(other, LOG)
    damage(other, f"UPDATE segments SET start = start - 1 WHERE id = {second[0]}")
    result = merged(tmp_path / "new.db", other)
    assert f"its bytes from {first[3]} on are missing in other.db" in result.problems[0].message
    assert looked_at(tmp_path / "new.db").is_ok


@pytest.mark.parametrize("size", [0, 50, 4096, 30_000])
def test_truncated_archive_is_rejected(tmp_path: Path, other: Path, size: int) -> None:
    other.write_bytes(other.read_bytes()[:size])
    with pytest.raises(ArchiveError, match=r"other\.db cannot be imported"):
        merged(tmp_path / "archive.db", other)


def test_damage_found_later_is_reported_for_the_imported_archive(
    tmp_path: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "archive.db"
    before = state(archive)

    def seals(_self: foreign.ForeignArchive) -> list[tuple[int, bytes]]:
        return _self._query(lambda: _self.database.execute("SELECT * FROM nowhere"))  # type: ignore[no-any-return]

    damage(other, "UPDATE files SET machine = 'laptop'")
    monkeypatch.setattr(foreign.ForeignArchive, "seals", seals)
    with pytest.raises(ArchiveError, match=r"other\.db cannot be imported") as refused:
        merged(archive, other)
    assert str(archive) not in str(refused.value)
    assert state(archive) == before


def test_imported_archive_is_opened_read_only(other: Path) -> None:
    with foreign.open_foreign(other) as opened:
        for statement in ("DELETE FROM files", "CREATE TABLE x (a)", "CREATE TEMP TABLE y (a)"):
            with pytest.raises(sqlite3.OperationalError):
                opened.database.execute(statement)
        pragmas = [opened.database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("query_only", "trusted_schema")]
    assert pragmas == [1, 0]
