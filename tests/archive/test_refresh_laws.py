"""Whatever happens to a home: no byte is lost, and what is known is what a look at the bytes alone would tell."""

from __future__ import annotations

import os
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import builders
from tests.archive.growing import Life, Step, comparable, content, merge_all, rebuild, steps, versions
from tests.refreshing import refresh

from pollux import homes
from pollux.archive import ingest, open_session, raw, readings, row_digests, schema
from pollux.archive.inventory import inventory
from pollux.archive.refresh import compared
from pollux.archive.store import Archive, open_archive
from pollux.cli.demo import HOME as DEMO
from pollux.sessions.locate import ScanCache, locate
from pollux.sessions.reader import history as live_history

N_LIVES = int(os.environ.get("POLLUX_FAULTS", "60")) // 3
lives = st.lists(steps, min_size=1, max_size=14)
examples = settings(max_examples=N_LIVES, suppress_health_check=[HealthCheck.too_slow])


@examples
@given(lives)
def test_no_byte_is_lost(life: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = Life(Path(folder))
        seen: list[tuple[str, str, bytes]] = []
        with open_archive(Path(folder) / "archive.db") as archive:
            for step in life:
                world.take(step)
                refresh(archive, world.homes)
                seen += world.files()
                merge_all(archive)
            archived = versions(archive)
        for home, path, data in seen:
            if not path.endswith(".tmp"):
                assert any(one[: len(data)] == data for one in archived[home, path]), path


@examples
@given(lives, st.sampled_from([0, 400, readings.SNAPSHOT_SIZE]))
def test_facts_are_those_of_a_rebuild(life: list[Step], worth: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(readings, "SNAPSHOT_SIZE", worth)
        world = Life(Path(folder))
        with open_archive(Path(folder) / "archive.db") as archive:
            for step in life:
                world.take(step)
                refresh(archive, world.homes)
            grown = content(archive)
            assert not [*row_digests.altered(archive.database)]
            rebuild(archive, world.homes)
            built = content(archive)
        for table in grown.keys() - {"projects"}:
            assert grown[table] == built[table], table


@examples
@given(lives)
def test_archive_tells_what_the_disk_tells(life: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = Life(Path(folder))
        with open_archive(Path(folder) / "archive.db") as archive:
            for step in life:
                world.take(step)
                refresh(archive, world.homes)
            found = open_session.history(archive.database, locate(world.homes))
        there = {one.id: one for one in live_history(world.homes).sessions if one.id not in world.lossy}
        archived = {one.id: one for one in found.sessions}
        assert {one: comparable(session) for one, session in there.items()} == {
            one: comparable(archived[one]) for one in there
        }


@examples
@given(lives)
def test_nothing_new_means_nothing_to_do(life: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = Life(Path(folder))
        for step in life:
            world.take(step)
        with open_archive(Path(folder) / "archive.db") as archive:
            refresh(archive, world.homes)
            again = refresh(archive, world.homes)
            assert (again.n_files, again.n_bytes, again.n_deleted, again.sessions) == (0, 0, 0, set())


def test_archive_tells_of_the_demo_what_the_disk_tells(tmp_path: Path) -> None:
    """Every generation is there, also a log without header whose whole id only `logs.json` knows."""
    homes = (builders.home(DEMO),)
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, homes)
        found = open_session.history(archive.database, locate(homes))
    assert {one.id: comparable(one) for one in found.sessions} == {
        one.id: comparable(one) for one in live_history(homes).sessions
    }


def test_document_that_lost_messages_is_rebuilt_the_same(tmp_path: Path) -> None:
    """A version that a later one had taken over stays taken over when a third one lacks its messages."""
    life: list[Step] = [("rewrite", "document", 0, amount) for amount in (1, 1, 0)]
    assert _differing(tmp_path, life) == set()


def test_project_in_two_folders_is_rebuilt_the_same(tmp_path: Path) -> None:
    assert _differing(tmp_path, [("lines", "third", 0, 2), ("lines", "log", 0, 2)]) == set()


def test_project_with_a_missing_folder_is_rebuilt_the_same(tmp_path: Path) -> None:
    """What the disk said of a project's path is kept, so a rebuild must find it there."""
    assert _differing(tmp_path, [("lines", "third", 0, 2), ("move", "log", 0, 0)]) == set()


def _differing(folder: Path, life: list[Step]) -> set[str]:
    world = Life(folder)
    with open_archive(folder / "archive.db") as archive:
        for step in life:
            world.take(step)
            refresh(archive, world.homes)
        grown = content(archive)
        rebuild(archive, world.homes)
        built = content(archive)
    return {table for table in grown if grown[table] != built[table]}


@pytest.mark.parametrize("moment", ["_packed", "_probe"])
def test_file_rewritten_while_it_is_read_is_archived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Old releases write in place, at any moment; what is there in the end is kept, whole."""
    file = builders.chats(tmp_path) / "session-2026-11-15T19-30-6ece72aa.json"
    old, new = (builders.document(*[builders.user(f"u{n}", word * 50) for n in range(count)]) for word, count in TURNS)
    builders.put(file, old)
    real = getattr(raw, moment)

    def racing(*args: Any, **options: Any) -> Any:  # noqa: ANN401  either function
        if file.read_bytes() == old:
            file.write_bytes(new)
        return real(*args, **options)

    with open_archive(tmp_path / "archive.db") as archive:
        with monkeypatch.context() as patch:
            patch.setattr(raw, moment, racing)
            refresh(archive, [builders.home(tmp_path)])
        refresh(archive, [builders.home(tmp_path)])
        archived = versions(archive)
    assert new in archived[str(tmp_path / ".gemini"), f"tmp/webapp/chats/{file.name}"]


TURNS = (("old ", 20), ("new ", 40))


def test_other_processes_derive_the_same_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What several processes derive equals what one does, row by row."""
    found = []
    for number, worth in enumerate(((0, 0), (1 << 62, 0))):
        monkeypatch.setattr(ingest, "_WORKERS_FROM", worth)
        with open_archive(tmp_path / f"{number}.db") as archive:
            result = refresh(archive, homes(DEMO))
            found.append(
                (
                    {table: [*schema.rows(archive.database, table)] for table in schema.TABLES},
                    result.sessions,
                    sorted(map(str, result.problems)),
                )
            )
    assert found[0] == found[1]
    assert found[0][1]


def changed(archive: Archive, root: Path) -> set[str]:
    items = inventory(locate([builders.home(root)]), ScanCache())
    return {Path(one.path).name for one in compared(archive.database, items, archive.machine)[1]}


def test_file_that_is_written_twice_within_a_tick_is_looked_at_again(tmp_path: Path) -> None:
    """Same size, same inode, same time: only its content tells."""
    file = builders.chats(tmp_path) / f"{builders.NAME}.jsonl"
    old, new = (builders.log(builders.header(), builders.user("u1", word)) for word in ("before", "after!"))
    assert len(old) == len(new)
    builders.put(file, old)
    stamp = file.stat().st_mtime_ns
    same_tick = datetime.fromtimestamp(stamp / 1e9, UTC)
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)], clock=lambda: same_tick)
        with file.open("r+b") as stream:
            stream.write(new)
        os.utime(file, ns=(stamp, stamp))
        assert refresh(archive, [builders.home(tmp_path)], clock=lambda: same_tick).n_files == 1
        assert versions(archive)[str(tmp_path / ".gemini"), f"tmp/webapp/chats/{file.name}"] == [old, new]
        calm = same_tick + timedelta(seconds=5)
        refresh(archive, [builders.home(tmp_path)], clock=lambda: calm)
        assert not changed(archive, tmp_path)


def test_file_that_is_dated_far_ahead_is_not_read_every_time(tmp_path: Path) -> None:
    file = builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header()))
    os.utime(file, (time.time() + 86400, time.time() + 86400))
    calm = datetime.now(UTC) + timedelta(seconds=5)
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)], clock=lambda: calm)
        assert file.name not in changed(archive, tmp_path)
