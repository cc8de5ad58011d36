"""Homes for the viewer: a long session with dropped branches, and one whose every text is hostile."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

from tests.builders import (
    HASH,
    NAME,
    OTHER,
    SESSION,
    Wire,
    answers,
    asks,
    at,
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

MARKUP = (
    "\n[bold red]owned[/] [link=http://evil.example]x[/link] [@click=app.bell]x[/] {{7*7}} ${owned=1} "
    "}*{background:url(http://evil.example/x.png)}@import 'http://evil.example/x.css'; "
    "<a href=javascript:owned=1 autofocus onfocus=owned=1>x</a><form action=http://evil.example><input></form>"
    "<svg><use href='http://evil.example/x.svg#x'/><animate onbegin=owned=1 attributeName=x dur=1s></svg>"
    "<template shadowrootmode=open><script>owned=1</script></template><math href=javascript:owned=1>x</math>"
    "\ndata: owned\n\nevent: bye\r\ndata: {}\r\rid: 9\u2028event: evil\n\n"
)
"""Rich markup, templates, styles, forms, drawings, and lines that would end a server-sent event."""
HOSTILE = EVIL + MARKUP
AGENT = "a9e27000-0000-4000-8000-000000000000"
LOST = "10570000-0000-4000-8000-000000000000"
"""A session of which only a prompt is known, from `logs.json`."""
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


def wide_home(root: Path) -> Path:
    """Write sessions with names that have no place to break: titles, projects, files and models; and two scripts."""
    long = "averyverylongnamewithoutanyplacetobreak" * 3
    for number, (title, path, model) in enumerate(
        (
            ("A" * 300, f"/home/mara/{long}", f"model-{long}"),
            (
                "東京の天文台で測定したデータを週ごとにまとめて、前年との差をグラフにしてください。" * 3,
                "/srv/天文台",
                long,
            ),
            ("مرحبا بالعالم: نص عربي طويل لاختبار الاتجاه من اليمين إلى اليسار", f"/srv/عربي/{long}", "gemini-2.5-pro"),
        )
    ):
        session = f"{number:08x}-0000-4000-8000-000000000000"
        files = (f"/{long}/{long}/{long}.py", "src/天文台/データ.py")
        calls = [
            call(f"c{place}", "write_file", args={"file_path": file, "content": "x"})
            for place, file in enumerate(files)
        ]
        digest = hashlib.sha256(path.encode()).hexdigest()
        folder = root / ".gemini" / "tmp" / digest
        put(folder / ".project_root", path.encode())
        put(
            folder / "chats" / f"session-2026-11-15T19-30-{number:08x}.jsonl",
            log(
                header(session, projectHash=digest, summary=title),
                user("u1", title),
                gemini("g1", f"words {long}", model=model, tokens=tokens(), toolCalls=calls),
                b'{"broken',
            ),
        )
    return root


def hostile_home(root: Path, evil: str = HOSTILE) -> Path:
    """Write sessions whose texts, titles, models, tools, paths, diffs, subagents, prompts and IDs are hostile."""
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
                call(
                    "c4", "replace", args={"file_path": "a.py", "new_string": evil}, resultDisplay=_diff("a.py", evil)
                ),
                call("c5", "replace", args={"file_path": evil}, resultDisplay=_diff(evil, evil)),
                call("c6", f"mcp__{name}__{name}", args={evil: [evil, {evil: evil}]}, displayName=evil, status=evil),
            ],
        ),
        notice("n1", evil, kind="error"),
        user("u2", evil),
        gemini("g2", evil),
        rewind("u2"),
        {"$set": {"summary": evil, evil: evil}},
        {"type": evil, "id": evil, "timestamp": evil, "content": evil},
        b'{"broken',
    )
    folder = root / ".gemini" / "tmp" / HASH / "chats"
    put(folder / f"{NAME}.jsonl", log(header(), *records))
    put(folder / "session-2026-11-15T19-40-b3e2640d.jsonl", log(header(OTHER), user("x1", evil), gemini("y1", evil)))
    put(folder / "session-2026-11-15T19-50-<img src.jsonl", log(header(evil[:40]), user("z1", "hi")))
    agent = header(AGENT, kind="subagent", summary=evil)
    put(
        folder / SESSION / f"{AGENT}.jsonl",
        log(agent, user("a1", evil), gemini("b1", evil, model=evil, tokens=tokens())),
    )
    prompt = {"sessionId": LOST, "messageId": 0, "type": "user", "message": evil, "timestamp": at(0)}
    put(folder.parent / "logs.json", json.dumps([prompt, {**prompt, "sessionId": evil}]).encode())
    put(root / ".gemini" / "projects.json", json.dumps({"projects": {f"/home/{name}": name}}).encode())
    return root


def _diff(path: str, evil: str) -> Wire:
    """Return what the client records about an edit: a patch whose every line is hostile."""
    lines = evil.splitlines() or [evil]
    removed, added = "\n".join(f"-{line}" for line in lines), "\n".join(f"+{line}" for line in lines)
    patch = f"--- {evil}\n+++ {evil}\n@@ -1,{len(lines)} +1,{len(lines)} @@ {evil}\n{removed}\n{added}\n"
    return {"fileDiff": patch, "fileName": path, "filePath": path, "originalContent": evil, "newContent": evil}
