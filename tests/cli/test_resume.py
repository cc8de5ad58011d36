from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders import NAME, SESSION, gemini, header, log, preamble, put, user
from tests.cli.running import Runner

from pollux.library.resume import UnsafeIdError, command_line
from pollux.sessions.locate import Home
from pollux.sessions.projects.resolve import project_hash

CLIENT = """\
import json, os, sys
json.dump({"args": sys.argv[1:], "cwd": os.getcwd(), "home": os.environ.get("GEMINI_CLI_HOME")}, open(%r, "w"))
main = os.environ.get("MAIN")
if main:
    with open(main, "a", encoding="utf-8") as file:
        file.write('{"id":"u9","type":"user","content":"said in the client"}\\n')
sys.exit(7)
"""


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """Return the file of the only session of a home, whose project exists."""
    project = tmp_path / "web"
    project.mkdir()
    folder = tmp_path / ".gemini" / "tmp" / "web"
    put(folder / ".project_root", str(project).encode())
    data = log(header(projectHash=project_hash(str(project))), user(), gemini())
    return put(folder / "chats" / f"{NAME}.jsonl", data)


def back(main: Path) -> Path:
    """Return the file to which a session is restored."""
    return main.with_name(f"{NAME}-pc632d72.jsonl")


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a fake client on the PATH; return the file in which it records how it was started."""
    if os.name == "nt":
        pytest.skip("a script is no command there")
    note = tmp_path / "note.json"
    script = put(tmp_path / "bin" / "gemini", f"#!{sys.executable}\n{CLIENT % str(note)}".encode())
    script.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    return note


def test_the_command_is_printed(run: Runner, main: Path, tmp_path: Path) -> None:
    result = run("resume", "latest", home=tmp_path)
    line = f"cd {tmp_path / 'web'} && GEMINI_CLI_HOME={tmp_path} gemini --resume={SESSION}"
    assert (result.status, result.out, result.err) == (0, f"{line}\n", "")
    row = run("resume", SESSION, "--json").json
    assert row == {
        "schema": "pollux.resume/1",
        "id": SESSION,
        "project": str(tmp_path / "web"),
        "there": True,
        "command": line,
    }
    assert main.exists()


def test_deleted_session_must_be_restored_first(run: Runner, main: Path, tmp_path: Path) -> None:
    run("ls", home=tmp_path)
    main.unlink()
    result = run("resume", SESSION)
    assert result.status == 1
    assert f"gemini --resume={SESSION}\n" in result.out
    assert f"`pollux restore {SESSION}` first" in result.err
    assert not main.exists()


def test_conflicting_files_are_reported(run: Runner, main: Path, tmp_path: Path) -> None:
    run("ls", home=tmp_path)
    main.write_bytes(log(header(), user("u9", "something else")))
    result = run("resume", SESSION)
    assert result.status == 1
    assert "with 1 of 2 messages and is not overwritten" in result.err


def test_stub_next_to_the_session_is_reported(run: Runner, main: Path, tmp_path: Path) -> None:
    put(main.with_name("session-2026-11-16T08-00-6ece72aa.jsonl"), log(header(), preamble()))
    result = run("resume", SESSION, home=tmp_path)
    assert result.status == 0
    assert "is a stub" in result.err


@pytest.mark.usefixtures("main")
def test_command_is_printed_without_an_archive(run: Runner, tmp_path: Path) -> None:
    result = run("resume", SESSION, "--no-archive", home=tmp_path)
    line = f"cd {tmp_path / 'web'} && GEMINI_CLI_HOME={tmp_path} gemini --resume={SESSION}"
    assert (result.status, result.out) == (0, f"{line}\n")


@pytest.mark.usefixtures("main")
def test_deleted_folder_is_reported(run: Runner, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "web")
    result = run("resume", SESSION, home=tmp_path)
    assert (result.status, result.out) == (1, "")
    assert result.err.count("\n") == 1
    assert f"{tmp_path / 'web'} does not exist. Create it" in result.err


def test_unknown_folder_is_reported(run: Runner, tmp_path: Path) -> None:
    data = log(header(projectHash="0" * 64), user(), gemini())
    put(tmp_path / ".gemini" / "tmp" / ("0" * 64) / "chats" / f"{NAME}.jsonl", data)
    result = run("resume", SESSION, home=tmp_path)
    assert (result.status, result.out) == (1, "")
    assert "The folder of this session's project is unknown" in result.err


def test_the_client_is_started_in_the_folder(run: Runner, main: Path, tmp_path: Path, client: Path) -> None:
    result = run("resume", SESSION, "--exec", home=tmp_path)
    assert result.status == 7
    note = json.loads(client.read_bytes())
    assert note == {"args": [f"--resume={SESSION}"], "cwd": str(tmp_path / "web"), "home": str(tmp_path)}
    assert f"`pollux restore {SESSION}` brings it back" in result.err
    assert main.exists()


def test_new_messages_are_archived_when_the_client_ends(
    run: Runner, main: Path, tmp_path: Path, client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIN", str(main))
    run("resume", SESSION, "--exec", home=tmp_path)
    main.unlink()
    assert client.exists()
    assert "said in the client" in run("show", SESSION).out


def test_deleted_session_is_restored_before_the_client_starts(
    run: Runner, main: Path, tmp_path: Path, client: Path
) -> None:
    run("ls", home=tmp_path)
    main.unlink()
    result = run("resume", SESSION, "--exec", "--yes")
    assert result.status == 7
    assert "Written below" in result.err
    assert "delete a session that was resumed" not in result.err  # not this one
    assert back(main).exists()
    assert client.exists()


def test_restoring_needs_confirmation(
    run: Runner, main: Path, tmp_path: Path, client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ls", home=tmp_path)
    main.unlink()
    monkeypatch.setattr("sys.stdin", io.StringIO())
    nobody = run("resume", SESSION, "--exec")
    assert (nobody.status, "Pass --yes to restore the session" in nobody.err) == (2, True)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.confirm", _no)
    assert run("resume", SESSION, "--exec").status == 130
    assert not back(main).exists()
    assert not client.exists()


def _no(question: str, **_: object) -> None:
    import click  # noqa: PLC0415

    assert "Restore it to" in question
    raise click.Abort


def test_conflicting_session_is_restored_under_a_new_id(run: Runner, main: Path, tmp_path: Path, client: Path) -> None:
    run("ls", home=tmp_path)
    main.write_bytes(log(header(), user("u9", "something else")))
    assert run("resume", SESSION, "--exec", "--yes").status == 7
    [copy] = [one for one in main.parent.iterdir() if one != main]
    new = json.loads(client.read_bytes())["args"][0].removeprefix("--resume=")
    assert new != SESSION
    assert f"-{new[:8]}-p" in copy.name


@pytest.mark.usefixtures("main")
def test_client_is_started_without_an_archive(run: Runner, tmp_path: Path, client: Path) -> None:
    assert run("resume", SESSION, "--exec", "--no-archive", home=tmp_path).status == 7
    assert json.loads(client.read_bytes())["home"] == str(tmp_path)


@pytest.mark.usefixtures("main")
def test_missing_client_is_reported(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("resume", SESSION, "--exec", home=tmp_path)
    assert (result.status, result.out) == (1, "")
    assert "`gemini` is not on the PATH" in result.err


@pytest.mark.parametrize(
    ("folder", "root", "expected"),
    [
        ("/home/alice/web", "/home/alice/.gemini", "cd /home/alice/web && gemini --resume=ID"),
        ("/home/alice/web", "/home/alice/.cache/.gemini", "cd /home/alice/web && gemini --resume=ID"),
        ("/it's; rm -rf /", "/home/alice/.gemini", "cd '/it'\"'\"'s; rm -rf /' && gemini --resume=ID"),
        ("/web", "/mnt/my bob/.gemini", "cd /web && GEMINI_CLI_HOME='/mnt/my bob' gemini --resume=ID"),
        (None, "/home/alice/.gemini", "gemini --resume=ID"),
        (r"C:\dev\it's $1", "/home/alice/.gemini", r"cd -LiteralPath 'C:\dev\it''s $1'; gemini --resume=ID"),
        (
            r"\\server\dev",
            "/mnt/bob/.gemini",
            r"cd -LiteralPath '\\server\dev'; $env:GEMINI_CLI_HOME = '/mnt/bob'; gemini --resume=ID",
        ),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="paths of POSIX")
def test_the_command_line(folder: str | None, root: str, expected: str) -> None:
    home = Home(Path(root), Path(root) / "tmp", "--home")
    assert command_line(folder, "ID", home, {}, Path("/home/alice")) == expected


@pytest.mark.skipif(os.name == "nt", reason="paths of POSIX")
def test_home_variable_depends_on_the_client() -> None:
    home = Home(Path("/data/.gemini"), Path("/data/.gemini/tmp"), "--home")
    line = command_line("/web", "x; y", home, {"GEMINI_CLI_HOME": "/data"}, Path("/home/alice"))
    assert line == "cd /web && gemini '--resume=x; y'"


UNSAFE = ["--yolo", "-y", "", "a\0b", "a\nb", "a\x1b[2Jb", "a\u202eb", "a\ud800b"]


@pytest.mark.parametrize("id_", UNSAFE)
def test_unsafe_id_is_refused(id_: str) -> None:
    with pytest.raises(UnsafeIdError, match="cannot be started with the session ID"):
        command_line("/web", id_, None, {}, Path("/home/alice"))


@pytest.mark.parametrize("id_", [one for one in UNSAFE if one and "\ud800" not in one])
@pytest.mark.parametrize("more", [(), ("--exec", "--yes"), ("--json",), ("--no-archive", "--exec")])
def test_the_client_gets_no_option_from_a_session(
    run: Runner, main: Path, tmp_path: Path, client: Path, id_: str, more: tuple[str, ...]
) -> None:
    main.write_bytes(log(header(id_, projectHash=project_hash(str(tmp_path / "web"))), user(), gemini()))
    result = run("resume", "latest", *more, home=tmp_path)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert "cannot be started with the session ID" in result.err
    assert not client.exists()


def test_a_session_with_an_unsafe_id_is_restored_without_a_line_to_type(
    run: Runner, main: Path, tmp_path: Path
) -> None:
    main.write_bytes(log(header("--yolo", projectHash=project_hash(str(tmp_path / "web"))), user(), gemini()))
    run("sync", home=tmp_path)
    main.unlink()
    result = run("restore", "latest")
    assert (result.status, result.out) == (0, "")
    assert "cannot be started with the session ID '--yolo'" in result.err
    assert run("restore", "latest", "--json").json["command"] is None
    assert "gemini --resume=" in run("restore", "latest", "--new-id").out


def test_an_id_with_characters_of_the_shell_is_quoted(run: Runner, main: Path, tmp_path: Path, client: Path) -> None:
    id_ = "a $(touch owned); b"
    main.write_bytes(log(header(id_, projectHash=project_hash(str(tmp_path / "web"))), user(), gemini()))
    line = run("resume", "latest", home=tmp_path).out
    subprocess.run(["/bin/sh", "-c", line], check=False, cwd=tmp_path)
    assert json.loads(client.read_bytes())["args"] == [f"--resume={id_}"]
    assert not [*tmp_path.rglob("owned")]
