"""The fields of the query language: one table that the parser, its errors, completion and the docs read."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import StrEnum

import msgspec


class ValueKind(StrEnum):
    """How the value of a field is written."""

    CHOICE = "choice"
    """One of the field's `choices`."""
    TEXT = "text"
    """Part of a name; with `*`, the whole name."""
    TIME = "time"
    """A day, a month, a year, a time or an age."""
    AGE = "age"
    NUMBER = "number"
    PATTERN = "pattern"
    """A regular expression between slashes."""


class Level(StrEnum):
    """What has to fulfil the test of a field."""

    PART = "part"
    """The part of a message that contains the words."""
    MESSAGE = "message"
    SESSION = "session"


class QueryField(msgspec.Struct, frozen=True):
    """A field of the query language."""

    name: str
    kind: ValueKind
    level: Level
    help: str
    """One sentence."""
    example: str
    """A test with this field."""
    wants: str
    """Examples of its values, for errors."""
    choices: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()
    unit: int = 1
    """A number is stored in integers of this fraction: nano-dollars for costs."""


PARTS = ("prompt", "answer", "thoughts", "args", "output", "notice")
"""The parts of a message; `args` and `output` belong to its tool calls."""
DROPPED = "dropped"
"""A choice of `fate:` that stands for every fate but `active`."""
_CHOICE, _TEXT, _TIME, _NUMBER = ValueKind.CHOICE, ValueKind.TEXT, ValueKind.TIME, ValueKind.NUMBER
_PART, _MESSAGE, _SESSION = Level.PART, Level.MESSAGE, Level.SESSION
_TIMES = "a day, month or year such as 2026-01-31, 2026-01 or yesterday, a time, or an age such as 7d"

FIELDS: tuple[QueryField, ...] = (
    QueryField("in", _CHOICE, _PART, "The part of a message that contains the words.", "in:prompt", "", PARTS),
    QueryField(
        "re",
        ValueKind.PATTERN,
        _PART,
        "A regular expression; i ignores case, m lets ^ and $ match at lines, s lets a dot match line ends.",
        "re:/time[ -]?out/i",
        "a regular expression between slashes, such as re:/time[ -]?out/i",
    ),
    QueryField(
        "project",
        _TEXT,
        _SESSION,
        "The project, by its name, its path or a part of them, as in --project.",
        "project:webapp",
        "a name such as webapp, a path, or . for the current folder",
    ),
    QueryField(
        "dir",
        _TEXT,
        _SESSION,
        "The folder of the project: that folder or one below it, or a part of its path.",
        "dir:~/work",
        "a path such as ~/work, or a part of one",
    ),
    QueryField(
        "file", _TEXT, _MESSAGE, "A file that the model read or changed.", "file:*.ts", "a path or a part of one"
    ),
    QueryField(
        "cmd",
        _TEXT,
        _MESSAGE,
        "A shell command that the model ran, by its words.",
        'cmd:"docker compose"',
        'words of a command, such as compose or "git push"',
    ),
    QueryField(
        "tool",
        _TEXT,
        _MESSAGE,
        "A tool that the model called, by a part of its name or of its MCP server's.",
        "tool:shell",
        "a part of a tool's name, such as shell",
    ),
    QueryField(
        "status",
        _CHOICE,
        _MESSAGE,
        "How a tool call ended.",
        "status:error",
        "",
        ("success", "error", "cancelled", "pending"),
    ),
    QueryField(
        "role",
        _CHOICE,
        _MESSAGE,
        "Who wrote the message.",
        "role:user",
        "",
        ("user", "gemini", "info", "warning", "error"),
    ),
    QueryField(
        "fate",
        _CHOICE,
        _MESSAGE,
        "Whether the message is still part of the conversation; dropped is every fate but active.",
        "fate:rewound",
        "",
        ("active", DROPPED, "rewound", "compressed", "rolled_back", "replaced"),
    ),
    QueryField(
        "model",
        _TEXT,
        _SESSION,
        "A model that the session used, by a part of its name, as in --model.",
        "model:flash",
        "a part of a model's name, such as flash",
    ),
    QueryField("on", _TIME, _MESSAGE, "When the message was written.", "on:2026-01", _TIMES),
    QueryField(
        "after",
        _TIME,
        _MESSAGE,
        "Written at this time or later, as with --since.",
        "after:2026-01-15",
        _TIMES,
        other_names=("since",),
    ),
    QueryField(
        "before",
        _TIME,
        _MESSAGE,
        "Written before this time, as with --until.",
        "before:yesterday",
        _TIMES,
        other_names=("until",),
    ),
    QueryField(
        "last",
        ValueKind.AGE,
        _MESSAGE,
        "Written within this time before now, as with --last.",
        "last:7d",
        "an age such as 30min, 12h, 7d, 2w, 3m or 1y",
    ),
    QueryField(
        "cost",
        _NUMBER,
        _SESSION,
        "What the session cost in US dollars, with its subagents.",
        "cost:>1",
        "a number of dollars such as >1, <=0.50 or 0.5..2",
        unit=1_000_000_000,
    ),
    QueryField(
        "tokens",
        _NUMBER,
        _SESSION,
        "The tokens that the session used, with its subagents.",
        "tokens:>100k",
        "a number such as >100k, <=2M or 10k..50k",
    ),
    QueryField(
        "kind", _CHOICE, _SESSION, "Whether the session is a subagent.", "kind:subagent", "", ("main", "subagent")
    ),
    QueryField(
        "has",
        _CHOICE,
        _MESSAGE,
        "A message with an image, an error or a diff, or one that was dropped; a session with subagents, one with "
        "problems in its files, or one that the client has deleted.",
        "has:diff",
        "",
        ("image", "error", "diff", "dropped", "subagent", "problem", "gone"),
    ),
    QueryField(
        "id",
        _TEXT,
        _SESSION,
        "The session, by the first characters of its ID, with its subagents.",
        "id:6ece72aa",
        "the first characters of a session ID",
    ),
)
_SHORTEST, _SHORT = 3, 4
"""Letters up to which many other words are one edit away from a name: `host:` is not a misspelled `cost:`."""
_BY_NAME = {name: field for field in FIELDS for name in (field.name, *field.other_names)}


def field_named(name: str) -> QueryField | None:
    """Return the field with a name, regardless of case."""
    return _BY_NAME.get(name.lower())


def similar_field(name: str) -> QueryField | None:
    """Return the field of which a name is probably a misspelling.

    A long name may have one letter too many, too few, wrong or exchanged with the next. A name of three or four letters
    may only be a plural, or have two letters exchanged or one doubled; names of two letters are not guessed.
    """
    typed = name.lower()
    for correct, field in _BY_NAME.items():
        if len(correct) > _SHORT:
            misspellings = _edits(correct, typed)
        else:
            misspellings = _slips(correct) if len(correct) >= _SHORTEST else set()
        if typed in misspellings:
            return field
    return None


def similar_choice(value: str, choices: Iterable[str]) -> str | None:
    """Return the choice that a value probably stands for."""
    matches = get_close_matches(value.lower(), list(choices), n=1, cutoff=0.75)
    return matches[0] if matches else None


def _slips(name: str) -> set[str]:
    slips = {f"{name}s"}
    for at in range(len(name)):
        slips.add(name[:at] + name[at] + name[at:])
        slips.add(name[:at] + name[at + 1 : at + 2] + name[at] + name[at + 2 :])
    return slips - {name}


def _edits(name: str, typed: str) -> set[str]:
    """Return the words that are one edit away from a name, with letters that were typed."""
    letters = set(typed)
    edits = _slips(name)
    for at in range(len(name) + 1):
        edits.add(name[:at] + name[at + 1 :])
        for letter in letters:
            edits.add(name[:at] + letter + name[at:])
            edits.add(name[:at] + letter + name[at + 1 :])
    return edits - {name}
