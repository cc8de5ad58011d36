"""Every screen, drawn on a real terminal from sessions whose every name tries to be markup or a terminal's command."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from tests.builders import at, call, gemini, header, log, put, rewind, tokens, user
from tests.cli.terminal import COLOURS, on_terminal

from pollux.text.escape import make_visible

HOSTILE = {
    "closing tag": "[/b] closes",
    "style": "[red]red[/red] style",
    "hash": "[a1b2c3d4] hash",
    "backslash": "\\[bold] slash",
    "link": "[link=https://x.example]click[/link]",
    "handler": "[@click=app.quit]boom[/]",
    "emoji code": ":smile: :boom: code",
    "control characters": "\x1b]0;title\x07\x1b[2Jscreen\x9b31m",
    "bidi": "abc\u202egnp.exe\u2069 bidi",
    "wide": "鶴を数える 👩\u200d👩\u200d👧 wide",
    "long": "[bold]" + "long " * 900,
    "empty brackets": "[] [/] [[]] [",
}
NAMES = list(HOSTILE)
SCREENS = {
    "overview": (),
    "ls": ("ls", "--all"),
    "ls saved": ("ls", "--saved"),
    "projects": ("projects",),
    "status": ("status", "--all"),
    "usage by session": ("usage", "--by", "session"),
    "usage by project": ("usage", "--by", "project"),
    "usage by model": ("usage", "--by", "model"),
    "usage by tool": ("usage", "--by", "tool"),
    "usage by day": ("usage",),
    "stats": ("stats",),
    "stats by session": ("stats", "--by", "session"),
    "stats by project": ("stats", "--by", "project"),
    "stats by model": ("stats", "--by", "model"),
    "stats by tool": ("stats", "--by", "tool"),
    "stats by program": ("stats", "--by", "program"),
    "stats by file type": ("stats", "--by", "filetype"),
    "doctor": ("doctor",),
    "search": ("search", "again OR role:user", "-n", "99"),
    "search without a query": ("search", "-n", "99"),
    "searched files": ("search", "--files", "-n", "99"),
    "searched commands": ("search", "--commands", "-n", "99"),
}
TITLES = {"ls", "status", "search", "search without a query", "usage by session", "stats by session"}
PROJECTS = {"projects", "usage by project", "stats by project"}
MODELS = {"usage by model", "stats by model"}
TOOLS = {"usage by tool", "stats by tool"}


def session_id(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def write_session(home: Path, number: int, text: str) -> None:
    """Write a session in a project whose path, like its title, model and tool, contains the text."""
    path = "/src/" + text.replace("/", "∕").replace("\x00", "")[:120]
    folder = home / ".gemini" / "tmp" / f"project-{number}"
    put(folder / ".project_root", path.encode())
    records: list[Any] = [
        header(session_id(number), projectHash=hashlib.sha256(path.encode()).hexdigest()),
        user("u1", text),
        gemini(
            f"g{number}",
            text,
            model=text[:200],
            tokens=tokens(10 + number),
            toolCalls=[
                call("c1", text[:200], args={"file_path": f"{path}/{text[:40]}.x"}),
                call("c2", "run_shell_command", args={"command": f"'{text[:40]}' --run"}),
            ],
        ),
        user("u2", "again", second=5),
        rewind("u2"),
        {"$set": {"lastUpdated": at(9)}},
    ]
    put(folder / "chats" / f"session-2026-11-15T19-30-{session_id(number)[:8]}.jsonl", log(*records))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    for number, name in enumerate(NAMES):
        write_session(root, number, HOSTILE[name])
    saved = b'{"history": [{"role": "user", "parts": [{"text": "[/b] saved [red]"}]}]}'
    put(root / ".gemini" / "tmp" / "project-0" / "checkpoint-[tag].json", saved)
    hashed = root / ".gemini" / "tmp" / ("cae691b6" + "0" * 56) / "chats"
    put(
        hashed / f"session-2026-11-15T19-30-{'f' * 8}.jsonl",
        log(
            header(session_id(0xFFFFFFFF), projectHash="cae691b6" + "0" * 56),
            user(),
            gemini("hashed", tokens=tokens(), toolCalls=[call()]),
        ),
    )
    return root


def visible(text: str, width: int) -> str:
    """Return the beginning of a text as every screen shows it."""
    return " ".join(make_visible(text).split())[:width].rstrip()


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize("name", SCREENS)
def test_screen_shows_every_name_as_it_is(home: Path, name: str, columns: int) -> None:
    status, out = on_terminal(home, *SCREENS[name], columns=columns)
    plain = COLOURS.sub("", out)
    assert "Traceback" not in plain
    assert status in (0, 1), plain
    assert "\x1b" not in plain, "an escape sequence other than a colour"
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", plain)
    shown = 9 if columns == 80 else 16
    for text in HOSTILE.values():
        if name in TITLES and not (name == "status" and columns == 80):
            assert visible(text, shown) in plain
        if name in PROJECTS:
            folder = text.replace("/", "∕").rpartition("\\")[2]  # a backslash separates folders on Windows
            assert visible(folder, shown) in plain
        if name in MODELS or (name in TOOLS and "\x1b" not in text):
            assert visible(text, shown) in plain
    if name == "ls saved":
        assert "[tag]" in plain
        assert "[/b] saved [red]" in plain
    if name in {"ls", "status", *PROJECTS}:
        assert "[cae691b6]" in plain


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_session_is_shown_as_it_is(home: Path, number: int) -> None:
    expected = visible(next(iter(HOSTILE[NAMES[number]].split("long "))), 16)
    for command in ("show", "tree", "audit"):
        status, out = on_terminal(home, command, session_id(number), columns=160)
        plain = COLOURS.sub("", out)
        assert status == 0, plain
        assert "\x1b" not in plain
        assert expected in plain
