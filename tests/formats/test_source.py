from __future__ import annotations

import gc
import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import put, source

from pollux.formats import source as module
from pollux.formats.source import Line, Source, Span


def lines(data: bytes) -> list[tuple[int, bytes]]:
    return [(line.number, line.data) for line in source(data).lines()]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a", [(1, b"a")]),
        (b"a\n", [(1, b"a")]),
        (b"a\nb", [(1, b"a"), (2, b"b")]),
        (b"a\n\nb\n", [(1, b"a"), (2, b""), (3, b"b")]),
        (b"a\r\nb\r\n", [(1, b"a"), (1, b""), (2, b"b"), (2, b"")]),
        (b"a\rb\nc", [(1, b"a"), (1, b"b"), (2, b"c")]),
        ("a\u2028b\u0085c\v".encode(), [(1, "a\u2028b\u0085c\v".encode())]),
    ],
)
def test_lines_end_where_the_client_splits_them(data: bytes, expected: list[tuple[int, bytes]]) -> None:
    assert lines(data) == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=60).map(lambda data: data.replace(b"\0", b"\n")), block=st.integers(1, 9))
def test_lines_do_not_depend_on_the_block_size(tmp_path: Path, data: bytes, block: int) -> None:
    path = put(tmp_path / "a", data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        result = [*Source(path).lines()]
    assert [line.number for line in result] == [number for number, _ in lines(data)]
    assert [line.data for line in result] == [expected for _, expected in lines(data)]
    for line in result:
        assert data[line.start : line.start + len(line.data)] == line.data


def test_line_has_its_number_and_position() -> None:
    assert [*source(b"ab\ncd").lines()] == [Line(1, 0, b"ab"), Line(2, 3, b"cd")]


def test_source_of_a_file_equals_source_of_its_bytes(tmp_path: Path) -> None:
    data = b"0123456789" * 10
    path = put(tmp_path / "a", data)
    os.utime(path, (0, 1_794_772_150))
    with Source(path) as file:
        held = Source(path, data=data)
        for opened in (file, held):
            assert opened.size == 100
            assert opened.head() == opened.whole() == data
            assert opened.slice(Span(3, 6)) == b"345"
            assert opened.slice(Span(98, 200)) == b"89"
            assert opened.sha256() == hashlib.sha256(data).hexdigest()
        assert file.modified == datetime(2026, 11, 15, 19, 49, 10, tzinfo=UTC)
        assert held.modified == datetime(1970, 1, 1, tzinfo=UTC)


def test_head_is_at_most_64_kib(tmp_path: Path) -> None:
    with Source(put(tmp_path / "a", b"x" * 100_000)) as file:
        assert len(file.head()) == 64 << 10


def test_modification_time_may_be_given() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert Source(Path("a"), data=b"", modified=at).modified == at


def test_source_reads_through_a_function() -> None:
    data = b"a\nb\n"
    remote = Source(Path("a"), read=lambda start, end: data[start:end], size=4)
    assert (remote.size, remote.whole(), remote.slice(Span(2, 3))) == (4, data, b"b")
    assert [line.data for line in remote.lines()] == [b"a", b"b"]


def test_source_without_a_file_can_be_read_after_close() -> None:
    with source(b"a") as closed:
        closed.close()
    assert closed.whole() == b"a"


def test_closed_source_cannot_be_read(tmp_path: Path) -> None:
    with Source(put(tmp_path / "a", b"a")) as file:
        pass
    with pytest.raises(ValueError, match="closed"):
        file.head()


def test_unreferenced_source_closes_its_file(tmp_path: Path) -> None:
    file = Source(put(tmp_path / "a", b"a"))
    number = file._file.fileno() if file._file else 0
    del file
    gc.collect()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(number)


def test_missing_file_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Source(tmp_path / "none")


def test_source_is_read_without_pread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pread", raising=False)
    with Source(put(tmp_path / "a", b"0123456789")) as file:
        assert file.slice(Span(7, 9)) == b"78"
        assert file.slice(Span(1, 3)) == b"12"
        assert file.whole() == b"0123456789"
