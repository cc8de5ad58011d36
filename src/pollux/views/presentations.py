"""How the calls of one tool are told: what a row of the table `TOOLS` says."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from pollux.views.arguments import Args


class Icon(StrEnum):
    """What sort of thing a call does, for a renderer with pictures."""

    SHELL = "shell"
    READ = "read"
    WRITE = "write"
    EDIT = "edit"
    SEARCH = "search"
    FOLDER = "folder"
    WEB = "web"
    MEMORY = "memory"
    TODOS = "todos"
    QUESTION = "question"
    AGENT = "agent"
    PLAN = "plan"
    MCP = "mcp"
    CODE = "code"
    OTHER = "other"


Words: TypeAlias = "Callable[[Args, str | None], str]"


class Presentation(msgspec.Struct, frozen=True):
    """How calls of one tool are told."""

    icon: Icon
    label: str
    words: Words
    """What it was called with, on one line; the second argument is the project's folder."""
    told: frozenset[str] = frozenset()
    """Arguments that the line or the body already shows."""
    is_quiet: bool = False
    """Whether the line says enough, so that the result is shown only in full."""
    has_outcome: bool = False
    """Whether the client's display is a line on the result (`Found 8 matches`) and not the result."""
