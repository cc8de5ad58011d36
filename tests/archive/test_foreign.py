"""An archive that somebody else made is checked before anything of it is used, and blamed for what is wrong with it."""
# ruff: noqa: S608  statements made here

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
            "CREATE TABLE files AS SELECT * FROM f",  # without a key: two rows may have one number
        ),
        ("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET rootpage = 3 WHERE name = 'versions'"),
        (
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET sql = 'CREATE TABLE ' || CAST(x'b0a0' AS TEXT) WHERE name = 'projects'",
        ),
    ],
)
def test_a_schema_that_no_archive_has_is_refused(tmp_path: Path, other: Path, statements: tuple[str, ...]) -> None:
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
    found = merged(archive, other)
    assert found.problems
    assert all("\n" not in problem.message for problem in found.problems)
    assert own(archive).mains == before.mains
    assert looked_at(archive).is_ok
    assert merged(archive, other).n_files == 0


def test_text_that_is_no_text_is_left_out(tmp_path: Path, other: Path) -> None:
    damage(other, "UPDATE files SET home = CAST(x'ff2f61' AS TEXT) WHERE id = 1")
    found = merged(tmp_path / "new.db", other)
    assert len(found.problems) == 1
    assert "home" in found.problems[0].message


def repacked(other: Path, path: str, length: int, packed: bytes, digest: bytes, **more: Any) -> None:  # noqa: ANN401
    with changed(other) as database:
        segment_id = segments_of(other, path)[0][0]
        values = {"length": length, "sha256": digest, "data": packed, **more}
        names = ", ".join(f"{name} = ?" for name in values)
        database.execute(f"UPDATE segments SET {names} WHERE id = ?", (*values.values(), segment_id))


@pytest.mark.parametrize("is_said", [True, False])
def test_a_bomb_is_never_unpacked(
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
    found = merged(tmp_path / "new.db", other)
    assert [problem.message for problem in found.problems if "damaged" in problem.message]
    assert largest <= raw.SEGMENT
    assert content_of(tmp_path / "new.db", LOG) == [b""]


def test_segments_that_lean_on_each_other_in_a_circle_are_left_out(tmp_path: Path, other: Path) -> None:
    (first, *_), (second, *_) = segments_of(other, DOCUMENT)
    for depth in (0, 1, 5):
        damage(other, f"UPDATE segments SET base_id = {second}, depth = {depth} WHERE id = {first}")
        found = merged(tmp_path / f"new{depth}.db", other)
        assert len(found.problems) == 2
        assert looked_at(tmp_path / f"new{depth}.db").is_ok


def test_a_hash_that_lies_about_its_bytes_makes_nothing_lean_on_others(tmp_path: Path, other: Path) -> None:
    """The victim has a segment with that very hash, so that the one that leans on it would be copied as it is."""
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


def test_segments_that_overlap_end_what_is_taken(tmp_path: Path, other: Path) -> None:
    first, second = segments_of(other, LOG)
    damage(other, f"UPDATE segments SET start = start - 1 WHERE id = {second[0]}")
    found = merged(tmp_path / "new.db", other)
    assert f"its bytes from {first[3]} on are missing in other.db" in found.problems[0].message
    assert looked_at(tmp_path / "new.db").is_ok


@pytest.mark.parametrize("size", [0, 50, 4096, 30_000])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, other: Path, size: int) -> None:
    other.write_bytes(other.read_bytes()[:size])
    with pytest.raises(ArchiveError, match=r"other\.db cannot be imported"):
        merged(tmp_path / "archive.db", other)


def test_damage_that_is_met_later_is_blamed_on_the_other_archive(
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


def test_it_is_opened_to_be_read_alone(other: Path) -> None:
    with foreign.open_foreign(other) as found:
        for statement in ("DELETE FROM files", "CREATE TABLE x (a)", "CREATE TEMP TABLE y (a)"):
            with pytest.raises(sqlite3.OperationalError):
                found.database.execute(statement)
        pragmas = [found.database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("query_only", "trusted_schema")]
    assert pragmas == [1, 0]
