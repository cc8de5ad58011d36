"""Every mistake gets one clear sentence on stderr and the right exit status, never a traceback, never silence."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests import builders
from tests.cli.running import Runner

import pollux.cli
from pollux import __version__
from pollux.__main__ import _close
from pollux.cli import output
from pollux.cli.demo import HOME as DEMO
from pollux.model import Problem
from pollux.sessions.projects import claims

SKYWATCH = DEMO / ".gemini" / "tmp" / "skywatch"
MAIN = "session-2026-11-12T08-15-0363a0b0"

SENTENCES = [
    (("show", "nope"), 1, "No session fits 'nope'"),
    (("show", "@0"), 1, "No session fits '@0'"),
    (("show", "a" * 5000), 1, "No session fits 'aaa"),
    (("show", "@99"), 1, "No session fits '@99'"),
    (("show", "4"), 2, "'4' fits 3 sessions"),
    (("show", "nope.json"), 1, "No session fits 'nope.json'"),
    (("show", "./nope.json"), 1, "There is no file nope.json; `pollux ls` lists the sessions there are."),
    (("show", str(SKYWATCH)), 2, "is a folder, not a session; `pollux ls --home"),
    (("show", str(SKYWATCH / "logs.json")), 1, "log of what was typed"),
    (("show", str(DEMO / ".gemini" / "settings.json")), 1, "settings.json contains no session"),
    (("show", str(SKYWATCH / ".project_root")), 1, "contains no session: not JSON"),
    (("show", "--since", "0d"), 1, "No session fits these options"),
    (("show", "a", "b"), 2, "unexpected extra argument (b); `pollux show --help` tells more."),
    (("ls", "--since", "nonsense"), 2, "--since 'nonsense' is not understood; try 2026-11-01"),
    (("ls", "--until", "nonsense"), 2, "--until 'nonsense' is not understood"),
    (("ls", "--last", "nonsense"), 2, "--last 'nonsense' is not understood; try 7d"),
    (("ls", "--last", "99999999999d"), 2, "is not understood"),
    (("ls", "--since", "1d", "--last", "1d"), 2, "give one of them; `pollux ls --help` tells more."),
    (("ls", "--project", "none-such"), 1, "No project fits 'none-such'"),
    (("ls", "--model", "none-such"), 1, "No session fits these options; `pollux ls` without them lists"),
    (("ls", "--since", "2026-11-10", "--until", "2026-11-01"), 2, "--until 2026-11-01 is before --since 2026-11-10"),
    (("show", "--last", "7d", "--until", "2025-01-01"), 2, "--until 2025-01-01 is before --last 7d"),
    (("ls", "--archive", "x.db", "--no-archive"), 2, "--archive and --no-archive say the opposite"),
    (("ls", "--archive", "."), 2, "The archive . is a folder: name a file, such as archive.db"),
    (("ls", "--home", "/none-such"), 2, "--home /none-such does not exist"),
    (("ls", "--nope"), 2, "No such option '--nope'"),
    (("ls", "-n", "0"), 2, "'--limit'"),
    (("--home", "x"), 2, "There is no option --home before a command; try it after one"),
    (("nope",), 2, "There is no command 'nope'; the commands are ls, show"),
    (("completion",), 2, "Say for which shell: bash, zsh, fish; `pollux completion --help` tells more."),
    (("export",), 2, "Say which sessions"),
    (("export", "@1", "--format", "nope"), 2, "'nope' is not one of 'markdown', 'html', 'gemini', 'json'"),
    (("export", "@1", "@2"), 2, "2 sessions do not fit into one .json file"),
    (("export", "@1", "@2", "-o", "two.json"), 2, "2 sessions do not fit into one .json file"),
    (("export", "--all", "--model", "none-such", "-o", "new"), 1, "No session fits"),
    (("export", "@1", "-o", "/none-such/file.json"), 1, "/none-such/file.json cannot be written: No such file"),
    (("tree", str(SKYWATCH / "logs.json")), 1, "log of what was typed"),
    (("raw", "@1", "--file", "9"), 2, "--file 9: this has 2 in all"),
    (("raw", "@1", "--line", "9999"), 1, "has no line 9999"),
    (("raw", "@1", "--path", "--line", "1"), 2, "--path lists all files of a session: leave --file and --line out"),
    (("keys", "nope"), 2, "There is no command 'nope'; the commands are create, show, list"),
    (("archive", "nope"), 2, "There is no command 'nope'; the commands are info, path, compact"),
    (("verify", "--key", "mara"), 2, "--key says whose seals to believe: give --seal with it"),
    (("resume", "@1", "--exec", "--json"), 2, "leave --json out"),
    (("raw", "./nope.json"), 1, "nope.json cannot be read: No such file"),
    (("projects", "--project", "none-such"), 1, "No project fits 'none-such'"),
]


@pytest.mark.parametrize(
    ("args", "status", "sentence"), SENTENCES, ids=lambda value: " ".join(value) if isinstance(value, tuple) else None
)
def test_mistake_gets_a_sentence(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], status: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run(*args)
    assert (ended.status, ended.out) == (status, "")
    assert sentence in ended.err
    assert ended.err.count("\n") == 1
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("command", ["ls", "show", "tree", "raw", "projects", "doctor"])
def test_empty_home_is_told(run: Runner, tmp_path: Path, command: str) -> None:
    ended = run(command, home=tmp_path)
    assert ended.status == 1
    assert "here" in ended.err or "nothing there" in ended.out


def test_overview_of_an_empty_home_leads_on(run: Runner, tmp_path: Path) -> None:
    assert (run(home=tmp_path).status, run(columns=80).status) == (0, 0)
    assert "No Gemini CLI sessions in" in run(columns=80).out
    assert "pollux demo" in run().err


def test_folder_whose_name_is_no_id_is_told(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kk").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "kk is a folder, not a session; `pollux ls --home kk`" in run("show", "kk").err


@pytest.mark.parametrize("args", [("ls",), ("ls", "--json"), ("show",), ("doctor",), ("raw",), ("--version",)])
def test_full_disk_is_told(run: Runner, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]) -> None:
    closed: list[object] = []
    monkeypatch.setattr("pollux.__main__._close", closed.append)
    monkeypatch.setattr(sys, "stdout", _failing(OSError(errno.ENOSPC, "No space left on device")))
    ended = run(*args)
    assert (ended.status, ended.err.splitlines()[-1]) == (1, "The output cannot be written: No space left on device.")
    assert closed


def test_reader_that_has_seen_enough_is_no_fault(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollux.__main__._close", lambda _stream: None)
    monkeypatch.setattr(sys, "stdout", _failing(BrokenPipeError()))
    ended = run("ls")
    assert (ended.status, ended.err) == (0, "")


def test_fault_that_nobody_reads_keeps_its_status(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[object] = []
    monkeypatch.setattr("pollux.__main__._close", closed.append)
    monkeypatch.setattr(sys, "stderr", _failing(BrokenPipeError()))
    assert run("nosuch").status == 2
    assert closed == [sys.stderr]


def _failing(error: OSError) -> object:
    class Stream(io.BytesIO):
        def write(self, _data: object) -> int:
            raise error

    return io.TextIOWrapper(io.BufferedWriter(Stream(), 1), "utf-8", write_through=True)


def test_closed_stdout_is_no_fault(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert run("ls").status == 1
    sys.stdout.close()


def test_interrupt_ends_quietly(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pollux.archive.refresh.refresh_to_read", interrupted)
    ended = run("ls")
    assert (ended.status, ended.out, ended.err.strip()) == (130, "", "")


def test_error_of_the_system_names_its_file(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_config: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/secret")

    monkeypatch.setattr("pollux.__main__._close", lambda _stream: None)
    monkeypatch.setattr("pollux.library.project_memory.load", failing)
    ended = run("ls")
    assert (ended.status, ended.err) == (1, "/secret cannot be used: Permission denied.\n")


@pytest.mark.skipif(os.name == "nt", reason="a folder in use cannot be removed there")
def test_folder_that_is_gone_is_told(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr("pollux.__main__._close", lambda _stream: None)
    ended = run("ls", "--home", "here")
    assert (ended.status, ended.err) == (1, "The folder you are in is gone; go to another one, and try again.\n")


def test_error_without_a_context_is_said_as_it_is(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(**_options: object) -> None:
        raise click.UsageError("That is wrong.")

    monkeypatch.setattr(pollux.cli.pollux, "main", wrong)
    assert run().err == "That is wrong.\n"


@pytest.mark.parametrize(("args", "status", "out"), [(["--version"], 0, f"pollux {__version__}\n"), (["none"], 2, "")])
def test_package_is_a_program(args: list[str], status: int, out: str) -> None:
    """It ends at once, and what it has said is out by then."""
    done = subprocess.run([sys.executable, "-m", "pollux", *args], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, bool(done.stderr)) == (status, out, status != 0)


def test_closing_leads_into_nothing(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as stream:
        _close(stream)
        stream.write("lost")
    assert (tmp_path / "file").read_text() == ""


def test_unreadable_file_is_a_problem_and_the_others_are_listed(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = builders.chats(tmp_path)
    builders.put(chats / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    (chats / "session-2026-11-15T20-00-aaaaaaaa.jsonl").symlink_to(tmp_path / "nowhere")
    ended = run("ls", home=tmp_path)
    assert (ended.status, ended.out.count("\n")) == (1, 1)
    assert "1 file with problems" in ended.err
    monkeypatch.setattr("pollux.reports.doctor.read", _unreadable)
    assert run("doctor").status == 1


def _unreadable(_path: Path) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def test_unreadable_log_of_prompts_is_a_problem(run: Runner, tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    builders.put(chats / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    (chats.parent / "logs.json").symlink_to("nowhere")
    assert "cannot be read" in run("doctor", home=tmp_path).out


def test_many_problems_are_counted(run: Runner, tmp_path: Path) -> None:
    broken = builders.log(builders.header(), builders.user(), *[b"{torn"] * 9)
    file = builders.put(tmp_path / f"{builders.NAME}.jsonl", broken)
    ended = run("show", str(file))
    assert ended.status == 1
    assert "more problems; `pollux doctor` lists them all." in ended.err
    assert run("show", str(file), "--json").status == 1


def test_problem_without_a_place_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert output.say_problems([Problem("code", "Something.")]) == 1
    assert capsys.readouterr().err == "Something.\n"


def test_memory_that_cannot_be_kept_stops_nothing(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Problem("memory-not-kept", "cannot be written: Read-only file system", "/data/projects.json")
    monkeypatch.setattr(claims, "remember", lambda *_: told)
    assert run("ls").out
    ended = run("projects", "--scan")
    assert (ended.status, ended.out.count("\n")) == (0, 5)


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\nsecond\tthird \x9b31m 日本語のタイトル"


def test_hostile_title_is_harmless(run: Runner, tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    data = builders.log(builders.header(summary=HOSTILE), builders.user("u1", HOSTILE))
    builders.put(chats / f"{builders.NAME}.jsonl", data)
    for args in ((), ("ls",), ("show",), ("tree",), ("raw",), ("ls", "--json"), ("export", "latest")):
        said = run(*args, columns=80, home=tmp_path)
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*said.out, *said.err}, args
    (line,) = run("ls").out.splitlines()
    assert line.count("\t") == 6
    assert not {"\x1b", "\x9b", "\u202e"} & {*line}
    assert HOSTILE in [one["title"] for one in run("ls", "--json").json["sessions"]] or "日本語" in line


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminal_without_unicode_is_served(run: Runner, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    for args in ((), ("ls",), ("projects",), ("doctor",), ("tree",), ("show", "5ee350e2")):
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert run(*args, columns=80).status in (0, 1)
        assert stream.buffer.getvalue()
