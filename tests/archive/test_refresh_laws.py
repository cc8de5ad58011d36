"""After any changes of a home, no byte is lost, and the facts equal those derived from the bytes alone."""

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
def test_no_byte_is_lost_after_any_changes(life: list[Step]) -> None:
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
                assert any(version[: len(data)] == data for version in archived[home, path]), path


@examples
@given(lives, st.sampled_from([0, 400, readings.SNAPSHOT_SIZE]))
def test_facts_equal_those_of_a_rebuild(life: list[Step], worth: int) -> None:
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
def test_archived_facts_equal_those_read_from_disk(life: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = Life(Path(folder))
        with open_archive(Path(folder) / "archive.db") as archive:
            for step in life:
                world.take(step)
                refresh(archive, world.homes)
            history = open_session.history(archive.database, locate(world.homes))
        live = {session.id: session for session in live_history(world.homes).sessions if session.id not in world.lossy}
        archived = {session.id: session for session in history.sessions}
        assert {id_: comparable(session) for id_, session in live.items()} == {
            id_: comparable(archived[id_]) for id_ in live
        }


@examples
@given(lives)
def test_refresh_without_changes_does_nothing(life: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = Life(Path(folder))
        for step in life:
            world.take(step)
        with open_archive(Path(folder) / "archive.db") as archive:
            refresh(archive, world.homes)
            again = refresh(archive, world.homes)
            assert (again.n_files, again.n_bytes, again.n_deleted, again.sessions) == (0, 0, 0, set())


def test_archived_facts_of_the_demo_equal_those_read_from_disk(tmp_path: Path) -> None:
    """The demo has each generation, and a log without header whose full ID is only in `logs.json`."""
    homes = (builders.home(DEMO),)
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, homes)
        history = open_session.history(archive.database, locate(homes))
    assert {session.id: comparable(session) for session in history.sessions} == {
        session.id: comparable(session) for session in live_history(homes).sessions
    }


def test_document_that_lost_messages_is_rebuilt_the_same(tmp_path: Path) -> None:
    """A version continued by a later one stays so when a third one lacks its messages."""
    life: list[Step] = [("rewrite", "document", 0, amount) for amount in (1, 1, 0)]
    assert _differing(tmp_path, life) == set()


def test_project_in_two_folders_is_rebuilt_the_same(tmp_path: Path) -> None:
    assert _differing(tmp_path, [("lines", "third", 0, 2), ("lines", "log", 0, 2)]) == set()


def test_project_with_a_missing_folder_is_rebuilt_the_same(tmp_path: Path) -> None:
    """The path of a project read from the disk is stored, so that a rebuild finds it."""
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
    """Old releases rewrite a file at any moment; its final content is archived completely."""
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
    """Several processes derive the same rows as one."""
    facts = []
    for number, worth in enumerate(((0, 0), (1 << 62, 0))):
        monkeypatch.setattr(ingest, "_WORKERS_FROM", worth)
        with open_archive(tmp_path / f"{number}.db") as archive:
            result = refresh(archive, homes(DEMO))
            facts.append(
                (
                    {table: [*schema.rows(archive.database, table)] for table in schema.TABLES},
                    result.sessions,
                    sorted(map(str, result.problems)),
                )
            )
    assert facts[0] == facts[1]
    assert facts[0][1]


def changed(archive: Archive, root: Path) -> set[str]:
    items = inventory(locate([builders.home(root)]), ScanCache())
    return {Path(file.path).name for file in compared(archive.database, items, archive.machine)[1]}


def test_file_written_twice_within_a_tick_is_compared_again(tmp_path: Path) -> None:
    """Size, inode and time are the same, and only its content differs."""
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


def test_file_dated_in_the_future_is_not_read_each_time(tmp_path: Path) -> None:
    file = builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header()))
    os.utime(file, (time.time() + 86400, time.time() + 86400))
    calm = datetime.now(UTC) + timedelta(seconds=5)
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)], clock=lambda: calm)
        assert file.name not in changed(archive, tmp_path)
