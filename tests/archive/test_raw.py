"""Bytes are compared with their SHA-256 when they are read, and with the disk before a file is continued."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests import builders
from tests.archive.older import revert
from tests.archive.test_verify import (
    DOCUMENT,
    LOG,
    answer,
    archived_home,
    changed,
    content_of,
    damage,
    flip,
    grown,
    looked_at,
    rewritten,
    segments_of,
    synced,
)
from tests.refreshing import refresh

from pollux.archive import ingest, maintenance, migrations, raw, store
from pollux.archive.inventory import inventory
from pollux.archive.refresh import RefreshResult, compared
from pollux.errors import DamagedArchiveError
from pollux.sessions.locate import ScanCache, locate

PLAN = "tmp/webapp/plans/plan.md"
"""A file from which no session is read, so that it may be large."""


def forge(archive: Path, segment_id: int) -> None:
    """Change one byte of a segment so that it still unpacks."""
    with store.open_archive(archive) as opened:
        data = bytearray(raw.content(opened.database, segment_id))
        data[len(data) // 2] ^= 1
        packed = raw.compress(bytes(data))
        opened.database.execute(
            "UPDATE segments SET data = ?, base_id = NULL, depth = 0 WHERE id = ?", (packed, segment_id)
        )


def refreshed(archive: Path, root: Path, *, later: int = 0, derives: bool = True) -> RefreshResult:
    """Refresh some seconds later, when the times of all files are reliable."""
    now = datetime.now(UTC) + timedelta(seconds=later)
    with store.open_archive(archive) as opened:
        return refresh(opened, [builders.home(root)], clock=lambda: now, derives=derives)


def compared_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the size of each hashed block of files is appended."""
    counts: list[int] = []
    real = raw._read

    def counting(fd: int, start: int, end: int) -> bytes:
        data = real(fd, start, end)
        counts.append(len(data))
        return data

    monkeypatch.setattr(raw, "_read", counting)
    return counts


def test_bytes_that_still_unpack_are_compared_with_their_hash(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    segment_id, *_ = segments_of(archive, LOG)[0]
    forge(archive, segment_id)
    with (
        store.open_archive(archive, write=False) as opened,
        pytest.raises(DamagedArchiveError, match="do not match their SHA-256") as raised,
    ):
        raw.content(opened.database, segment_id)
    sentence = str(raised.value)
    assert str(root / ".gemini" / LOG) in sentence
    assert str(archive) in sentence
    assert "`pollux verify --repair`" in sentence
    assert raised.value.status == 1


def test_search_compares_a_segment_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, archive = archived_home(tmp_path)
    segment_id, *_ = segments_of(archive, LOG)[0]
    hashed: list[int] = []
    real = raw._digest

    def counting(data: bytes) -> bytes:
        hashed.append(len(data))
        return real(data)

    monkeypatch.setattr(raw, "_digest", counting)
    checked: raw.CheckedSegments = {}
    with store.open_archive(archive, write=False) as opened:
        first = raw.content(opened.database, segment_id, checked)
        assert raw.content(opened.database, segment_id, checked) == first
        assert hashed == [len(first)]
        assert raw.content(opened.database, segment_id) == first
        assert hashed == [len(first)] * 2


def test_damaged_segment_is_compared_each_time(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    segment_id, *_ = segments_of(archive, LOG)[0]
    forge(archive, segment_id)
    checked: raw.CheckedSegments = {segment_id: b"of an older segment with this ID"}
    with store.open_archive(archive, write=False) as opened:
        for _ in range(2):
            with pytest.raises(DamagedArchiveError, match="do not match their SHA-256"):
                raw.content(opened.database, segment_id, checked)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE segments SET base_id = id WHERE base_id IS NOT NULL",
        "UPDATE segments SET base_id = 999 WHERE base_id IS NOT NULL",
        "UPDATE segments SET length = 'long' WHERE base_id IS NOT NULL",
        "UPDATE segments SET length = 1 << 60 WHERE base_id IS NOT NULL",
        "UPDATE segments SET data = 7 WHERE base_id IS NOT NULL",
        "UPDATE segments SET sha256 = 'text' WHERE base_id IS NOT NULL",
        "UPDATE segments SET data = CAST(x'ff' AS TEXT) WHERE base_id IS NOT NULL",
        "DELETE FROM segments WHERE base_id IS NOT NULL",
    ],
)
def test_damaged_row_is_reported_as_damage(tmp_path: Path, statement: str) -> None:
    _, archive = archived_home(tmp_path)
    segment_id, *_ = segments_of(archive, DOCUMENT)[1]
    damage(archive, "PRAGMA foreign_keys = OFF", statement)
    with store.open_archive(archive, write=False) as opened, pytest.raises(DamagedArchiveError, match="is damaged"):
        raw.content(opened.database, segment_id)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM segments WHERE id = {1}",
        "UPDATE segments SET start = start - 5 WHERE id = {1}",
        "UPDATE segments SET start = start + 5 WHERE id = {1}",
        "UPDATE segments SET length = 'x' WHERE id = {1}",
    ],
)
def test_gaps_and_overlaps_of_segments_are_not_read(tmp_path: Path, statement: str) -> None:
    root, archive = archived_home(tmp_path)
    grown(root, LOG, builders.log(answer(3)))
    synced(archive, root)
    damage(archive, statement.format(*(row[0] for row in segments_of(archive, LOG))))
    assert content_of(archive, LOG) == [b"damaged"]


def many_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return an archive with a log that is merged the next time that it grows."""
    root, archive = archived_home(tmp_path)
    monkeypatch.setattr(ingest, "_MANY_SEGMENTS", 8)
    for number in range(3, 9):
        grown(root, LOG, builders.log(answer(number)))
        synced(archive, root)
    assert len(segments_of(archive, LOG)) == 8
    return root, archive


@pytest.mark.parametrize("place", [0, 4, 7])
def test_merge_does_not_rehash_damaged_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    root, archive = many_segments(tmp_path, monkeypatch)
    forge(archive, segments_of(archive, LOG)[place][0])
    grown(root, LOG, builders.log(answer(9)))
    result = refreshed(archive, root, derives=False)
    damages = [problem for problem in result.problems if problem.code == "damaged-archive"]
    assert damages
    assert all(str(root / ".gemini" / LOG) in str(problem) and "--repair" in problem.message for problem in damages)
    assert len(segments_of(archive, LOG)) == 9
    assert [damage_.code for damage_ in looked_at(archive).damage] == ["bytes"]
    assert looked_at(archive, root, repair=True).is_ok
    grown(root, LOG, builders.log(answer(10)))
    assert not refreshed(archive, root).problems
    assert len(segments_of(archive, LOG)) == 1
    assert content_of(archive, LOG) == [(root / ".gemini" / LOG).read_bytes()]


def test_compacting_does_not_rehash_damaged_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, archive = many_segments(tmp_path, monkeypatch)
    forge(archive, segments_of(archive, LOG)[5][0])
    with maintenance.writable(archive) as opened:
        result = maintenance.compact(opened)
    assert [str(root / ".gemini" / LOG) in sentence for sentence in result.damaged] == [True]
    assert len(segments_of(archive, LOG)) == 8
    assert not looked_at(archive).is_ok


def test_damaged_segment_is_not_used_as_a_base(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    forge(archive, segments_of(archive, DOCUMENT)[1][0])
    rewritten(root, 11, 12, 13)
    synced(archive, root)
    with changed(archive) as database:
        newest = segments_of(archive, DOCUMENT)[-1][0]
        assert database.execute("SELECT base_id FROM segments WHERE id = ?", (newest,)).fetchone() == (None,)
    assert content_of(archive, DOCUMENT)[-1] == (root / ".gemini" / DOCUMENT).read_bytes()


def test_damage_in_versions_based_on_each_other_is_repaired(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    contents = [(root / ".gemini" / DOCUMENT).read_bytes()]
    for number in range(13, 17):
        rewritten(root, *range(11, number))
        synced(archive, root)
        contents.append((root / ".gemini" / DOCUMENT).read_bytes())
    before = content_of(archive, DOCUMENT)
    segment_id, number, *_ = segments_of(archive, DOCUMENT)[3]
    flip(archive, segment_id)
    copy = builders.put(tmp_path / "copy" / ".gemini" / DOCUMENT, before[number - 1])
    report = looked_at(archive, copy.parents[4], repair=True)
    assert report.is_ok
    assert content_of(archive, DOCUMENT) == before


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_edit_of_archived_bytes_starts_a_new_version(tmp_path: Path, place: float) -> None:
    root, archive = archived_home(tmp_path)
    file = root / ".gemini" / PLAN
    builders.put(file, b"x" * 60_000)
    synced(archive, root)
    before = file.read_bytes()
    with file.open("r+b") as stream:
        stream.seek(int(len(before) * place))
        stream.write(b"CHANGED")
        stream.seek(0, os.SEEK_END)
        stream.write(b"and grown")
    synced(archive, root)
    assert content_of(archive, PLAN) == [before, file.read_bytes()]


def test_edit_with_the_old_time_is_noticed(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    file = root / ".gemini" / PLAN
    builders.put(file, b"x" * 20_000)
    refreshed(archive, root, later=5)
    before, status = file.read_bytes(), file.stat()
    with file.open("r+b") as stream:
        stream.seek(9000)
        stream.write(b"CHANGED")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_mtime_ns == status.st_mtime_ns
    refreshed(archive, root, later=10)
    if os.name != "nt":  # which has the time of creation there
        assert content_of(archive, PLAN) == [before, file.read_bytes()]


@pytest.mark.skipif(os.name == "nt", reason="Windows notes no time at which a file's status changed")
def test_file_whose_only_change_is_its_status_is_read_once(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    file = root / ".gemini" / PLAN
    builders.put(file, b"a plan")
    refreshed(archive, root, later=5)
    file.chmod(0o640)

    def waiting() -> list[str]:
        with store.open_archive(archive) as opened:
            items = inventory(locate([builders.home(root)]), ScanCache())
            return [item.path for item in compared(opened.database, items, opened.machine)[1]]

    assert waiting() == [PLAN]
    assert refreshed(archive, root, later=10).n_files == 0
    assert waiting() == []
    assert content_of(archive, PLAN) == [b"a plan"]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """Return a home, its archive, and a file in it that is too large to be compared completely."""
    monkeypatch.setattr(raw, "SEGMENT", 8_000)
    monkeypatch.setattr(raw, "COMPARED_WHOLE", 24_000)
    root, archive = tmp_path / "home", tmp_path / "archive.db"
    file = builders.put(builders.chats(root).parent / "plans" / "plan.md", b"".join(_lines(0, 10_000)))
    refreshed(archive, root, later=5)
    assert file.stat().st_size == 120_000
    return root, archive, file


def _lines(first: int, last: int) -> list[bytes]:
    return [f"line {number:06}\n".encode() for number in range(first, last)]


def grow(file: Path, number: int) -> None:
    with file.open("ab") as stream:
        stream.writelines(_lines(number, number + 10))


def test_large_file_that_grows_is_not_read_completely(
    large: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, archive, file = large
    counts = compared_bytes(monkeypatch)
    for number in range(6):
        counts.clear()
        grow(file, number)
        refreshed(archive, root, later=10 + number)
        assert sum(counts) < raw.COMPARED_WHOLE + 20_000  # and some bytes at the beginning and at the end
    assert content_of(archive, PLAN) == [file.read_bytes()]


def test_an_edit_of_a_large_file_is_found_within_one_round(large: tuple[Path, Path, Path]) -> None:
    root, archive, file = large
    before = file.read_bytes()
    with file.open("r+b") as stream:
        stream.seek(60_000)
        stream.write(b"CHANGED")
    for number in range(6):  # 5 × 24 000 bytes are archived
        grow(file, number)
        refreshed(archive, root, later=10 + number)
        if len(content_of(archive, PLAN)) == 2:
            break
    first, second = content_of(archive, PLAN)
    assert first[: len(before)] == before
    assert second == file.read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="Windows notes no time at which a file's status changed")
def test_large_file_changed_by_more_than_an_append_is_compared_completely(large: tuple[Path, Path, Path]) -> None:
    root, archive, file = large
    mtime_ns = file.stat().st_mtime_ns
    with file.open("r+b") as stream:
        stream.seek(100_000)
        stream.write(b"CHANGED")
    grow(file, 1)
    os.utime(file, ns=(mtime_ns, mtime_ns + 1_000))  # later than before, and not the time of the last change
    refreshed(archive, root, later=10)
    assert content_of(archive, PLAN)[1:] == [file.read_bytes()]


def test_verify_finds_an_edit_that_no_refresh_has_compared_yet(large: tuple[Path, Path, Path]) -> None:
    root, archive, file = large
    with file.open("r+b") as stream:
        stream.seek(100_000)
        stream.write(b"CHANGED")
    grow(file, 1)
    refreshed(archive, root, later=10)
    assert len(content_of(archive, PLAN)) == 1
    (finding,) = looked_at(archive).damage
    assert (finding.code, finding.file) == ("edited", str(file))
    assert "edited inside" in finding.message
    looked_at(archive, root, repair=True)
    refreshed(archive, root, later=15)
    assert content_of(archive, PLAN)[1:] == [file.read_bytes()]
    assert looked_at(archive).is_ok


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE versions SET archived_bytes = 'x'",
        "UPDATE versions SET head = 7",
        "UPDATE segments SET start = 'x' WHERE version_id IN (SELECT version_id FROM files WHERE path = 'PLAN')",
        "UPDATE files SET version_id = 999",
        "UPDATE files SET compared = 'x'",
        "DELETE FROM versions",
    ],
)
def test_file_with_damaged_rows_is_archived_again(tmp_path: Path, statement: str) -> None:
    root, archive = archived_home(tmp_path)
    file = builders.put(root / ".gemini" / PLAN, b"first")
    refreshed(archive, root, later=5)
    damage(archive, "PRAGMA foreign_keys = OFF", statement.replace("PLAN", PLAN))
    file.write_bytes(b"second")
    refreshed(archive, root, later=10)
    with store.open_archive(archive, write=False) as opened:
        (version_id,) = opened.database.execute("SELECT version_id FROM files WHERE path = ?", (PLAN,)).fetchone()
        assert raw.reader(opened.database, version_id)(0, 100) == b"second"


def test_an_archive_of_the_last_release_is_migrated_and_compared_once(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    revert(archive, "seals")
    before = content_of(archive, LOG)
    assert looked_at(archive).is_ok  # which writes nothing, and so does not migrate
    result = refreshed(archive, root, later=5)
    assert (result.n_files, result.problems) == (0, [])
    with store.open_archive(archive) as opened:
        assert opened.database.execute("PRAGMA user_version").fetchone() == (len(migrations.STEPS),)
        items = inventory(locate([builders.home(root)]), ScanCache())
        assert compared(opened.database, items, opened.machine) == (set(), [])
    assert content_of(archive, LOG) == before


def test_torn_page_is_damage_of_its_file(tmp_path: Path) -> None:
    class Torn(sqlite3.Connection):
        def execute(self, sql: str, *rest: object) -> sqlite3.Cursor:
            if "data, base_id" in sql:
                raise sqlite3.DatabaseError("database disk image is malformed")
            return super().execute(sql, *rest)  # type: ignore[arg-type]

    _, archive = archived_home(tmp_path)
    database = sqlite3.connect(archive, factory=Torn)
    with pytest.raises(DamagedArchiveError, match="is damaged"):
        raw.content(database, 1)
    database.close()
