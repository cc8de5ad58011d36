"""The lossless JSON of a session: metadata, every message with its fate, every model call, every problem."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pollux import __version__
from pollux.exports.source import ExportSource
from pollux.model import Json, Message
from pollux.text.encode import encode
from pollux.views.contracts import problem_row, rfc3339, session_row, tokens_row

SCHEMA = "pollux.export/1"


def render_json(source: ExportSource) -> Iterator[bytes]:
    """Yield one JSON object, piece by piece."""
    yield encode(_head(source))[:-1] + b',"timeline":['
    for number, message in enumerate(source.messages()):
        yield (b",\n" if number else b"\n") + encode(_message(message))
    yield b'\n],"usage":' + encode(list(_usage(source)))
    yield b',"problems":' + encode([problem_row(problem) for problem in source.session.problems]) + b"}\n"


def render_lines(source: ExportSource) -> Iterator[bytes]:
    """Yield one record per line: the session, its messages, its model calls, its problems."""
    yield encode({"type": "session", **_head(source)}) + b"\n"
    for message in source.messages():
        yield encode({"type": "message", **_message(message)}) + b"\n"
    for call in _usage(source):
        yield encode({"type": "model_call", **call}) + b"\n"
    for problem in source.session.problems:
        yield encode({"type": "problem", **problem_row(problem)}) + b"\n"


def _head(source: ExportSource) -> dict[str, Json]:
    session, main = source.session, source.group.main
    return {
        "schema": SCHEMA,
        "pollux": __version__,
        "session": session_row(session, source.by_id, source.prices),
        "generation": session.generation,
        "parent_call": session.parent_call,
        "children": session.children,
        "metadata": source.clean(dict(main.seen)),
        "sources": source.sources(),
        "state": list(main.reading.replay.state) or None,
    }


def _message(message: Message) -> dict[str, Json]:
    plain = msgspec.to_builtins(message)
    assert isinstance(plain, dict)
    return plain


def _usage(source: ExportSource) -> Iterator[dict[str, Json]]:
    for call in source.session.calls:
        yield {
            "message": call.message_id,
            "at": rfc3339(call.at),
            "model": call.model,
            "fate": call.fate,
            "tokens": tokens_row(call.tokens),
            "file": call.file,
            "line": call.line,
        }
