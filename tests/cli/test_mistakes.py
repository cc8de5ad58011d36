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
from pollux.__main__ import _discard
from pollux.cli import output
from pollux.cli.demo import HOME as DEMO
from pollux.model import Problem
from pollux.sessions.projects import resolve

SKYWATCH = DEMO / ".gemini" / "tmp" / "skywatch"
MAIN = "session-2026-11-12T08-15-0363a0b0"

SENTENCES = [
    (("show", "nope"), 1, "No session matches 'nope'"),
    (("show", "@0"), 1, "No session matches '@0'"),
    (("show", "a" * 5000), 1, "No session matches 'aaa"),
    (("show", "@99"), 1, "No session matches '@99'"),
    (("show", "nope.json"), 1, "No session matches 'nope.json'"),
    (("show", "./nope.json"), 1, "There is no file nope.json. Run `pollux ls` to list sessions."),
    (("show", str(SKYWATCH)), 2, "is a folder, not a session. Run `pollux ls --home"),
    (("show", str(SKYWATCH / "logs.json")), 1, "log of prompts"),
    (("show", str(DEMO / ".gemini" / "settings.json")), 1, "settings.json contains no session"),
    (("show", str(SKYWATCH / ".project_root")), 1, "contains no session: not JSON"),
    (("show", "--since", "0d"), 1, "No session matches these options"),
    (("show", "a", "b"), 2, "unexpected extra argument (b). Run `pollux show --help` for help."),
    (("ls", "--since", "nonsense"), 2, "Invalid value for --since: 'nonsense'. Use 2026-11-01"),
    (("ls", "--until", "nonsense"), 2, "Invalid value for --until: 'nonsense'"),
    (("ls", "--last", "nonsense"), 2, "Invalid value for --last: 'nonsense'. Use 7d"),
    (("ls", "--last", "99999999999d"), 2, "Invalid value for --last"),
    (("ls", "--since", "1d", "--last", "1d"), 2, "use only one"),
    (("ls", "--project", "none-such"), 1, "No project matches 'none-such'"),
    (("ls", "--project", "."), 1, "Run `pollux projects` to list the projects that have sessions."),
    (("ls", "--model", "none-such"), 1, "No session matches these options; `pollux ls` without them lists"),
    (("ls", "--since", "2026-11-10", "--until", "2026-11-01"), 2, "--until 2026-11-01 is before --since 2026-11-10"),
    (("show", "--last", "7d", "--until", "2025-01-01"), 2, "--until 2025-01-01 is before --last 7d"),
    (("ls", "--archive", "x.db", "--no-archive"), 2, "--archive and --no-archive contradict each other"),
    (("ls", "--archive", "."), 2, "The archive . is a folder: name a file, such as archive.db"),
    (("ls", "--home", "/none-such"), 2, "--home /none-such does not exist"),
    (("ls", "--nope"), 2, "There is no option --nope. Did you mean --no-pager?"),
    (("ls", "-n", "0"), 2, "'--limit'"),
    (("--home", "x"), 2, "There is no option --home before a command. Put it after one"),
    (("zzzz",), 2, "There is no command 'zzzz'. The commands are ls, show"),
    (("completion",), 2, "Name a shell: bash, zsh, fish."),
    (("export",), 2, "Name the sessions to export"),
    (("export", "@1", "--format", "nope"), 2, "There is no 'nope' for --format. Use markdown, html, gemini, json"),
    (("export", "@1", "@2"), 2, "2 sessions do not fit into one .json file"),
    (("export", "@1", "@2", "-o", "two.json"), 2, "2 sessions do not fit into one .json file"),
    (("export", "--all", "--model", "none-such", "-o", "new"), 1, "No session matches"),
    (("export", "@1", "-o", "/none-such/file.json"), 1, "/none-such/file.json cannot be written: No such file"),
    (("tree", str(SKYWATCH / "logs.json")), 1, "log of prompts"),
    (("raw", "@1", "--file", "9"), 2, "--file 9: the session has only 2 files"),
    (("raw", "@1", "--line", "9999"), 1, "has no line 9999"),
    (("raw", "@1", "--path", "--line", "1"), 2, "cannot be combined with --file or --line"),
    (("keys", "nope"), 2, "There is no command 'nope'. The commands are create, show, list"),
    (("archive", "nope"), 2, "There is no command 'nope'. The commands are info, path, compact"),
    (("verify", "--key", "mara"), 2, "add --seal"),
    (("resume", "@1", "--exec", "--json"), 2, "cannot be combined with --json"),
    (("raw", "./nope.json"), 1, "Cannot read nope.json: No such file"),
    (("projects", "--project", "none-such"), 1, "No project matches 'none-such'"),
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


def test_ambiguous_id_lists_dates_and_titles(run: Runner) -> None:
    result = run("show", "4")
    assert (result.status, result.out) == (2, "")
    first, *lines = result.err.splitlines()
    assert first == "'4' matches 3 sessions. Give more characters of the session ID:"
    assert len(lines) == 3
    for line in lines:
        session_id, day, title = line.split(maxsplit=2)
        assert session_id.startswith("4")
        assert day.startswith("2026-")
        assert title
    assert run("show", lines[0].split()[0]).status == 0


@pytest.mark.parametrize("query", [".", "./", "..", "nested/folder"])
def test_project_folder_without_sessions_is_named(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    folder = tmp_path / "a" / "nested"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    result = run("ls", "--project", query)
    assert (result.status, result.out) == (1, "")
    expected = {"..": f"{tmp_path}/a", "nested/folder": f"{folder}/nested/folder"}
    assert f"No sessions in {expected.get(query, f'the current folder, {folder}')}. Run" in result.err


@pytest.mark.parametrize("command", ["ls", "show", "tree", "raw", "projects", "doctor"])
def test_empty_home_is_reported(run: Runner, tmp_path: Path, command: str) -> None:
    ended = run(command, home=tmp_path)
    assert ended.status == 1
    assert "No sessions found" in ended.err or "here" in ended.err or "no such folder" in ended.out


def test_overview_of_an_empty_home_suggests_the_demo(run: Runner, tmp_path: Path) -> None:
    assert (run(home=tmp_path).status, run(columns=80).status) == (0, 0)
    assert "No Gemini CLI sessions in" in run(columns=80).out
    assert "pollux demo" in run().out


def test_folder_in_place_of_a_session_is_reported(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kk").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "kk is a folder, not a session. Run `pollux ls --home kk`" in run("show", "kk").err


@pytest.mark.parametrize("args", [("ls",), ("ls", "--json"), ("show",), ("doctor",), ("raw",), ("--version",)])
def test_full_disk_is_reported(run: Runner, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]) -> None:
    closed: list[object] = []
    monkeypatch.setattr("pollux.__main__._discard", closed.append)
    monkeypatch.setattr(sys, "stdout", _failing(OSError(errno.ENOSPC, "No space left on device")))
    ended = run(*args)
    assert (ended.status, ended.err.splitlines()[-1]) == (1, "Cannot write the output: No space left on device.")
    assert closed


def test_closed_pipe_is_not_an_error(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollux.__main__._discard", lambda _stream: None)
    monkeypatch.setattr(sys, "stdout", _failing(BrokenPipeError()))
    ended = run("ls")
    assert (ended.status, ended.err) == (0, "")


def test_error_with_closed_stderr_keeps_its_status(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[object] = []
    monkeypatch.setattr("pollux.__main__._discard", closed.append)
    monkeypatch.setattr(sys, "stderr", _failing(BrokenPipeError()))
    assert run("nosuch").status == 2
    assert closed == [sys.stderr]


def _failing(error: OSError) -> object:
    class Stream(io.BytesIO):
        def write(self, _data: object) -> int:
            raise error

    return io.TextIOWrapper(io.BufferedWriter(Stream(), 1), "utf-8", write_through=True)


def test_closed_stdout_is_not_an_error(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert run("ls").status == 0
    sys.stdout.close()


def test_interrupt_ends_quietly(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pollux.archive.refresh.refresh_to_read", interrupted)
    ended = run("ls")
    assert (ended.status, ended.out, ended.err.strip()) == (130, "", "")


def test_system_error_names_its_file(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_config: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/secret")

    monkeypatch.setattr("pollux.__main__._discard", lambda _stream: None)
    monkeypatch.setattr("pollux.library.project_memory.load", failing)
    ended = run("ls")
    assert (ended.status, ended.err) == (1, "Cannot use /secret: Permission denied.\n")


@pytest.mark.skipif(os.name == "nt", reason="a folder in use cannot be removed there")
def test_deleted_current_folder_is_reported(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr("pollux.__main__._discard", lambda _stream: None)
    ended = run("ls", "--home", "here")
    assert (ended.status, ended.err) == (1, "The current folder was deleted. Change to another folder and try again.\n")


def test_error_without_a_context_is_printed_unchanged(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(**_options: object) -> None:
        raise click.UsageError("That is wrong.")

    monkeypatch.setattr(pollux.cli.pollux, "main", wrong)
    assert run().err == "That is wrong.\n"


@pytest.mark.parametrize(("args", "status", "out"), [(["--version"], 0, f"pollux {__version__}\n"), (["none"], 2, "")])
def test_package_is_a_program(args: list[str], status: int, out: str) -> None:
    """The process ends without freeing memory, after its output was flushed."""
    done = subprocess.run([sys.executable, "-m", "pollux", *args], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, bool(done.stderr)) == (status, out, status != 0)


def test_closed_stream_discards_output(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as stream:
        _discard(stream)
        stream.write("lost")
    assert (tmp_path / "file").read_text() == ""


def test_unreadable_file_is_a_problem_and_the_others_are_listed(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = builders.chats(tmp_path)
    builders.put(chats / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    (chats / "session-2026-11-15T20-00-aaaaaaaa.jsonl").symlink_to(tmp_path / "nowhere")
    ended = run("ls", "--no-header", home=tmp_path)
    assert (ended.status, ended.out.count("\n")) == (0, 1)
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


def test_problem_without_a_file_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_problems([Problem("code", "Something.")])
    assert capsys.readouterr().err == "Something.\n"


def test_unwritable_project_memory_stops_nothing(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Problem("memory-not-stored", "cannot be written: Read-only file system", "/data/projects.json")
    monkeypatch.setattr(resolve, "save_project_paths", lambda *_: told)
    assert run("ls").out
    ended = run("projects", "--scan")
    assert (ended.status, ended.out.count("\n")) == (0, 6)


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\nsecond\tthird \x9b31m 日本語のタイトル"


def test_hostile_title_is_harmless(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where `export` writes its file
    chats = builders.chats(tmp_path)
    data = builders.log(builders.header(summary=HOSTILE), builders.user("u1", HOSTILE))
    builders.put(chats / f"{builders.NAME}.jsonl", data)
    for args in ((), ("ls",), ("show",), ("tree",), ("raw",), ("ls", "--json"), ("export", "latest", "-o", "-")):
        said = run(*args, columns=80, home=tmp_path)
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*said.out, *said.err}, args
    (line,) = run("ls", "--no-header").out.splitlines()
    assert line.count("\t") == 7
    assert not {"\x1b", "\x9b", "\u202e"} & {*line}
    assert HOSTILE in [one["title"] for one in run("ls", "--json").json["sessions"]] or "日本語" in line


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminal_without_unicode_is_supported(run: Runner, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    for args in ((), ("ls",), ("projects",), ("doctor",), ("tree",), ("show", "5ee350e2")):
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert run(*args, columns=80).status in (0, 1)
        assert stream.buffer.getvalue()
