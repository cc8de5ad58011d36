"""A session at a glance: a bar for each model call, a star for each prompt, a cross for each error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

import msgspec

from pollux.model import Usage
from pollux.render.html.icons import STAR
from pollux.render.html.markup import Html, element
from pollux.render.html.shapes import box, linked, paths_by_class, units
from pollux.text.numbers import count
from pollux.views.session_text import amount_text


class CallMark(msgspec.Struct, frozen=True):
    """A model call in a chart of a session: its input, and whether it was dropped."""

    fresh: int
    cached: int
    is_dropped: bool = False
    href: str = ""
    label: str = ""


def call_mark(number: int, usage: Usage, href: str, *, is_dropped: bool) -> CallMark:
    """Return the mark of the model call that a message belongs to; labels name no time, and so need no zone."""
    tokens = usage.tokens
    label = f"Message {number:,}, {amount_text(usage.cost_nanousd)}; {tokens.input:,} in, {tokens.cached:,} cached"
    return CallMark(max(0, tokens.input - tokens.cached), tokens.cached, is_dropped, href, label)


class PromptMark(msgspec.Struct, frozen=True):
    """A prompt in a chart of a session."""

    href: str = ""
    label: str = ""
    is_dropped: bool = False


def prompt_mark(number: int, words: str, href: str, *, is_dropped: bool) -> PromptMark:
    """Return the mark of a prompt."""
    return PromptMark(href, f"Prompt, message {number:,}; {words}", is_dropped)


class ErrorMark(msgspec.Struct, frozen=True):
    """An error in a chart of a session."""

    href: str = ""
    label: str = ""


def error_mark(number: int, href: str) -> ErrorMark:
    """Return the mark of an error."""
    return ErrorMark(href, f"Error, message {number:,}")


GuideMark = CallMark | PromptMark | ErrorMark


# Spark lines: the newest calls of a session as small bars.

_STRIP_WIDTH, _STRIP_HEIGHT, _STRIP_STEP, _STRIP_BAR = 104, 22, 9, 7
STRIP_BARS = 11
"""Calls that fit into a strip."""


def strip(calls: Sequence[CallMark]) -> Html:
    """Return the newest calls of a session as bars from the right, without labels: the numbers stand beside it."""
    shown = calls[-STRIP_BARS:]
    peak = max((call.fresh + call.cached for call in shown), default=0) or 1
    paths: dict[str, list[str]] = {"cached": [], "fresh": [], "lost": []}
    scale = (_STRIP_HEIGHT - 1) / peak
    for number, call in enumerate(reversed(shown)):
        left = _STRIP_WIDTH - (number + 1) * _STRIP_STEP
        if call.is_dropped:
            _add_call(paths, call, left, _STRIP_BAR, _STRIP_HEIGHT, scale)
            continue
        # Thick lines, half as long in the page as rectangles: a list has 50 strips.
        middle, turn = left + _STRIP_STEP // 2, round(_STRIP_HEIGHT - call.cached * scale)
        if turn < _STRIP_HEIGHT:
            paths["cached"].append(f"M{middle} {_STRIP_HEIGHT}V{turn}")
        paths["fresh"].append(f"M{middle} {turn}V{round(_STRIP_HEIGHT - (call.fresh + call.cached) * scale)}")
    size = f"0 0 {_STRIP_WIDTH} {_STRIP_HEIGHT}"
    return element("svg", *paths_by_class(paths), class_="strip", viewBox=size, aria_hidden="true")


def _add_call(
    paths: dict[str, list[str]], call: CallMark, left: float, width: float, floor_y: float, scale: float
) -> None:
    """Add the rectangles of a call to the paths of their classes; a dropped call is one outline."""
    fresh, cached = call.fresh * scale, call.cached * scale
    if call.is_dropped:
        paths["lost"].append(box(left + 0.5, floor_y - fresh - cached, width - 1, fresh + cached - 0.5))
        return
    if cached:
        paths["cached"].append(box(left, floor_y - cached, width, cached))
    paths["fresh"].append(box(left, floor_y - cached - fresh, width, fresh))


# The guide: a whole session in one line.

_GUIDE_WIDTH, _GUIDE_HEIGHT, _GUIDE_FLOOR, _GUIDE_MARKS = 1000, 62, 48, 57
_WIDEST_BAR, _MANY_MARKS = 22, 150


def guide(marks: Sequence[GuideMark], notes: Iterable[str] = (), *, has_titles: bool = False) -> Html:
    """Return a session at a glance: a bar for each model call, a star for each prompt, a cross for each error.

    Args:
        marks: in the order of the session. With more than 150, neighbours share a place, where the largest call is
            shown.
        notes: the end of the caption, such as a link to the table.
        has_titles: show the labels as tips of the browser, for a page whose script shows none.

    """
    shown = _thinned(marks)
    step = _GUIDE_WIDTH / max(len(shown), 1)
    width = min(_WIDEST_BAR, step * 0.8)
    peak = max((mark.fresh + mark.cached for mark in shown if isinstance(mark, CallMark)), default=0) or 1
    scale = (_GUIDE_FLOOR - 6) / peak
    pieces = [element("line", class_="rule", x1=0, x2=_GUIDE_WIDTH, y1=_GUIDE_FLOOR, y2=_GUIDE_FLOOR)]
    for number, mark in enumerate(shown):
        middle = (number + 0.5) * step
        title = (element("title", mark.label),) if has_titles else ()
        pieces.append(linked(mark.href, mark.label, *title, *_shape(mark, middle, width, scale)))
    drawing = element(
        "svg",
        *pieces,
        viewBox=f"0 0 {_GUIDE_WIDTH} {_GUIDE_HEIGHT}",
        role="group",
        aria_label="The session at a glance",
    )
    legend = [("fresh", "fresh input"), ("cached", "cached")]
    if any(isinstance(mark, CallMark) and mark.is_dropped for mark in marks):
        legend.append(("lost", "dropped"))
    caption = [element("span", _key(name), words) for name, words in legend]
    caption += [element("span", f"peak {count(peak)} tokens")] if peak > 1 else []
    caption += [element("span", note) for note in notes]
    return element("figure", drawing, element("figcaption", *caption), class_="guide")


def _key(name: str) -> Html:
    inset = (
        {"x": ".6", "y": ".6", "width": "8.8", "height": "8.8"} if name == "lost" else {"width": "10", "height": "10"}
    )
    square = element("rect", class_=name, **inset)
    return element("svg", square, width="10", height="10", viewBox="0 0 10 10", aria_hidden="true")


def _shape(mark: GuideMark, middle: float, width: float, scale: float) -> list[Html]:
    if isinstance(mark, CallMark):
        paths: dict[str, list[str]] = {"cached": [], "fresh": [], "lost": []}
        _add_call(paths, mark, middle - width / 2, width, _GUIDE_FLOOR, scale)
        return paths_by_class(paths)
    if isinstance(mark, PromptMark):
        class_ = "typed off" if mark.is_dropped else "typed"
        place = f"translate({units(middle)} {_GUIDE_MARKS}) scale(.8)"
        return [element("path", class_=class_, transform=place, d=STAR)]
    cross = f"M{units(middle - 3)} {_GUIDE_MARKS - 3}l6 6m0-6l-6 6"
    return [element("path", class_="err", d=cross)]


def _thinned(marks: Sequence[GuideMark]) -> list[GuideMark]:
    """Return at most `_MANY_MARKS` marks: in each group the largest call, else an error, else the first prompt."""
    if len(marks) <= _MANY_MARKS:
        return list(marks)
    size = ceil(len(marks) / _MANY_MARKS)
    thinned = []
    for start in range(0, len(marks), size):
        group = marks[start : start + size]
        thinned.append(max(group, key=_weight))
    return thinned


def _weight(mark: GuideMark) -> int:
    if isinstance(mark, CallMark):
        return 2 + mark.fresh + mark.cached
    return 1 if isinstance(mark, ErrorMark) else 0
