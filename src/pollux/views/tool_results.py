"""The result of a tool call as bodies, without the texts that the client wraps around an output.

The client's display of a result comes first, then what the model received, then (for edits of old releases) the
arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeVar, assert_never

import msgspec

from pollux.model import (
    AgentDisplay,
    Cell,
    DiffDisplay,
    FileDisplay,
    GrepMatch,
    Json,
    MatchDisplay,
    ScreenDisplay,
    TextDisplay,
    Todo,
    TodoDisplay,
    ToolCall,
    UnknownDisplay,
)
from pollux.views.bodies import Agent, Body, Data, FileList, Matches, Output, Questions, Screen, Todos
from pollux.views.diffs import diff_from_content, diff_from_display, diff_from_texts
from pollux.views.excerpts import LINE, Excerpt, Limits, compact, folded_items, pretty, shorten
from pollux.views.tools import Icon, ToolPresentation, argument, path_argument, questions_asked

_T = TypeVar("_T")

_FULL_OUTPUT = re.compile(r"(?:For full output see|Full output available at|Full string saved to): *([^\n\]]+)")
_PATH_WINDOW = 2000
"""Characters at either end of a masked output in which the path of the full output is searched."""
_LAYOUT_HEAD = re.compile(r"(?:Command: .*\n(?:Directory: .*\n)?)?(?:Output|Stdout): ")
_LAYOUT_FOOT = re.compile(
    r"\n(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID|Stderr): (?:\(none\)|\(empty\)|[^\n]*)\Z"
)


def result_bodies(
    call: ToolCall, presentation: ToolPresentation, limits: Limits | None, notes: list[str]
) -> Iterator[Body]:
    """Yield the result of a call, then its error; append to `notes` what the client did to the output."""
    output = unwrap_output(call.output, notes) if call.output else ""
    if call.name == "ask_user" or presentation.icon is Icon.QUESTION:
        yield from _answers(call, output)
    elif presentation.label == "Result":
        yield from _agent_result(call, limits)
    else:
        yield from _display(call, presentation, output, limits)
    if call.response is not None and (limits is None or not output):
        yield Data(shorten(pretty(call.response), limits))
    if call.error:
        error = unwrap_output(call.error, notes).removeprefix("[Operation Cancelled] ")
        yield Output(shorten(error, limits), is_error=call.status != "cancelled")


def unwrap_output(text: str, notes: list[str]) -> str:
    """Return an output without the client's tags; append to `notes` whether it was masked or shortened."""
    text = _without_tag(text.strip(), "untrusted_context")
    inner = _without_tag(text, "tool_output_masked")
    if inner is not text:
        text = inner
        path = _FULL_OUTPUT.search(text[-_PATH_WINDOW:]) or _FULL_OUTPUT.search(text[:_PATH_WINDOW])
        notes.append(_note("masked by Gemini CLI to save context", path))
    if text.startswith("Output too large"):
        first_line, _, text = text.partition("\n")
        notes.append(_note("shortened by Gemini CLI", _FULL_OUTPUT.search(first_line)))
    return text


def strip_shell_fields(output: str) -> str:
    """Return a shell output without the field names that the client writes for the model."""
    head = _LAYOUT_HEAD.match(output)
    if head is None:
        return output
    start, end = head.end(), len(output)  # sliced once at the end: an output may end with thousands of such lines
    while foot := _LAYOUT_FOOT.search(output, max(start, output.rfind("\n", start, end)), end):
        end = foot.start()
    body = output[start:end]
    return "" if body.strip() in {"(empty)", "(none)"} else body


def _note(text: str, path: re.Match[str] | None) -> str:
    return f"{text}; full output: {path[1].strip()}" if path else text


def _without_tag(text: str, tag: str) -> str:
    if text.startswith(f"<{tag}>") and text.endswith(f"</{tag}>"):
        return text[len(tag) + 2 : -len(tag) - 3].strip("\n")
    return text


def _display(call: ToolCall, presentation: ToolPresentation, output: str, limits: Limits | None) -> Iterator[Body]:
    match call.display:
        case DiffDisplay() as display:
            yield diff_from_display(display, limits)
        case ScreenDisplay(lines=lines):
            yield from _screen(lines, limits)
        case TodoDisplay(todos=todos):
            yield Todos(todos)
        case AgentDisplay() as display:
            activity, hidden, folded = _first(display.activity, limits)
            result = display.result or output
            yield Agent(display.name, activity, hidden, shorten(result, limits) if result else None, folded)
        case MatchDisplay(matches=matches):
            yield Matches(*_first(tuple(_cut_match(match, limits) for match in matches), limits))
        case FileDisplay(files=files):
            yield FileList(*_first(files, limits))
        case UnknownDisplay(value=value):
            yield Data(shorten(pretty(value), limits))
        case TextDisplay(text=text) if text.strip() and not presentation.has_outcome:
            if not (call.error and call.status == "error"):  # the error contains the same text, and more
                yield Output(shorten(text, limits), is_markdown=call.markdown)
        case TextDisplay() | None:
            yield from _without_display(call, presentation, output, limits)
        case _:
            assert_never(call.display)


def _without_display(
    call: ToolCall, presentation: ToolPresentation, output: str, limits: Limits | None
) -> Iterator[Body]:
    if call.status == "success" and presentation.icon in {Icon.EDIT, Icon.WRITE, Icon.TODOS}:
        body = _body_from_args(call.args, limits)
        if body is not None:
            yield body
            return
    if presentation.icon is Icon.SHELL:
        output = strip_shell_fields(output)
    if output:
        yield Output(shorten(output, limits), is_markdown=call.markdown)


def _body_from_args(args: Json, limits: Limits | None) -> Body | None:
    """Rebuild what releases up to 0.24 did not record: the diff of an edit, a list of todos."""
    if not isinstance(args, Mapping):
        return None
    match args:
        case {"old_string": str(old), "new_string": str(new)}:
            return diff_from_texts(path_argument(args, None), old, new, limits)
        case {"content": str(content)}:
            return diff_from_content(path_argument(args, None), content, limits)
        case {"todos": [*items]}:
            todos = [item for item in items if isinstance(item, Mapping)]
            return Todos(tuple(Todo(argument(todo, "description"), argument(todo, "status")) for todo in todos))
        case _:
            return None


def _agent_result(call: ToolCall, limits: Limits | None) -> Iterator[Body]:
    """Yield the result that a subagent returns with `complete_task`."""
    args = call.args if isinstance(call.args, Mapping) else {}
    result = args.get("result", args.get("report"))
    if isinstance(result, str):
        yield Output(shorten(result, limits), is_markdown=True)
    elif result is not None:
        yield Data(shorten(pretty(result), limits))


def _first(items: tuple[_T, ...], limits: Limits | None) -> tuple[tuple[_T, ...], int, tuple[_T, ...]]:
    """Return the items to show, the number of hidden ones and, if the limits keep them, these."""
    if limits is None or len(items) <= limits.head + 1:
        return items, 0, ()
    hidden = items[limits.head :]
    return items[: limits.head], len(hidden), folded_items(hidden, limits)


def _cut_match(match: GrepMatch, limits: Limits | None) -> GrepMatch:
    if limits is None or len(match.text) <= LINE:
        return match
    return msgspec.structs.replace(match, text=match.text[:LINE] + "…")


def _screen(lines: tuple[tuple[Cell, ...], ...], limits: Limits | None) -> Iterator[Body]:
    end = len(lines)
    while end and not any(cell.text.strip() or cell.bg for cell in lines[end - 1]):
        end -= 1
    lines = lines[:end] if limits is None else tuple(tuple(_cut_cells(cells)) for cells in lines[:end])
    if not lines:
        return
    if limits is None or end <= limits.head + limits.tail + 1:
        yield Screen(lines)
    else:
        hidden = lines[limits.head : end - limits.tail]
        yield Screen(lines[: limits.head], lines[end - limits.tail :], len(hidden), folded_items(hidden, limits))


def _cut_cells(cells: tuple[Cell, ...]) -> Iterator[Cell]:
    room = LINE
    for cell in cells:
        yield cell if len(cell.text) <= room else msgspec.structs.replace(cell, text=cell.text[:room] + "…")
        room -= len(cell.text)
        if room <= 0:
            return


def _answers(call: ToolCall, output: str) -> Iterator[Body]:
    """Yield the questions with their answers, of which the model receives `{"answers": {"0": "Red"}}`."""
    answers: dict[int, str] = {}
    try:
        recorded = json.loads(output).get("answers", {})
        answers = {int(index): compact(answer) for index, answer in recorded.items()}
    except (ValueError, AttributeError, RecursionError):
        if output:
            yield Output(Excerpt(output))
    args = call.args if isinstance(call.args, Mapping) else {}
    questions = tuple(
        msgspec.structs.replace(question, answer=answers.get(index, ""))
        for index, question in enumerate(questions_asked(args))
    )
    if questions:
        yield Questions(questions)
