"""The parts of a tool call that renderers show below its line."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from pollux.model import Activity, Cell, GrepMatch, Todo
from pollux.views.diffs import Diff
from pollux.views.excerpts import Excerpt


class Input(msgspec.Struct, frozen=True, tag="input"):
    """Arguments that the line of the call does not show."""

    text: Excerpt
    language: str
    """`sh`, `text` (one `name: value` per line) or the language that the model named."""


class Output(msgspec.Struct, frozen=True, tag="output"):
    """Text that the tool returned."""

    text: Excerpt
    is_error: bool = False
    is_markdown: bool = False


class Screen(msgspec.Struct, frozen=True, tag="screen"):
    """A terminal screen; hidden lines are between head and tail."""

    head: tuple[tuple[Cell, ...], ...]
    tail: tuple[tuple[Cell, ...], ...] = ()
    hidden_lines: int = 0
    folded: tuple[tuple[Cell, ...], ...] = ()
    """The hidden lines, if `Limits.folds`; the same holds for the other bodies."""


class Todos(msgspec.Struct, frozen=True, tag="todos"):
    """The todo list of the model."""

    todos: tuple[Todo, ...]


class Matches(msgspec.Struct, frozen=True, tag="matches"):
    """Lines that a search matched."""

    matches: tuple[GrepMatch, ...]
    hidden: int = 0
    folded: tuple[GrepMatch, ...] = ()


class FileList(msgspec.Struct, frozen=True, tag="files"):
    """File names of a listing."""

    files: tuple[str, ...]
    hidden: int = 0
    folded: tuple[str, ...] = ()


class Agent(msgspec.Struct, frozen=True, tag="agent"):
    """The steps and the result of a subagent, as its parent saw them."""

    name: str
    activity: tuple[Activity, ...] = ()
    hidden: int = 0
    result: Excerpt | None = None
    folded: tuple[Activity, ...] = ()


class Question(msgspec.Struct, frozen=True):
    """A question that the model asked the human."""

    question: str
    choices: tuple[str, ...] = ()
    answer: str = ""


class Questions(msgspec.Struct, frozen=True, tag="questions"):
    """Questions with their answers."""

    questions: tuple[Question, ...]


class Data(msgspec.Struct, frozen=True, tag="data"):
    """Any other value, as JSON."""

    text: Excerpt


Body: TypeAlias = Input | Output | Diff | Screen | Todos | Matches | FileList | Agent | Questions | Data
