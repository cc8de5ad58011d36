"""A session in the shape of Pi's session files, which `datasets` and the Hub's viewer know, one entry a line.

The Hub has no shape for Gemini CLI. Of those that it knows, this one keeps calls, thoughts, ids and errors; its header
says which client it was. Only what a human or an agent asked is a user's message, so that nobody learns to speak like
the client; what the client put in stands beside, as entries of another type.
"""

from __future__ import annotations

from collections.abc import Iterator

from pollux import __version__
from pollux.exports.hf.entries import HARNESS, Chain, entries, left_out
from pollux.exports.source import Subject
from pollux.exports.tokens import RULE, price_table
from pollux.model import Fate, Json, Message
from pollux.text.encode import encode
from pollux.text.times import stamp

VERSION = 3
MAPPING: tuple[tuple[str, str, str], ...] = (
    ("session", "header `session`, version 3", "`harness` = `gemini-cli`; our version and sources in `pollux`"),
    ("project", "`cwd`", "redacted"),
    ("prompt, task of an agent", "`message`, role `user`", "as it was sent to the model"),
    ("answer", "`message`, role `assistant`", "blocks `thinking`, `text`, `toolCall`; provider `google`"),
    ("thought", "block `thinking`", "subject and text"),
    ("tool call", "block `toolCall`", "id, name, arguments"),
    ("result of a call", "`message`, role `toolResult`", "`isError` for failed and cancelled ones"),
    ("input − cached + tool tokens", "`usage.input`", "Pi counts what the cache had apart"),
    ("cached tokens", "`usage.cacheRead`", "no counts, no `usage`: never 0"),
    ("output + thoughts tokens", "`usage.output`", ""),
    ("cost", "`usage.cost.total`", "estimated; the table is in the header"),
    ("model", "`model_change` where it changes", "and on every answer"),
    ("summary of compressed messages", "`compaction`", "the messages themselves stand before it"),
    ("rewound, rolled back, replaced messages", "`branch_summary`", "left out, their number is told"),
    ("what the client told the model", "`custom_message`", "session context, hooks, editor, shell mode …"),
    ("notice, words the client put in", "`custom`", "never part of the conversation"),
    ("title", "`session_info`", "where the client wrote a summary"),
    ("subagent", "a file of its own", "`parentSession` in its header"),
    ("picture, file", "left out", "nobody can redact it"),
)
"""What becomes what: ours, theirs, and how."""

_TAKEN_BACK = frozenset({Fate.REWOUND, Fate.ROLLED_BACK, Fate.REPLACED})


def render(subject: Subject) -> Iterator[bytes]:
    """Write one session, an entry a line."""
    session, losses = subject.session, subject.losses
    yield encode(_header(subject), losses) + b"\n"
    chain = Chain(subject, {call.message_id: call for call in session.calls})
    waiting: list[Message] = []
    for message in subject.messages():
        if message.fate in _TAKEN_BACK:
            waiting.append(message)
            losses["a message that was taken back"] += 1
            continue
        if waiting:
            yield left_out(chain, waiting)
            waiting = []
        yield from entries(chain, message)
    if waiting:
        yield left_out(chain, waiting)
    if chain.calls:
        losses["the counts of a model call that has no message here"] += len(chain.calls)
    if session.title_from == "summary":
        info = {"type": "session_info", "id": f"{session.id}~title", "parentId": chain.last, "name": session.title}
        yield encode(info, losses) + b"\n"


def _header(subject: Subject) -> dict[str, Json]:
    session = subject.session
    header: dict[str, Json] = {
        "type": "session",
        "version": VERSION,
        "id": session.id,
        "timestamp": stamp(session.started) if session.started else None,
        "cwd": session.project.path or "",
        "harness": HARNESS,
        "pollux": {
            "version": __version__,
            "token_rule": RULE,
            "prices": price_table(subject),
            "source_sha256": [one["sha256"] for one in subject.sources()],
        },
    }
    return header | {"parentSession": session.parent} if session.parent else header
