"""A small family of sessions: a prompt, calls that succeed and fail, a subagent and a rewind."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tests import builders
from tests.builders import PRICES, call, gemini, header, log, notice, preamble, rewind, tokens, user

from pollux import __version__
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.sessions import reader

EXPECTED = Path(__file__).parents[1] / "data" / "exports"
AGENT = "0a9e1b77-5c43-4f0e-8f51-2f6a9c3d7e10"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
THOUGHTS = [{"subject": "Plan", "description": "Look first.", "timestamp": builders.at(2)}]


def parent() -> list[builders.Wire]:
    """Return the records of a main session."""
    failed = [{"functionResponse": {"id": "c2", "name": "read_file", "response": {"error": "File not found: b.txt"}}}]
    agent = call("c3", "codebase_investigator", args={"objective": "Find b.txt"}, agentId=AGENT)
    return [
        header(),
        preamble(),
        notice("i1", "Update available"),
        user("u1", [{"text": "What is in a.txt and b.txt?"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]),
        gemini(
            "g1",
            "",
            tokens=tokens(100),
            thoughts=THOUGHTS,
            toolCalls=[call("c1"), call("c2", result=failed, status="error"), agent],
        ),
        gemini("g2", "Only a.txt is there.", second=4, tokens=tokens(200) | {"tool": 7, "total": 212}),
        user("u2", "Forget it.", second=5),
        gemini("g3", "Forgotten.", second=6, tokens=tokens(300)),
        rewind("u2"),
        user("u3", "Thanks.", second=7),
        gemini("g4", "You are welcome.", second=8, model="gemini-9.9-ultra", tokens=tokens(400)),
        gemini("g5", "Bye.", second=9),
    ]


def child() -> list[builders.Wire]:
    """Return the records of the subagent."""
    return [
        header(AGENT, kind="subagent"),
        user("s1", "Find b.txt", second=2),
        gemini("s2", "There is none.", second=3, tokens=tokens(50)),
    ]


def put(root: Path, *more: builders.Wire) -> Path:
    """Write the family into a home."""
    chats = builders.chats(root)
    builders.put(chats / f"{builders.NAME}.jsonl", log(*parent(), *more))
    builders.put(chats / builders.SESSION / f"{AGENT}.jsonl", log(*child()))
    return root


def of_home(root: Path, id_: str = builders.SESSION, **options: Any) -> ExportSource:  # noqa: ANN401
    """Return an export source of one session of the family."""
    read = reader.history([builders.home(root)])
    by_id = {session.id: session for session in read.sessions}
    return export_source(
        by_id[id_], reader.opened(by_id[id_]), by_id, reader.opened, PRICES, options=ExportOptions(**options)
    )


def placed(made: ExportSource, folder: Path) -> ExportSource:
    """Return an export source that writes side files into a folder."""
    return replace(made, write_side_file=partial(_put, folder))


def _put(folder: Path, name: str, data: bytes) -> str:
    builders.put(folder / "files" / name, data)
    return f"files/{name}"


def same(name: str, data: bytes, root: Path) -> None:
    """Check that data equal the stored file except for paths and versions; write it with POLLUX_REWRITE=1."""
    text = data.decode().replace(json.dumps(str(root))[1:-1], "HOME").replace(f'"{__version__}"', '"VERSION"')
    file = EXPECTED / name
    if "POLLUX_REWRITE" in os.environ:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8", newline="\n")
    assert text == file.read_text("utf-8"), f"{file} differs: look at it, and rewrite it with POLLUX_REWRITE=1"
