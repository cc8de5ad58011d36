"""Two archives make one, whichever is taken into which, and no byte of either is lost."""
# ruff: noqa: S608  statements made here

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.archive.test_verify import (
    CHILD,
    DOCUMENT,
    LOG,
    answer,
    changed,
    content_of,
    damage,
    deeply,
    flip,
    grown,
    kept,
    lived_in,
    looked_at,
    rewritten,
    segments_of,
    synced,
)

from pollux.archive import backup, exchange, facts, forget, raw, store, upkeep
from pollux.archive.compare import comparable
from pollux.archive.exchange import Merged, take_in
from pollux.errors import ArchiveError

ELSEWHERE = "/home/bob/.gemini"


def merged(archive: Path, other: Path) -> Merged:
    with store.opened(archive) as ours, store.opened(other, write=False) as theirs:
        return take_in(ours, theirs, memory={})


def copied(archive: Path, name: str) -> Path:
    return backup.backup(archive, archive.with_name(name)).path


def moved(archive: Path, machine: str = "laptop", home: str = ELSEWHERE) -> None:
    """Pretend that an archive was kept elsewhere, so that everything in it was read there."""
    damage(archive, f"UPDATE files SET machine = '{machine}', home = '{home}'", "DELETE FROM facts_meta")


def told(archive: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Give all facts, with versions by what they are and not by their numbers."""
    with store.opened(archive, write=False) as opened:
        database = opened.database
        names = {
            row[0]: row[1:]
            for row in database.execute(
                "SELECT versions.id, machine, home, path, number FROM versions JOIN files ON files.id = file_id"
            )
        }
        return {table: sorted(_rows(database, table, names), key=repr) for table in facts.TABLES if table != "readings"}


def _rows(database: sqlite3.Connection, table: str, names: dict[int, Any]) -> Iterable[tuple[Any, ...]]:
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    for row in facts.rows(database, table):
        compared = comparable(table, columns, row)
        yield tuple(
            names[value] if column == "file_version_id" else value
            for column, value in zip(columns, compared, strict=True)
        )


def state(archive: Path) -> list[Any]:
    """Give all that is kept, but not when it was last looked at: what is fresh is looked at twice."""
    with changed(archive) as database:
        files, *rest = (
            database.execute(f"SELECT * FROM {one}").fetchall() for one in ("files", "versions", "segments")
        )
        place = [row[1] for row in database.execute("PRAGMA table_info(files)")].index("last_us")
    return [[(*row[:place], *row[place + 1 :]) for row in files], *rest]


def test_an_empty_archive_takes_everything(tmp_path: Path) -> None:
    root, other = kept(tmp_path)
    archive = tmp_path / "mine.db"
    found = merged(archive, other)
    with changed(other) as database:
        n_files, n_bytes = database.execute("SELECT count(*), (SELECT sum(kept) FROM versions) FROM files").fetchone()
    assert (found.n_files, found.n_versions, found.n_bytes) == (n_files, n_files + 1, n_bytes)
    assert found.problems == []
    assert content_of(archive, DOCUMENT) == content_of(other, DOCUMENT)
    assert told(archive) == told(other)
    assert deeply(archive).is_sound
    with changed(archive) as database:
        assert database.execute("SELECT count(base_id) FROM segments").fetchone()[0] == 1
    synced(archive, root)
    assert told(archive) == told(other)


def test_twice_changes_nothing(tmp_path: Path) -> None:
    _, archive = kept(tmp_path)
    other = copied(archive, "other.db")
    moved(other)
    synced(other, lived_in(tmp_path / "second"))
    assert merged(archive, other).n_files
    before, facts_before = state(archive), told(archive)
    assert merged(archive, other) == Merged()
    assert state(archive) == before
    assert told(archive) == facts_before


def test_ourselves_add_nothing(tmp_path: Path) -> None:
    _, archive = kept(tmp_path)
    other = copied(archive, "other.db")
    before = state(archive)
    assert merged(archive, other) == Merged()
    assert state(archive) == before


def test_it_does_not_matter_who_takes_whom(tmp_path: Path) -> None:
    root, one = kept(tmp_path)
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
    assert told(one) == told(two)
    assert content_of(one, DOCUMENT) == content_of(two, DOCUMENT)
    assert len(content_of(one, DOCUMENT)) == 5
    for archive in (one, two):
        assert deeply(archive).is_sound


def test_a_session_of_two_machines_is_one_session(tmp_path: Path) -> None:
    root, archive = kept(tmp_path)
    other = copied(archive, "other.db")
    moved(other)
    grown(root, LOG, builders.log(answer(3)))
    synced(archive, root)
    found = merged(archive, other)
    assert found.n_files
    with changed(archive) as database:
        ids = [row[0] for row in database.execute("SELECT session_id FROM sessions")]
        machines = {row[0] for row in database.execute("SELECT machine FROM files")}
        calls = database.execute("SELECT count(*) FROM model_calls").fetchone()[0]
    assert sorted(ids) == sorted([builders.SESSION, CHILD, builders.OTHER])
    assert len(machines) == 2
    assert calls == 6
    assert looked_at(archive).is_sound


def test_a_longer_continuation_extends_ours(tmp_path: Path) -> None:
    root, archive = kept(tmp_path)
    other = copied(archive, "other.db")
    grown(root, LOG, builders.log(answer(3)))
    synced(other, root)
    found = merged(archive, other)
    assert (found.n_files, found.n_versions) == (1, 0)
    assert content_of(archive, LOG) == [(root / ".gemini" / LOG).read_bytes()]
    assert told(archive) == told(other)
    assert merged(other, archive) == Merged()
    before = state(archive)
    synced(archive, root)  # the file is as it was last seen
    assert state(archive) == before


def test_a_continuation_is_found_however_it_was_cut(tmp_path: Path) -> None:
    root, archive = kept(tmp_path)
    grown(root, LOG, builders.log(answer(3)))
    other = tmp_path / "other.db"
    synced(other, root)  # in one piece
    assert merged(archive, other).n_bytes == len(builders.log(answer(3)))
    assert content_of(archive, LOG) == [(root / ".gemini" / LOG).read_bytes()]
    assert looked_at(archive).is_sound
    upkeep_of = copied(archive, "again.db")
    assert merged(upkeep_of, other) == Merged()
    assert merged(other, archive).n_bytes > 0  # the first version of the document


def test_a_version_that_leans_on_what_we_have_otherwise(tmp_path: Path) -> None:
    root, archive = kept(tmp_path)
    other = copied(archive, "other.db")
    rewritten(root, 11, 12, 13)
    synced(other, root)
    (first, *_), (second, *_) = segments_of(archive, DOCUMENT)
    with store.opened(archive) as opened:  # the same bytes in two pieces
        database = opened.database
        data = raw.content(database, second)
        database.execute("DELETE FROM segments WHERE id = ?", (second,))
        version_id = database.execute("SELECT id FROM versions WHERE number = 2").fetchone()[0]
        for start, piece in ((0, data[:100]), (100, data[100:])):
            raw._insert(database, version_id, raw._packed(start, piece))
    assert first
    assert merged(archive, other).n_versions == 1
    assert content_of(archive, DOCUMENT) == content_of(other, DOCUMENT)
    assert deeply(archive).is_sound


def test_an_older_backup_does_not_become_the_newest(tmp_path: Path) -> None:
    root, archive = kept(tmp_path)
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


def test_orders_that_contradict_each_other() -> None:
    def version(number: int, mtime_ns: int) -> exchange._Version:
        return exchange._Version(number, 1, mtime_ns, 1, b"", b"", [])

    known = {number: version(number, 100 - number) for number in range(1, 6)}
    assert exchange._interleaved([1, 2], [2, 1], known) == exchange._interleaved([2, 1], [1, 2], known)
    assert exchange._interleaved([1, 2], [3, 2, 4], known) == [3, 1, 2, 4]
    assert exchange._interleaved([], [3, 3], known) == [3]


def test_what_we_forgot_stays_forgotten(tmp_path: Path) -> None:
    _, archive = kept(tmp_path)
    other = copied(archive, "other.db")
    elsewhere = copied(archive, "elsewhere.db")
    moved(elsewhere)
    with upkeep.writable(archive) as opened:
        forget.forget(opened, [builders.SESSION], now_us=1, memory={})
    before = state(archive)
    found = merged(archive, other)
    assert (found.n_files, found.n_forgotten) == (0, 7)
    assert state(archive) == before
    found = merged(archive, elsewhere)  # by the names of its files alone
    assert found.n_forgotten == 6
    with changed(archive) as database:
        assert database.execute("SELECT session_id FROM sessions").fetchall() == [(builders.OTHER,)]
    assert segments_of(archive, LOG) == []


def test_what_they_forgot_is_not_forgotten_here(tmp_path: Path) -> None:
    _, archive = kept(tmp_path)
    other = copied(archive, "other.db")
    with upkeep.writable(other) as opened:
        forget.forget(opened, [builders.SESSION], now_us=1, memory={})
    before = told(archive)
    assert merged(archive, other).n_files == 0
    assert told(archive) == before
    assert len(segments_of(archive, LOG)) == 2


def test_only_what_is_sound_is_taken(tmp_path: Path) -> None:
    root, other = kept(tmp_path)
    archive = tmp_path / "mine.db"
    whole = (root / ".gemini" / LOG).read_bytes()
    start = segments_of(other, LOG)[1][2]
    flip(other, segments_of(other, LOG)[1][0])
    flip(other, segments_of(other, DOCUMENT)[0][0])
    found = merged(archive, other)
    assert {Path(problem.file or "").name for problem in found.problems} == {Path(LOG).name, Path(DOCUMENT).name}
    assert content_of(archive, LOG) == [whole[:start]]
    assert content_of(archive, DOCUMENT)[0] == b""
    assert looked_at(archive).is_sound
    before = state(archive)
    assert merged(archive, other).n_files == 0
    assert state(archive) == before
    synced(archive, root)
    assert content_of(archive, LOG)[-1] == whole
    assert deeply(archive).is_sound


def test_a_gap_over_there_ends_what_is_taken(tmp_path: Path) -> None:
    root, other = kept(tmp_path)
    grown(root, LOG, builders.log(answer(3)))
    synced(other, root)
    damage(other, f"DELETE FROM segments WHERE id = {segments_of(other, LOG)[1][0]}")
    first, *_ = segments_of(other, LOG)
    archive = tmp_path / "mine.db"
    found = merged(archive, other)
    assert "missing" in found.problems[0].message
    assert len(content_of(archive, LOG)[0]) == first[3]
    damage(other, f"DELETE FROM segments WHERE id = {first[0]}")
    assert merged(tmp_path / "third.db", other).problems


def test_nothing_is_added_to_a_version_of_ours_with_a_gap(tmp_path: Path) -> None:
    _, archive = kept(tmp_path)
    other = copied(archive, "other.db")
    damage(archive, f"DELETE FROM segments WHERE id = {segments_of(archive, LOG)[1][0]}")
    before = state(archive)
    merged(archive, other)
    assert state(archive) == before


def test_the_last_to_see_a_file_says_whether_it_is_gone(tmp_path: Path) -> None:
    _, archive = kept(tmp_path)
    other = copied(archive, "other.db")
    moved(other)
    merged(archive, other)
    damage(other, "UPDATE files SET gone_us = last_us + 5")
    merged(archive, other)
    with changed(archive) as database:
        rows = database.execute("SELECT machine, count(gone_us), count(*) FROM files GROUP BY machine").fetchall()
    assert [gone for machine, gone, n_files in rows if machine == "laptop" and gone == n_files]
    assert [gone for machine, gone, _ in rows if machine != "laptop"] == [0]


def test_large_archives_are_taken_in_several_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, other = kept(tmp_path)
    monkeypatch.setattr(exchange, "_BATCH_FILES", 1)
    told: list[tuple[int, int]] = []
    with store.opened(tmp_path / "mine.db") as ours, store.opened(other, write=False) as theirs:

        def tell(done: int, whole: int) -> None:
            told.append((done, whole))
            if len(told) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            take_in(ours, theirs, memory={}, progress=tell)
        take_in(ours, theirs, memory={})
    assert content_of(tmp_path / "mine.db", DOCUMENT) == content_of(other, DOCUMENT)
    assert deeply(tmp_path / "mine.db").is_sound


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    _, archive = kept(tmp_path)
    other = copied(archive, "other.db")
    damage(other, "PRAGMA user_version = 99")
    with pytest.raises(ArchiveError, match="newer Pollux"):
        merged(archive, other)
