"""A tool call as it is shown: one line about what it did, then its arguments and its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pollux.model import AgentDisplay, FileDisplay, MatchDisplay, TextDisplay, ToolCall
from pollux.views.bodies import Body, Input, Todos
from pollux.views.diffs import Diff
from pollux.views.excerpts import LINE, Excerpt, Limits, line
from pollux.views.tool_results import result_bodies
from pollux.views.tools import Args, Icon, ToolPresentation, argument, list_arguments, presentation_of, summarize_any


class ToolSummary(msgspec.Struct, frozen=True):
    """A call in one line: `label text`, then its outcome."""

    icon: Icon
    label: str
    text: str
    outcome: str = ""


class ToolView(msgspec.Struct, frozen=True):
    """A described call."""

    summary: ToolSummary
    bodies: tuple[Body, ...] = ()
    notes: tuple[str, ...] = ()
    """What the client did to the output before it recorded it."""


def describe_call(call: ToolCall, *, limits: Limits | None = None, root: str | None = None) -> ToolView:
    """Describe a call; without limits nothing is shortened, and paths below `root` are relative to it."""
    presentation = presentation_of(call)
    notes: list[str] = []
    bodies = tuple(result_bodies(call, presentation, limits, notes))
    args: Args = {}
    if isinstance(call.args, Mapping):
        args = call.args
    elif call.args is not None:
        args = {"": call.args}
    is_cut = limits is not None or presentation.summarize is summarize_any
    text = line(presentation.summarize(args, root), LINE if is_cut else None)
    summary = ToolSummary(presentation.icon, presentation.label, text, _outcome(call, presentation, bodies))
    if limits is None:
        bodies = (*_inputs(presentation, args), *bodies)
    elif presentation.is_quiet and call.status == "success":
        bodies = ()
    return ToolView(summary, bodies, tuple(notes))


def is_failed(call: ToolCall) -> bool:
    """Return whether a call failed; the client records a command that exits with an error as a success."""
    return call.status == "error" or call.exit_code not in {None, 0}


def _outcome(call: ToolCall, presentation: ToolPresentation, bodies: Sequence[Body]) -> str:
    outcomes: list[str] = []
    match call.display:
        case TextDisplay(text=text) if presentation.has_outcome and presentation.icon is not Icon.WEB:
            outcomes.append(line(text, LINE) if call.status == "success" else "")
        case MatchDisplay(summary=summary) | FileDisplay(summary=summary):
            outcomes.append(line(summary, LINE))
        case AgentDisplay() as agent:
            outcomes.append(agent.state or "")
        case _:
            pass
    for body in bodies:
        match body:
            case Diff():
                outcomes.append(f"{'new, ' if body.is_new else ''}+{body.added} -{body.removed}")
            case Todos():
                done = sum(todo.status == "completed" for todo in body.todos)
                outcomes.append(f"{done}/{len(body.todos)} done")
            case _:
                pass
    if call.exit_code:
        outcomes.append(f"exit {call.exit_code}")
    if call.status == "pending":
        outcomes.append("no result recorded")
    elif call.status not in {"success", "error", *outcomes}:
        outcomes.append(call.status)
    return ", ".join(filter(None, outcomes))


def _inputs(presentation: ToolPresentation, args: Args) -> Iterator[Body]:
    """Yield the arguments that neither the line nor the result shows."""
    if presentation.summarize is summarize_any and len(list_arguments(args, ", ")) <= LINE:
        return
    args = {name: value for name, value in args.items() if name not in presentation.covered}
    if presentation.icon is Icon.SHELL:
        command = argument(args, "command", "cmd").strip()
        args = {name: value for name, value in args.items() if name not in {"command", "cmd"}}
        if "\n" in command:
            yield Input(Excerpt(command), "sh")
    if args:
        yield Input(Excerpt(list_arguments(args, "\n")), "text")
