from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pollux.archive import readings
from pollux.archive.readings import continue_reading, load_reading
from pollux.formats import log
from pollux.formats.operations import Operation
from pollux.formats.source import Line, Source
from pollux.sessions.replay.reading import FileReading

SAMPLES = sorted((Path(__file__).parents[1] / "data" / "damage").glob("*.json*"))
LOGS = [path for path in SAMPLES if path.suffix == ".jsonl"]


@pytest.fixture(autouse=True)
def _store_all_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "SNAPSHOT_SIZE", 0)


def known(reading: FileReading) -> bytes:
    result = reading.replay
    calls = [(call.id, call.entry.id, call.model, call.tokens, call.line) for call in result.calls.values()]
    facts = [result.metadata, result.seen, list(result.state.values()), result.timeline, calls, result.problems]
    return msgspec.json.encode([*facts, result.first_words, result.scratchpad_is_stale, result.has_checkpoints])


def test_samples_exist() -> None:
    assert len(LOGS) > 3
    assert len(SAMPLES) > len(LOGS)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
@settings(max_examples=40)
@given(data=st.data(), worth=st.sampled_from([0, 200, 2000]))
def test_log_read_in_steps_equals_the_log_read_at_once(path: Path, data: st.DataObject, worth: int) -> None:
    content = path.read_bytes()
    cuts = data.draw(st.lists(st.integers(0, len(content)), max_size=6))
    snapshot = None
    for cut in [*sorted(cuts), len(content)]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(readings, "SNAPSHOT_SIZE", worth)
            reading, snapshot = continue_reading(Source(path, data=content[:cut]), snapshot)
        at_once, _ = continue_reading(Source(path, data=content[:cut]), None)
        assert known(reading) == known(at_once)
    assert snapshot is not None
    assert known(load_reading(Source(path, data=content), snapshot)) == known(reading)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_reading_loaded_from_a_snapshot_equals_the_stored_one(path: Path) -> None:
    reading, snapshot = continue_reading(Source(path), None)
    again = load_reading(Source(path), snapshot)
    assert known(again) == known(reading)
    assert (again.format, again.path) == (reading.format, reading.path)


def test_grown_log_is_read_from_its_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    data = LOGS[0].read_bytes()
    cut = data.rfind(b"\n", 0, -1) + 1
    _, snapshot = continue_reading(Source(LOGS[0], data=data[:cut]), None)
    seen: list[int] = []
    operations = log.operations

    def noted(line: Line, at: Path) -> list[Operation]:
        seen.append(line.start)
        return operations(line, at)

    monkeypatch.setattr(log, "operations", noted)
    continue_reading(Source(LOGS[0], data=data), snapshot)
    assert seen
    assert min(seen) >= cut


def test_log_without_a_snapshot_is_read_again() -> None:
    reading, _ = continue_reading(Source(LOGS[0]), None)
    assert known(load_reading(Source(LOGS[0]), b"")) == known(reading)


def test_small_file_has_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "SNAPSHOT_SIZE", 1 << 20)
    assert continue_reading(Source(LOGS[0]), None)[1] == b""


def test_slightly_grown_log_keeps_its_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    data = LOGS[0].read_bytes()
    _, snapshot = continue_reading(Source(LOGS[0], data=data[:-100]), None)
    monkeypatch.setattr(readings, "SNAPSHOT_SIZE", len(data))
    reading, again = continue_reading(Source(LOGS[0], data=data), snapshot)
    assert again == snapshot
    assert known(reading) == known(continue_reading(Source(LOGS[0], data=data), None)[0])


@pytest.mark.parametrize("path", SAMPLES[:3], ids=lambda path: path.name)
def test_damaged_snapshot_is_ignored(path: Path) -> None:
    reading, snapshot = continue_reading(Source(path), None)
    for place in range(0, len(snapshot), 7):
        data = bytearray(snapshot)
        data[place] ^= 1 << place % 8
        assert known(load_reading(Source(path), bytes(data))) == known(reading)
        assert known(continue_reading(Source(path), bytes(data))[0]) == known(reading)
