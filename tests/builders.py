"""Wire messages, log lines, documents and homes on disk, with good defaults."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import strategies as st

from pollux import prices
from pollux.exports.source import ExportSource
from pollux.exports.source import export_source as subject_of
from pollux.formats.operations import Operation
from pollux.formats.source import Source
from pollux.model import Problem
from pollux.sessions.homes import Home
from pollux.sessions.reader import from_file, opened
from pollux.sessions.replay.reading import FileReading, build_message, read

Wire: TypeAlias = dict[str, Any]

SESSION = "6ece72aa-5955-4bdb-8380-88eda48ac048"
OTHER = "b3e2640d-0c54-4d8e-9c11-0d3e2b6f7a01"
ROOT = "/home/alice/webapp"
HASH = hashlib.sha256(ROOT.encode()).hexdigest()
PREAMBLE = "d04923d38bb0f6017037e74183378ef4"
NAME = "session-2026-11-15T19-30-6ece72aa"
PRICES = prices.load()
"""The built-in price table."""

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
"""Any JSON value."""


def at(second: int) -> str:
    """Return a time as the client writes it, this number of seconds after 19:30."""
    return f"2026-11-15T19:{30 + second // 60:02}:{second % 60:02}.000Z"


def instant_of(second: int) -> datetime:
    return datetime(2026, 11, 15, 19, 30, tzinfo=UTC) + timedelta(seconds=second)


def user(id_: str = "u1", content: Any = "hello", *, second: int = 1, **more: Any) -> Wire:  # noqa: ANN401  fields of the client
    return {"id": id_, "timestamp": at(second), "type": "user", "content": content, **more}


def gemini(id_: str = "g1", content: Any = "hi", *, second: int = 2, **more: Any) -> Wire:  # noqa: ANN401
    return {"id": id_, "timestamp": at(second), "type": "gemini", "content": content, "model": "gemini-2.5-pro"} | more


def notice(id_: str = "i1", content: str = "Update available", *, kind: str = "info", second: int = 1) -> Wire:
    return {"id": id_, "timestamp": at(second), "type": kind, "content": content}


def preamble(**more: Any) -> Wire:  # noqa: ANN401
    text = f"<session_context>\n- **Workspace Directories:**\n  - {ROOT}\n</session_context>"
    return user(PREAMBLE, [{"text": text}], second=0) | more


def tokens(n: int = 10) -> Wire:
    """Return the counts of a call with this number of input tokens."""
    return {"input": n, "output": 2, "cached": 1, "thoughts": 3, "tool": 0, "total": n + 5}


def call(id_: str = "c1", name: str = "read_file", **more: Any) -> Wire:  # noqa: ANN401
    result = [{"functionResponse": {"id": id_, "name": name, "response": {"output": "text of the file"}}}]
    return {"id": id_, "name": name, "args": {"file_path": "a.txt"}, "result": result, "status": "success"} | more


def asks(id_: str = "c1", name: str = "read_file", **args: Any) -> Wire:  # noqa: ANN401
    return {"functionCall": {"id": id_, "name": name, "args": args}}


def answers(id_: str = "c1", name: str = "read_file", output: str = "text of the file") -> Wire:
    return {"functionResponse": {"id": id_, "name": name, "response": {"output": output}}}


def header(session: str = SESSION, **more: Any) -> Wire:  # noqa: ANN401
    fields = {"sessionId": session, "projectHash": HASH, "startTime": at(0), "lastUpdated": at(0), "kind": "main"}
    return fields | more


def updates(**fields: Any) -> Wire:  # noqa: ANN401
    return {"$set": fields}


def checkpoint(*messages: Wire, **fields: Any) -> Wire:  # noqa: ANN401
    return {"$set": {"messages": [*messages], **fields}}


def rewind(target: str) -> Wire:
    return {"$rewindTo": target}


def line(value: object) -> bytes:
    """Return a value as JSON, written as the client does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def log(*records: object) -> bytes:
    """Return a log of these records; bytes are written unchanged."""
    return b"".join((one if isinstance(one, bytes) else line(one)) + b"\n" for one in records)


def document(*messages: object, **fields: Any) -> bytes:  # noqa: ANN401
    """Return a document, indented as the client does."""
    head = header()
    del head["kind"]
    return json.dumps(head | {"messages": [*messages]} | fields, ensure_ascii=False, indent=2).encode()


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def home(root: Path) -> Home:
    return Home(root / ".gemini", root / ".gemini" / "tmp", "--home")


def chats(root: Path, folder: str = "webapp") -> Path:
    """Return the folder for sessions of a project of a home, and write the marker with its path."""
    project = root / ".gemini" / "tmp" / folder
    if folder != HASH:
        put(project / ".project_root", ROOT.encode())
    return project / "chats"


def read_bytes(folder: Path, data: bytes, name: str = f"{NAME}.jsonl") -> FileReading:
    return read(put(folder / name, data))


def source(data: bytes) -> Source:
    return Source(Path(f"{NAME}.jsonl"), data=data)


def texts(reading: FileReading) -> list[str]:
    return [build_message(reading, entry).text for entry in reading.replay.timeline]


def codes(result: FileReading | list[Operation]) -> list[str]:
    problems = result.replay.problems if isinstance(result, FileReading) else result
    return [one.code for one in problems if isinstance(one, Problem)]


def subject(path: Path, **more: Any) -> ExportSource:  # noqa: ANN401
    """Return the export source of the session in a file."""
    return subject_of(*from_file(path), {}, opened, PRICES, **more)
