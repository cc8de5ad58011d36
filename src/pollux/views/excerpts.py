"""Texts made short: the beginning and the end of a long one, a whole one folded, words and JSON on one line."""

from __future__ import annotations

import json

import msgspec

from pollux.model import Json


class Limits(msgspec.Struct, frozen=True):
    """How much of a long text is shown; where there are no limits, all of it is."""

    head: int
    """Lines of its beginning."""
    tail: int
    """Lines of its end."""
    chars: int
    """Characters in all: a text can be one line of many megabytes."""


class Excerpt(msgspec.Struct, frozen=True):
    """A text, or its beginning and end with a count of what lies between them."""

    head: str
    tail: str = ""
    hidden_lines: int = 0
    hidden_chars: int = 0

    @property
    def hidden(self) -> str:
        """What is left out, in words; empty if nothing is."""
        if not self.hidden_chars:
            return ""
        more = "more " if self.head or self.tail else ""
        chars = counted(self.hidden_chars, f"{more}character")
        if not self.hidden_lines:
            return chars
        return f"{counted(self.hidden_lines, f'{more}line')}, {counted(self.hidden_chars, 'character')}"


LINE = 200
"""Characters of a call's line, unless everything is shown."""


def shorten(text: str, limits: Limits | None) -> Excerpt:
    """Keep the beginning and the end of a long text."""
    text = text.strip("\n")
    if limits is None:
        return Excerpt(text)
    tail_chars = limits.chars // 3 if limits.tail else 0
    start = min(_line_end(text, limits.head), limits.chars - tail_chars)
    stop = max(_line_start(text, limits.tail), len(text) - tail_chars)
    newlines = text.count("\n", start, max(start, stop))
    if stop - start <= LINE and newlines <= 2:  # noqa: PLR2004  # the words for a gap need a line themselves
        return Excerpt(text)
    tail = text[stop:]
    return Excerpt(text[:start], tail, max(0, newlines - (1 if tail else 0)), stop - start)


def fold(text: str) -> Excerpt:
    """Hide a whole text."""
    text = text.strip("\n")
    return Excerpt("", hidden_lines=text.count("\n") + 1 if text else 0, hidden_chars=len(text))


def line(text: str, limit: int | None = None) -> str:
    """Fold all white space of a text, and cut it after so many characters."""
    if limit is None:
        return " ".join(text.split())
    folded = " ".join(text[: 4 * limit].split())
    return folded if len(folded) <= limit and len(text) <= 4 * limit else folded[: limit - 1] + "…"


def compact(value: Json) -> str:
    """Write a JSON value on one line, without the quotes of plain words."""
    return value if isinstance(value, str) else _json(value)


def pretty(value: Json) -> str:
    """Write a JSON value over several lines, for people."""
    return _json(value, indent=2)


def counted(number: int, noun: str) -> str:
    """Say a number of things: 1 line, 2,000 lines."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _json(value: Json, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        return "(nested too deep to be shown)"


def _line_end(text: str, lines: int) -> int:
    """Find where so many lines end."""
    at = -1
    for _ in range(lines):
        at = text.find("\n", at + 1)
        if at < 0:
            return len(text)
    return max(at, 0)


def _line_start(text: str, lines: int) -> int:
    """Find where the last so many lines start."""
    at = len(text)
    for _ in range(lines):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return min(at + 1, len(text))
