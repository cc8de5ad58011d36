"""Names, icons and one-line summaries of tool calls: the table `TOOLS`, which every screen and export reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

import msgspec

from pollux.formats.tools import ROWS, tool
from pollux.model import AgentDisplay, Json, ToolCall
from pollux.sessions.projects.paths import from_root
from pollux.text.numbers import plural
from pollux.views.bodies import Question
from pollux.views.excerpts import LINE, compact, line

Args: TypeAlias = Mapping[str, Json]
Summarize: TypeAlias = "Callable[[Args, str | None], str]"


class Icon(StrEnum):
    """The kind of work a call does, for renderers with pictures."""

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


class ToolPresentation(msgspec.Struct, frozen=True):
    """How calls of one tool are shown."""

    icon: Icon
    label: str
    summarize: Summarize
    """Returns the arguments in one line; its second argument is the project's folder."""
    covered: frozenset[str] = frozenset()
    """Arguments that the line or the result already shows."""
    is_quiet: bool = False
    """Whether the line says enough, so that only full detail shows the result."""
    has_outcome: bool = False
    """Whether the client's display is a line about the result (`Found 8 matches`) and not the result itself."""


def argument(args: Args, *names: str) -> str:
    """Return the first of these arguments that is not empty, on one line."""
    for name in names:
        value = args.get(name)
        if value not in (None, "", [], {}):
            return compact(value)
    return ""


def path_argument(args: Args, root: str | None) -> str:
    """Return the file or folder of a call, relative to the project's folder."""
    return from_root(argument(args, "file_path", "absolute_path", "dir_path", "path", "directory", "target_file"), root)


def questions_asked(args: Args) -> Iterator[Question]:
    """Yield the questions of an `ask_user` call, without answers."""
    for question in _list(args.get("questions")):
        if isinstance(question, Mapping):
            choices = tuple(map(_choice_label, _list(question.get("options"))))
            yield Question(argument(question, "question", "header"), choices)
        else:
            yield Question(compact(question))


def list_arguments(args: Args, separator: str) -> str:
    """Return `name: value` for each argument; a value without a name is written alone."""
    return separator.join(f"{name}: {compact(value)}" if name else compact(value) for name, value in args.items())


def summarize_any(args: Args, _root: str | None = None) -> str:
    """Return every argument of a tool that the table does not know, each cut to the length of a line."""
    return list_arguments({name: line(compact(value), LINE) for name, value in args.items()}, ", ")


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _choice_label(choice: Json) -> str:
    return argument(choice, "label") if isinstance(choice, Mapping) else compact(choice)


def _first_of(*names: str) -> Summarize:
    return lambda args, _root: argument(args, *names)


def _shell(args: Args, root: str | None) -> str:
    command, _, more_lines = argument(args, "command", "cmd").strip().partition("\n")
    summary = line(command)
    if more_lines:
        summary += f"  … {plural(more_lines.count(chr(10)) + 1, 'more line')}"
    folder = from_root(argument(args, "dir_path", "directory"), root)
    if folder not in {"", "."}:
        summary += f"  (in {folder})"
    if args.get("is_background") is True:
        summary += "  (in the background)"
    return summary


def _read(args: Args, root: str | None) -> str:
    first, last = args.get("start_line"), args.get("end_line")
    offset, limit = args.get("offset"), args.get("limit")
    if isinstance(offset, int) or isinstance(limit, int):
        first = offset + 1 if isinstance(offset, int) else 1
        last = first + limit - 1 if isinstance(limit, int) else None
    lines = ""
    if last is not None:
        lines = f"lines {first or 1}-{last}"
    elif first is not None:
        lines = f"from line {first}"
    return ", ".join(filter(None, (path_argument(args, root), lines)))


def _read_many(args: Args, root: str | None) -> str:
    paths = args.get("include") or args.get("paths")
    if isinstance(paths, Sequence) and not isinstance(paths, str):
        return ", ".join(from_root(compact(path), root) for path in paths)
    return compact(paths)


def _search(args: Args, root: str | None) -> str:
    summary = f"'{argument(args, 'pattern', 'query')}'"
    folder = path_argument(args, root)
    if folder not in {"", "."}:
        summary += f" in {folder}"
    names = argument(args, "include_pattern", "include")
    return f"{summary} ({names})" if names else summary


def _topic(args: Args, _root: str | None) -> str:
    return ": ".join(filter(None, (argument(args, "title"), argument(args, "summary"))))


def _todo_count(args: Args, _root: str | None) -> str:
    todos = args.get("todos")
    return plural(len(todos), "item") if isinstance(todos, Sequence) and not isinstance(todos, str) else ""


def _questions(args: Args, _root: str | None) -> str:
    return "; ".join(question.question for question in questions_asked(args))


def _agent_task(args: Args, _root: str | None) -> str:
    task = argument(args, "prompt", "objective", "request", "question", "task", "query")
    return ": ".join(filter(None, (argument(args, "agent_name"), task)))


def _agent_result(args: Args, _root: str | None) -> str:
    return "" if any(isinstance(value, Mapping | list) for value in args.values()) else summarize_any(args)


def _row(
    icon: Icon,
    label: str,
    summarize: Summarize,
    covered: str = "",
    *,
    is_quiet: bool = False,
    has_outcome: bool = False,
) -> ToolPresentation:
    return ToolPresentation(icon, label, summarize, frozenset(covered.split()), is_quiet, has_outcome)


_FILE = "file_path absolute_path path target_file"
_FOLDER = "dir_path path directory"
_AGENT = _row(Icon.AGENT, "Agent", _agent_task, "agent_name prompt objective request question task query")
TOOLS: dict[str, ToolPresentation] = {
    "run_shell_command": _row(Icon.SHELL, "Shell", _shell, "dir_path directory is_background"),
    "list_background_processes": _row(Icon.SHELL, "Background processes", summarize_any),
    "read_background_output": _row(Icon.SHELL, "Background output", _first_of("pid"), "pid"),
    "read_file": _row(
        Icon.READ, "Read", _read, f"{_FILE} start_line end_line offset limit", is_quiet=True, has_outcome=True
    ),
    "read_many_files": _row(Icon.READ, "Read", _read_many, "include paths", is_quiet=True),
    "write_file": _row(Icon.WRITE, "Write", path_argument, f"{_FILE} content"),
    "replace": _row(Icon.EDIT, "Edit", path_argument, f"{_FILE} old_string new_string"),
    "delete_file": _row(Icon.EDIT, "Delete", path_argument, _FILE),
    "list_directory": _row(Icon.FOLDER, "List", path_argument, _FOLDER, is_quiet=True, has_outcome=True),
    "glob": _row(Icon.SEARCH, "Find", _search, f"pattern {_FOLDER}", is_quiet=True, has_outcome=True),
    "grep_search": _row(Icon.SEARCH, "Search", _search, f"pattern include include_pattern {_FOLDER}", has_outcome=True),
    "google_web_search": _row(Icon.WEB, "Web search", _first_of("query"), "query", has_outcome=True),
    "web_fetch": _row(Icon.WEB, "Fetch", _first_of("url", "prompt"), "url prompt", has_outcome=True),
    "list_mcp_resources": _row(Icon.MCP, "MCP resources", _first_of("serverName"), "serverName"),
    "read_mcp_resource": _row(Icon.MCP, "MCP resource", _first_of("uri"), "uri"),
    "get_internal_docs": _row(Icon.READ, "Manual", _first_of("path"), "path", is_quiet=True),
    "save_memory": _row(Icon.MEMORY, "Remember", _first_of("fact"), "fact", is_quiet=True),
    "update_topic": _row(Icon.PLAN, "Topic", _topic, "title summary", is_quiet=True),
    "write_todos": _row(Icon.TODOS, "Todos", _todo_count, "todos"),
    "enter_plan_mode": _row(Icon.PLAN, "Plan mode", _first_of("reason"), "reason", is_quiet=True),
    "exit_plan_mode": _row(Icon.PLAN, "Plan", _first_of("plan_filename", "plan_path"), "plan_filename plan_path"),
    "tracker_create_task": _row(Icon.TODOS, "New task", _first_of("title"), "title"),
    "tracker_update_task": _row(Icon.TODOS, "Update task", summarize_any),
    "tracker_get_task": _row(Icon.TODOS, "Task", _first_of("id"), "id"),
    "tracker_list_tasks": _row(Icon.TODOS, "Tasks", summarize_any),
    "tracker_add_dependency": _row(Icon.TODOS, "Task dependency", summarize_any),
    "tracker_visualize": _row(Icon.TODOS, "Task graph", summarize_any),
    "activate_skill": _row(Icon.PLAN, "Skill", _first_of("name"), "name", is_quiet=True),
    "ask_user": _row(Icon.QUESTION, "Ask", _questions, "questions"),
    "complete_task": _row(Icon.AGENT, "Result", _agent_result, "report result"),
    **{row.name: _AGENT for row in ROWS if row.is_agent},
}
"""By the newest name of the tool; `pollux.formats.tools` maps older names and display names to it."""
_NAME_BY_DISPLAY = {row.display: row.name for row in ROWS}
_TITLES = {row.label: TOOLS[row.name].label for row in reversed(ROWS) if row.name in TOOLS and not row.is_agent}


def presentation_of(call: ToolCall) -> ToolPresentation:
    """Return the row of a call's tool; MCP servers, agents and unknown tools get one of their own."""
    row = tool(call.name, call.display_name)
    if server := row.mcp_server or call.mcp_server:
        return _row(Icon.MCP, f"{server}/{row.mcp_tool or call.name}", summarize_any)
    presentation = TOOLS.get(_NAME_BY_DISPLAY.get(row.display, ""))
    if presentation is not None and presentation is not _AGENT:
        return presentation
    if presentation or call.agent_id or isinstance(call.display, AgentDisplay):
        return msgspec.structs.replace(_AGENT, label=_agent_label(row.name, row.canonical))
    return _row(Icon.OTHER, call.name, summarize_any)


def title_of_label(label: str) -> str:
    """Return the name that a transcript shows for a tool which reports count under this label."""
    row = tool(label)
    if row.mcp_server:
        return f"{row.mcp_server}/{row.mcp_tool}"
    if row.is_agent:
        return _agent_label(row.name, row.canonical)
    presentation = TOOLS.get(_NAME_BY_DISPLAY.get(row.display, ""))
    return presentation.label if presentation else _TITLES.get(label, label)


def _agent_label(name: str, canonical: str) -> str:
    is_generic = canonical == "agent" and name in {"invoke_agent", "delegate_to_agent"}
    return "Agent" if is_generic else f"Agent {name}"
