"""Sessions, messages, tool calls and usage as frozen values.

A file is a log of operations; a session is one or more files and has three readings: the *state* (what the client
itself would load), the *timeline* (every original message once, with its fate) and the *usage* (every model call once).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec.structs import astuple

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
    """A decoded JSON value."""
else:
    Json = Any  # decoders do not accept recursive types


class Kind(StrEnum):
    """The client's type of a message."""

    USER = "user"
    GEMINI = "gemini"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


class Origin(StrEnum):
    """Who produced a message; the client records many messages as `user` that no human typed."""

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
    """Typed in another session, and loaded by `/chat resume`."""
    MODEL = "model"
    NOTICE = "notice"
    SYNTHETIC = "synthetic"
    """An answer that the client wrote in the model's name."""


class Fate(StrEnum):
    """Whether a message is in the client's state, or why it left."""

    ACTIVE = "active"
    REWOUND = "rewound"
    COMPRESSED = "compressed"
    ROLLED_BACK = "rolled_back"
    REPLACED = "replaced"
    """`/chat resume` replaced the conversation by another one."""

    @property
    def label(self) -> str:
        """The fate in words, such as `rolled back`."""
        return self.value.replace("_", " ")


class Role(StrEnum):
    """The role of a file in its session."""

    MAIN = "main"
    PART = "part"
    """Another part of the same session, as `/clear` and `/compress` of old releases left behind."""
    TWIN = "twin"
    """The `.json` of a resumed session that continues in a `.jsonl`."""
    COPY = "copy"
    STUB = "stub"
    SUBAGENT = "subagent"
    IMPORT = "import"
    UNREADABLE = "unreadable"


class Problem(msgspec.Struct, frozen=True):
    """A fault in a user's file."""

    code: str
    message: str
    file: str | None = None
    line: int | None = None


class Tokens(msgspec.Struct, frozen=True):
    """The API's own token counts of one model call, or a sum of them."""

    input: int = 0
    """The whole prompt, including `cached`."""
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
    """The cost of the model calls that have a price, and the number of those that have none."""

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
    """A sum over model calls."""

    calls: int = 0
    tokens: Tokens = _NO_TOKENS
    cost: Cost = _NO_COST
    inconsistent: int = 0
    """Number of calls whose total is not the sum that the API defines; the counts stay as recorded."""

    @property
    def cost_nanousd(self) -> int | None:
        """The cost of the calls that have a price; None if there are calls but none has a price."""
        return None if self.calls and self.calls == self.cost.unpriced_calls else self.cost.nanousd

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.cost + other.cost,
            self.inconsistent + other.inconsistent,
        )


class Text(msgspec.Struct, frozen=True, tag="text"):
    """A text that was typed or answered."""

    text: str


class Thought(msgspec.Struct, frozen=True, tag="thought"):
    """A part of the model's reasoning that the API returned."""

    text: str
    subject: str = ""
    at: datetime | None = None


class FunctionCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """A tool call as the model requested it; `ToolCall` also has its result."""

    id: str | None
    name: str
    args: Json


class FunctionResponse(msgspec.Struct, frozen=True, tag="tool_result"):
    """The response to a call that was sent to the model."""

    id: str | None
    name: str
    response: Json


class Attachment(msgspec.Struct, frozen=True, tag="attachment"):
    """An image, sound or file."""

    media_type: str
    size: int | None = None
    """Number of bytes after decoding; None for a URI."""
    uri: str | None = None
    data: str | None = None
    """Base64, as recorded."""


class Code(msgspec.Struct, frozen=True, tag="code"):
    """Code that the model ran on the API's side."""

    language: str
    code: str


class CodeResult(msgspec.Struct, frozen=True, tag="code_result"):
    """The output of such code."""

    outcome: str
    output: str


class Unknown(msgspec.Struct, frozen=True, tag="unknown"):
    """A part of an unknown type, unchanged."""

    value: Json


Part: TypeAlias = Text | Thought | FunctionCall | FunctionResponse | Attachment | Code | CodeResult | Unknown


class TextDisplay(msgspec.Struct, frozen=True, tag="text"):
    """A display of plain text or Markdown."""

    text: str


class DiffDisplay(msgspec.Struct, frozen=True, tag="diff"):
    """An edit, with the complete text before and after."""

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
    """One task on the model's to-do list."""

    description: str
    status: str


class TodoDisplay(msgspec.Struct, frozen=True, tag="todos"):
    """The model's to-do list."""

    todos: tuple[Todo, ...]


class Activity(msgspec.Struct, frozen=True):
    """One action of a subagent."""

    type: str
    content: str
    status: str = ""
    description: str = ""


class AgentDisplay(msgspec.Struct, frozen=True, tag="agent"):
    """The last recorded progress of a subagent."""

    name: str
    state: str | None = None
    result: str | None = None
    reason: str | None = None
    activity: tuple[Activity, ...] = ()


class GrepMatch(msgspec.Struct, frozen=True):
    """One line that a search found."""

    path: str
    line: int | None
    text: str
    is_context: bool = False


class MatchDisplay(msgspec.Struct, frozen=True, tag="matches"):
    """The matches of a search."""

    summary: str
    matches: tuple[GrepMatch, ...]


class FileDisplay(msgspec.Struct, frozen=True, tag="files"):
    """The names in a folder listing."""

    summary: str
    files: tuple[str, ...]


class UnknownDisplay(msgspec.Struct, frozen=True, tag="unknown"):
    """A display of an unknown type, unchanged."""

    value: Json


Display: TypeAlias = (
    TextDisplay | DiffDisplay | ScreenDisplay | TodoDisplay | AgentDisplay | MatchDisplay | FileDisplay | UnknownDisplay
)


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call and its result."""

    id: str | None
    name: str
    """As recorded; `canonical`, `category`, `kind` and `label` come from the table in `formats/tools.py`."""
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
    """What the model received, if it is more than `output` and `error`."""
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
    """One original message; repeated recordings are merged into it."""

    id: str
    kind: Kind
    origin: Origin
    fate: Fate
    at: datetime | None
    parts: tuple[Part, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    display: tuple[Part, ...] | None = None
    """What the human typed, if the client sent a longer text."""
    model: str | None = None
    tokens: Tokens | None = None
    file: str | None = None
    line: int | None = None
    extra: Mapping[str, Json] = {}

    @property
    def text(self) -> str:
        """The text of this message: as typed if that is recorded, else as sent."""
        return "".join(part.text for part in self.display or self.parts if isinstance(part, Text))

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The images, sounds and files of this message."""
        return tuple(part for part in self.parts if isinstance(part, Attachment))


class ModelCall(msgspec.Struct, frozen=True):
    """One call of the API whose token counts are in a session file."""

    session_id: str
    message_id: str
    at: datetime | None
    model: str | None
    fate: Fate
    tokens: Tokens
    file: str | None = None
    line: int | None = None


class Project(msgspec.Struct, frozen=True):
    """The folder in which a session was started, and how its path is known."""

    hash: str | None = None
    slug: str | None = None
    path: str | None = None
    source: str | None = None
    proven: bool = False

    @property
    def key(self) -> str:
        """What identifies the project: the path, else the hash, else the slug; empty if nothing is known."""
        return self.path or self.hash or self.slug or ""

    @property
    def name(self) -> str:
        """The name to display: the folder's name, else the slug, else eight digits of the hash."""
        if self.path:
            return self.path.replace("\\", "/").rstrip("/").rpartition("/")[2] or self.path
        return self.slug or (f"[{self.hash[:8]}]" if self.hash else "[unknown]")


class FileRef(msgspec.Struct, frozen=True):
    """One file of a session."""

    path: Path
    role: Role
    format: str


class Session(msgspec.Struct, frozen=True):
    """The values of a session that lists and reports need, without its messages."""

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
    """Time of the newest message."""
    updated: datetime | None = None
    """The client's own time, by which it deletes sessions."""
    counts: Mapping[str, int] = {}
    """Messages of the timeline by kind; `user` counts only those that a human typed."""
    fates: Mapping[str, int] = {}
    tool_calls: int = 0
    models: tuple[str, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    """Without those of its subagents."""
    children: tuple[str, ...] = ()
    files: tuple[FileRef, ...] = ()
    generation: str = ""
    is_stub: bool = False
    deleted: bool = False
    """Whether the client has deleted it, so that only the archive contains it."""
    problems: tuple[Problem, ...] = ()
    extra: Mapping[str, Json] = {}

    @property
    def last_used(self) -> datetime | None:
        """When its newest message was written, else when the client updated it, else when it started."""
        return self.ended or self.updated or self.started

    @property
    def tag(self) -> str:
        """The tag of a saved conversation in `/chat list`; the oldest releases saved without one."""
        tag = self.extra.get("tag")
        return tag if isinstance(tag, str) else self.id

    @property
    def is_listed(self) -> bool:
        """Whether lists show it: it is neither a subagent nor a stub."""
        return self.kind == "main" and not self.is_stub

    def __reduce__(self) -> tuple[Callable[..., Session], tuple[object, ...]]:
        """Return what a worker sends: the calls packed together, since pickling each of them takes much longer."""
        calls: object = self.calls
        with suppress(UnicodeEncodeError, OverflowError):  # an unpaired surrogate, a number beyond 64 bits
            calls = _pack_calls(self.calls)
        return _with_calls, (calls, *astuple(msgspec.structs.replace(self, calls=())))


_pack_calls = msgspec.msgpack.Encoder().encode
_unpack_calls = msgspec.msgpack.Decoder(tuple[ModelCall, ...]).decode


def _with_calls(calls: bytes | tuple[ModelCall, ...], *values: Any) -> Session:  # noqa: ANN401  fields of any type
    session = Session(*values)
    return msgspec.structs.replace(session, calls=_unpack_calls(calls) if isinstance(calls, bytes) else calls)
