"""`show`, `tree`, `raw` and `demo`: any way to name a session leads to it."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from rich.console import Console
from tests import builders
from tests.cli.running import Runner

from pollux.cli import demo, output
from pollux.cli.demo import HOME as DEMO
from pollux.model import Problem
from pollux.sessions import reader
from pollux.sessions.reader import History

DATA = Path(__file__).parents[1] / "data"
SKYWATCH = DEMO / ".gemini" / "tmp" / "skywatch"
FILE = SKYWATCH / "chats" / "session-2026-11-12T08-15-0363a0b0.jsonl"


@pytest.mark.parametrize(
    "name", ["latest", "@1", "0363a", "0363a0b0-afca-4534-b337-a9a75f51dac1", FILE.stem, FILE.name, str(FILE)]
)
def test_session_has_several_names(run: Runner, name: str) -> None:
    for command in ("show", "tree", "raw"):
        ended = run(command, name)
        assert ended.status == 0
        assert "0363a0b0" in ended.out


@pytest.mark.parametrize(
    "file",
    [
        SKYWATCH / "checkpoint-weather-store.json",
        DATA / "stream" / "tools.jsonl",
        DATA / "stream" / "output.json",
        DATA / "history" / "gemini-conversation-1794772150000.json",
        DATA / "history" / "checkpoint-second.json",
        DATA / "shared" / "0.8.2.md",
        DATA / "shared" / "0.61.0.md",
    ],
    ids=lambda file: file.name,
)
def test_other_file_formats_are_read(run: Runner, file: Path) -> None:
    ended = run("show", str(file), "--json")
    assert ended.json["timeline"]
    assert run("raw", str(file)).out == file.read_text("utf-8")
    assert run("tree", str(file), "--json").json["tree"]["files"] == ended.json["session"]["files"]
    assert run("audit", str(file), "--json").json["session"] == ended.json["session"]["id"]
    assert run("export", str(file), "-f", "gemini").json["messages"]
    assert run("export", str(file), "-f", "json").json["timeline"]
    for format_ in ("jsonl", "devlog", "devlog-index"):
        written = run("export", str(file), "-f", format_, "-o", "-")
        assert (written.status, bool(written.out)) == (0, True)


def test_detail_and_branches_change_the_transcript(run: Runner) -> None:
    prompts = run("show", "602c50c2", "--detail", "prompts").out
    full = run("show", "602c50c2", "--detail", "full", "--branches", "all", "--no-thoughts").out
    assert len(prompts) < len(run("show", "602c50c2").out) < len(full)


def test_raw_prints_bytes(run: Runner) -> None:
    assert run("raw", "@1").out == FILE.read_text("utf-8")
    assert run("raw", "@1", "--line", "1").out == FILE.read_text("utf-8").partition("\n")[0] + "\n"
    assert "14T08-41" in run("raw", "@1", "--path").out.splitlines()[1]
    assert run("raw", "@1", "--file", "2").out.count("\n") == 2
    assert run("raw", str(FILE), "--path").out == f"{FILE}\tmain\tlog\n"
    assert run("raw", str(FILE), "--file", "1").out == FILE.read_text("utf-8")


def test_raw_reports_an_empty_file(run: Runner, tmp_path: Path) -> None:
    file = builders.put(tmp_path / "empty.json", b"")
    assert run("raw", str(file)).err == f"{file} is empty.\n"


def test_character_split_over_two_writes_is_printed_whole(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    del run
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    output.write(["ü\x1b".encode()[:1], "ü\x1b".encode()[1:], b"\xc3"])
    assert stream.buffer.getvalue().decode() == "ü␛�"


def test_tree_of_a_subagent_starts_at_its_main_session(run: Runner) -> None:
    assert run("tree", "7ffa9413").out == run("tree", "e92f6bc2").out


def test_unreadable_file_of_a_session_is_reported(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "cannot be read: Permission denied"
    torn = Problem("unreadable-file", said, f"/a/{builders.NAME}.jsonl")
    other = Problem("unreadable-file", said, "/a/session-2026-11-15T19-30-0363a0b0.jsonl")
    whole = reader.located_history
    monkeypatch.setattr(reader, "located_history", lambda *args, **more: _with(whole(*args, **more), torn, other))
    ended = run("show", "0363a0b0", "--no-archive")
    assert (ended.status, ended.err) == (1, f"{other.file}: cannot be read: Permission denied\n")


def _with(found: History, *problems: Problem) -> History:
    return History(found.located, found.sessions, problems)


def test_demo_introduces_itself_and_returns_the_status(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLLUX_HOME")
    assert run("demo", "--path").out == f"{demo.HOME}\n"
    ended = run("demo", "--if-empty")
    assert (ended.status, ended.out.startswith("20 sessions in 5 projects")) == (0, True)
    assert "invented" in ended.err
    assert run("demo", "ls", "--strict").status == 1
    assert run("demo", "nope").status == 2
    assert run("demo", "projects").status == 0


def test_demo_if_empty_shows_own_sessions(run: Runner, tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    assert "6ece72aa" in run("demo", "--if-empty", home=tmp_path).out


def test_notes_are_wrapped_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "20")
    output.note("one two three four five six\n")
    assert stream.getvalue() == "one two three four\nfive six\n\n"


def test_terminal_of_one_column_is_supported(run: Runner) -> None:
    assert "0363a0b0 Write a" in run("tree", "@1", columns=1).out


@pytest.mark.parametrize("pager", ["cat", "sh -c 'exit 0'", "none-such-pager", "''", "less '"])
def test_missing_or_invalid_pager_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], pager: str
) -> None:
    monkeypatch.setenv("PAGER", pager)
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    with output.paged(pager=True) as console:
        assert isinstance(console, Console)
        for _ in range(20_000 if "exit" in pager else 1):
            console.print("read me")
    assert ("read me" in capfd.readouterr().out) == ("exit" not in pager)


def test_interrupt_is_left_to_the_pager() -> None:
    class Pager:
        calls = 0

        def wait(self) -> None:
            self.calls += 1
            if self.calls == 1:
                raise KeyboardInterrupt

    pager = Pager()
    output._wait(pager)  # type: ignore[arg-type]
    assert pager.calls == 2


def test_clock_has_a_zone_and_paths_are_shortened() -> None:
    assert output.now().tzinfo
    assert isinstance(output.is_terminal(), bool)
    assert output.short(Path.home() / "x") == os.path.join("~", "x")  # noqa: PTH118


def test_unreadable_file_is_reported_by_ls(run: Runner, tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    broken = builders.chats(tmp_path) / "session-2025-09-18T02-46-dddddddd.json"
    builders.put(broken, b"{ not json")
    for how in ((), ("--no-archive",)):
        listed = run("ls", "--json", *how, home=tmp_path)
        assert (listed.status, {one["file"] for one in listed.json["problems"]}) == (0, {str(broken)})
        piped = run("ls", "--no-header", *how)
        assert (piped.status, len(piped.out.splitlines())) == (0, 1)
        assert "1 file with problems" in piped.err
        assert "1 file with problems" in run("ls", *how, columns=80).err
        assert "1 problem while reading" in run(home=tmp_path).out
        assert "1 with content, 1 unreadable" in run("doctor", *how).out


def test_eight_digits_name_a_session_whose_id_is_a_stem(run: Runner, tmp_path: Path) -> None:
    history = b'{"history": [{"role": "user", "parts": [{"text": "hello"}]}]}'
    builders.put(builders.chats(tmp_path) / "session-2025-09-18T02-45-3b44bc68.json", history)
    for how in ((), ("--no-archive",)):
        shown = run("show", "3b44bc68", "--json", *how, home=tmp_path)
        assert shown.json["session"]["id"] == "session-2025-09-18T02-45-3b44bc68"
        assert "3b44bc68" in run("ls", *how, columns=80).out


SAVED = b'{"history": [{"role": "user", "parts": [{"text": "Keep this for later"}]}]}'


def test_saved_conversations_are_listed_and_read_by_their_tag(run: Runner, tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    file = builders.put(builders.chats(tmp_path).parent / "checkpoint-my%20tag.json", SAVED)
    piped = run("ls", "--saved", "--no-header", home=tmp_path)
    assert piped.status == 0
    assert piped.out.split("\t")[0] == "my tag"
    assert piped.out.rstrip().endswith(str(file))
    assert "my tag" in run("ls", "--saved", columns=80).out
    (listed,) = run("ls", "--saved", "--json").json["sessions"]
    assert (listed["title"], listed["files"][0]["path"]) == ("Keep this for later", str(file))
    assert "Keep this for later" in run("show", "my tag").out
    assert run("ls", "--saved", "--project", builders.ROOT).status == 0
    assert run("ls", "--saved", home=tmp_path / "empty").status == 1


@pytest.mark.parametrize("name", ["tools.jsonl", "output.json"])
def test_captured_output_is_read_from_a_pipe(run: Runner, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    data = (DATA / "stream" / name).read_bytes()
    for args in (("show", "-", "--json"), ("export", "-", "--format", "json"), ("raw", "-")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        piped = run(*args).out
        file = DATA / "stream" / name
        named = run(*(str(file) if arg == "-" else arg for arg in args)).out
        if args[0] == "raw":
            assert piped == named
        else:
            assert len(piped) > 100
            assert '"text"' in piped


def test_file_without_a_session_is_reported(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = builders.put(tmp_path / "package.json", b'{\n  "name": "x",\n  "version": "1"\n}\n')
    assert run("show", str(file)).err.startswith(f"{file} contains no session. ")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello")))
    assert run("show", "-").err.startswith("Standard input contains no session: not JSON")
