"""`pollux statusline` prints today's usage of the current project in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.builders import gemini, header, log, put, tokens, user
from tests.cli.running import Runner

from pollux.sessions.projects.paths import project_hash


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with calls of yesterday and today in the current folder, and with another project."""
    here = tmp_path.resolve() / "app"
    here.mkdir()
    monkeypatch.chdir(here)
    old, new = gemini("g1", tokens=tokens(7)), gemini("g2", tokens=tokens(1000))
    old["timestamp"], new["timestamp"] = "2026-11-14T23:50:00.000Z", "2026-11-15T00:10:00.000Z"
    digest = project_hash(str(here))
    name = f"{builders.NAME}.jsonl"
    put(tmp_path / ".gemini" / "tmp" / digest / "chats" / name, log(header(projectHash=digest), user(), old, new))
    other = gemini("g3", tokens=tokens(500)) | {"timestamp": "2026-11-15T00:20:00.000Z"}
    name = f"session-2026-11-15T00-20-{builders.OTHER[:8]}.jsonl"
    put(builders.chats(tmp_path) / name, log(header(builders.OTHER), user(), other))
    return tmp_path


@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])
def test_line_counts_today_and_the_current_project(run: Runner, root: Path, how: tuple[str, ...]) -> None:
    assert run("statusline", *how, home=root).out == "1.0k tokens $0.00130\n"
    assert run("statusline", "--all-projects", *how).out == "1.5k tokens $0.00197\n"
    assert run("statusline", "-z", "Asia/Tokyo", "-f", "{calls}", *how).out == "2\n"


def test_format_option_is_applied(run: Runner, root: Path) -> None:
    pattern = "{project}: {calls} {input} {output} {active} {cost}"
    assert run("statusline", "--format", pattern, home=root).out == "app: 1 1.0k 2 1.0k $0.00130\n"
    ended = run("statusline", "--format", "{nope}")
    assert (ended.status, "the fields are active, calls" in ended.err) == (2, True)


def test_other_folder_has_no_usage(run: Runner, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "elsewhere").mkdir()
    monkeypatch.chdir(root / "elsewhere")
    assert run("statusline", home=root).out == "0 tokens $0.00\n"
