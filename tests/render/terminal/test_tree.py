"""A session's files and subagents as a tree."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from pollux.model import FileRef, Project, Role, Session
from pollux.render.terminal.tree import draw_tree
from pollux.sessions.family import build_tree

NOW = datetime(2026, 11, 15, tzinfo=UTC)
TMP = Path("/home/u/.gemini/tmp")


def drawn(session: Session, by_id: dict[str, Session], tops: tuple[Path, ...]) -> list[str]:
    console = Console(width=300, color_system=None)
    with console.capture() as capture:
        console.print(draw_tree(build_tree(session, by_id), now=NOW, tops=tops))
    return capture.get().splitlines()


def session(id_: str, *files: FileRef, **more: object) -> Session:
    return Session(id=id_, kind="main", project=Project(), files=files, **more)  # type: ignore[arg-type]


def test_files_are_named_from_the_top_and_hashes_cut() -> None:
    parent = "0363a0b0-afca-4534-b337-a9a75f51dac1"
    main = FileRef(TMP / ("ab" * 32) / "chats" / "session-1.json", Role.MAIN, "document")
    copy = FileRef(Path("/elsewhere/session-1.json"), Role.COPY, "document")
    agent = FileRef(TMP / "web" / "chats" / parent / f"{parent}.jsonl", Role.MAIN, "log")
    child = session("agent", agent, parent_call="call_1", title="Look")
    one = session(parent, main, copy, children=("agent", "gone"), ended=NOW, title="Ask")
    assert drawn(one, {"agent": child}, (TMP,)) == [
        "0363a0b0 Ask",
        "0 tool calls, 0 tokens, just now",
        "├── main  abababab…/chats/session-1.json",
        "├── copy  /elsewhere/session-1.json",
        "└── agent Look",
        "    0 tool calls, 0 tokens, started by call_1",
        f"    └── web/chats/0363a0b0…/{parent}.jsonl",
    ]
    assert drawn(child, {}, ())[-1] == f"└── {agent.path}"
    assert drawn(session("x"), {}, ())[0] == "x (no prompt)"
