"""Exports through the library: what was written, what was not, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests import builders

from pollux.errors import PolluxError
from pollux.exports import Exporter
from pollux.exports.source import ExportSource
from pollux.library.config import UsageError, configure
from pollux.library.export import Selection
from pollux.library.export_options import RedactionOptions, format_options
from pollux.library.library import Library
from pollux.library.outputs import (
    FileSink,
    FolderSink,
    NamedSink,
    OutputError,
    PathSink,
    ProtectedOutputError,
    StreamSink,
)
from pollux.reports.filters import ALL, Filter

ONE, TWO = "one", "two"


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    for number, id_ in enumerate((ONE, TWO)):
        data = builders.log(builders.header(id_), builders.user("u1", f"mail ada{number}@lovelace.net"))
        builders.put(builders.chats(tmp_path) / f"session-2026-11-15T19-3{number}-{number:08}.jsonl", data)
    with Library(configure(named_homes=[tmp_path], archive=tmp_path / "archive.db")) as opened:
        yield opened


def fail_to_render(monkeypatch: pytest.MonkeyPatch, id_: str, error: Exception) -> None:
    render = Exporter.render

    def fail(self: Exporter, subject: ExportSource) -> Iterator[bytes]:
        if subject.session.id == id_:
            raise error
        return render(self, subject)

    monkeypatch.setattr(Exporter, "render", fail)


def test_a_stream_gets_the_sessions_in_the_order_of_the_references(library: Library) -> None:
    pieces: list[bytes] = []
    result = library.export([TWO, ONE, TWO], "jsonl", StreamSink(pieces.extend))
    ids = [line["session"]["id"] for line in map(json.loads, b"".join(pieces).splitlines()) if "session" in line]
    assert ids == [TWO, ONE]
    assert [entry.session.id for entry in result.written] == [TWO, ONE]
    assert (result.path, result.failed, result.problems, result.n_chosen) == (None, (), (), 2)


def test_a_file_needs_no_archive(library: Library, tmp_path: Path) -> None:
    path = next(builders.chats(tmp_path).iterdir())
    result = library.export([path], "json", FileSink(tmp_path / "out.json"))
    assert (len(result.written), result.path) == (1, tmp_path / "out.json")
    assert not (tmp_path / "archive.db").exists()


def test_a_filter_selects_and_a_folder_tells_what_is_unchanged(library: Library, tmp_path: Path) -> None:
    sink = FolderSink(tmp_path / "out")
    assert library.export(ALL, "html", sink).unchanged == 0
    again = library.export(ALL, "html", sink)
    assert (len(again.written), again.unchanged) == (2, 2)
    assert again.note == f"2 sessions written to {tmp_path / 'out'}, 2 of them unchanged since"
    with pytest.raises(PolluxError, match="No session matches"):
        library.export(Filter(model="claude"), "html", sink)


def test_a_path_is_a_folder_for_several_sessions(library: Library, tmp_path: Path) -> None:
    assert library.export([ONE, TWO], "json", PathSink(tmp_path / "out")).path == tmp_path / "out"
    assert (tmp_path / "out").is_dir()
    with pytest.raises(UsageError, match=r"do not fit into one \.json file"):
        library.export([ONE, TWO], "json", PathSink(tmp_path / "out.json"))


def test_the_error_of_one_session_does_not_stop_the_others(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_to_render(monkeypatch, ONE, ValueError("odd"))
    result = library.export(ALL, "json", FolderSink(tmp_path / "out"))
    assert [entry.session.id for entry in result.written] == [TWO]
    assert [problem.message for problem in result.failed] == [
        "session one could not be written as json: ValueError: odd"
    ]


def test_an_error_of_the_disk_stops_all_and_says_what_is_written(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_to_render(monkeypatch, ONE, OSError(28, "No space left on device"))
    folder = tmp_path / "out"
    with pytest.raises(OutputError) as stopped:
        library.export([TWO, ONE], "json", FolderSink(folder))
    assert str(stopped.value).splitlines() == [
        f"1 session written to {folder}",
        f"{folder} cannot be written: No space left on device; name another path with `-o`.",
    ]


def test_an_interrupted_export_announces_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))

    def interrupt(*_: object) -> Iterable[bytes]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Exporter, "render", interrupt)
    notes: list[str] = []
    config = configure(named_homes=[tmp_path], archive=None)
    with Library(config, announce=notes.append) as library, pytest.raises(KeyboardInterrupt):
        library.export(ALL, "json", FolderSink(tmp_path / "out"))
    assert notes == [f"0 sessions written to {tmp_path / 'out'}"]


def test_redacted_file_is_not_named_after_the_project(library: Library, tmp_path: Path) -> None:
    words = RedactionOptions(words=("webapp",))
    plain = library.export([ONE], "json", NamedSink(tmp_path))
    redacted = library.export([ONE], "json", NamedSink(tmp_path), redaction=words)
    assert plain.path
    assert redacted.path
    assert "webapp" in plain.path.name
    assert "webapp" not in redacted.path.name


def test_redaction_reports_what_it_replaced(library: Library, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    tried = library.export([ONE], "json", FileSink(target), redaction=RedactionOptions(dry_run=True))
    assert not target.exists()
    assert tried.redaction
    assert {"email", "user"} <= {finding.rule for finding in tried.redaction.findings}
    result = library.export([ONE], "json", FileSink(target), redaction=RedactionOptions(share=True))
    assert result.redaction
    assert sum(result.redaction.replaced.values()) > 0
    assert b"lovelace" not in target.read_bytes()


def test_losses_are_counted(library: Library) -> None:
    pieces: list[bytes] = []
    assert library.export([ONE], "chat", StreamSink(pieces.extend)).empty == (ONE,)


@pytest.mark.parametrize(
    ("name", "options", "redaction", "words"),
    [
        ("nothing", {}, RedactionOptions(), "There is no format 'nothing'; the formats are markdown, "),
        ("hf", {}, RedactionOptions(redact=False), "always redacted"),
        ("markdown", {"split": 2}, RedactionOptions(), "--split writes several files"),
        ("parquet", {}, RedactionOptions(), "Parquet is a folder with one file per table"),
        ("parquet", {}, RedactionOptions(redact=True), "parquet cannot be redacted"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(
    library: Library, tmp_path: Path, name: str, options: dict[str, int], redaction: RedactionOptions, words: str
) -> None:
    wanted = format_options(name, options) if options else None
    with pytest.raises(UsageError, match=words):
        library.export(Selection(everything=True), name, StreamSink(lambda _pieces: None), wanted, redaction)
    assert not (tmp_path / "archive.db").exists()


def test_an_option_that_a_format_ignores_is_refused() -> None:
    with pytest.raises(UsageError, match="--detail has no effect on json; it is for markdown, html"):
        format_options("json", {"detail": "full", "split": None})


def test_no_front_end_overwrites_the_archive(library: Library, tmp_path: Path) -> None:
    with pytest.raises(ProtectedOutputError):
        library.export([ONE], "json", FileSink(tmp_path / "archive.db"))
