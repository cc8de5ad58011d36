"""What Pollux knows about a session, as frozen values.

A file is a log of operations; a session is one or more files and has three readings: the *state* (what the client
itself would load), the *timeline* (every original message once, with its fate) and the *usage* (every model call once).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
    """A decoded JSON value, carried along where Pollux has no word of its own for it."""
else:
    Json = Any  # decoders take no type that contains itself


class Kind(StrEnum):
    """Who a message is from, in the client's words."""

    USER = "user"
    GEMINI = "gemini"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


class Origin(StrEnum):
    """What a message of kind `user` really is; the client records much under that name that nobody typed."""

    HUMAN = "human"
    SESSION_CONTEXT = "session_context"
    HOOK_CONTEXT = "hook_context"
    TOOL_RESPONSE = "tool_response"
    SHELL_MODE = "shell_mode"
    IDE_CONTEXT = "ide_context"
    STATE_SNAPSHOT = "state_snapshot"
    CONTINUE = "continue"
    AGENT_PROMPT = "agent_prompt"
    LOADED = "loaded"
    """Typed, but in another session: `/chat resume` brought it here."""
    MODEL = "model"
    NOTICE = "notice"
    SYNTHETIC = "synthetic"
    """A text that the client put into the model's mouth."""


class Fate(StrEnum):
    """What became of a message in the client's own state."""

    ACTIVE = "active"
    REWOUND = "rewound"
    COMPRESSED = "compressed"
    ROLLED_BACK = "rolled_back"
    REPLACED = "replaced"
    """`/chat resume` put another conversation in its place."""


class Role(StrEnum):
    """What a file is to its session."""

    MAIN = "main"
    PART = "part"
    """Another stretch of the same session, as `/clear` and `/compress` of old releases left them."""
    TWIN = "twin"
    """The `.json` that a resumed session left beside its `.jsonl`."""
    COPY = "copy"
    STUB = "stub"
    SUBAGENT = "subagent"
    IMPORT = "import"
    UNREADABLE = "unreadable"


class Problem(msgspec.Struct, frozen=True):
    """A fault in a user's file: data, never an exception."""

    code: str
    message: str
    file: str | None = None
    line: int | None = None


class Tokens(msgspec.Struct, frozen=True):
    """The API's own counts of one model call, or their sum over several."""

    input: int = 0
    """The whole prompt; contains `cached`."""
    cached: int = 0
    output: int = 0
    """Without `thoughts`."""
    thoughts: int = 0
    tool: int = 0
    """Prompt-side tool-use tokens."""
    total: int = 0

    @property
    def is_consistent(self) -> bool:
        """Whether the total is the sum that the API defines."""
        return self.total == self.input + self.output + self.thoughts + self.tool

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.thoughts + other.thoughts,
            self.tool + other.tool,
            self.total + other.total,
        )


_NO_TOKENS = Tokens()


class Cost(msgspec.Struct, frozen=True):
    """What some model calls cost: the sum of the calls that have a price, and how many have none."""

    nanousd: int = 0
    unpriced_calls: int = 0
    unpriced_tokens: Tokens = _NO_TOKENS

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.nanousd + other.nanousd,
            self.unpriced_calls + other.unpriced_calls,
            self.unpriced_tokens + other.unpriced_tokens,
        )


_NO_COST = Cost()


class Usage(msgspec.Struct, frozen=True):
    """Model calls, added up."""

    calls: int = 0
    tokens: Tokens = _NO_TOKENS
    cost: Cost = _NO_COST
    inconsistent: int = 0
    """Calls whose total is not the sum that the API defines; all counts are as recorded."""

    @property
    def cost_nanousd(self) -> int | None:
        """The cost of the calls that have a price, or None if there are calls and none of them has a price."""
        return None if self.calls and self.calls == self.cost.unpriced_calls else self.cost.nanousd

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.cost + other.cost,
            self.inconsistent + other.inconsistent,
        )


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Words, as typed or as answered."""

    text: str


class Thought(msgspec.Struct, frozen=True, tag="thought"):
    """A piece of the model's reasoning that the client was shown."""

    text: str
    subject: str = ""
    at: datetime | None = None


class FunctionCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """A call as the model asked for it; `ToolCall` says what came of it."""

    id: str | None
    name: str
    args: Json


class FunctionResponse(msgspec.Struct, frozen=True, tag="tool_result"):
    """What was sent back to the model for a call."""

    id: str | None
    name: str
    response: Json


class Attachment(msgspec.Struct, frozen=True, tag="attachment"):
    """A picture, sound or file; its bytes stay in the session file, base64, until asked for."""

    media_type: str
    size: int | None = None
    """Bytes after decoding; unknown for a URI."""
    uri: str | None = None
    data: str | None = None
    """Base64, as recorded."""


class Code(msgspec.Struct, frozen=True, tag="code"):
    """Code that the model ran on the API's side."""

    language: str
    code: str


class CodeResult(msgspec.Struct, frozen=True, tag="code_result"):
    """What such code printed."""

    outcome: str
    output: str


class Unknown(msgspec.Struct, frozen=True, tag="unknown"):
    """A part that Pollux has no word for, kept as it is."""

    value: Json


Part: TypeAlias = Text | Thought | FunctionCall | FunctionResponse | Attachment | Code | CodeResult | Unknown


class TextDisplay(msgspec.Struct, frozen=True, tag="text"):
    """A display of plain text or Markdown."""

    text: str


class DiffDisplay(msgspec.Struct, frozen=True, tag="diff"):
    """An edit, with the whole text before and after."""

    diff: str
    file_name: str = ""
    file_path: str | None = None
    before: str | None = None
    after: str | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    is_new: bool | None = None


class Cell(msgspec.Struct, frozen=True):
    """A run of equally styled characters on a terminal screen."""

    text: str
    fg: str = ""
    bg: str = ""
    bold: bool = False
    italic: bool = False
    underline: bool = False
    dim: bool = False
    inverse: bool = False


class ScreenDisplay(msgspec.Struct, frozen=True, tag="screen"):
    """A terminal screen, line by line."""

    lines: tuple[tuple[Cell, ...], ...]


class Todo(msgspec.Struct, frozen=True):
    """One line of the model's list of things to do."""

    description: str
    status: str


class TodoDisplay(msgspec.Struct, frozen=True, tag="todos"):
    """The model's list of things to do."""

    todos: tuple[Todo, ...]


class Activity(msgspec.Struct, frozen=True):
    """One thing that a subagent did."""

    type: str
    content: str
    status: str = ""
    description: str = ""


class AgentDisplay(msgspec.Struct, frozen=True, tag="agent"):
    """What a subagent was last seen doing."""

    name: str
    state: str | None = None
    result: str | None = None
    reason: str | None = None
    activity: tuple[Activity, ...] = ()


class Match(msgspec.Struct, frozen=True):
    """One line that a search found."""

    path: str
    line: int | None
    text: str
    is_context: bool = False


class MatchDisplay(msgspec.Struct, frozen=True, tag="matches"):
    """What a search found."""

    summary: str
    matches: tuple[Match, ...]


class FileDisplay(msgspec.Struct, frozen=True, tag="files"):
    """The names that a listing gave."""

    summary: str
    files: tuple[str, ...]


class UnknownDisplay(msgspec.Struct, frozen=True, tag="unknown"):
    """A display that Pollux has no word for, kept as it is."""

    value: Json


Display: TypeAlias = (
    TextDisplay | DiffDisplay | ScreenDisplay | TodoDisplay | AgentDisplay | MatchDisplay | FileDisplay | UnknownDisplay
)


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call and what came of it."""

    id: str | None
    name: str
    """As recorded; the words below come from the table in `tools.py`."""
    canonical: str
    category: str
    kind: str
    label: str
    status: str
    """`success`, `error` or `cancelled`; `pending` where no result was ever recorded."""
    args: Json
    mcp_server: str | None = None
    exit_code: int | None = None
    output: str | None = None
    error: str | None = None
    response: Json = None
    """What the model got, where it is more than `output` and `error`."""
    attachments: tuple[Attachment, ...] = ()
    display: Display | None = None
    display_name: str | None = None
    description: str | None = None
    markdown: bool = False
    at: datetime | None = None
    agent_id: str | None = None
    """The subagent session that this call started."""
    extra: Mapping[str, Json] = {}


class Message(msgspec.Struct, frozen=True):
    """One original message: re-recordings are folded into it."""

    id: str
    kind: Kind
    origin: Origin
    fate: Fate
    at: datetime | None
    parts: tuple[Part, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    display: tuple[Part, ...] | None = None
    """What the human typed, where the client sent something longer."""
    model: str | None = None
    tokens: Tokens | None = None
    file: str | None = None
    line: int | None = None
    extra: Mapping[str, Json] = {}

    @property
    def text(self) -> str:
        """The words of this message: as typed if the client kept that, else as sent."""
        return "".join(part.text for part in self.display or self.parts if isinstance(part, Text))

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The pictures, sounds and files of this message."""
        return tuple(part for part in self.parts if isinstance(part, Attachment))


class ModelCall(msgspec.Struct, frozen=True):
    """One call of the API that a session file holds the counts of."""

    session_id: str
    message_id: str
    at: datetime | None
    model: str | None
    fate: Fate
    tokens: Tokens
    file: str | None = None
    line: int | None = None


class Project(msgspec.Struct, frozen=True):
    """The folder a session was started in, and how we know."""

    hash: str | None = None
    slug: str | None = None
    path: str | None = None
    how: str | None = None
    proven: bool = False

    @property
    def key(self) -> str:
        """What tells it from other projects: the path, else the hash, else the slug; empty if nothing is known."""
        return self.path or self.hash or self.slug or ""

    @property
    def name(self) -> str:
        """What to call it on a screen: the folder's name, else the slug, else eight digits of the hash."""
        if self.path:
            return self.path.replace("\\", "/").rstrip("/").rpartition("/")[2] or self.path
        return self.slug or (f"[{self.hash[:8]}]" if self.hash else "[unknown]")


class FileRef(msgspec.Struct, frozen=True):
    """One file of a session."""

    path: Path
    role: Role
    format: str


class Session(msgspec.Struct, frozen=True):
    """A session in a row of a list: what it is about and what it cost, without its messages."""

    id: str
    kind: str
    """`main` or `subagent`."""
    project: Project
    title: str = ""
    title_from: str = "none"
    """`summary`, `prompt` or `none`."""
    first_prompt: str = ""
    last_prompt: str = ""
    parent: str | None = None
    parent_call: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    """The newest message."""
    updated: datetime | None = None
    """As the client says; the clean-up goes by this."""
    counts: Mapping[str, int] = {}
    """Messages of the timeline by kind; `user` counts what a human typed."""
    fates: Mapping[str, int] = {}
    tool_calls: int = 0
    models: tuple[str, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    """Its own, without those of its subagents."""
    children: tuple[str, ...] = ()
    files: tuple[FileRef, ...] = ()
    generation: str = ""
    is_stub: bool = False
    gone: bool = False
    """The client has deleted it; the archive has not."""
    problems: tuple[Problem, ...] = ()
    extra: Mapping[str, Json] = {}

    @property
    def last_used(self) -> datetime | None:
        """When its newest message was written, else when the client updated it, else when it began."""
        return self.ended or self.updated or self.started

    @property
    def is_listed(self) -> bool:
        """Whether a list shows it: it is neither a subagent nor a stub."""
        return self.kind == "main" and not self.is_stub
