"""What there is to see of a tool call: the values that every renderer knows how to show."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from pollux.model import Activity, Cell, Match, Todo
from pollux.views.diffs import Diff
from pollux.views.excerpts import Excerpt


class Input(msgspec.Struct, frozen=True, tag="input"):
    """What the call was given, where its line does not hold all of it."""

    text: Excerpt
    language: str
    """`sh`, `text` (one `name: value` after the other) or what the model says."""


class Output(msgspec.Struct, frozen=True, tag="output"):
    """Words that came back."""

    text: Excerpt
    is_error: bool = False
    is_markdown: bool = False


class Screen(msgspec.Struct, frozen=True, tag="screen"):
    """A terminal screen; what is hidden lies between head and tail."""

    head: tuple[tuple[Cell, ...], ...]
    tail: tuple[tuple[Cell, ...], ...] = ()
    hidden_lines: int = 0


class Todos(msgspec.Struct, frozen=True, tag="todos"):
    """The model's list of things to do."""

    todos: tuple[Todo, ...]


class Matches(msgspec.Struct, frozen=True, tag="matches"):
    """Lines that a search found."""

    matches: tuple[Match, ...]
    hidden: int = 0


class Files(msgspec.Struct, frozen=True, tag="files"):
    """Names that a listing gave."""

    files: tuple[str, ...]
    hidden: int = 0


class Agent(msgspec.Struct, frozen=True, tag="agent"):
    """What a subagent did, as far as its parent saw it."""

    name: str
    activity: tuple[Activity, ...] = ()
    hidden: int = 0
    result: Excerpt | None = None


class Question(msgspec.Struct, frozen=True):
    """Something the model asked the human."""

    question: str
    choices: tuple[str, ...] = ()
    answer: str = ""


class Questions(msgspec.Struct, frozen=True, tag="questions"):
    """What the model asked the human, and the answers."""

    questions: tuple[Question, ...]


class Data(msgspec.Struct, frozen=True, tag="data"):
    """A JSON value that there is no better word for."""

    text: Excerpt


Body: TypeAlias = Input | Output | Diff | Screen | Todos | Matches | Files | Agent | Questions | Data
