"""Line breaks that cut a word because the line had reached its full width, as `fold`, mail and terminals make them.

A line break counts as one of these if a long run of letters and digits touches it and a word continues on its other
side or, in a short text, if the widest line has a usual width. Secrets are then searched for in the text without these
breaks, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pollux.redaction.matches import RuleMatch

_CLASSES = bytes(ord("a") if chr(code) in "_-+/" or (code < 128 and chr(code).isalnum()) else 32 for code in range(256))
MIN_RUN = 20
"""Length of the shortest long run."""
_RUN = b"a" * MIN_RUN
_MIN_WIDTH, _MAX_WIDTH = 40, 400
"""Shorter and longer lines are not considered full."""
_SHORT_TEXT, _FEW_LINES = 2000, 16
_USUAL_WIDTHS = frozenset((40, 60, 64, 70, 72, 75, 76, 77, 78, 79, 80, 100, 120, 132))
_WORD_PART = b"aaaa"
"""The least that must continue on the other side of a line break."""
_RETURN, _LINE_ENDS = ord("\r"), frozenset((b"\r", b"\n"))
_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_ASSIGNMENT = re.compile(r"[\w.-]{1,80}[ \t]{0,4}[=:(]")


class LineBreak(NamedTuple):
    """Where a line break starts and ends."""

    start: int
    end: int


def outline(latin: bytes) -> bytes:
    """Return a text with `a` for each letter, digit and `_ - + /`, and a blank for everything else."""
    return latin.translate(_CLASSES)


def long_runs(shape: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the long runs in an outline start and end."""
    start = shape.find(_RUN)
    while start >= 0:
        end = shape.find(b" ", start)
        end = end if end >= 0 else len(shape)
        yield start, end
        start = shape.find(_RUN, end)


def line_breaks(latin: bytes, shape: bytes, runs: Iterable[tuple[int, int]]) -> list[LineBreak]:
    """Return the line breaks that cut a word in a text, given its outline and long runs."""
    breaks: list[LineBreak] = []
    for start, end in runs:
        if latin[start - 1 : start] == b"\n" and start > 1:
            line_end = start - 2 if latin[start - 2] == _RETURN else start - 1
            if shape.endswith(_WORD_PART, 0, line_end) and _is_full(latin, line_end, start):
                breaks.append(LineBreak(line_end, start))
        if latin[end : end + 1] in _LINE_ENDS:
            next_line = latin.find(b"\n", end, end + 2) + 1
            if shape.startswith(_WORD_PART, next_line or len(shape)) and _is_full(latin, end, next_line):
                breaks.append(LineBreak(end, next_line))
    if _MIN_WIDTH < len(latin) <= _SHORT_TEXT and latin.count(b"\n") <= _FEW_LINES:
        breaks += _after_widest_lines(latin)
    return sorted({*breaks}) if breaks else breaks


def _is_full(latin: bytes, line_end: int, next_line: int) -> bool:
    """Return whether a line has the width of a full one, and the next is not wider."""
    width = line_end - 1 - latin.rfind(b"\n", max(line_end - _MAX_WIDTH, 0), line_end)
    if not _MIN_WIDTH <= width < _MAX_WIDTH:
        return False
    return latin.find(b"\n", next_line, next_line + width + 2) >= 0 or len(latin) <= next_line + width


def _after_widest_lines(latin: bytes) -> Iterator[LineBreak]:
    """Yield the line breaks after the widest lines of a text, if their width is usual."""
    newline = b"\r\n" if b"\r" in latin else b"\n"
    lines = latin.split(newline)
    widest = len(max(lines, key=len))
    if widest not in _USUAL_WIDTHS:
        return
    at = 0
    for line, following in pairwise(lines):
        at += len(line)
        if len(line) == widest and following:
            yield LineBreak(at, at + len(newline))
        at += len(newline)


def without_complete_lines(
    joined: Iterable[RuleMatch], plain: Sequence[RuleMatch], text: str, breaks: Iterable[LineBreak]
) -> list[RuleMatch]:
    """Return the matches in joined lines, except those that were complete before the line break.

    These are followed by another match, by a plain word or by the name of another value: in a list of tokens and in a
    file of settings, lines are not wrapped.

    Args:
        joined: matches in the text without the line breaks.
        plain: matches in the text itself.
        text: the text.
        breaks: the line breaks.

    """
    starts, ends = {match.start for match in plain}, {match.end for match in plain}
    complete = [line_break for line_break in breaks if line_break.start in ends]

    def is_complete(match: RuleMatch) -> bool:
        return any(_is_complete_before(line_break, match, text, starts) for line_break in complete)

    return [match for match in joined if not is_complete(match)]


def _is_complete_before(line_break: LineBreak, match: RuleMatch, text: str, starts: set[int]) -> bool:
    if not match.start < line_break.start < match.end:
        return False
    if line_break.end in starts or _ASSIGNMENT.match(text, line_break.end):
        return True
    return _PLAIN_WORD.fullmatch(text, line_break.end, match.end) is not None
