"""Short forms of texts and JSON values: head and tail of a long text, a folded text, a text on one line."""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

from pollux.model import Json
from pollux.text.numbers import plural

_T = TypeVar("_T")


class Limits(msgspec.Struct, frozen=True):
    """How much of a long text is shown."""

    head: int
    """Lines at the beginning."""
    tail: int
    """Lines at the end."""
    chars: int
    """Characters in total: a text can be one line of many megabytes."""
    folds: bool = False
    """Whether hidden text goes along in `folded`, for renderers that can unfold it."""


class Excerpt(msgspec.Struct, frozen=True):
    """A text, or its head and tail and the size of the hidden text between them."""

    head: str
    tail: str = ""
    hidden_lines: int = 0
    hidden_chars: int = 0
    folded: str = ""
    """The hidden text, if `Limits.folds`."""

    @property
    def hidden(self) -> str:
        """Return the size of the hidden text in words, or nothing."""
        if not self.hidden_chars:
            return ""
        more = "more " if self.head or self.tail else ""
        if not self.hidden_lines:
            return plural(self.hidden_chars, f"{more}character")
        return f"{plural(self.hidden_lines, f'{more}line')}, {plural(self.hidden_chars, 'character')}"


LINE = 200
"""Characters of a call's line, except in full detail."""
MAX_FOLDED_CHARS = 100_000
MAX_FOLDED_ITEMS = 2_000


def shorten(text: str, limits: Limits | None) -> Excerpt:
    """Return head and tail of a long text."""
    text = text.strip("\n")
    if limits is None:
        return Excerpt(text)
    tail_chars = limits.chars // 3 if limits.tail else 0
    start = min(_line_end(text, limits.head), limits.chars - tail_chars)
    stop = max(_line_start(text, limits.tail), len(text) - tail_chars)
    newlines = text.count("\n", start, max(start, stop))
    if stop - start <= LINE and newlines <= 2:  # noqa: PLR2004  # the note about hidden text takes a line itself
        return Excerpt(text)
    tail = text[stop:]
    folded = text[start:stop] if limits.folds and stop - start <= MAX_FOLDED_CHARS else ""
    return Excerpt(text[:start], tail, max(0, newlines - (1 if tail else 0)), stop - start, folded)


def fold(text: str, *, keep: bool = False) -> Excerpt:
    """Return an excerpt that hides all of a text; `keep` puts it into `folded`."""
    text = text.strip("\n")
    folded = text if keep and len(text) <= MAX_FOLDED_CHARS else ""
    return Excerpt("", "", text.count("\n") + 1 if text else 0, len(text), folded)


def folded_items(hidden: tuple[_T, ...], limits: Limits) -> tuple[_T, ...]:
    """Return the hidden items of a list if the limits keep them and they are not too many."""
    return hidden if limits.folds and len(hidden) <= MAX_FOLDED_ITEMS else ()


def line(text: str, limit: int | None = None) -> str:
    """Return a text on one line, with runs of white space as one space, cut after `limit` characters."""
    if limit is None:
        return " ".join(text.split())
    folded = " ".join(text[: 4 * limit].split())
    return folded if len(folded) <= limit and len(text) <= 4 * limit else folded[: limit - 1] + "…"


def compact(value: Json) -> str:
    """Return a JSON value on one line; a plain string has no quotes."""
    return value if isinstance(value, str) else _json(value)


def pretty(value: Json) -> str:
    """Return a JSON value on several lines."""
    return _json(value, indent=2)


def _json(value: Json, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        return "(nested too deeply to be shown)"


def _line_end(text: str, lines: int) -> int:
    """Return the position at which the first `lines` lines end."""
    at = -1
    for _ in range(lines):
        at = text.find("\n", at + 1)
        if at < 0:
            return len(text)
    return max(at, 0)


def _line_start(text: str, lines: int) -> int:
    """Return the position at which the last `lines` lines start."""
    at = len(text)
    for _ in range(lines):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return min(at + 1, len(text))
