"""Homes for the viewer: a long session with dropped branches, and one whose every text is hostile."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.builders import (
    HASH,
    NAME,
    OTHER,
    Wire,
    answers,
    asks,
    call,
    chats,
    gemini,
    header,
    log,
    notice,
    put,
    rewind,
    tokens,
    user,
)
from tests.exports.everything import PIXEL
from tests.exports.hostile import EVIL

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 20).decode()


def long_home(root: Path, n_turns: int = 300) -> Path:
    """Write a session of four messages a turn: a prompt, an answer with a call, the tool's response, an answer."""
    records: list[Wire] = []
    for turn in range(n_turns):
        second = min(turn, 1500)
        records += [
            user(f"u{turn}", f"prompt number {turn}", second=second),
            gemini(
                f"g{turn}",
                [{"text": "reading"}, asks(f"c{turn}")],
                second=second,
                tokens=tokens(100 + turn),
                toolCalls=[call(f"c{turn}")],
            ),
            user(f"r{turn}", [answers(f"c{turn}", output=f"output {turn}")], second=second),
            gemini(f"h{turn}", f"answer *number* {turn}, needle{turn}", second=second, tokens=tokens(100 + turn)),
        ]
        if turn == 10:
            records += [user("dropped", "a prompt that is rewound"), gemini("gone", "gone"), rewind("dropped")]
    put(chats(root) / f"{NAME}.jsonl", log(header(), *records))
    return root


def hostile_home(root: Path, evil: str = EVIL) -> Path:
    """Write sessions whose texts, titles, models, tools, paths and IDs are hostile."""
    name = "<img src=x onerror=owned=1>"
    picture = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    page = {"inlineData": {"mimeType": "text/html", "data": base64.b64encode(b"<script>owned=1</script>").decode()}}
    fake = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(b"<svg onload=owned=1>").decode()}}
    records = (
        user("u1", [{"text": evil}, picture, page, fake]),
        gemini(
            "g1",
            evil,
            model=evil,
            tokens=tokens(),
            thoughts=[{"subject": evil, "description": evil, "timestamp": "2026-11-15T19:31:00.000Z"}],
            toolCalls=[
                call("c1", evil, args={"file_path": evil, evil: evil}),
                call("c2", "write_file", args={"file_path": evil, "content": evil}, resultDisplay=evil),
                call("c3", "run_shell_command", args={"command": evil}, status="error", resultDisplay=evil),
            ],
        ),
        notice("n1", evil, kind="error"),
        user("u2", evil),
        gemini("g2", evil),
        rewind("u2"),
        {"$set": {"summary": evil}},
        b'{"broken',
    )
    folder = root / ".gemini" / "tmp" / HASH / "chats"
    put(folder / f"{NAME}.jsonl", log(header(), *records))
    put(folder / "session-2026-11-15T19-40-b3e2640d.jsonl", log(header(OTHER), user("x1", evil), gemini("y1", evil)))
    put(folder / "session-2026-11-15T19-50-<img src.jsonl", log(header(evil[:40]), user("z1", "hi")))
    put(root / ".gemini" / "projects.json", json.dumps({"projects": {f"/home/{name}": name}}).encode())
    return root
