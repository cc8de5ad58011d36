"""Shell completion of commands, options and IDs, without loading what reads sessions or draws tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete
from tests import builders
from tests.cli.running import Runner

from pollux.cli import pollux
from pollux.cli.demo import HOME as DEMO

HEAVY = ("rich", "pollux.formats", "pollux.sessions.reader", "pollux.views", "pollux.render.terminal")

_LOOK = """
import sys
from pollux.__main__ import main
try:
    main()
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""

needs_bash = pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="there is no bash")


@pytest.fixture(autouse=True)
def _demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_HOME", str(DEMO))


def offered(*words: str) -> list[CompletionItem]:
    """Complete the last word."""
    *before, incomplete = words
    return ShellComplete(pollux, {}, "pollux", "_POLLUX_COMPLETE").get_completions([*before], incomplete)


def values(*words: str) -> list[str]:
    return [item.value for item in offered(*words)]


def test_commands_are_offered() -> None:
    assert values("sh") == ["show"]
    assert "ls" in values("")
    assert values("demo", "tr") == ["tree"]
    assert values("demo", "show", "tr") == []
    assert values("nope", "x") == []


def test_options_are_offered() -> None:
    assert values("show", "latest", "--det") == ["--detail"]
    assert values("--ver") == ["--version"]
    assert values("export", "--format", "json") == ["json", "jsonl"]


def test_ids_are_offered_newest_first_with_date_and_project() -> None:
    found = offered("show", "4")
    assert [(item.value, item.help) for item in found] == [
        ("451ea5d6", "2026-11-11 17:26  skywatch"),
        ("408a8bb2", "2026-11-06 22:48  skywatch"),
        ("4eed6371", "2026-10-27 13:05  skywatch"),
    ]
    assert values("tree", "lat") == ["latest"]
    assert len(values("raw", "")) == 21
    assert offered("export", "0363a0b0", "099")[0].help == "2025-09-18 20:14  9577fddd"


def test_ids_come_from_the_named_home(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    builders.put(chats / f"{builders.NAME}.jsonl", b"")
    builders.put(chats / "session-2026-99-99T99-99-bbbbbbbb.jsonl", b"")
    builders.put(chats / "session-odd.jsonl", b"")
    assert values("show", "--home", str(tmp_path), "") == ["latest", "6ece72aa", "bbbbbbbb"]
    assert values("show", "--home", str(tmp_path / "nowhere"), "6") == []


def test_paths_are_left_to_the_shell() -> None:
    assert [item.type for word in ("./se", "~", ".") for item in offered("show", word)] == ["file"] * 3


def test_projects_are_offered() -> None:
    assert values("ls", "--project", "s") == ["skywatch"]
    assert "9577fddd" in values("ls", "--project", "")


def test_fields_and_their_values_are_offered() -> None:
    assert values("search", "pro") == ["project:"]
    assert offered("search", "in")[0].help == "The part of a message that contains the words."
    assert {"in:", "file:", "cmd:", "last:"} <= set(values("search", ""))
    assert values("search", "timeout", "in:pr") == ["in:prompt"]
    assert values("search", "project:s") == ["project:skywatch"]
    assert values("search", "id:451") == ["id:451ea5d6"]
    assert values("search", "nonsuch:x") == values("search", "file:x") == values("search", "timeout") == []
    assert values("ls", "fate:rew") == ["fate:rewound"]


def test_bash_gets_the_part_of_a_field_after_the_colon() -> None:
    assert values("search", "x", "in", ":", "pr") == ["prompt"]
    assert values("search", "x", "in", ":") == ["prompt", "answer", "thoughts", "args", "output", "notice"]
    assert values("search", "in", ":", "prompt", "pro") == ["project:"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_printed(run: Runner, shell: str) -> None:
    ended = run("completion", shell)
    assert ended.status == 0
    assert "_POLLUX_COMPLETE" in ended.out


@needs_bash
@pytest.mark.parametrize(
    ("words", "expected"), [("pollux sh", "show"), ("pollux show 45", "451ea5d6"), ("pollux search in : pr", "prompt")]
)
def test_bash_completes(run: Runner, tmp_path: Path, words: str, expected: str) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(run("completion", "bash").out)
    (tmp_path / "pollux").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pollux "$@"\n')
    (tmp_path / "pollux").chmod(0o755)
    keys = (
        f'source "{script}"; COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}; '
        '_pollux_completion pollux; echo "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(["bash", "-c", keys], env=environment, capture_output=True, text=True, check=True)  # noqa: S607
    assert ended.stdout.split() == [expected]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--version"], None),
        ([], "pollux sh"),
        ([], "pollux show 45"),
        ([], "pollux export --fo"),
        ([], "pollux search x"),
    ],
)
def test_start_loads_nothing_heavy(args: list[str], words: str | None) -> None:
    environment = dict(os.environ)
    if words:
        asked = {"_POLLUX_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        environment.update(asked)
    ended = subprocess.run(
        [sys.executable, "-c", _LOOK, *args], env=environment, capture_output=True, text=True, check=True
    )
    loaded = ended.stderr.split()
    assert ended.stdout
    assert "pollux.cli" in loaded
    assert [name for name in loaded if name.startswith(HEAVY)] == []
    if not words:
        assert "msgspec" not in loaded
        assert [name for name in loaded if name.startswith("pollux.cli.")] == []


def test_help_lists_the_commands_without_loading_them(run: Runner) -> None:
    ended = run("--help")
    assert ended.status == 0
    assert "Print the file of a session byte for byte." in ended.out


def test_every_command_has_help(run: Runner) -> None:
    for name in pollux.list_commands(click.Context(pollux)):
        assert "--help" in run(name, "--help").out
