"""A table that is longer than the screen goes through a pager; colours are forced and forbidden by variables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.terminal import COLOURS, on_terminal

from pollux.cli.demo import HOME as DEMO

LISTS = [
    ("ls",),
    ("usage",),
    ("stats", "--by", "session"),
    ("status", "--all"),
    ("stats",),
    ("tree", "e92f6bc2"),
    ("search", "the"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(DEMO, tmp_path_factory.mktemp("paged") / "home"))


def fake_pager(folder: Path, name: str = "page", version: str = "") -> Path:
    """Write a program that records its arguments and copies its input."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    answer = f'[ "$1" = --version ] && echo "{version}" && exit\n' if version else ""
    program.write_text(f'#!/bin/sh\n{answer}echo "PAGED $@"\nexec cat\n')
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_only_what_is_longer_than_the_screen_is_paged(home: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    pager = str(fake_pager(tmp_path / "bin"))
    _, paged = on_terminal(home, *command, lines=5, PAGER=pager)
    _, long = on_terminal(home, *command, "--no-pager", lines=5, PAGER=pager)
    _, short = on_terminal(home, *command, PAGER=pager)
    assert "PAGED" in paged
    assert paged.partition("PAGED")[2].partition("\n")[2] == long == short


def test_pipe_is_never_paged(home: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "POLLUX_HOME": str(home), "PAGER": str(fake_pager(tmp_path / "bin")), "LINES": "5"}
    for command in LISTS:
        words = [sys.executable, "-m", "pollux", *command]
        assert b"PAGED" not in subprocess.run(words, env=environment, capture_output=True, check=False).stdout


@pytest.mark.parametrize(
    ("version", "arguments"),
    [("less 668 (PCRE2)", "-S --header=1"), ("less 590 (GNU)", "-S"), ("BusyBox v1.36", "-S")],
)
def test_header_stays_in_sight_if_less_supports_it(home: Path, tmp_path: Path, version: str, arguments: str) -> None:
    pager = fake_pager(tmp_path / "bin", "less", version)
    _, shown = on_terminal(home, "ls", lines=5, PAGER=str(pager))
    assert f"PAGED {arguments}\n" in shown
    _, stats = on_terminal(home, "stats", lines=5, PAGER=str(pager))
    assert "PAGED -S\n" in stats  # several tables have no common header


def test_pager_that_ends_early_is_not_an_error(home: Path) -> None:
    for command in (("ls",), ("show", "e92f6bc2", "--detail", "full")):
        status, shown = on_terminal(home, *command, lines=5, PAGER="true")
        assert (status, "Traceback" in shown) == (0, False)


def test_colours_follow_the_variables(home: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"POLLUX_HOME": str(home), "TERM": "xterm-256color"}

    def piped(*command: str, **more: str) -> str:
        words = [sys.executable, "-m", "pollux", *command]
        return subprocess.run(words, env=environment | more, capture_output=True, check=False, text=True).stdout

    assert "\x1b" not in piped()
    assert "\x1b[94m" in piped(FORCE_COLOR="1")
    assert "\x1b" not in piped("ls", FORCE_COLOR="1")  # data for other programs
    assert "\x1b[94m" in on_terminal(home, "ls")[1]
    without = on_terminal(home, "ls", NO_COLOR="1")[1]
    assert not {code for code in COLOURS.findall(without) if "3" in code or "9" in code}
