"""`pollux demo` in front of any command: an archive and keys of its own, and nothing of the user's is touched."""

from __future__ import annotations

import os
import tempfile
from hashlib import sha256
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner

from pollux.cli import COMMANDS
from pollux.cli.demo import HOME as DEMO

SESSION = "602c50c2"
WORKING = (
    (),
    ("ls",),
    ("show", SESSION),
    ("tree", SESSION),
    ("raw", SESSION),
    ("usage",),
    ("stats",),
    ("audit", SESSION),
    ("status",),
    ("statusline",),
    ("projects", "--scan"),
    ("sync",),
    ("verify",),
    ("verify", "--deep"),
    ("verify", "--seal"),
    ("restore", SESSION),
    ("restore", SESSION, "--dry-run"),
    ("forget", SESSION, "--yes"),
    ("archive", "info"),
    ("archive", "seal"),
    ("archive", "compact"),
    ("search", "alarms"),
    ("search", "--files", "alerts.py"),
    ("archive", "prove", SESSION),
    ("archive", "backup", "backup.db"),
    ("export", SESSION),
    ("export", "--all", "-f", "html", "-o", "site"),
    ("export", "--all", "-f", "parquet", "-o", "facts"),
    ("record", "create", SESSION),
    ("record", "redact", SESSION, "--secrets"),
    ("keys", "list"),
    ("keys", "create"),
    ("completion", "bash"),
)
TESTED_ELSEWHERE = {"open", "web", "tail", "watch", "doctor", "demo", "resume"}


@pytest.fixture
def own(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Make a home, an archive and a key of the user's; return all files and folders that must stay as they are."""
    del run
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.delenv("POLLUX_HOME")
    builders.put(
        builders.chats(Path.home()) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user())
    )
    return [Path.home(), DEMO]


def contents(folders: list[Path]) -> list[tuple[Path, int, str]]:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return sorted((path, path.stat().st_mtime_ns, sha256(path.read_bytes()).hexdigest()) for path in files)


def test_every_command_is_tried() -> None:
    assert {args[0] for args in WORKING if args} | TESTED_ELSEWHERE == {*COMMANDS}


@pytest.mark.parametrize("args", WORKING, ids=" ".join)
def test_every_command_works_in_the_demo(run: Runner, own: list[Path], tmp_path: Path, args: tuple[str, ...]) -> None:
    assert run("sync").status == 0
    assert run("keys", "create").status == 0
    before = contents(own)
    environ = dict(os.environ)
    ended = run("demo", *args)
    assert ended.status == 0, ended.err
    assert builders.SESSION[:8] not in ended.out
    assert contents(own) == before
    assert {name: os.environ.get(name) for name in environ} == environ
    assert [path.name for path in tmp_path.glob("pollux-demo-*")] == []


@pytest.mark.parametrize("option", [("--home", "."), ("--archive", "other.db")])
def test_demo_refuses_homes_and_archives_of_the_user(run: Runner, own: list[Path], option: tuple[str, ...]) -> None:
    before = contents(own)
    ended = run("demo", "ls", *option)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert f"The demo has its own home and archive: leave {option[0]} out" in ended.err
    assert contents(own) == before


def test_demo_protects_the_files_of_the_user(run: Runner, own: list[Path]) -> None:
    assert run("sync").status == 0
    new = builders.chats(Path.home()) / "new.json"
    before = contents(own)
    for path in (*(path for path, *_ in before if "archive.db" in path.name), new):
        ended = run("demo", "export", SESSION, "-o", str(path))
        assert (ended.status, "name another place" in ended.err) == (2, True)
    assert contents(own) == before


def test_forgetting_promises_no_undo(run: Runner, own: list[Path]) -> None:
    """Each command of the demo has an archive of its own."""
    del own
    ended = run("demo", "forget", SESSION, "--yes")
    assert "The next `pollux demo` command has a new archive with all sessions" in ended.err
    assert "--undo" not in ended.err
    assert SESSION[:8] in run("demo", "ls").out


def test_demo_installs_no_service(run: Runner, own: list[Path]) -> None:
    before = contents(own)
    ended = run("demo", "watch", "--install", "--yes")
    assert (ended.status, "The demo installs nothing" in ended.err) == (2, True)
    assert contents(own) == before


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("ls",), "`pollux demo doctor` lists them"),
        (("show", "nope"), "`pollux demo ls --all`"),
        (("ls", "--project", "nope"), "`pollux demo projects`"),
        (("ls", "--xyzzy"), "`pollux demo ls --help`"),
        (("status",), "20 sessions, all"),
    ],
)
def test_hints_name_the_demo(run: Runner, own: list[Path], args: tuple[str, ...], hint: str) -> None:
    del own
    ended = run("demo", *args)
    assert hint in ended.err
    assert "`pollux ls" not in ended.err
    assert "`pollux sync" not in ended.err


def test_hints_on_the_screen_name_the_demo(run: Runner, own: list[Path]) -> None:
    del own
    screen = " ".join(run("demo", columns=200).out.split())
    assert "`pollux demo status`" in screen
    assert "`pollux demo show @1`" in screen
    assert "`pollux demo stats --by" in run("demo", "stats", columns=120).out
    for columns in (80, None):
        assert "`pollux demo verify --deep`" in " ".join(run("demo", "verify", columns=columns).out.split())


def test_restored_session_was_deleted_before(run: Runner, own: list[Path]) -> None:
    del own
    ended = run("demo", "restore", SESSION)
    assert (ended.status, "Nothing to restore" in ended.err) == (0, False)


def test_status_of_the_command_is_that_of_the_demo(run: Runner, own: list[Path]) -> None:
    del own
    assert run("demo", "doctor").status == 1
    assert run("demo", "resume", SESSION).status == 1  # the folder of its project does not exist
    assert run("demo", "nope").status == 2
    assert run("demo", "show", "nope").status == 1
