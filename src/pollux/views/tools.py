"""How a tool call is told: one line on what it did, and what there is to see of it.

The line comes from the call's arguments by the table `TOOLS`; what there is to see comes from `results`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pollux.formats.tools import ROWS, tool
from pollux.model import AgentDisplay, FileDisplay, MatchDisplay, TextDisplay, ToolCall
from pollux.sessions.projects.paths import from_root
from pollux.views.arguments import Args, argument, path_argument, questions_asked
from pollux.views.bodies import Body, Input, Todos
from pollux.views.diffs import Diff
from pollux.views.excerpts import LINE, Excerpt, Limits, compact, counted, line
from pollux.views.presentations import Icon, Presentation, Words
from pollux.views.results import results


class Summary(msgspec.Struct, frozen=True):
    """A call in one line: `label text`, then what came of it."""

    icon: Icon
    label: str
    text: str
    outcome: str = ""


class Telling(msgspec.Struct, frozen=True):
    """A call as it is told."""

    summary: Summary
    bodies: tuple[Body, ...] = ()
    notes: tuple[str, ...] = ()
    """What the client did to the output before anybody could read it."""


def tell(call: ToolCall, *, limits: Limits | None = None, root: str | None = None) -> Telling:
    """Tell a call; without limits nothing is shortened, and what `root` holds is named from there."""
    presentation = _presentation(call)
    notes: list[str] = []
    found = tuple(results(call, presentation, limits, notes))
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


def is_failed(call: ToolCall) -> bool:
    """Tell whether a call failed; a command that did counts as success in the client's eyes."""
    return call.status == "error" or call.exit_code not in {None, 0}


def _joined(*words: str) -> str:
    return ", ".join(word for word in words if word)


def _named(*names: str) -> Words:
    return lambda args, _root: argument(args, *names)


def _shell(args: Args, root: str | None) -> str:
    command = argument(args, "command", "cmd").strip()
    first, _, rest = command.partition("\n")
    more = f"  … {counted(rest.count(chr(10)) + 1, 'more line')}" if rest else ""
    place = from_root(argument(args, "dir_path", "directory"), root)
    within = f"  (in {place})" if place not in {"", "."} else ""
    behind = "  (in the background)" if args.get("is_background") is True else ""
    return f"{line(first)}{more}{within}{behind}"


def _read(args: Args, root: str | None) -> str:
    first, last = args.get("start_line"), args.get("end_line")
    offset, limit = args.get("offset"), args.get("limit")
    if isinstance(offset, int) or isinstance(limit, int):
        first = offset + 1 if isinstance(offset, int) else 1
        last = first + limit - 1 if isinstance(limit, int) else None
    lines = ""
    if first is not None or last is not None:
        lines = f"lines {first or 1}-{last}" if last is not None else f"from line {first}"
    return _joined(path_argument(args, root), lines)


def _many(args: Args, root: str | None) -> str:
    paths = args.get("include") or args.get("paths")
    if isinstance(paths, Sequence) and not isinstance(paths, str):
        return ", ".join(from_root(compact(path), root) for path in paths)
    return compact(paths)


def _search(args: Args, root: str | None) -> str:
    place = path_argument(args, root)
    within = f"in {place}" if place not in {"", "."} else ""
    pattern, names = argument(args, "pattern", "query"), argument(args, "include_pattern", "include")
    return " ".join(word for word in (f"'{pattern}'", within, f"({names})" if names else "") if word)


def _topic(args: Args, _root: str | None) -> str:
    return ": ".join(filter(None, (argument(args, "title"), argument(args, "summary"))))


def _todo_count(args: Args, _root: str | None) -> str:
    todos = args.get("todos")
    return counted(len(todos), "item") if isinstance(todos, Sequence) and not isinstance(todos, str) else ""


def _questions(args: Args, _root: str | None) -> str:
    return "; ".join(question.question for question in questions_asked(args))


def _agent_task(args: Args, _root: str | None) -> str:
    task = argument(args, "prompt", "objective", "request", "question", "task", "query")
    return ": ".join(filter(None, (argument(args, "agent_name"), task)))


def _result(args: Args, _root: str | None) -> str:
    return "" if any(isinstance(value, Mapping | list) for value in args.values()) else _plain(args, None)


def _plain(args: Args, _root: str | None) -> str:
    """Name every argument, as far as a line goes."""
    return _listed({name: line(compact(value), LINE) for name, value in args.items()}, ", ")


def _listed(args: Args, between: str) -> str:
    return between.join(f"{name}: {compact(value)}" if name else compact(value) for name, value in args.items())


def _row(
    icon: Icon,
    label: str,
    words: Words,
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
    "write_file": _row(Icon.WRITE, "Write", path_argument, f"{_FILE} content"),
    "replace": _row(Icon.EDIT, "Edit", path_argument, f"{_FILE} old_string new_string"),
    "delete_file": _row(Icon.EDIT, "Delete", path_argument, _FILE),
    "list_directory": _row(Icon.FOLDER, "List", path_argument, _FOLDER, is_quiet=True, has_outcome=True),
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
"""By the newest name of the tool; older names and display names lead there by the table in `pollux.formats.tools`."""
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


def _given(presentation: Presentation, args: Args) -> Iterator[Body]:
    """Show the arguments that nothing else shows."""
    rest = {name: value for name, value in args.items() if name not in presentation.told}
    if presentation.words is _plain and len(_listed(args, ", ")) <= LINE:
        return
    if presentation.icon is Icon.SHELL:
        command = argument(rest, "command", "cmd").strip()
        rest = {name: value for name, value in rest.items() if name not in {"command", "cmd"}}
        if "\n" in command:
            yield Input(Excerpt(command), "sh")
    if rest:
        yield Input(Excerpt(_listed(rest, "\n")), "text")
