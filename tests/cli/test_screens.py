"""Screens equal stored samples at 80 columns and fit at 40."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.cli.running import Runner, same

from pollux.cli import COMMANDS, output
from pollux.cli.demo import HOME

SCREENS = {
    "overview": (),
    "ls": ("ls",),
    "ls-all": ("ls", "--all", "--project", "tide-tables"),
    "projects": ("projects",),
    "doctor": ("doctor",),
    "tree": ("tree", "e92f6bc2"),
    "tree-files": ("tree", "74dc5fc5"),
    "show": ("show", "f688da5c"),
    "show-message": ("show", "602c50c2#9"),
    "search": ("search", "alarms"),
    "search-files": ("search", "--files", "alerts.py"),
    "search-commands": ("search", "--commands", "pytest"),
    "ls-query": ("ls", "alarms"),
}


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the demo to a short path that is the same on every machine."""
    home = tmp_path / "mara"
    home.symlink_to(HOME)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    return home


@pytest.mark.parametrize("name", SCREENS)
def test_screen_equals_the_stored_one(run: Runner, copied: Path, name: str) -> None:
    ended = run(*SCREENS[name], columns=80, home=copied)
    assert max(map(cell_len, ended.out.splitlines())) <= 80
    same(f"{name}.txt", ended.out)


@pytest.mark.parametrize("columns", [30, 40, 60, 120])
@pytest.mark.parametrize("name", SCREENS)
def test_screen_fits(run: Runner, copied: Path, name: str, columns: int) -> None:
    ended = run(*SCREENS[name], columns=columns, home=copied)
    assert max(map(cell_len, ended.out.splitlines())) <= columns


def test_narrow_list_still_names_every_session(run: Runner) -> None:
    assert "@20" in run("ls", columns=40).out
    assert "7ffa9413" in run("ls", "--all", columns=40).out


def test_numbers_of_a_filtered_list_work_with_show(run: Runner) -> None:
    (number,) = {word for word in run("ls", "--project", "moon", columns=80).out.split() if word.startswith("@")}
    assert run("show", number, "--json").json["session"]["project"]["path"].endswith("moon-phase-clock")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_and_has_examples(run: Runner, name: str) -> None:
    shown = run(name, "--help", columns=80).out.splitlines()
    assert max(map(len, shown)) <= 80
    assert any(line.startswith(("    pollux ", "    PS1=")) for line in shown)


def test_pipe_gets_whole_lines(run: Runner) -> None:
    lines = run("tree", "e92f6bc2").out.splitlines()
    assert any(line.endswith("7ffa9413-0e52-481c-aa76-916820b43a25.jsonl") for line in lines)
    assert any(len(line) > 100 for line in run("doctor").out.splitlines())
    assert all(line.count("\t") == 5 for line in run("projects").out.splitlines())


def test_overview_in_a_pipe_is_short_and_plain(run: Runner) -> None:
    lines = run().out.splitlines()
    assert lines[0].startswith("20 sessions in 5 projects")
    assert len(lines) < 25
    assert "\x1b" not in "".join(lines)


def test_ascii_terminal_is_supported(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "encoding", lambda: "ascii")
    shown = run("ls", "--project", "skywatch", columns=80).out
    assert "~ " in shown
    assert shown.isascii()


@pytest.mark.parametrize(
    "command", [("ls",), ("projects",), ("status", "--all"), ("usage",), ("stats", "--by", "tool")]
)
def test_every_list_can_be_limited_and_has_a_header_in_a_pipe(run: Runner, command: tuple[str, ...]) -> None:
    header, first, second = run(*command, "-n", "2").out.splitlines()
    assert header.replace("\t", "").replace("_", "").isalpha()
    assert run(*command, "-n", "2", "--no-header").out.splitlines() == [first, second]
    assert header.count("\t") == first.count("\t") == second.count("\t")
