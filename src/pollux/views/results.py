"""What came of a tool call, as bodies.

It comes from the client's display of the result, else from what the model was given, else (edits of old releases) from
the arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeVar, assert_never

import msgspec

from pollux.model import (
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
from pollux.views.arguments import argument, path_argument, questions_asked
from pollux.views.bodies import Agent, Body, Data, Files, Matches, Output, Questions, Screen, Todos
from pollux.views.diffs import diff_from_content, diff_from_display, diff_from_texts
from pollux.views.excerpts import LINE, Excerpt, Limits, compact, pretty, shorten
from pollux.views.presentations import Icon, Presentation
from pollux.views.wrappings import unwrapped, without_layout

_T = TypeVar("_T")


def results(call: ToolCall, presentation: Presentation, limits: Limits | None, notes: list[str]) -> Iterator[Body]:
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
            yield diff_from_display(display, limits)
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
        output = without_layout(output)
    if output:
        yield Output(shorten(output, limits), is_markdown=call.markdown)


def _body_from_args(args: Json, limits: Limits | None) -> Body | None:
    """Rebuild what releases up to 0.24 did not record: the diff of an edit, a list of things to do."""
    if not isinstance(args, Mapping):
        return None
    match args:
        case {"old_string": str(old), "new_string": str(new)}:
            return diff_from_texts(path_argument(args, None), old, new, limits)
        case {"content": str(content)}:
            return diff_from_content(path_argument(args, None), content, limits)
        case {"todos": [*todos]}:
            return Todos(
                tuple(
                    Todo(argument(todo, "description"), argument(todo, "status"))
                    for todo in todos
                    if isinstance(todo, Mapping)
                )
            )
        case _:
            return None


def _submitted(call: ToolCall, limits: Limits | None) -> Iterator[Body]:
    """Show the result that a subagent hands in."""
    args = call.args if isinstance(call.args, Mapping) else {}
    result = args.get("result", args.get("report"))
    if isinstance(result, str):
        yield Output(shorten(result, limits), is_markdown=True)
    elif result is not None:
        yield Data(shorten(pretty(result), limits))


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


def _answered(call: ToolCall, output: str) -> Iterator[Body]:
    """Pair questions with answers; the model gets `{"answers": {"0": "Red"}}`."""
    try:
        answers = json.loads(output).get("answers", {})
        given = {int(index): compact(answer) for index, answer in answers.items()}
    except (ValueError, AttributeError, RecursionError):
        given = {}
        if output:
            yield Output(Excerpt(output))
    args = call.args if isinstance(call.args, Mapping) else {}
    asked = enumerate(questions_asked(args))
    questions = tuple(msgspec.structs.replace(question, answer=given.get(index, "")) for index, question in asked)
    if questions:
        yield Questions(questions)
