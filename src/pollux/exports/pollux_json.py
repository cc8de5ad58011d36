"""Our own lossless form of a session: metadata, every message with its fate, every model call, every problem."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pollux import __version__
from pollux.exports.source import Subject
from pollux.model import Json, Message
from pollux.text.encode import encode
from pollux.views.contracts import problem_row, session_row, tokens_row, when

SCHEMA = "pollux.export/1"


def render_json(subject: Subject) -> Iterator[bytes]:
    """Write one object, piece by piece."""
    head = _head(subject)
    yield encode(head)[:-1] + b',"timeline":['
    for number, message in enumerate(subject.messages()):
        yield (b",\n" if number else b"\n") + encode(_message(message))
    yield b'\n],"usage":' + encode(list(_usage(subject)))
    yield b',"problems":' + encode([problem_row(problem) for problem in subject.session.problems]) + b"}\n"


def render_lines(subject: Subject) -> Iterator[bytes]:
    """Write one record a line: the session, its messages, its model calls, its problems."""
    yield encode({"type": "session", **_head(subject)}) + b"\n"
    for message in subject.messages():
        yield encode({"type": "message", **_message(message)}) + b"\n"
    for call in _usage(subject):
        yield encode({"type": "model_call", **call}) + b"\n"
    for problem in subject.session.problems:
        yield encode({"type": "problem", **problem_row(problem)}) + b"\n"


def _head(subject: Subject) -> dict[str, Json]:
    session, main = subject.session, subject.group.main
    return {
        "schema": SCHEMA,
        "pollux": __version__,
        "session": session_row(session, subject.by_id, subject.prices),
        "generation": session.generation,
        "parent_call": session.parent_call,
        "children": session.children,
        "metadata": subject.clean(dict(main.seen)),
        "sources": subject.sources(),
        "state": list(main.reading.replay.state) or None,
    }


def _message(message: Message) -> dict[str, Json]:
    plain = msgspec.to_builtins(message)
    assert isinstance(plain, dict)
    return plain


def _usage(subject: Subject) -> Iterator[dict[str, Json]]:
    for call in subject.session.calls:
        yield {
            "message": call.message_id,
            "at": when(call.at),
            "model": call.model,
            "fate": call.fate,
            "tokens": tokens_row(call.tokens),
            "file": call.file,
            "line": call.line,
        }
