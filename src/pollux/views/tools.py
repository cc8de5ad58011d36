"""How a tool call is told: one line on what it did, and what there is to see of it.

The line comes from the call's arguments by the table `TOOLS`; what there is to see comes from the client's display of
the result, else from what the model was given, else (edits of old releases) from the arguments.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias, TypeVar, assert_never

import msgspec

from pollux.model import (
    Activity,
    AgentDisplay,
    Cell,
    DiffDisplay,
    FileDisplay,
    Json,
    Match,
    MatchDisplay,
    ScreenDisplay,
    TextDisplay,
    Todo,
    TodoDisplay,
    ToolCall,
    UnknownDisplay,
)
from pollux.tools import ROWS, tool


class Limits(msgspec.Struct, frozen=True):
    """How much of a long text is shown; where there are no limits, all of it is."""

    head: int
    """Lines of its beginning."""
    tail: int
    """Lines of its end."""
    chars: int
    """Characters in all: a text can be one line of many megabytes."""


class Excerpt(msgspec.Struct, frozen=True):
    """A text, or its beginning and end with a count of what lies between them."""

    head: str
    tail: str = ""
    hidden_lines: int = 0
    hidden_chars: int = 0

    @property
    def hidden(self) -> str:
        """What is left out, in words; empty if nothing is."""
        if not self.hidden_chars:
            return ""
        more = "more " if self.head or self.tail else ""
        chars = _counted(self.hidden_chars, f"{more}character")
        if not self.hidden_lines:
            return chars
        return f"{_counted(self.hidden_lines, f'{more}line')}, {_counted(self.hidden_chars, 'character')}"


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


class Summary(msgspec.Struct, frozen=True):
    """A call in one line: `label text`, then what came of it."""

    icon: Icon
    label: str
    text: str
    outcome: str = ""


class Change(StrEnum):
    """What a line of a diff says."""

    ADD = "add"
    DELETE = "delete"
    CONTEXT = "context"
    HUNK = "hunk"


class DiffLine(msgspec.Struct, frozen=True):
    """A line of a diff, without its mark; its numbers where they are known."""

    change: Change
    text: str
    old: int | None = None
    new: int | None = None


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


class Diff(msgspec.Struct, frozen=True, tag="diff"):
    """A changed file."""

    path: str
    lines: tuple[DiffLine, ...]
    added: int
    removed: int
    is_new: bool = False
    hidden_lines: int = 0


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


class Telling(msgspec.Struct, frozen=True):
    """A call as it is told."""

    summary: Summary
    bodies: tuple[Body, ...] = ()
    notes: tuple[str, ...] = ()
    """What the client did to the output before anybody could read it."""


_Args: TypeAlias = Mapping[str, Json]
_Words: TypeAlias = "Callable[[_Args, str | None], str]"


class Presentation(msgspec.Struct, frozen=True):
    """How calls of one tool are told."""

    icon: Icon
    label: str
    words: _Words
    """What it was called with, on one line; the second argument is the project's folder."""
    told: frozenset[str] = frozenset()
    """Arguments that the line or the body already shows."""
    is_quiet: bool = False
    """Whether the line says enough, so that the result is shown only in full."""
    has_outcome: bool = False
    """Whether the client's display is a line on the result (`Found 8 matches`) and not the result."""


LINE = 200
"""Characters of a call's line, unless everything is shown."""


def tell(call: ToolCall, *, limits: Limits | None = None, root: str | None = None) -> Telling:
    """Tell a call; without limits nothing is shortened, and what `root` holds is named from there."""
    presentation = _presentation(call)
    notes: list[str] = []
    found = tuple(_found(call, presentation, limits, notes))
    args = call.args if isinstance(call.args, Mapping) else {"": call.args} if call.args is not None else {}
    words = presentation.words(args, root)
    summary = Summary(
        presentation.icon,
        presentation.label,
        line(words, LINE if limits is not None or presentation.words is _plain else None),
        _outcome(call, presentation, found),
    )
    if limits is not None and presentation.is_quiet and call.status == "success":
        return Telling(summary, (), tuple(notes))
    given = tuple(_given(presentation, args)) if limits is None else ()
    return Telling(summary, (*given, *found), tuple(notes))


def shorten(text: str, limits: Limits | None) -> Excerpt:
    """Keep the beginning and the end of a long text."""
    text = text.strip("\n")
    if limits is None:
        return Excerpt(text)
    tail_chars = limits.chars // 3 if limits.tail else 0
    start = min(_line_end(text, limits.head), limits.chars - tail_chars)
    stop = max(_line_start(text, limits.tail), len(text) - tail_chars)
    newlines = text.count("\n", start, max(start, stop))
    if stop - start <= LINE and newlines <= 2:  # noqa: PLR2004  # the words for a gap need a line themselves
        return Excerpt(text)
    tail = text[stop:]
    return Excerpt(text[:start], tail, max(0, newlines - (1 if tail else 0)), stop - start)


def fold(text: str) -> Excerpt:
    """Hide a whole text."""
    text = text.strip("\n")
    return Excerpt("", hidden_lines=text.count("\n") + 1 if text else 0, hidden_chars=len(text))


def line(text: str, limit: int | None = None) -> str:
    """Fold all white space of a text, and cut it after so many characters."""
    if limit is None:
        return " ".join(text.split())
    folded = " ".join(text[: 4 * limit].split())
    return folded if len(folded) <= limit and len(text) <= 4 * limit else folded[: limit - 1] + "…"


def compact(value: Json) -> str:
    """Write a JSON value on one line, without the quotes of plain words."""
    return value if isinstance(value, str) else _json(value)


def pretty(value: Json) -> str:
    """Write a JSON value over several lines, for people."""
    return _json(value, indent=2)


def _json(value: Json, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        return "(nested too deep to be shown)"


def unwrapped(text: str, notes: list[str]) -> str:
    """Take the client's wrappers off an output, and note what it did to it."""
    text = _without_tag(text.strip(), "untrusted_context")
    inner = _without_tag(text, "tool_output_masked")
    if inner is not text:
        text = inner
        place = _FULL_OUTPUT.search(text[-_NOTE:]) or _FULL_OUTPUT.search(text[:_NOTE])
        _note(notes, "masked by Gemini CLI to save context", place)
    if text.startswith("Output too large"):
        first, _, text = text.partition("\n")
        _note(notes, "shortened by Gemini CLI", _FULL_OUTPUT.search(first))
    return text


def is_failed(call: ToolCall) -> bool:
    """Tell whether a call failed; a command that did counts as success in the client's eyes."""
    return call.status == "error" or call.exit_code not in {None, 0}


_FULL_OUTPUT = re.compile(r"(?:For full output see|Full output available at|Full string saved to): *([^\n\]]+)")
_NOTE = 2000
"""Characters at either end of a masked output among which the name of its file must be."""


def _note(notes: list[str], words: str, place: re.Match[str] | None) -> None:
    notes.append(f"{words}; the whole output: {place[1].strip()}" if place else words)


def _without_tag(text: str, tag: str) -> str:
    if text.startswith(f"<{tag}>") and text.endswith(f"</{tag}>"):
        return text[len(tag) + 2 : -len(tag) - 3].strip("\n")
    return text


def _line_end(text: str, lines: int) -> int:
    """Find where so many lines end."""
    at = -1
    for _ in range(lines):
        at = text.find("\n", at + 1)
        if at < 0:
            return len(text)
    return max(at, 0)


def _line_start(text: str, lines: int) -> int:
    """Find where the last so many lines start."""
    at = len(text)
    for _ in range(lines):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return min(at + 1, len(text))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _text(args: _Args, *names: str) -> str:
    """Give the first of these arguments that says something."""
    for name in names:
        value = args.get(name)
        if value not in (None, "", [], {}):
            return compact(value)
    return ""


def _from_root(path: str, root: str | None) -> str:
    if root and path.startswith(root):
        rest = path[len(root) :]
        if rest in {"", "/", "\\"}:
            return "."
        if rest[0] in "/\\" or root[-1] in "/\\":
            return rest.lstrip("/\\")
    return path


def _place(args: _Args, root: str | None) -> str:
    return _from_root(_text(args, "file_path", "absolute_path", "dir_path", "path", "directory", "target_file"), root)


def _joined(*words: str) -> str:
    return ", ".join(word for word in words if word)


def _named(*names: str) -> _Words:
    return lambda args, _root: _text(args, *names)


def _shell(args: _Args, root: str | None) -> str:
    command = _text(args, "command", "cmd").strip()
    first, _, rest = command.partition("\n")
    more = f"  … {_counted(rest.count(chr(10)) + 1, 'more line')}" if rest else ""
    place = _from_root(_text(args, "dir_path", "directory"), root)
    within = f"  (in {place})" if place not in {"", "."} else ""
    behind = "  (in the background)" if args.get("is_background") is True else ""
    return f"{line(first)}{more}{within}{behind}"


def _read(args: _Args, root: str | None) -> str:
    first, last = args.get("start_line"), args.get("end_line")
    offset, limit = args.get("offset"), args.get("limit")
    if isinstance(offset, int) or isinstance(limit, int):
        first = offset + 1 if isinstance(offset, int) else 1
        last = first + limit - 1 if isinstance(limit, int) else None
    lines = ""
    if first is not None or last is not None:
        lines = f"lines {first or 1}-{last}" if last is not None else f"from line {first}"
    return _joined(_place(args, root), lines)


def _many(args: _Args, root: str | None) -> str:
    paths = args.get("include") or args.get("paths")
    if isinstance(paths, Sequence) and not isinstance(paths, str):
        return ", ".join(_from_root(compact(path), root) for path in paths)
    return compact(paths)


def _search(args: _Args, root: str | None) -> str:
    place = _place(args, root)
    within = f"in {place}" if place not in {"", "."} else ""
    pattern, names = _text(args, "pattern", "query"), _text(args, "include_pattern", "include")
    return " ".join(word for word in (f"'{pattern}'", within, f"({names})" if names else "") if word)


def _topic(args: _Args, _root: str | None) -> str:
    return ": ".join(filter(None, (_text(args, "title"), _text(args, "summary"))))


def _todo_count(args: _Args, _root: str | None) -> str:
    todos = args.get("todos")
    return _counted(len(todos), "item") if isinstance(todos, Sequence) and not isinstance(todos, str) else ""


def _questions(args: _Args, _root: str | None) -> str:
    return "; ".join(question.question for question in _asked(args))


def _agent_task(args: _Args, _root: str | None) -> str:
    task = _text(args, "prompt", "objective", "request", "question", "task", "query")
    return ": ".join(filter(None, (_text(args, "agent_name"), task)))


def _result(args: _Args, _root: str | None) -> str:
    return "" if any(isinstance(value, Mapping | list) for value in args.values()) else _plain(args, None)


def _plain(args: _Args, _root: str | None) -> str:
    """Name every argument, as far as a line goes."""
    return _listed({name: line(compact(value), LINE) for name, value in args.items()}, ", ")


def _listed(args: _Args, between: str) -> str:
    return between.join(f"{name}: {compact(value)}" if name else compact(value) for name, value in args.items())


def _row(
    icon: Icon,
    label: str,
    words: _Words,
    told: str = "",
    *,
    is_quiet: bool = False,
    has_outcome: bool = False,
) -> Presentation:
    return Presentation(icon, label, words, frozenset(told.split()), is_quiet, has_outcome)


_FILE = "file_path absolute_path path target_file"
_FOLDER = "dir_path path directory"
_AGENT = _row(Icon.AGENT, "Agent", _agent_task, "agent_name prompt objective request question task query")

TOOLS: dict[str, Presentation] = {
    "run_shell_command": _row(Icon.SHELL, "$", _shell, "dir_path directory is_background"),
    "list_background_processes": _row(Icon.SHELL, "Background processes", _plain),
    "read_background_output": _row(Icon.SHELL, "Background output", _named("pid"), "pid"),
    "read_file": _row(
        Icon.READ, "Read", _read, f"{_FILE} start_line end_line offset limit", is_quiet=True, has_outcome=True
    ),
    "read_many_files": _row(Icon.READ, "Read", _many, "include paths", is_quiet=True),
    "write_file": _row(Icon.WRITE, "Write", _place, f"{_FILE} content"),
    "replace": _row(Icon.EDIT, "Edit", _place, f"{_FILE} old_string new_string"),
    "delete_file": _row(Icon.EDIT, "Delete", _place, _FILE),
    "list_directory": _row(Icon.FOLDER, "List", _place, _FOLDER, is_quiet=True, has_outcome=True),
    "glob": _row(Icon.SEARCH, "Find", _search, f"pattern {_FOLDER}", is_quiet=True, has_outcome=True),
    "grep_search": _row(Icon.SEARCH, "Search", _search, f"pattern include include_pattern {_FOLDER}", has_outcome=True),
    "google_web_search": _row(Icon.WEB, "Web search", _named("query"), "query", has_outcome=True),
    "web_fetch": _row(Icon.WEB, "Fetch", _named("url", "prompt"), "url prompt", has_outcome=True),
    "list_mcp_resources": _row(Icon.MCP, "MCP resources", _named("serverName"), "serverName"),
    "read_mcp_resource": _row(Icon.MCP, "MCP resource", _named("uri"), "uri"),
    "get_internal_docs": _row(Icon.READ, "Manual", _named("path"), "path", is_quiet=True),
    "save_memory": _row(Icon.MEMORY, "Remember", _named("fact"), "fact", is_quiet=True),
    "update_topic": _row(Icon.PLAN, "Topic", _topic, "title summary", is_quiet=True),
    "write_todos": _row(Icon.TODOS, "Todos", _todo_count, "todos"),
    "enter_plan_mode": _row(Icon.PLAN, "Plan mode", _named("reason"), "reason", is_quiet=True),
    "exit_plan_mode": _row(Icon.PLAN, "Plan", _named("plan_filename", "plan_path"), "plan_filename plan_path"),
    "tracker_create_task": _row(Icon.TODOS, "New task", _named("title"), "title"),
    "tracker_update_task": _row(Icon.TODOS, "Update task", _plain),
    "tracker_get_task": _row(Icon.TODOS, "Task", _named("id"), "id"),
    "tracker_list_tasks": _row(Icon.TODOS, "Tasks", _plain),
    "tracker_add_dependency": _row(Icon.TODOS, "Task dependency", _plain),
    "tracker_visualize": _row(Icon.TODOS, "Task graph", _plain),
    "activate_skill": _row(Icon.PLAN, "Skill", _named("name"), "name", is_quiet=True),
    "ask_user": _row(Icon.QUESTION, "Ask", _questions, "questions"),
    "complete_task": _row(Icon.AGENT, "Result", _result, "report result"),
    **{row.name: _AGENT for row in ROWS if row.is_agent},
}
"""By the newest name of the tool; older names and display names lead there by the table in `pollux.tools`."""

_NEWEST = {row.display: row.name for row in ROWS}


def _presentation(call: ToolCall) -> Presentation:
    row = tool(call.name, call.display_name)
    if server := row.mcp_server or call.mcp_server:
        return _row(Icon.MCP, f"{server}/{row.mcp_tool or call.name}", _plain)
    known = TOOLS.get(_NEWEST.get(row.display, ""))
    if known is not None and known is not _AGENT:
        return known
    if known or call.agent_id or isinstance(call.display, AgentDisplay):
        name = "" if row.canonical == "agent" and row.name in {"invoke_agent", "delegate_to_agent"} else row.name
        return msgspec.structs.replace(_AGENT, label=f"Agent {name}".strip())
    return _row(Icon.OTHER, call.name, _plain)


def _outcome(call: ToolCall, presentation: Presentation, found: Sequence[Body]) -> str:
    """Say on the call's own line what came of it."""
    words: list[str] = []
    match call.display:
        case TextDisplay(text=text) if presentation.has_outcome and presentation.icon is not Icon.WEB:
            words.append(line(text, LINE) if call.status == "success" else "")
        case MatchDisplay(summary=summary) | FileDisplay(summary=summary):
            words.append(line(summary, LINE))
        case AgentDisplay() as agent:
            words.append(agent.state or "")
        case _:
            pass
    for body in found:
        match body:
            case Diff():
                words.append(f"{'new, ' if body.is_new else ''}+{body.added} -{body.removed}")
            case Todos():
                done = sum(todo.status == "completed" for todo in body.todos)
                words.append(f"{done}/{len(body.todos)} done")
            case _:
                pass
    if call.exit_code:
        words.append(f"exit {call.exit_code}")
    if call.status == "pending":
        words.append("no result recorded")
    elif call.status not in {"success", "error", *words}:
        words.append(call.status)
    return _joined(*words)


def _given(presentation: Presentation, args: _Args) -> Iterator[Body]:
    """Show the arguments that nothing else shows."""
    rest = {name: value for name, value in args.items() if name not in presentation.told}
    if presentation.words is _plain and len(_listed(args, ", ")) <= LINE:
        return
    if presentation.icon is Icon.SHELL:
        command = _text(rest, "command", "cmd").strip()
        rest = {name: value for name, value in rest.items() if name not in {"command", "cmd"}}
        if "\n" in command:
            yield Input(Excerpt(command), "sh")
    if rest:
        yield Input(Excerpt(_listed(rest, "\n")), "text")


def _found(call: ToolCall, presentation: Presentation, limits: Limits | None, notes: list[str]) -> Iterator[Body]:
    """Show what came back, and then what went wrong."""
    output = unwrapped(call.output, notes) if call.output else ""
    if call.name == "ask_user" or presentation.icon is Icon.QUESTION:
        yield from _answered(call, output)
    elif presentation.label == "Result":
        yield from _submitted(call, limits)
    else:
        yield from _shown(call, presentation, output, limits)
    if call.response is not None and (limits is None or not output):
        yield Data(shorten(pretty(call.response), limits))
    if call.error:
        error = unwrapped(call.error, notes).removeprefix("[Operation Cancelled] ")
        yield Output(shorten(error, limits), is_error=call.status != "cancelled")


def _shown(call: ToolCall, presentation: Presentation, output: str, limits: Limits | None) -> Iterator[Body]:
    """Show a result as the client did, else as the model got it, else as the arguments have it."""
    match call.display:
        case DiffDisplay() as display:
            yield _diff_from_display(display, limits)
        case ScreenDisplay(lines=lines):
            yield from _screen(lines, limits)
        case TodoDisplay(todos=todos):
            yield Todos(todos)
        case AgentDisplay() as agent:
            yield _agent(agent, output, limits)
        case MatchDisplay(matches=matches):
            shown, hidden = _first(matches, limits)
            yield Matches(tuple(_cut_match(found, limits) for found in shown), hidden)
        case FileDisplay(files=files):
            yield Files(*_first(files, limits))
        case UnknownDisplay(value=value):
            yield Data(shorten(pretty(value), limits))
        case TextDisplay(text=text) if text.strip() and not presentation.has_outcome:
            if not (call.error and call.status == "error"):  # the error says the same, and more
                yield Output(shorten(text, limits), is_markdown=call.markdown)
        case TextDisplay() | None:
            yield from _undisplayed(call, presentation, output, limits)
        case _:
            assert_never(call.display)


def _undisplayed(call: ToolCall, presentation: Presentation, output: str, limits: Limits | None) -> Iterator[Body]:
    if call.status == "success" and presentation.icon in {Icon.EDIT, Icon.WRITE, Icon.TODOS}:
        body = _body_from_args(call.args, limits)
        if body is not None:
            yield body
            return
    if presentation.icon is Icon.SHELL:
        output = _without_layout(output)
    if output:
        yield Output(shorten(output, limits), is_markdown=call.markdown)


def _submitted(call: ToolCall, limits: Limits | None) -> Iterator[Body]:
    """Show the result that a subagent hands in."""
    args = call.args if isinstance(call.args, Mapping) else {}
    result = args.get("result", args.get("report"))
    if isinstance(result, str):
        yield Output(shorten(result, limits), is_markdown=True)
    elif result is not None:
        yield Data(shorten(pretty(result), limits))


_T = TypeVar("_T")


def _first(items: tuple[_T, ...], limits: Limits | None) -> tuple[tuple[_T, ...], int]:
    if limits is None or len(items) <= limits.head + 1:
        return items, 0
    return items[: limits.head], len(items) - limits.head


def _cut_match(found: Match, limits: Limits | None) -> Match:
    if limits is None or len(found.text) <= LINE:
        return found
    return msgspec.structs.replace(found, text=found.text[:LINE] + "…")


def _agent(display: AgentDisplay, output: str, limits: Limits | None) -> Agent:
    activity, hidden = _first(display.activity, limits)
    result = display.result or output
    return Agent(display.name, activity, hidden, shorten(result, limits) if result else None)


def _screen(lines: tuple[tuple[Cell, ...], ...], limits: Limits | None) -> Iterator[Body]:
    """Show a screen without the empty lines at its end."""
    end = len(lines)
    while end and not any(cell.text.strip() or cell.bg for cell in lines[end - 1]):
        end -= 1
    lines = lines[:end] if limits is None else tuple(tuple(_cut_cells(cells)) for cells in lines[:end])
    if not lines:
        return
    if limits is None or end <= limits.head + limits.tail + 1:
        yield Screen(lines)
    else:
        yield Screen(lines[: limits.head], lines[end - limits.tail :], end - limits.head - limits.tail)


def _cut_cells(cells: tuple[Cell, ...]) -> Iterator[Cell]:
    room = LINE
    for cell in cells:
        yield cell if len(cell.text) <= room else msgspec.structs.replace(cell, text=cell.text[:room] + "…")
        room -= len(cell.text)
        if room <= 0:
            return


def _asked(args: _Args) -> Iterator[Question]:
    questions = args.get("questions")
    if not isinstance(questions, Sequence) or isinstance(questions, str):
        return
    for question in questions:
        if isinstance(question, Mapping):
            options = question.get("options")
            choices = options if isinstance(options, Sequence) and not isinstance(options, str) else ()
            labels = (_text(choice, "label") if isinstance(choice, Mapping) else compact(choice) for choice in choices)
            yield Question(_text(question, "question", "header"), tuple(labels))
        else:
            yield Question(compact(question))


def _answered(call: ToolCall, output: str) -> Iterator[Body]:
    """Pair questions with answers; the model gets `{"answers": {"0": "Red"}}`."""
    try:
        answers = json.loads(output).get("answers", {})
        given = {int(index): compact(answer) for index, answer in answers.items()}
    except (ValueError, AttributeError):
        given = {}
        if output:
            yield Output(Excerpt(output))
    args = call.args if isinstance(call.args, Mapping) else {}
    asked = tuple(
        msgspec.structs.replace(question, answer=given.get(index, "")) for index, question in enumerate(_asked(args))
    )
    if asked:
        yield Questions(asked)


_LAYOUT_HEAD = re.compile(r"(?:Command: .*\n(?:Directory: .*\n)?)?(?:Output|Stdout): ")
_LAYOUT_FOOT = re.compile(
    r"\n(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID|Stderr): (?:\(none\)|\(empty\)|[^\n]*)\Z"
)


def _without_layout(output: str) -> str:
    """Take the field names off what the shell tool tells the model."""
    head = _LAYOUT_HEAD.match(output)
    if head is None:
        return output
    body = output[head.end() :]
    while foot := _LAYOUT_FOOT.search(body, max(0, body.rfind("\n"))):
        body = body[: foot.start()]
    return "" if body.strip() in {"(empty)", "(none)"} else body


_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_LONG_DIFF = 2_000
"""Lines above which old and new text are not compared but simply shown: comparing takes the square of them."""


def _diff_from_display(display: DiffDisplay, limits: Limits | None) -> Diff:
    lines = tuple(_parsed(display.diff))
    return _diff(display.file_path or display.file_name, lines, limits, is_new=display.is_new is True)


def _body_from_args(args: Json, limits: Limits | None) -> Body | None:
    """Rebuild what releases up to 0.24 did not record: the diff of an edit, a list of things to do."""
    if not isinstance(args, Mapping):
        return None
    match args:
        case {"old_string": str(old), "new_string": str(new)}:
            return _diff(_place(args, None), tuple(_compared(old, new)), limits)
        case {"content": str(content)}:
            lines = (DiffLine(Change.ADD, text, None, n) for n, text in enumerate(content.splitlines(), 1))
            return _diff(_place(args, None), tuple(lines), limits)
        case {"todos": [*todos]}:
            return Todos(
                tuple(
                    Todo(_text(todo, "description"), _text(todo, "status"))
                    for todo in todos
                    if isinstance(todo, Mapping)
                )
            )
        case _:
            return None


def _compared(old: str, new: str) -> Iterator[DiffLine]:
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _LONG_DIFF:
        yield from (DiffLine(Change.DELETE, text) for text in before)
        yield from (DiffLine(Change.ADD, text) for text in after)
        return
    for parsed in _parsed("\n".join(difflib.unified_diff(before, after, lineterm=""))):
        # Where in the file this stands is not recorded.
        if parsed.change is not Change.HUNK:
            yield DiffLine(parsed.change, parsed.text)


def _parsed(diff: str) -> Iterator[DiffLine]:
    """Read a unified diff; what stands before its first hunk is only its file's name."""
    old = new = 0
    is_inside = False
    for text in diff.removesuffix("\n").split("\n"):
        if found := _HUNK.match(text):
            old, new, is_inside = int(found[1]), int(found[2]), True
            yield DiffLine(Change.HUNK, text)
        elif not is_inside:
            continue
        elif text.startswith("+"):
            yield DiffLine(Change.ADD, text[1:], None, new)
            new += 1
        elif text.startswith("-"):
            yield DiffLine(Change.DELETE, text[1:], old)
            old += 1
        elif text.startswith("\\"):
            yield DiffLine(Change.CONTEXT, text)
        else:
            yield DiffLine(Change.CONTEXT, text[1:], old, new)
            old, new = old + 1, new + 1


def _diff(path: str, lines: tuple[DiffLine, ...], limits: Limits | None, *, is_new: bool = False) -> Diff:
    added = sum(each.change is Change.ADD for each in lines)
    removed = sum(each.change is Change.DELETE for each in lines)
    hidden = 0
    if limits is not None:
        room = 2 * (limits.head + limits.tail)
        if len(lines) > room + 1:
            lines, hidden = lines[:room], len(lines) - room
        lines = tuple(_cut_line(each) for each in lines)
    return Diff(path, lines, added, removed, is_new, hidden)


def _cut_line(each: DiffLine) -> DiffLine:
    return each if len(each.text) <= LINE else msgspec.structs.replace(each, text=each.text[:LINE] + "…")
