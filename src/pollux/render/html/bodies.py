"""What there is to see of a tool call, as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import assert_never

from pollux.model import Activity, Match, Todo
from pollux.render.html.ansi import cells, coloured, has_colours
from pollux.render.html.code import coloured_code
from pollux.render.html.markdown import answer, copyable
from pollux.render.html.markup import Html, element, joined, text
from pollux.text.escape import clean
from pollux.views.bodies import Agent, Body, Data, Files, Input, Matches, Output, Question, Questions, Screen, Todos
from pollux.views.diffs import Change, Diff, DiffLine
from pollux.views.excerpts import Excerpt, counted

_MARKS = {Change.ADD: "+", Change.DELETE: "-", Change.CONTEXT: " ", Change.HUNK: ""}
_CLASSES = {Change.ADD: "add", Change.DELETE: "del", Change.CONTEXT: "same", Change.HUNK: "hunk"}
_TODO = {"completed": "✔", "in_progress": "▶", "pending": "○", "cancelled": "✗", "blocked": "!"}
_ACTIVITY = {"completed": "✓", "error": "✗", "cancelled": "⊘"}


def body(one: Body) -> Html:
    """Show whatever came of a call."""
    match one:
        case Input(text=words, language=language):
            return copyable(excerpt(words, language), "given")
        case Output(text=words, is_markdown=True) if not words.hidden:
            return element("div", answer(words.head), class_="prose result")
        case Output(text=words, is_error=is_error):
            colours = has_colours(words.head) or has_colours(words.tail)
            return copyable(excerpt(words), "term" if colours else "error" if is_error else "")
        case Data(text=words):
            return copyable(excerpt(words, "json"))
        case Diff():
            return copyable(joined(_diff_lines(one)), "diff")
        case Screen(head=head, tail=tail, hidden_lines=hidden):
            lines = [*map(cells, head), *_more(hidden, "line"), *map(cells, tail)]
            return copyable(Html("\n".join(lines)), "term")
        case Todos(todos=todos):
            return element("ul", *map(_todo, todos), class_="todos")
        case Matches(matches=matches, hidden=hidden):
            return copyable(Html("\n".join([*map(_match, matches), *_more(hidden, "line")])))
        case Files(files=files, hidden=hidden):
            return copyable(Html("\n".join([*(text(_flat(name)) for name in files), *_more(hidden, "name")])))
        case Agent():
            return _agent(one)
        case Questions(questions=questions):
            return element("dl", *map(_question, questions), class_="questions")
        case _:
            assert_never(one)


def lines_of(one: Body) -> int:
    """Count roughly how many lines a body takes."""
    match one:
        case Input(text=words) | Output(text=words) | Data(text=words):
            return _height(words)
        case Diff(lines=lines):
            return len(lines)
        case Screen(head=head, tail=tail):
            return len(head) + len(tail)
        case Todos(todos=todos):
            return len(todos)
        case Matches(matches=matches):
            return len(matches)
        case Files(files=files):
            return len(files)
        case Agent(activity=activity, result=result):
            return len(activity) + (_height(result) if result else 0)
        case Questions(questions=questions):
            return 2 * len(questions)
        case _:
            assert_never(one)


def excerpt(words: Excerpt, language: str = "text") -> Html:
    """Write a text, and between its beginning and its end a word on what is left out."""
    if not words.hidden:
        return _lines(words.head, language)
    return Html("\n".join(filter(None, (_lines(words.head), hidden(words.hidden), _lines(words.tail)))))


def hidden(words: str) -> Html:
    """Say what is left out."""
    return element("span", f"… {words}", class_="hidden")


_LINE = 100
_TOGETHER = 200
"""Lines of a long diff that are laid out together."""
_LONG = 200_000
"""Characters above which a text is shown without its colours."""


def _height(words: Excerpt) -> int:
    return words.head.count("\n") + words.tail.count("\n") + (len(words.head) + len(words.tail)) // _LINE


def _lines(words: str, language: str = "text") -> Html:
    if len(words) <= _LONG and has_colours(words):
        return coloured(words)
    return coloured_code(clean(words), language)


def _more(number: int, noun: str) -> Iterator[Html]:
    if number:
        yield hidden(counted(number, f"more {noun}"))


def _flat(words: str) -> str:
    return " ".join(clean(words).split())


def _diff_lines(diff: Diff) -> Iterator[Html]:
    """Show a diff; lines have their number after the change, removed ones that before it."""
    lines = iter(diff.lines)
    while some := tuple(islice(lines, _TOGETHER)):
        shown = joined(map(_diff_line, some))
        yield shown if len(diff.lines) <= _TOGETHER else element("span", shown, class_="piece")
    yield from _more(diff.hidden_lines, "line")


def _diff_line(line: DiffLine) -> Html:
    number = line.old if line.change is Change.DELETE else line.new
    words = f"{_MARKS[line.change]}{clean(line.text)}\n"
    return element("span", words, class_=_CLASSES[line.change], data_n=str(number) if number else None)


def _todo(todo: Todo) -> Html:
    mark = element("span", _TODO.get(todo.status, "?"), class_="mark", title=todo.status)
    is_over = todo.status in {"completed", "cancelled"}
    return element("li", mark, " ", _flat(todo.description), class_="over" if is_over else None)


def _match(match: Match) -> Html:
    place = f"{_flat(match.path)}:" + ("" if match.line is None else f"{match.line}{'-' if match.is_context else ':'}")
    return joined((element("span", place, class_="place"), " ", clean(match.text).replace("\n", " ")))


def _agent(agent: Agent) -> Html:
    more = (element("li", words) for words in _more(agent.hidden, "step"))
    steps = element("ul", *map(_step, agent.activity), *more, class_="steps")
    result = copyable(excerpt(agent.result, "json")) if agent.result is not None else Html()
    return joined((steps if agent.activity else Html(), result))


def _step(step: Activity) -> Html:
    is_thought = step.type == "thought" and step.status != "error"
    mark = element("span", "✻" if is_thought else _ACTIVITY.get(step.status, "○"), class_="mark", title=step.status)
    words = _flat(f"{step.content} {step.description}")
    return element("li", mark, " ", words, class_="failed" if step.status == "error" else None)


def _question(one: Question) -> Html:
    choices = element("dd", _flat(" / ".join(one.choices)), class_="choices") if one.choices else Html()
    return joined((element("dt", _flat(one.question)), choices, element("dd", _flat(one.answer) or "(no answer)")))
