"""A row a session: `messages`, `tools` and `metadata`, or ShareGPT's `conversations`, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pollux import __version__
from pollux.errors import BadFilterError
from pollux.exports.chat.schemas import Seen
from pollux.exports.chat.sharegpt import said
from pollux.exports.chat.turns import Turn, turns
from pollux.exports.source import Subject
from pollux.exports.tokens import RULE
from pollux.model import Json
from pollux.prices import usage_of
from pollux.text.encode import encode, text
from pollux.text.times import stamp
from pollux.views.contracts import tokens_row

OBJECTS = "argument-objects"
INCLUDABLE = (OBJECTS,)
MAPPING: tuple[tuple[str, str, str], ...] = (
    ("session", "a row", "none if no turn of it can be learned from"),
    (
        "context of the session",
        "role `system`",
        "what the client told the model at first; its system prompt is not recorded",
    ),
    ("prompt, task of an agent", "role `user`", "as it was sent, behind what the client put before it"),
    (
        "told to go on by the client",
        "role `user`",
        "left out after the result of a call: only the model may speak then",
    ),
    ("answer", "role `assistant`", "answers that follow each other become one"),
    ("thoughts", "`reasoning_content`", "one text"),
    ("tool call", "`tool_calls[]`", "arguments as JSON text; `--include argument-objects` gives objects"),
    ("result of a call", "role `tool`", "failed ones too"),
    ("tools", "`tools[]`", "inferred from the calls, and marked so"),
    ("rewound, rolled back, replaced message", "left out", ""),
    ("turn with a cancelled call or one without a result", "left out", "with its prompt"),
    ("prompt without an answer", "left out", ""),
    ("compressed message", "as it was", "the summary that took its place is left out"),
    ("notice, words the client put in", "left out", ""),
    ("picture, file", "left out", ""),
    ("counts, times, models, sources", "`metadata`", ""),
)
"""What becomes what: ours, theirs, and how."""


@dataclass(slots=True)
class _Told:
    """What a row has told so far."""

    n_turns: int = 0
    seen: dict[str, Seen] = field(default_factory=dict)

    def turns(self, subject: Subject, *, as_objects: bool) -> Iterator[Turn]:
        """Yield the turns, and learn which tools they call."""
        for turn in turns(subject, as_objects=as_objects):
            self.n_turns += 1
            for call in turn.calls:
                self.seen.setdefault(call.name, Seen()).add(call.args)
            yield turn

    def tools(self) -> list[dict[str, Json]]:
        """Return the tools that were called."""
        return [self.seen[name].schema(name) for name in sorted(self.seen)]


def render(subject: Subject) -> Iterator[bytes]:
    """Write one session as messages of a chat API. Raises `BadFilterError` for something unknown to include."""
    if unknown := sorted(subject.wanted.include - {*INCLUDABLE}):
        raise BadFilterError("--include", unknown[0], " or ".join(INCLUDABLE))
    told = _Told()
    separator = b'{"messages":['
    for turn in told.turns(subject, as_objects=OBJECTS in subject.wanted.include):
        yield separator + b",".join(encode(one, subject.losses) for one in turn.messages)
        separator = b","
    if told.n_turns:
        yield b'],"tools":' + encode(told.tools(), subject.losses)
        yield b',"metadata":' + encode(_metadata(subject, told.n_turns), subject.losses) + b"}\n"


def render_sharegpt(subject: Subject) -> Iterator[bytes]:
    """Write one session as ShareGPT had it, for trainers that know nothing else; its tools are a text."""
    told = _Told()
    separator = b'{"conversations":['
    for turn in told.turns(subject, as_objects=True):
        yield separator + b",".join(encode(one, subject.losses) for one in said(turn, subject))
        separator = b","
    if told.n_turns:
        tools = text([one["function"] for one in told.tools()], subject.losses) if told.seen else ""
        yield b'],"tools":' + encode(tools, subject.losses)
        yield b',"metadata":' + encode(_metadata(subject, told.n_turns), subject.losses) + b"}\n"


def _metadata(subject: Subject, n_turns: int) -> dict[str, Json]:
    session = subject.session
    return {
        "source": "gemini-cli",
        "session_id": session.id,
        "kind": session.kind,
        "started": stamp(session.started) if session.started else None,
        "models": session.models,
        "turns": n_turns,
        "tool_schemas": "inferred",
        "tokens": tokens_row(usage_of(session.calls, subject.prices).tokens) if session.calls else None,
        "token_rule": RULE,
        "source_sha256": [one["sha256"] for one in subject.sources()],
        "pollux": __version__,
    }
