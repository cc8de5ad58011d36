"""The input and result of a tool call as rows for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from rich.text import Text

from pollux.model import Cell, ScreenDisplay
from pollux.render.terminal.layout import LONG_LINE, PageFormat, Row
from pollux.render.terminal.screen import screen_text
from pollux.text.numbers import plural
from pollux.views.bodies import Agent, Body, Data, FileList, Input, Matches, Output, Questions, Screen, Todos
from pollux.views.diffs import Diff, LineChange
from pollux.views.excerpts import Excerpt

_TODO = {
    "completed": ("✔", "green"),
    "in_progress": ("▶", "bold bright_magenta"),
    "pending": ("○", ""),
    "cancelled": ("✗", "dim"),
    "blocked": ("!", "bright_red"),
}
_ACTIVITY = {"completed": ("✓", "dim"), "error": ("✗", "bright_red"), "cancelled": ("⊘", "dim")}
_CHANGE = {
    LineChange.ADD: ("+", "green"),
    LineChange.DELETE: ("-", "bright_red"),
    LineChange.CONTEXT: (" ", "dim"),
    LineChange.HUNK: ("⋯", "dim"),
}


def body_rows(body: Body, page: PageFormat) -> Iterator[Row]:
    """Yield the rows of a body of any kind."""
    match body:
        case Input(text=text) | Data(text=text):
            yield from excerpt_rows(text, page, "dim")
        case Output(text=text, is_error=is_error):
            yield from excerpt_rows(text, page, "bright_red" if is_error else "dim")
        case Diff():
            yield from _diff(body, page)
        case Screen(head=head, tail=tail, hidden_lines=hidden):
            yield from (_screen_row(cells, page) for cells in head)
            yield from _more(hidden, "line")
            yield from (_screen_row(cells, page) for cells in tail)
        case Todos(todos=todos):
            for todo in todos:
                mark, style = _TODO.get(todo.status, ("?", "bright_magenta"))
                is_over = todo.status in {"completed", "cancelled"}
                yield Text(f"{mark} ", style), page.line(todo.description), "dim" if is_over else ""
        case Matches():
            yield from _matches(body, page)
        case FileList(files=files, hidden=hidden):
            yield from (("", page.line(name), "dim") for name in files)
            yield from _more(hidden, "name")
        case Agent():
            yield from _agent(body, page)
        case Questions():
            yield from _questions(body, page)
        case _:
            assert_never(body)


def excerpt_rows(excerpt: Excerpt, page: PageFormat, style: str = "") -> Iterator[Row]:
    """Yield the lines of an excerpt, with a note where lines are left out."""
    yield from (("", line, style) for line in page.text(excerpt.head).split("\n") if excerpt.head)
    if excerpt.hidden:
        yield "", f"… {excerpt.hidden}", "dim"
    yield from (("", line, style) for line in page.text(excerpt.tail).split("\n") if excerpt.tail)


def _more(hidden: int, noun: str) -> Iterator[Row]:
    if hidden:
        yield "", f"… {plural(hidden, f'more {noun}')}", "dim"


def _diff(body: Diff, page: PageFormat) -> Iterator[Row]:
    """Yield the lines of a diff with their numbers: in the new file, or in the old one if removed."""
    numbers = [line.old if line.change is LineChange.DELETE else line.new for line in body.lines]
    wide = max((len(str(number)) for number in numbers if number), default=0)
    for place, (number, line) in enumerate(zip(numbers, body.lines, strict=True)):
        mark, style = _CHANGE[line.change]
        if line.change is not LineChange.HUNK:
            before = f"{number or '':>{wide}} " if wide else ""
            yield Text.assemble((before, "dim"), (f"{mark} ", style)), page.text(line.text), style
        elif place:
            yield "", mark, style
    yield from _more(body.hidden_lines, "line")


def _screen_row(cells: tuple[Cell, ...], page: PageFormat) -> Row:
    text = screen_text(ScreenDisplay((cells,)))
    is_plain = len(text) > LONG_LINE or not page.is_unicode
    return ("", page.text(text.plain), "") if is_plain else ("", text, "")


def _matches(body: Matches, page: PageFormat) -> Iterator[Row]:
    for match in body.matches:
        place = Text.assemble((page.line(match.path), "bright_blue"), (":", "dim"))
        if match.line is not None:
            place.append(str(match.line), "green").append("-" if match.is_context else ":", "dim")
        yield place.append(" "), page.line(match.text), "dim"
    yield from _more(body.hidden, "line")


def _agent(body: Agent, page: PageFormat) -> Iterator[Row]:
    for activity in body.activity:
        is_thought = activity.type == "thought" and activity.status != "error"
        mark, style = ("✻", "dim") if is_thought else _ACTIVITY.get(activity.status, ("○", "dim"))
        text = f"{activity.content} {activity.description}".strip()
        yield Text(f"{mark} ", style), page.line(text), "italic" if is_thought else "dim"
    yield from _more(body.hidden, "step")
    if body.result is not None:
        yield from excerpt_rows(body.result, page)


def _questions(body: Questions, page: PageFormat) -> Iterator[Row]:
    for question in body.questions:
        yield "? ", page.line(question.question), ""
        if question.choices:
            yield "  ", page.line(" / ".join(question.choices)), "dim"
        if question.answer:
            yield Text("→ ", "green"), page.line(question.answer), ""
