"""`pollux export` writes whole sessions to streams, files and folders, and never leaves half a file."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner

from pollux.cli.demo import HOME as DEMO
from pollux.errors import DamagedArchiveError, UnreadableFileError
from pollux.exports import Exporter
from pollux.exports.calls import COLUMNS
from pollux.exports.source import ExportSource
from pollux.library import export_folder
from pollux.library.outputs import protected
from pollux.model import Project, Session
from pollux.sessions import reader
from pollux.sessions.grouping import OpenSession

CHATS = DEMO / ".gemini" / "tmp" / "skywatch" / "chats"


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.name != export_folder.INDEX)


def test_one_session_goes_into_one_file(run: Runner, tmp_path: Path) -> None:
    target = tmp_path / "one.json"
    ended = run("export", "@1", "-o", str(target))
    assert (ended.status, ended.err) == (0, f"1 session written to {target}\n")
    assert json.loads(target.read_bytes())["session"]["id"].startswith("0363a0b0")
    assert [*tmp_path.iterdir()] == [target]


def test_several_sessions_go_into_a_folder_under_stable_names(run: Runner, tmp_path: Path) -> None:
    for attempt in range(2):
        ended = run("export", "@1", "@2", "latest", "-o", str(tmp_path / "new" / "folder"))
        again = ", 2 of them unchanged since" if attempt else ""
        assert (ended.status, ended.err) == (0, f"2 sessions written to {tmp_path / 'new' / 'folder'}{again}\n")
    assert names(tmp_path / "new" / "folder") == [
        "2026-11-11T17-26_451ea5d6-1dc2-4957-ae3a-eacc836dc4fa.json",
        "2026-11-12T08-15_0363a0b0-afca-4534-b337-a9a75f51dac1.json",
    ]


def test_one_session_goes_into_an_existing_folder(run: Runner, tmp_path: Path) -> None:
    assert run("export", "@1", "-o", str(tmp_path)).err == f"1 session written to {tmp_path}\n"
    assert run("export", "@1", "-o", f"{tmp_path}/new/").status == 0
    assert len([*tmp_path.rglob("2026*.json")]) == 2


def test_all_matching_sessions_go_into_a_folder(run: Runner, tmp_path: Path) -> None:
    ended = run("export", "--all", "74dc5fc5", "--project", "tide-tables", "-f", "jsonl", "-o", str(tmp_path / "tides"))
    assert ended.status == 0
    assert len(names(tmp_path / "tides")) == 4


def test_files_of_one_session_do_not_overwrite_each_other(run: Runner, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        builders.put(tmp_path / f"{name}.jsonl", builders.log(builders.header(), builders.user("u", name)))
    run("export", *(str(tmp_path / f"{name}.jsonl") for name in "abc"), "-o", str(tmp_path / "out"))
    assert names(tmp_path / "out") == [f"2026-11-15T19-30_{builders.SESSION}{more}.json" for more in ("-2", "-3", "")]


def test_changed_session_is_written_again(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for answer in ("Here.", "There"):
        builders.put(path, builders.log(builders.header(), builders.user(), builders.gemini(content=answer)))
        ended = run("export", str(path), "@1", "-f", "markdown", "-o", str(tmp_path / "out"))
        assert ended.status == 0
        [page] = (tmp_path / "out").glob(f"*{builders.SESSION}.md")
        assert answer in page.read_text("utf-8")


def test_lines_of_several_sessions_make_one_stream(run: Runner, tmp_path: Path) -> None:
    streamed = run("export", "@1", "@2", "-f", "jsonl").out
    assert run("export", "@1", "@2", "-f", "jsonl", "-o", str(tmp_path / "two.jsonl")).status == 0
    assert (tmp_path / "two.jsonl").read_text("utf-8") == streamed
    assert sum(json.loads(line)["type"] == "session" for line in streamed.splitlines()) == 2


def test_tables_of_several_sessions_make_one_table(run: Runner, tmp_path: Path) -> None:
    run("export", "--all", "-f", "calls-csv", "-o", str(tmp_path / "all.csv"))
    run("export", "--all", "-f", "calls", "-o", str(tmp_path / "all.jsonl"))
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        ids = [row["message_id"] for row in csv.DictReader(file)]
    assert ids == [json.loads(line)["message_id"] for line in (tmp_path / "all.jsonl").read_bytes().splitlines()]
    with_agent = run("export", "e92f6bc2", "-f", "calls-csv")
    assert (with_agent.status, with_agent.out.count("session_id,")) == (0, 2)  # its own and its parent's, once


def test_data_set_has_a_file_for_a_subagent_too(run: Runner) -> None:
    ended = run("export", "e92f6bc2", "-f", "hf")
    assert (ended.status, ended.out) == (2, "")
    assert "2 sessions (1 of them a subagent) do not fit into one .jsonl file" in ended.err


def test_file_is_refused_as_folder(run: Runner, tmp_path: Path) -> None:
    target = builders.put(tmp_path / "notes", b"mine")
    ended = run("export", "@1", "@2", "-o", str(target))
    assert (ended.status, ended.err) == (2, f"{target} is a file: give a folder, as in `-o exports/`.\n")
    assert target.read_bytes() == b"mine"


@pytest.mark.skipif(os.name == "nt", reason="no such permissions there")
def test_folder_is_private(run: Runner, tmp_path: Path) -> None:
    run("export", "@1", "-o", f"{tmp_path}/new/")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_all_reports_unreadable_files(run: Runner, tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    (builders.chats(tmp_path) / f"session-2026-11-15T10-00-{builders.OTHER[:8]}.jsonl").symlink_to("nowhere")
    ended = run("export", "--all", "-f", "jsonl", home=tmp_path)
    assert (ended.status, "1 file with problems" in ended.err) == (0, True)


def test_problems_are_printed_after_the_data(run: Runner) -> None:
    ended = run("export", "408a8bb2")
    assert ended.status == 1
    assert ended.json["problems"]
    assert "408a8bb2.jsonl:48: " in ended.err


SAMPLES = Path(__file__).parents[1] / "data"
EMPTY = "empty.jsonl"
COUNTLESS = ("shared/0.61.0.md", "stream/tools.jsonl", "history/checkpoint-second.json", EMPTY)


@pytest.mark.parametrize(
    ("name", "sample", "missing"),
    [
        *((name, sample, "model call") for name in ("calls", "calls-csv") for sample in COUNTLESS),
        *((name, sample, "turn") for name in ("chat", "sharegpt") for sample in ("stream/output.json", EMPTY)),
    ],
)
def test_session_without_data_for_a_format_is_reported(
    run: Runner, tmp_path: Path, name: str, sample: str, missing: str
) -> None:
    builders.put(tmp_path / EMPTY, builders.log(builders.header()))
    file = tmp_path / sample if sample == EMPTY else SAMPLES / sample
    ended = run("export", str(file), "-f", name)
    assert ended.status == 0
    assert ended.out.splitlines() == ([",".join(COLUMNS)] if name == "calls-csv" else [])
    (sentence,) = ended.err.splitlines()
    assert re.fullmatch(rf"Session \S+ has nothing for {name}: no {missing} .*`--format json` .*\.", sentence)
    into_file = run("export", str(file), "-f", name, "-o", str(tmp_path / "out"))
    assert (into_file.status, into_file.err) == (0, ended.err)


def test_sessions_without_data_are_counted(run: Runner, tmp_path: Path) -> None:
    empty = builders.put(tmp_path / "empty.jsonl", builders.log(builders.header()))
    ended = run("export", "@1", str(empty), "-f", "calls")
    assert (ended.status, ended.out.count("\n") > 0) == (0, True)
    assert "1 of 2 sessions has nothing for calls: no model call" in ended.err
    assert not run("export", "@1", "-f", "calls").err


def test_link_and_device_are_not_replaced(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    run("export", "@1", "-o", str(tmp_path / "link.json"))
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").stat().st_size
    run("export", "@1", "-o", "/dev/null")
    assert not Path("/dev/null").is_file()


def test_no_partial_file_is_left(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    target = builders.put(tmp_path / "old.json", b"old")
    with pytest.raises(OSError, match="No space"):
        protected([], tmp_path / "projects.json", [], []).write(target, pieces())
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("old.json", b"old")]


def test_deleted_session_does_not_stop_the_others(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = reader.opened

    def gone(session: Session) -> OpenSession:
        if session.id.startswith("0363a0b0"):
            raise UnreadableFileError("gone.jsonl", "No such file or directory")
        return opened(session)

    monkeypatch.setattr(reader, "opened", gone)
    ended = run("export", "@1", "@2", "--no-archive", "-o", str(tmp_path / "out"))
    assert ended.status == 1
    assert "1 session written" in ended.err
    assert "Cannot read gone.jsonl" in ended.err


def test_state_of_an_id_is_that_of_its_main_file(run: Runner) -> None:
    file = CHATS / "session-2026-11-12T08-15-0363a0b0.jsonl"
    by_id = run("export", "0363a0b0", "-f", "gemini").out
    assert by_id == run("export", str(file), "-f", "gemini").out
    assert json.loads(by_id)["sessionId"].startswith("0363a0b0")


def test_stubs_beside_a_session_do_not_change_its_state(run: Runner) -> None:
    file = CHATS / "session-1794418000167-451ea5d6.jsonl"
    assert run("export", "451ea5d6", "-f", "gemini").out == run("export", str(file), "-f", "gemini").out


def home_with(root: Path, *ids: str, **more: object) -> Path:
    """Make a home with a session for each ID."""
    for number, id_ in enumerate(ids):
        answer = builders.gemini(tokens=builders.tokens(number + 1))
        data = builders.log(builders.header(id_, **more), builders.user("u1", f"prompt {number}"), answer)
        builders.put(builders.chats(root) / f"session-2026-11-15T19-30-{number:08}.jsonl", data)
    return root


def failing_to_render(monkeypatch: pytest.MonkeyPatch, id_: str, error: Exception) -> None:
    render = Exporter.render

    def fail(self: Exporter, subject: ExportSource) -> Iterator[bytes]:
        if subject.session.id == id_:
            raise error
        return render(self, subject)

    monkeypatch.setattr(Exporter, "render", fail)


@pytest.mark.parametrize(
    "error", [ValueError("odd"), RecursionError(), DamagedArchiveError("odd"), OSError(36, "long")]
)
def test_unrenderable_session_does_not_stop_the_others(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    failing_to_render(monkeypatch, "two", error)
    home = home_with(tmp_path / "home", "one", "two", "three")
    ended = run("export", "--all", "-o", str(tmp_path / "out"), home=home)
    assert ended.status == 1
    assert "2 sessions written" in ended.err
    assert "session two could not be written as json" in ended.err
    assert [name.partition("_")[2] for name in names(tmp_path / "out")] == ["one.json", "three.json"]


@pytest.mark.parametrize("target", ["-", "all.csv"])
def test_stream_continues_after_an_unrenderable_session(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    failing_to_render(monkeypatch, "one", ValueError("odd"))
    home = home_with(tmp_path / "home", "one", "two", "three")
    target = target if target == "-" else str(tmp_path / target)
    ended = run("export", "one", "two", "three", "-f", "calls-csv", "-o", target, home=home)
    assert (ended.status, "session one could not be written" in ended.err) == (1, True)
    rows = [*csv.reader((ended.out if target == "-" else Path(target).read_text("utf-8")).splitlines())]
    assert (len(rows), rows[0]) == (3, [*COLUMNS])


def test_unrenderable_session_is_reported(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_to_render(monkeypatch, "one", ValueError("odd"))
    home = home_with(tmp_path / "home", "one")
    ended = run("export", "one", "-o", str(tmp_path / "one.json"), home=home)
    assert (ended.status, ended.out) == (1, "")
    assert "session one could not be written as json: ValueError: odd" in ended.err
    assert "1 session written" not in ended.err
    assert not (tmp_path / "one.json").exists()


def test_full_disk_ends_the_export_and_reports_what_was_written(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_to_render(monkeypatch, "two", OSError(errno.ENOSPC, "No space left on device"))
    home = home_with(tmp_path / "home", "one", "two", "three")
    ended = run("export", "one", "two", "three", "-o", str(tmp_path / "out"), home=home)
    assert ended.status == 1
    assert "1 session written" in ended.err
    assert "cannot be written: No space left on device" in ended.err


def test_unwritable_index_does_not_stop_the_sessions(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Iterator[tuple[str, bytes]]:
        raise ValueError("odd")

    monkeypatch.setattr(Exporter, "pages", fail)
    ended = run("export", "--all", "-f", "html", "-o", str(tmp_path / "out"), home=home_with(tmp_path / "home", "one"))
    assert (ended.status, len(names(tmp_path / "out"))) == (1, 1)
    assert "the list of all sessions could not be written as html: ValueError: odd" in ended.err


@pytest.mark.parametrize("form", ["html", "markdown"])
@pytest.mark.parametrize("time", ["0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"])
def test_list_of_sessions_from_the_ends_of_the_calendar(run: Runner, tmp_path: Path, form: str, time: str) -> None:
    answer = builders.gemini(tokens=builders.tokens()) | {"timestamp": time}
    data = builders.log(builders.header(startTime=time), builders.user("u1") | {"timestamp": time}, answer)
    builders.put(builders.chats(tmp_path / "home") / f"{builders.NAME}.jsonl", data)
    ended = run("export", "--all", "-f", form, "-o", str(tmp_path / "out"), home=tmp_path / "home")
    assert (ended.status, len(names(tmp_path / "out")) > 1) == (0, True)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are text there")
def test_files_whose_names_are_not_utf_8(run: Runner, tmp_path: Path) -> None:
    place = os.fsencode(builders.chats(tmp_path / "home")) + b"/session-2026-11-15T19-30-6ece72\xff\xfe.jsonl"
    Path(os.fsdecode(place)).parent.mkdir(parents=True)
    Path(os.fsdecode(place)).write_bytes(builders.log(builders.header(), builders.user()))
    for again in ("", ", 1 of them unchanged since"):
        ended = run("export", "--all", "--no-archive", "-o", str(tmp_path / "out"), home=tmp_path / "home")
        assert (ended.status, ended.err) == (0, f"1 session written to {tmp_path / 'out'}{again}\n")


def session(id_: str) -> Session:
    return Session(id_, "main", Project())


def test_shortened_names_stay_unique() -> None:
    taken: set[str] = set()
    long = [export_folder.file_name(session(id_), ".json", taken) for id_ in ("a" * 300, "a" * 301, "漢" * 300)]
    assert len(set(long)) == 3
    assert all(len(name.encode()) <= 125 for name in long)
    assert long[0] == export_folder.file_name(session("a" * 300), ".json", set())
    assert export_folder.file_name(session("a" * 120), ".json", set()) == "a" * 120 + ".json"


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        ("con", "_con.json"),
        ("COM1", "_COM1.json"),
        ("lpt³", "_lpt³.json"),
        ("console", "console.json"),
        ("index", "_index.json"),
        ("a/b\\c:d*e?", "a_b_c_d_e_.json"),
        ("../..", "_____.json"),
        ("ends.", "ends_.json"),
        ("nul\0\n", "nul__.json"),
    ],
)
def test_names_are_valid_on_every_system(id_: str, name: str) -> None:
    assert export_folder.file_name(session(id_), ".json", set()) == name


def test_names_that_differ_in_case_alone_do_not_overwrite_each_other(run: Runner, tmp_path: Path) -> None:
    taken: set[str] = set()
    found = [export_folder.file_name(session(id_), ".json", taken) for id_ in ("Abc", "abc", "a\u0308", "\u00e4")]
    assert found == ["Abc.json", "abc-2.json", "a_.json", "\u00e4.json"]
    run("export", "--all", "-o", str(tmp_path / "out"), home=home_with(tmp_path / "home", "Abc", "abc"))
    assert len({name.lower() for name in names(tmp_path / "out")}) == 2
