"""The lines of a changed file, from a unified diff or by comparing old and new text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from pollux.model import DiffDisplay
from pollux.text.numbers import parse_integer
from pollux.views.excerpts import LINE, Limits, folded_items


class LineChange(StrEnum):
    """The kind of a line in a diff."""

    ADD = "add"
    DELETE = "delete"
    CONTEXT = "context"
    HUNK = "hunk"


class DiffLine(msgspec.Struct, frozen=True):
    """A line of a diff without its mark, and its line numbers where they are recorded."""

    change: LineChange
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
    folded: tuple[DiffLine, ...] = ()


_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_LONG_DIFF = 2_000
"""Lines above which old and new text are listed and not compared, because comparing takes quadratic time."""


def diff_from_display(display: DiffDisplay, limits: Limits | None) -> Diff:
    """Parse the diff that the client displayed."""
    lines = tuple(_parse(display.diff))
    return _diff(display.file_path or display.file_name, lines, limits, is_new=display.is_new is True)


def diff_from_texts(path: str, old: str, new: str, limits: Limits | None) -> Diff:
    """Compare two texts; the lines have no numbers, because their position in the file is not recorded."""
    return _diff(path, tuple(_compare(old, new)), limits)


def diff_from_content(path: str, content: str, limits: Limits | None) -> Diff:
    """Return a diff that adds every line of a file."""
    lines = (DiffLine(LineChange.ADD, text, None, number) for number, text in enumerate(content.splitlines(), 1))
    return _diff(path, tuple(lines), limits)


def _diff(path: str, lines: tuple[DiffLine, ...], limits: Limits | None, *, is_new: bool = False) -> Diff:
    added = sum(line.change is LineChange.ADD for line in lines)
    removed = sum(line.change is LineChange.DELETE for line in lines)
    hidden: tuple[DiffLine, ...] = ()
    folded = hidden
    if limits is not None:
        room = 2 * (limits.head + limits.tail)
        if len(lines) > room + 1:
            lines, hidden = lines[:room], lines[room:]
        lines = tuple(map(_cut, lines))
        folded = tuple(map(_cut, folded_items(hidden, limits)))
    return Diff(path, lines, added, removed, is_new, len(hidden), folded)


def _compare(old: str, new: str) -> Iterator[DiffLine]:
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _LONG_DIFF:
        yield from (DiffLine(LineChange.DELETE, text) for text in before)
        yield from (DiffLine(LineChange.ADD, text) for text in after)
        return
    for line in _parse("\n".join(difflib.unified_diff(before, after, lineterm=""))):
        # A hunk header would claim line numbers that are not recorded.
        if line.change is not LineChange.HUNK:
            yield DiffLine(line.change, line.text)


def _parse(diff: str) -> Iterator[DiffLine]:
    """Yield the lines of a unified diff from its first hunk on; the lines before it only name the file."""
    old: int | None = None
    new: int | None = None
    is_inside = False
    for text in diff.removesuffix("\n").split("\n"):
        if match := _HUNK.match(text):
            old, new, is_inside = parse_integer(match[1]), parse_integer(match[2]), True
            yield DiffLine(LineChange.HUNK, text)
        elif not is_inside:
            continue
        elif text.startswith("+"):
            yield DiffLine(LineChange.ADD, text[1:], None, new)
            new = _next(new)
        elif text.startswith("-"):
            yield DiffLine(LineChange.DELETE, text[1:], old)
            old = _next(old)
        elif text.startswith("\\"):
            yield DiffLine(LineChange.CONTEXT, text)
        else:
            yield DiffLine(LineChange.CONTEXT, text[1:], old, new)
            old, new = _next(old), _next(new)


def _next(number: int | None) -> int | None:
    return None if number is None else number + 1


def _cut(line: DiffLine) -> DiffLine:
    return line if len(line.text) <= LINE else msgspec.structs.replace(line, text=line.text[:LINE] + "…")
