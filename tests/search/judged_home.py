"""The home of the judged queries: small sessions whose texts were written so that a reader can judge every query.

`judged.toml` names a part as `session/number part`, where the number is the message's position in this list.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.builders import Wire, header, log, put, rewind

NAMESPACE = uuid.UUID("16161616-1616-4616-8616-161616161616")
PROJECTS = {"webapp": "/home/alice/webapp", "ledger": "/home/alice/money/ledger"}
PRO, FLASH = "gemini-2.5-pro", "gemini-2.5-flash"


@dataclass(frozen=True, slots=True)
class SavedSession:
    """The records of a session, and where its file lies."""

    day: str
    messages: Sequence[Wire]
    project: str = "webapp"
    parent: str | None = None
    is_escaped: bool = False
    """Whether the file has only ASCII characters, others as JSON escapes."""


def prompt(text: str) -> Wire:
    return {"type": "user", "content": [{"text": text}]}


def answer(text: str, *calls: Wire, thoughts: str = "", model: str = PRO, cost: int = 1000) -> Wire:
    message: Wire = {"type": "gemini", "content": text, "model": model}
    message["tokens"] = {"input": cost, "output": 10, "cached": 0, "thoughts": 0, "tool": 0, "total": cost + 10}
    if thoughts:
        message["thoughts"] = [{"subject": "Notiz", "description": thoughts, "timestamp": "2026-10-01T10:00:00.000Z"}]
    if calls:
        message["toolCalls"] = [*calls]
    return message


def call(name: str, output: str, *, status: str = "success", **args: Any) -> Wire:  # noqa: ANN401  as on the wire
    id_ = f"{name}-{uuid.uuid5(NAMESPACE, name + output)}"
    part = {"functionResponse": {"id": id_, "name": name, "response": {"output": output}}}
    return {"id": id_, "name": name, "args": args, "result": [part], "status": status}


def notice(text: str, kind: str = "info") -> Wire:
    return {"type": kind, "content": text}


def rewind_to(number: int) -> Wire:
    return {"rewind": number}


def again(number: int) -> Wire:
    """Record a message once more, as the client does whenever something about it changes."""
    return {"again": number}


def _giant_output() -> str:
    lines = [f"step x{number:04}y of the nightly run was fine" for number in range(2000)]
    lines[0], lines[1000], lines[-1] = "gibbon at the top", "narwhal in the middle", "lemur at the bottom"
    return "\n".join(lines)


SESSIONS: Mapping[str, SavedSession] = {
    "zh": SavedSession(
        "2026-10-01",
        [
            prompt("数据库连接超时错误,请检查重试逻辑。"),
            answer(
                "问题出在连接池。请修复parseConfig函数,然后把超时时间改为三十秒。",
                thoughts="用户想知道为什么连接池耗尽",
            ),
            prompt("再写一个单元测试"),
            answer("", call("run_shell_command", "1 passed\n缓存已清除", command="pytest tests/test_pool.py -k 超时")),
        ],
    ),
    "ja": SavedSession(
        "2026-10-02",
        [
            prompt("サーバーへの接続が拒否されました。どうすればいいですか?"),
            answer("ﾀｲﾑｱｳﾄの設定を確認してください。ファイアウォールがポートを塞いでいます。"),
            prompt("カ\u3099イドを読みました"),
            answer("了解です。東京都のデータを再取得します。"),
        ],
    ),
    "ko": SavedSession(
        "2026-10-03",
        [
            prompt(unicodedata.normalize("NFD", "요청 시간 초과 오류가 발생합니다")),
            answer("재시도 횟수를 늘리고 로그를 확인하세요."),
        ],
    ),
    "th": SavedSession("2026-10-04", [prompt("การเชื่อมต่อหมดเวลากรุณาลองใหม่"), answer("ตรวจสอบการตั้งค่าเครือข่าย")]),
    "names": SavedSession(
        "2026-10-05",
        [
            prompt("Why does getUserById return null in src/services/userRepository.ts?"),
            answer(
                "`HTTPServer` calls `parse_http_header`, and MAX_RETRY_COUNT is 3. GitHub Actions runs it.",
                call(
                    "read_file",
                    "export function getUserById(id) { return cache.get(id) }",
                    file_path="src/services/userRepository.ts",
                ),
            ),
            prompt("rename setValue getName to kebab-case-name"),
            answer("snake: max_retry_count; camel: maxRetryCount; dotted: app.config.max"),
        ],
    ),
    "codes": SavedSession(
        "2026-10-06",
        [
            prompt("cargo build says error[E0308] in v2.13.4-rc.1 at http://localhost:8080/health"),
            answer(
                "Upgrade to 1.2.3, not 1.23. The commit a1b2c3d4e5f60718293a broke std::vector and C++ code.",
                call(
                    "run_shell_command",
                    "\x1b[31mFAILED\x1b[0m tests/test_app.py::test_login - AssertionError: 503",
                    command="git commit --no-verify -m 'fix #123'",
                ),
            ),
            prompt("mail mara@example.com about $HOME_DIR and @src/main.rs, C:\\Users\\mara\\notes.txt"),
            notice("Update 0.61.0 available"),
        ],
        project="ledger",
    ),
    "fold": SavedSession(
        "2026-10-07",
        [
            prompt("Le cafe\u0301 de l'e\u0301cole, Straße 5, İstanbul, ISPARTA, ılık"),
            answer("ﬁle système ＡＢＣ１２３ naïve don’t foo\u200bbar co\u00adoperate"),
            prompt("مُحَمَّد و שָׁלוֹם done🚀 👍🏽"),
        ],
    ),
    "shell": SavedSession(
        "2026-10-08",
        [
            prompt("Start the stack"),
            answer(
                "Starting now.",
                call("run_shell_command", "Container db started", command="docker compose up -d", description="Start"),
                model=FLASH,
            ),
            answer(
                "",
                call("run_shell_command", "Error: missing script", status="error", command="npm test"),
                model=FLASH,
            ),
            answer(
                "",
                call(
                    "write_file",
                    "[Operation Cancelled]",
                    status="cancelled",
                    file_path="src/pages/Home.tsx",
                    content="export const zebra = 1",
                ),
            ),
        ],
        project="ledger",
    ),
    "rewound": SavedSession(
        "2026-10-09",
        [
            prompt("first plan kumquat"),
            answer("kumquat pie"),
            prompt("second plan durian"),
            answer("durian cake"),
            rewind_to(2),
            prompt("third plan mango"),
            answer("mango ice"),
        ],
    ),
    "parent": SavedSession("2026-10-10", [prompt("Let an agent look for the marsupial"), answer("It is on its way.")]),
    "child": SavedSession(
        "2026-10-10", [prompt("Look for the marsupial"), answer("A quokka smiled.")], parent="parent"
    ),
    "scattered": SavedSession("2026-10-11", [prompt("albatross nesting"), answer("penguin colony")]),
    "together": SavedSession("2026-09-01", [prompt("an albatross meets a penguin"), answer("They talk.")]),
    "giant": SavedSession(
        "2026-10-12",
        [prompt("Read the log"), answer("", call("read_file", _giant_output(), file_path="logs/nightly.log"))],
    ),
    "repeat": SavedSession(
        "2026-10-13", [prompt("hello"), answer("pangolin"), again(1), again(1), again(1), again(1), prompt("bye")]
    ),
    "typos": SavedSession(
        "2026-10-14", [prompt("Deploy to kubernetes with authentication middleware"), answer("Deployed.")]
    ),
    "phrases": SavedSession(
        "2026-10-15",
        [prompt("the quick brown fox jumps over the lazy dog"), answer("the brown quick fox"), notice("fox spotted")],
    ),
    "boolean": SavedSession(
        "2026-10-16", [prompt("apple banana"), answer("apple cherry"), prompt("banana cherry"), answer("cherry date")]
    ),
    "regex": SavedSession(
        "2026-10-17",
        [
            prompt("It says time-out, then timeout, then time out."),
            answer("Call retry_handler(3) or abort_handler (4); see ID foo123bar."),
            prompt("Price: 12,50 EUR; phone +49-30-1234"),
        ],
    ),
    "prefix": SavedSession(
        "2026-10-18", [prompt("configure the thing"), answer("misconfigured"), prompt("what confusion")]
    ),
    "escaped": SavedSession("2026-10-19", [prompt("网关过载"), answer('tab\there, quote "there"')], is_escaped=True),
    "odd": SavedSession(
        "2026-10-20", [prompt("before\x00after \ud800 wombat"), answer("<b>echidna</b> & [red]dingo[/red]")]
    ),
    "syntax": SavedSession(
        "2026-10-21", [prompt("SELECT name FROM users WHERE a AND b NEAR c"), answer("x:y ^caret col:val NOT this")]
    ),
    "expensive": SavedSession("2026-10-22", [prompt("ibis"), answer("ibis", cost=900_000)], project="ledger"),
    "cheap": SavedSession("2026-10-28", [prompt("ibis"), answer("ibis", cost=100)], project="ledger"),
}


def session_id(key: str) -> str:
    return str(uuid.uuid5(NAMESPACE, key))


def write_home(root: Path) -> Path:
    """Write the sessions below `root` as logs of the client, and return the folder of the home."""
    temporary = root / ".gemini" / "tmp"
    for name, path in PROJECTS.items():
        put(temporary / name / ".project_root", path.encode())
    for key, session in SESSIONS.items():
        put(_place(temporary, key, session), _log_of(key, session))
    return root / ".gemini"


def _place(temporary: Path, key: str, session: SavedSession) -> Path:
    chats = temporary / session.project / "chats"
    if session.parent:
        return chats / session_id(session.parent) / f"{session_id(key)}.jsonl"
    return chats / f"session-{session.day}T10-00-{session_id(key)[:8]}.jsonl"


def _log_of(key: str, session: SavedSession) -> bytes:
    start = datetime.fromisoformat(f"{session.day}T10:00:00+00:00").astimezone(UTC)
    kind = "subagent" if session.parent else "main"
    project_hash = hashlib.sha256(PROJECTS[session.project].encode()).hexdigest()
    times = {"startTime": _written(start), "lastUpdated": _written(start)}
    first_line = header(session_id(key), projectHash=project_hash, kind=kind, **times)
    records: list[Wire] = []
    messages: list[Wire] = []
    for record in session.messages:
        if "rewind" in record:
            records.append(rewind(messages[record["rewind"]]["id"]))
        elif "again" in record:
            records.append(messages[record["again"]])
        else:
            number = len(messages)
            head = {"id": f"{key}-{number}", "timestamp": _written(start + timedelta(minutes=number))}
            messages.append(head | record)
            records.append(messages[-1])
    if session.is_escaped:
        return b"".join(json.dumps(record).encode("ascii") + b"\n" for record in (first_line, *records))
    return log(first_line, *records)


def _written(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.000Z"
