from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests import builders
from tests.builders import NAME, SESSION, gemini, header, line, log, preamble, put, updates, user
from tests.cli.running import Runner

from pollux.sessions.projects.resolve import project_hash

UPDATE = line(updates(lastUpdated="2026-11-15T12:00:00.000Z")) + b"\n"


class Home:
    """A home with one session of a project that exists."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "my project"
        self.project.mkdir()
        self.data = log(header(projectHash=project_hash(str(self.project))), preamble(), user(), gemini())
        self.main = self.put(f"chats/{NAME}.jsonl", self.data)
        self.back = self.main.with_name(f"{NAME}-pc632d72.jsonl")
        self.put(".project_root", str(self.project).encode())
        self.put(f"tool-outputs/session-{SESSION}/run.txt", b"output")

    def put(self, path: str, data: bytes) -> Path:
        return put(self.root / ".gemini" / "tmp" / "my-project" / path, data)

    def lose(self, run: Runner) -> None:
        assert run("ls", home=self.root).status == 0
        shutil.rmtree(self.main.parent)
        shutil.rmtree(self.main.parents[1] / "tool-outputs")

    @property
    def line(self) -> str:
        return f"cd '{self.project}' && GEMINI_CLI_HOME={self.root} gemini --resume={SESSION}\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_restored_session_can_be_resumed_with_the_printed_command(run: Runner, home: Home) -> None:
    home.lose(run)
    result = run("restore", SESSION[:8])
    assert (result.status, result.out) == (0, home.line)
    assert f"Written below {home.root / '.gemini'}: {home.back.name} with 3 messages, and 1 related file." in result.err
    assert home.back.read_bytes() == home.data + UPDATE


def test_the_users_own_home_needs_no_variable(run: Runner, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.lose(run)
    monkeypatch.setenv("HOME", str(home.root))
    monkeypatch.setenv("USERPROFILE", str(home.root))
    monkeypatch.delenv("POLLUX_HOME")
    assert run("restore", SESSION).out == f"cd '{home.project}' && gemini --resume={SESSION}\n"


def test_existing_session_needs_no_restore(run: Runner, home: Home) -> None:
    result = run("restore", SESSION, home=home.root)
    assert (result.status, result.out) == (0, home.line)
    assert "Nothing to restore" in result.err
    assert home.main.read_bytes() == home.data


def test_a_dry_run_writes_nothing(run: Runner, home: Home) -> None:
    home.lose(run)
    result = run("restore", SESSION, "--dry-run")
    assert result.status == 0
    assert result.out.splitlines() == [
        str(home.main.parents[1] / "tool-outputs" / f"session-{SESSION}" / "run.txt"),
        str(home.back),
    ]
    assert "Nothing is written yet" in result.err
    assert not home.back.exists()


def test_nothing_is_overwritten(run: Runner, home: Home) -> None:
    home.lose(run)
    put(home.back, b"something else")
    result = run("restore", SESSION)
    assert (result.status, result.out) == (1, "")
    assert f"{home.back} exists already and is not overwritten; use --new-id" in result.err
    assert home.back.read_bytes() == b"something else"


def test_a_new_id_makes_a_copy(run: Runner, home: Home) -> None:
    result = run("restore", SESSION, "--new-id", "--json", home=home.root)
    row = result.json
    assert (result.status, row["schema"], row["session"]) == (0, "pollux.restore/1", SESSION)
    assert row["id"] != SESSION
    assert row["written"]
    assert Path(row["main"]).read_bytes() == home.data.replace(SESSION.encode(), row["id"].encode()) + UPDATE
    assert row["command"].endswith(f"gemini --resume={row['id']}")
    assert home.main.read_bytes() == home.data


def test_another_home(run: Runner, home: Home, tmp_path: Path) -> None:
    bob = tmp_path / "bob"
    bob.mkdir()
    result = run("restore", SESSION, "--to", str(bob), "--json", home=home.root)
    assert result.json["home"] == str(bob / ".gemini")
    marker = bob / ".gemini" / "tmp" / "my-project" / ".project_root"
    assert marker.read_text("utf-8") == str(home.project)
    assert f"GEMINI_CLI_HOME={bob}" in result.json["command"]


def test_invalid_home_is_refused(run: Runner, home: Home, tmp_path: Path) -> None:
    result = run("restore", SESSION, "--to", str(tmp_path / "nowhere"), home=home.root)
    assert result.status == 2
    assert "--to" in result.err
    assert "is no folder" in result.err


def test_restore_needs_an_archive(run: Runner, home: Home) -> None:
    result = run("restore", SESSION, "--no-archive", home=home.root)
    assert result.status == 2
    assert "restored from the archive" in result.err


def test_deleted_project_folder_is_reported(run: Runner, home: Home) -> None:
    home.lose(run)
    home.project.rmdir()
    result = run("restore", SESSION)
    assert (result.status, result.out) == (0, home.line)
    assert f"The folder of its project, {home.project}, does not exist" in result.err


def test_unknown_project_folder_is_reported(run: Runner, tmp_path: Path) -> None:
    data = log(header(projectHash="0" * 64), user(), gemini())
    main = put(tmp_path / ".gemini" / "tmp" / ("0" * 64) / "chats" / f"{NAME}.jsonl", data)
    assert run("ls", home=tmp_path).status == 0
    main.unlink()
    result = run("restore", SESSION)
    assert result.out == f"GEMINI_CLI_HOME={tmp_path} gemini --resume={SESSION}\n"
    assert "The folder of its project [00000000] is unknown" in result.err
    assert main.with_name(f"{NAME}-pc632d72.jsonl").read_bytes() == data + UPDATE


def test_home_with_another_name_is_reported(run: Runner, home: Home) -> None:
    backup = home.root / "backup"
    (home.root / ".gemini").rename(backup)
    put(backup / "projects.json", json.dumps({"projects": {}}).encode())
    result = run("restore", SESSION, "--new-id", home=backup)
    assert "GEMINI_CLI_HOME" not in result.out
    assert "The client only looks into folders called .gemini" in result.err


def test_notes_are_printed(run: Runner, home: Home) -> None:
    home.put("chats/session-2026-11-15T20-00-6ece72aa.jsonl", log(header(), preamble()))
    assert "is a stub" in run("restore", SESSION, home=home.root).err


def test_unknown_session_is_reported(run: Runner, home: Home) -> None:
    result = run("restore", builders.OTHER, home=home.root)
    assert (result.status, result.out) == (1, "")
    assert "No session matches" in result.err


def test_hostile_names_are_printed_in_one_line(run: Runner, home: Home) -> None:
    name = "session-2026-11-15T19-30-6ece\n2aa.jsonl"
    home.main.rename(home.main.with_name(name))
    home.main = home.main.with_name(name)
    home.lose(run)
    result = run("restore", SESSION, "--dry-run")
    assert result.status == 0
    assert "6ece\\n2aa" in result.out
    result = run("restore", SESSION)
    assert result.status == 0
    assert "6ece\\n2aa" in result.err
    assert all(line.startswith(("Written", "The ")) for line in result.err.splitlines())
