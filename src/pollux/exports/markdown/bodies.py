"""What there is to see of a tool call, in fences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from pollux.exports.markdown.escape import fence, plain
from pollux.model import Cell
from pollux.views.bodies import Agent, Body, Data, Files, Input, Matches, Output, Questions, Screen, Todos
from pollux.views.diffs import Change, Diff
from pollux.views.excerpts import Excerpt, counted

LONG = 40
"""Lines above which an output is folded."""

_TODO = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]", "cancelled": "[-]", "blocked": "[!]"}
_CHANGE = {Change.ADD: "+", Change.DELETE: "-", Change.CONTEXT: " ", Change.HUNK: ""}
_LANGUAGES = {"sh", "python", "text"}


def body_text(body: Body) -> str:
    """Write whatever came of a call; what is long can be folded where the document is rendered."""
    match body:
        case Input(text=text, language=language):
            return _fenced(excerpt_text(text), language if language in _LANGUAGES else "text")
        case Output(text=text):
            return _fenced(excerpt_text(text))
        case Data(text=text):
            return _fenced(excerpt_text(text), "json" if not text.hidden else "text")
        case Diff():
            return _fenced("\n".join(_diff_lines(body)), "diff")
        case Screen(head=head, tail=tail, hidden_lines=hidden):
            lines = [*map(_screen_line, head), *_more(hidden, "line"), *map(_screen_line, tail)]
            return _fenced("\n".join(lines))
        case Todos(todos=todos):
            return _fenced("\n".join(f"{_TODO.get(one.status, '[?]')} {_flat(one.description)}" for one in todos))
        case Matches(matches=matches, hidden=hidden):
            found = (f"{_flat(one.path)}:{'' if one.line is None else f'{one.line}:'} {one.text}" for one in matches)
            return _fenced("\n".join([*found, *_more(hidden, "line")]))
        case Files(files=files, hidden=hidden):
            return _fenced("\n".join([*map(_flat, files), *_more(hidden, "name")]))
        case Agent():
            return _fenced("\n".join(_agent_lines(body)))
        case Questions(questions=questions):
            return "\n\n".join(
                f"**?** {plain(one.question)}{_choices(one.choices)}  \n**→** {plain(one.answer) or '(no answer)'}"
                for one in questions
            )
        case _:
            assert_never(body)


def excerpt_text(excerpt: Excerpt) -> str:
    """Write a text, and between its beginning and its end a word on what is left out."""
    hidden = f"… {excerpt.hidden}" if excerpt.hidden else ""
    return "\n".join(filter(None, (excerpt.head, hidden, excerpt.tail)))


def folded(text: str, summary: str) -> str:
    """Fold a text away where the document is rendered."""
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def _fenced(text: str, language: str = "text") -> str:
    n_lines = text.count("\n") + 1
    made = fence(text, language)
    return folded(made, counted(n_lines, "line")) if n_lines > LONG else made


def _more(hidden: int, noun: str) -> Iterator[str]:
    if hidden:
        yield f"… {counted(hidden, f'more {noun}')}"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _diff_lines(body: Diff) -> Iterator[str]:
    yield from (f"{_CHANGE[one.change]}{one.text}" for one in body.lines)
    yield from _more(body.hidden_lines, "line")


def _screen_line(cells: tuple[Cell, ...]) -> str:
    return "".join(cell.text for cell in cells).rstrip()


def _agent_lines(body: Agent) -> Iterator[str]:
    for one in body.activity:
        words = _flat(f"{one.content} {one.description}")
        yield f"- {words}" if one.status in {"", "completed", "running"} else f"- {words} ({_flat(one.status)})"
    yield from _more(body.hidden, "step")
    if body.result is not None:
        yield excerpt_text(body.result)


def _choices(choices: tuple[str, ...]) -> str:
    return f" ({plain(' / '.join(choices))})" if choices else ""
