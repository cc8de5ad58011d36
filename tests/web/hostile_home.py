"""A home in which every name and every text tries to be markup, a command of a terminal, or another file."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from tests.builders import at, call, gemini, header, log, put, rewind, tokens, user
from tests.exports.hostile import EVIL, LINKS, SCRIPTS, TRICKS

SESSION = "0bad0bad-0000-4000-8000-000000000000"
ATTACHMENTS = {
    "text/html": b"<!doctype html><script>owned=1</script>",
    "image/svg+xml": b"<svg xmlns='http://www.w3.org/2000/svg' onload='owned=1'/>",
    "application/pdf": b"%PDF-1.7 owned",
    "image/png": b"<script>owned=1</script> and no picture",
    "text/html; charset=x\r\nset-cookie: a=b": b"<script>owned=1</script>",
}
TITLES = (SCRIPTS, TRICKS, LINKS, 'a";\r\nset-cookie: owned=1;"', "data: x\n\nevent: bye\ndata: {}", "é超时\u202e.exe")


def write_hostile_home(root: Path) -> Path:
    """Write the sessions, and return the folder to read."""
    for number, title in enumerate(TITLES):
        _write_session(root, f"{number:08x}{SESSION[8:]}", title, [])
    parts: list[Any] = [{"text": EVIL}]
    for media_type, data in ATTACHMENTS.items():
        parts.append({"inlineData": {"mimeType": media_type, "data": base64.b64encode(data).decode()}})
    _write_session(root, SESSION, EVIL, parts)
    return root


def _write_session(root: Path, session_id: str, text: str, parts: list[Any]) -> None:
    path = "/src/" + text.replace("/", "∕").replace("\x00", "").encode("utf-8", "replace").decode()[:120]
    folder = root / ".gemini" / "tmp" / f"project-{session_id[:8]}"
    put(folder / ".project_root", path.encode())
    records: list[Any] = [
        header(session_id, projectHash=hashlib.sha256(path.encode()).hexdigest(), summary=text[:300]),
        user("u1", parts or text),
        gemini(
            f"g{session_id[:8]}",
            text,
            model=text[:200],
            thoughts=[{"subject": text, "description": text, "timestamp": at(2)}],
            tokens=tokens(),
            toolCalls=[
                call("c1", text[:200], args={"file_path": f"{path}/{text[:40]}.x", text[:50]: text}),
                call("c2", "run_shell_command", args={"command": text}, resultDisplay=text),
                call("c3", "read_file", args={"file_path": text[:99]}, status="error", resultDisplay=text),
            ],
        ),
        user("u2", text, second=5),
        rewind("u2"),
        {"$set": {"lastUpdated": at(9)}},
    ]
    put(folder / "chats" / f"session-2026-11-15T19-30-{session_id[:8]}.jsonl", log(*records))
