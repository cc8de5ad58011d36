"""Line breaks that cut a word because the line had reached its full width, as `fold`, mail and terminals make them.

A line break is taken for one of these if a long run of letters and digits touches it and a word goes on at its other
side, or, in a short text, if the widest line has a usual width. Secrets are then looked for in the text without these
breaks, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pollux.redaction.matches import Found

_CLASSES = bytes(ord("a") if chr(code) in "_-+/" or (code < 128 and chr(code).isalnum()) else 32 for code in range(256))
LEAST_RUN = 20
"""Length of the shortest run that is long."""
_RUN = b"a" * LEAST_RUN
_NARROWEST, _WIDEST = 40, 400
"""Lines that are shorter or longer than this are not taken for full."""
_SHORT_TEXT, _FEW_LINES = 2000, 16
_USUAL_WIDTHS = frozenset((40, 60, 64, 70, 72, 75, 76, 77, 78, 79, 80, 100, 120, 132))
_REST = b"aaaa"
"""So much of a word goes on at the other side of a line break."""
_RETURN, _LINE_ENDS = ord("\r"), frozenset((b"\r", b"\n"))
_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_ASSIGNMENT = re.compile(r"[\w.-]{1,80}[ \t]{0,4}[=:(]")


class LineBreak(NamedTuple):
    """Where a line break begins and ends."""

    start: int
    end: int


def outline(latin: bytes) -> bytes:
    """Return a text with `a` for each letter, digit and `_ - + /`, and a blank for all others."""
    return latin.translate(_CLASSES)


def long_runs(shape: bytes) -> Iterator[tuple[int, int]]:
    """Yield where long runs of letters, digits and `_ - + /` begin and end in a text, which is given as its outline."""
    start = shape.find(_RUN)
    while start >= 0:
        end = shape.find(b" ", start)
        end = end if end >= 0 else len(shape)
        yield start, end
        start = shape.find(_RUN, end)


def line_breaks(latin: bytes, shape: bytes, runs: Iterable[tuple[int, int]]) -> list[LineBreak]:
    """Return the line breaks that cut a word in a text, which is given with its outline and its long runs."""
    found: list[LineBreak] = []
    for start, end in runs:
        if latin[start - 1 : start] == b"\n" and start > 1:
            line_end = start - 2 if latin[start - 2] == _RETURN else start - 1
            if shape.endswith(_REST, 0, line_end) and _is_full(latin, line_end, start):
                found.append(LineBreak(line_end, start))
        if latin[end : end + 1] in _LINE_ENDS:
            next_line = latin.find(b"\n", end, end + 2) + 1
            if shape.startswith(_REST, next_line or len(shape)) and _is_full(latin, end, next_line):
                found.append(LineBreak(end, next_line))
    if _NARROWEST < len(latin) <= _SHORT_TEXT and latin.count(b"\n") <= _FEW_LINES:
        found += _behind_widest_lines(latin)
    return sorted({*found}) if found else found


def _is_full(latin: bytes, line_end: int, next_line: int) -> bool:
    """Return whether a line has some width, and the next one is not wider."""
    width = line_end - 1 - latin.rfind(b"\n", max(line_end - _WIDEST, 0), line_end)
    if not _NARROWEST <= width < _WIDEST:
        return False
    return latin.find(b"\n", next_line, next_line + width + 2) >= 0 or len(latin) <= next_line + width


def _behind_widest_lines(latin: bytes) -> Iterator[LineBreak]:
    """Yield the line breaks behind the widest lines of a text, if their width is usual."""
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


def continued(found: Iterable[Found], plain: Sequence[Found], text: str, breaks: Iterable[LineBreak]) -> list[Found]:
    """Leave out what goes on behind a line break although it is complete before it.

    That is so if something else is found at the beginning of the next line, or if a plain word or the name of another
    value stands there: in a list of tokens and in a file of settings, lines are not broken.
    """
    starts, ends = {one.start for one in plain}, {one.end for one in plain}
    complete = [each for each in breaks if each.start in ends]
    return [one for one in found if not any(_only_follows(one, each, text, starts) for each in complete)]


def _only_follows(found: Found, line_break: LineBreak, text: str, starts: set[int]) -> bool:
    if not found.start < line_break.start < found.end:
        return False
    if line_break.end in starts or _ASSIGNMENT.match(text, line_break.end):
        return True
    return _PLAIN_WORD.fullmatch(text, line_break.end, found.end) is not None
