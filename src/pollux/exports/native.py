"""Our own lossless form of a session: metadata, every message with its fate, every model call, every problem."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pollux import __version__, jsontext, prices
from pollux.exports.subject import Subject
from pollux.model import Json, Message
from pollux.views.listing import problem_row, session_row, tokens_row, when

SCHEMA = "pollux.export/1"


def render_json(subject: Subject) -> Iterator[bytes]:
    """Write one object, piece by piece."""
    head = _head(subject)
    yield jsontext.encode(head)[:-1] + b',"timeline":['
    for number, message in enumerate(subject.messages()):
        yield (b",\n" if number else b"\n") + jsontext.encode(_message(message))
    yield b'\n],"usage":' + jsontext.encode(list(_usage(subject)))
    yield b',"problems":' + jsontext.encode([problem_row(problem) for problem in subject.session.problems]) + b"}\n"


def render_lines(subject: Subject) -> Iterator[bytes]:
    """Write one record a line: the session, its messages, its model calls, its problems."""
    yield jsontext.encode({"type": "session", **_head(subject)}) + b"\n"
    for message in subject.messages():
        yield jsontext.encode({"type": "message", **_message(message)}) + b"\n"
    for call in _usage(subject):
        yield jsontext.encode({"type": "model_call", **call}) + b"\n"
    for problem in subject.session.problems:
        yield jsontext.encode({"type": "problem", **problem_row(problem)}) + b"\n"


def _head(subject: Subject) -> dict[str, Json]:
    session, main = subject.session, subject.group.main
    return {
        "schema": SCHEMA,
        "pollux": __version__,
        "session": session_row(session, subject.by_id, prices.load()),
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
