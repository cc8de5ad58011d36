"""The arguments and results of a tool call as HTML. Hidden text is in a fold that opens without a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar, assert_never

from pollux.model import Activity, Cell, GrepMatch, Todo
from pollux.render.html.colours import cells, coloured, coloured_code, has_colours
from pollux.render.html.markdown import answer, code_block, preformatted
from pollux.render.html.markup import Html, element, joined, text
from pollux.text.escape import make_visible
from pollux.text.numbers import plural
from pollux.views.bodies import Agent, Body, Data, FileList, Input, Matches, Output, Question, Questions, Screen, Todos
from pollux.views.diffs import Diff, DiffLine, LineChange
from pollux.views.excerpts import Excerpt

_T = TypeVar("_T")

_MARKS = {LineChange.ADD: "+", LineChange.DELETE: "-", LineChange.CONTEXT: " ", LineChange.HUNK: ""}
_CLASSES = {LineChange.ADD: "add", LineChange.DELETE: "del", LineChange.CONTEXT: "same", LineChange.HUNK: "hunk"}
_TODO = {"completed": "✔", "in_progress": "▶", "pending": "○", "cancelled": "✗", "blocked": "!"}
_ACTIVITY = {"completed": "✓", "error": "✗", "cancelled": "⊘"}
LINE = 100
"""Characters of a line, to estimate the height of a text."""
_DIFF_PIECE = 200
"""Lines of a long diff that the browser lays out together."""
_MAX_COLOURED = 200_000
"""Characters above which a text has no terminal colours."""


def body_html(body: Body) -> Html:
    """Return a body as HTML."""
    match body:
        case Input(text=excerpt, language=language):
            return excerpt_html(excerpt, language, "given")
        case Output(text=excerpt, is_markdown=True) if not excerpt.hidden:
            return element("div", answer(excerpt.head), class_="prose result")
        case Output(text=excerpt, is_error=is_error):
            is_coloured = any(map(has_colours, (excerpt.head, excerpt.tail, excerpt.folded)))
            return excerpt_html(excerpt, classes="term" if is_coloured else "error" if is_error else "")
        case Data(text=excerpt):
            return excerpt_html(excerpt, "json")
        case Diff(lines=lines, hidden_lines=hidden, folded=folded):
            return code_block(_diff_lines(lines), *_more_items(hidden, "line", folded, _diff_lines), classes="diff")
        case Screen(head=head, tail=tail, hidden_lines=hidden, folded=folded):
            more = [*_more_items(hidden, "line", folded, _screen_lines)]
            more += [preformatted(_screen_lines(tail))] if tail else []
            return code_block(_screen_lines(head), *more, classes="term")
        case Todos(todos=todos):
            return element("ul", *map(_todo, todos), class_="todos")
        case Matches(matches=matches, hidden=hidden, folded=folded):
            return code_block(_match_lines(matches), *_more_items(hidden, "line", folded, _match_lines))
        case FileList(files=files, hidden=hidden, folded=folded):
            return code_block(_file_lines(files), *_more_items(hidden, "name", folded, _file_lines))
        case Agent():
            return _agent(body)
        case Questions(questions=questions):
            return element("dl", *map(_question, questions), class_="questions")
        case _:
            assert_never(body)


def count_lines(body: Body) -> int:
    """Estimate how many lines a body takes."""
    match body:
        case Input(text=excerpt) | Output(text=excerpt) | Data(text=excerpt):
            return count_text_lines(excerpt)
        case Diff(lines=rows) | Todos(todos=rows) | Matches(matches=rows) | FileList(files=rows):
            return len(rows)
        case Screen(head=head, tail=tail):
            return len(head) + len(tail)
        case Agent(activity=activity, result=result):
            return len(activity) + (count_text_lines(result) if result else 0)
        case Questions(questions=questions):
            return 2 * len(questions)
        case _:
            assert_never(body)


def count_text_lines(excerpt: Excerpt) -> int:
    """Estimate how many lines the visible part of a text takes."""
    n_chars = len(excerpt.head) + len(excerpt.tail)
    return excerpt.head.count("\n") + excerpt.tail.count("\n") + n_chars // LINE


def size_of(bodies: Sequence[Body]) -> str:
    """Return how many lines the output of a call has, for the label of its fold; nothing for anything else."""
    match bodies[-1] if bodies else None:
        case Output(text=excerpt):
            shown = [part for part in (excerpt.head, excerpt.tail) if part]
            return plural(excerpt.hidden_lines + sum(part.count("\n") + 1 for part in shown), "line")
        case Screen(head=head, tail=tail, hidden_lines=hidden):
            return plural(len(head) + len(tail) + hidden, "line")
        case _:
            return ""


def excerpt_html(excerpt: Excerpt, language: str = "text", classes: str = "") -> Html:
    """Return a text as a block of code, with its hidden part in a fold."""
    if not excerpt.hidden:
        return code_block(_text_lines(excerpt.head, language), classes=classes)
    if excerpt.folded and not (excerpt.head or excerpt.tail):
        return code_block(_text_lines(excerpt.folded, language), classes=classes)
    folded = preformatted(_text_lines(excerpt.folded.strip("\n"))) if excerpt.folded else None
    tail = (preformatted(_text_lines(excerpt.tail)),) if excerpt.tail else ()
    return code_block(_text_lines(excerpt.head), more(excerpt.hidden, folded), *tail, classes=classes)


def more(size: str, folded: Html | None) -> Html:
    """Return a fold labelled with the size of the hidden content, or a note where the page does not contain it."""
    if folded is None:
        return element("p", f"… {size}, only in an export with --detail full", class_="hidden")
    return element("details", element("summary", f"… {size}"), folded, class_="more")


def _more_items(
    hidden: int, noun: str, folded: tuple[_T, ...], lines: Callable[[tuple[_T, ...]], Html]
) -> Iterator[Html]:
    if hidden:
        yield more(plural(hidden, f"more {noun}"), preformatted(lines(folded)) if folded else None)


def _text_lines(words: str, language: str = "text") -> Html:
    if len(words) <= _MAX_COLOURED and has_colours(words):
        return coloured(words)
    return coloured_code(make_visible(words), language)


def _one_line(words: str) -> str:
    return " ".join(make_visible(words).split())


def _diff_lines(lines: Iterable[DiffLine]) -> Html:
    """Return the lines of a diff, numbered as after the change, or as before it if they were removed."""
    remaining = iter(lines)
    pieces = []
    while piece := tuple(islice(remaining, _DIFF_PIECE)):
        pieces.append(joined(map(_diff_line, piece)))
    if len(pieces) <= 1:
        return joined(pieces)
    return joined(element("span", piece, class_="piece") for piece in pieces)


def _diff_line(line: DiffLine) -> Html:
    number = line.old if line.change is LineChange.DELETE else line.new
    words = f"{_MARKS[line.change]}{make_visible(line.text)}\n"
    return element("span", words, class_=_CLASSES[line.change], data_n=str(number) if number else None)


def _screen_lines(lines: tuple[tuple[Cell, ...], ...]) -> Html:
    return Html("\n".join(map(cells, lines)))


def _match_lines(matches: tuple[GrepMatch, ...]) -> Html:
    return Html("\n".join(map(_match, matches)))


def _match(match: GrepMatch) -> Html:
    place = f"{_one_line(match.path)}:"
    if match.line is not None:
        place += f"{match.line}{'-' if match.is_context else ':'}"
    return joined((element("span", place, class_="place"), " ", make_visible(match.text).replace("\n", " ")))


def _file_lines(files: tuple[str, ...]) -> Html:
    return Html("\n".join(text(_one_line(name)) for name in files))


def _mark(mark: str, status: str) -> Html:
    label = status.replace("_", " ") or "unknown status"
    return element("span", mark, class_="mark", role="img", aria_label=label, title=label)


def _todo(todo: Todo) -> Html:
    is_over = todo.status in {"completed", "cancelled"}
    mark = _mark(_TODO.get(todo.status, "?"), todo.status)
    return element("li", mark, " ", _one_line(todo.description), class_="over" if is_over else None)


def _agent(agent: Agent) -> Html:
    parts = []
    if agent.activity:
        parts.append(_steps(agent.activity))
    if agent.hidden:
        parts.append(more(plural(agent.hidden, "more step"), _steps(agent.folded) if agent.folded else None))
    if agent.result is not None:
        parts.append(excerpt_html(agent.result, "json"))
    return joined(parts)


def _steps(activity: tuple[Activity, ...]) -> Html:
    return element("ul", *map(_step, activity), class_="steps")


def _step(step: Activity) -> Html:
    is_thought = step.type == "thought" and step.status != "error"
    mark = _mark("✻", "thought") if is_thought else _mark(_ACTIVITY.get(step.status, "○"), step.status)
    words = _one_line(f"{step.content} {step.description}")
    return element("li", mark, " ", words, class_="failed" if step.status == "error" else None)


def _question(question: Question) -> Html:
    parts = [element("dt", _one_line(question.question))]
    if question.choices:
        parts.append(element("dd", _one_line(" / ".join(question.choices)), class_="choices"))
    parts.append(element("dd", _one_line(question.answer) or "(no answer)"))
    return joined(parts)
