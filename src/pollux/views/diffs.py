"""A changed file, line by line: read from a unified diff, or found by comparing old and new text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from pollux.model import DiffDisplay
from pollux.text.integers import parse_integer
from pollux.views.excerpts import LINE, Limits


class Change(StrEnum):
    """What a line of a diff says."""

    ADD = "add"
    DELETE = "delete"
    CONTEXT = "context"
    HUNK = "hunk"


class DiffLine(msgspec.Struct, frozen=True):
    """A line of a diff, without its mark; its numbers where they are known."""

    change: Change
    text: str
    old: int | None = None
    new: int | None = None


class Diff(msgspec.Struct, frozen=True, tag="diff"):
    """A changed file."""

    path: str
    lines: tuple[DiffLine, ...]
    added: int
    removed: int
    is_new: bool = False
    hidden_lines: int = 0


_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_LONG_DIFF = 2_000
"""Lines above which old and new text are not compared but simply shown: comparing takes the square of them."""


def diff_from_display(display: DiffDisplay, limits: Limits | None) -> Diff:
    """Read the diff that the client showed."""
    lines = tuple(_parsed(display.diff))
    return _diff(display.file_path or display.file_name, lines, limits, is_new=display.is_new is True)


def diff_from_texts(path: str, old: str, new: str, limits: Limits | None) -> Diff:
    """Compare two texts, whose place in the file is not known."""
    return _diff(path, tuple(_compared(old, new)), limits)


def diff_from_content(path: str, content: str, limits: Limits | None) -> Diff:
    """Show a whole file as written anew."""
    lines = (DiffLine(Change.ADD, text, None, n) for n, text in enumerate(content.splitlines(), 1))
    return _diff(path, tuple(lines), limits)


def _diff(path: str, lines: tuple[DiffLine, ...], limits: Limits | None, *, is_new: bool = False) -> Diff:
    added = sum(each.change is Change.ADD for each in lines)
    removed = sum(each.change is Change.DELETE for each in lines)
    hidden = 0
    if limits is not None:
        room = 2 * (limits.head + limits.tail)
        if len(lines) > room + 1:
            lines, hidden = lines[:room], len(lines) - room
        lines = tuple(_cut(each) for each in lines)
    return Diff(path, lines, added, removed, is_new, hidden)


def _compared(old: str, new: str) -> Iterator[DiffLine]:
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _LONG_DIFF:
        yield from (DiffLine(Change.DELETE, text) for text in before)
        yield from (DiffLine(Change.ADD, text) for text in after)
        return
    for parsed in _parsed("\n".join(difflib.unified_diff(before, after, lineterm=""))):
        # Where in the file this stands is not recorded.
        if parsed.change is not Change.HUNK:
            yield DiffLine(parsed.change, parsed.text)


def _parsed(diff: str) -> Iterator[DiffLine]:
    """Yield the lines of a unified diff; the lines before its first hunk only name the file."""
    old: int | None = None
    new: int | None = None
    is_inside = False
    for text in diff.removesuffix("\n").split("\n"):
        if match := _HUNK.match(text):
            old, new, is_inside = parse_integer(match[1]), parse_integer(match[2]), True
            yield DiffLine(Change.HUNK, text)
        elif not is_inside:
            continue
        elif text.startswith("+"):
            yield DiffLine(Change.ADD, text[1:], None, new)
            new = _next(new)
        elif text.startswith("-"):
            yield DiffLine(Change.DELETE, text[1:], old)
            old = _next(old)
        elif text.startswith("\\"):
            yield DiffLine(Change.CONTEXT, text)
        else:
            yield DiffLine(Change.CONTEXT, text[1:], old, new)
            old, new = _next(old), _next(new)


def _next(number: int | None) -> int | None:
    return None if number is None else number + 1


def _cut(each: DiffLine) -> DiffLine:
    return each if len(each.text) <= LINE else msgspec.structs.replace(each, text=each.text[:LINE] + "…")
