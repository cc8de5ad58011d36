"""Our own lossless form of a session: metadata, every message with its fate, every model call, every problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from pollux import __version__, jsontext, prices
from pollux.grouping import Group
from pollux.model import Json, Message, Session
from pollux.views.listing import problem_row, session_row, tokens_row, when

SCHEMA = "pollux.export/1"


def render_json(session: Session, group: Group, by_id: Mapping[str, Session]) -> Iterator[bytes]:
    """Write one object, piece by piece."""
    head = _head(session, group, by_id)
    yield jsontext.encode(head)[:-1] + b',"timeline":['
    for number, message in enumerate(group.messages()):
        yield (b",\n" if number else b"\n") + jsontext.encode(_message(message))
    yield b'\n],"usage":' + jsontext.encode(list(_usage(session)))
    yield b',"problems":' + jsontext.encode([problem_row(problem) for problem in session.problems]) + b"}\n"


def render_lines(session: Session, group: Group, by_id: Mapping[str, Session]) -> Iterator[bytes]:
    """Write one record a line: the session, its messages, its model calls, its problems."""
    yield jsontext.encode({"type": "session", **_head(session, group, by_id)}) + b"\n"
    for message in group.messages():
        yield jsontext.encode({"type": "message", **_message(message)}) + b"\n"
    for call in _usage(session):
        yield jsontext.encode({"type": "model_call", **call}) + b"\n"
    for problem in session.problems:
        yield jsontext.encode({"type": "problem", **problem_row(problem)}) + b"\n"


def _head(session: Session, group: Group, by_id: Mapping[str, Session]) -> dict[str, Json]:
    return {
        "schema": SCHEMA,
        "pollux": __version__,
        "session": session_row(session, by_id, prices.load()),
        "generation": session.generation,
        "parent_call": session.parent_call,
        "children": session.children,
        "metadata": dict(group.main.seen),
        "sources": [
            {"path": str(one.reading.path), "role": one.role, "sha256": one.reading.original.sha256()}
            for one in group.files
        ],
        "state": list(group.main.reading.replay.state) or None,
    }


def _message(message: Message) -> dict[str, Json]:
    plain = msgspec.to_builtins(message)
    assert isinstance(plain, dict)
    return plain


def _usage(session: Session) -> Iterator[dict[str, Json]]:
    for call in session.calls:
        yield {
            "message": call.message_id,
            "at": when(call.at),
            "model": call.model,
            "fate": call.fate,
            "tokens": tokens_row(call.tokens),
            "file": call.file,
            "line": call.line,
        }
