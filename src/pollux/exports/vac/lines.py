"""Who wrote which lines of a file, as far as the edits of a session tell: carried from edit to edit.

A line that somebody else changed in between belongs to nobody again: the next edit shows what it found.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple, TypeAlias

from pollux.views.diffs import Change, DiffLine

Block: TypeAlias = tuple[int, int, int]
"""A run of lines that stayed: where it began, where it begins now, how long it is."""

_LONG = 2_000
"""Lines above which two texts are not compared: that takes the square of them."""


class Owner(NamedTuple):
    """Who wrote a line, in the words of the schema."""

    type: str
    model: str | None


class Range(NamedTuple):
    """Lines that one owner wrote, counted from 1, with the last one."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class Page:
    """A file as last seen; without lines where its text is not known."""

    lines: list[str] | None = None
    owners: list[Owner | None] = field(default_factory=list)
    hands: dict[Owner, list[str]] = field(default_factory=dict)
    """The calls by which each owner wrote to it."""

    def found(self, text: str) -> None:
        """Take in what an edit found; what is not as it was left belongs to nobody."""
        lines = lines_of(text)
        if lines != self.lines:
            self.owners = _carried(self.owners, compared(self.lines or [], lines), len(lines), None)
            self.lines = lines

    def wrote(self, text: str, owner: Owner, diff: Sequence[DiffLine] = ()) -> None:
        """Take in what an edit left; lines that were not there before belong to its owner."""
        before, after = self.lines or [], lines_of(text)
        kept = kept_blocks(diff, len(before), len(after)) if diff else None
        self.owners = _carried(self.owners, compared(before, after) if kept is None else kept, len(after), owner)
        self.lines = after

    def lose(self) -> None:
        """Forget the text: it has changed in a way that is not known."""
        self.lines, self.owners = None, []

    def ranges(self, owner: Owner) -> Iterator[Range]:
        """Yield the lines that an owner wrote and that are still there."""
        start = 0
        for one, run in groupby(self.owners):
            end = start + len(list(run))
            if one == owner:
                yield Range(start + 1, end, "".join((self.lines or [])[start:end]))
            start = end


def lines_of(text: str) -> list[str]:
    r"""Split a text at `\n` alone, as the client does, and keep the ends."""
    return list(io.StringIO(text, newline="\n"))


def kept_blocks(diff: Sequence[DiffLine], n_before: int, n_after: int) -> list[Block] | None:
    """Read from a diff which lines stayed; `None` if it does not fit the texts."""
    old = new = 0
    blocks: list[Block] = []
    for line in diff:
        if line.change is Change.HUNK or (line.old is None and line.new is None):
            continue
        gap = line.old - 1 - old if line.old is not None else (line.new or 0) - 1 - new
        is_kept = line.change is Change.CONTEXT
        if gap < 0 or (is_kept and (line.new or 0) - 1 - new != gap):
            return None
        blocks.append((old, new, gap + is_kept))
        old += gap + (line.change is not Change.ADD)
        new += gap + (line.change is not Change.DELETE)
    if n_before - old != n_after - new or old > n_before:
        return None
    return [*blocks, (old, new, n_before - old)]


def compared(before: Sequence[str], after: Sequence[str]) -> list[Block]:
    """Find out which lines stayed; of a long text, only its beginning and its end."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    tail = next((n for n in range(shorter - head) if before[-1 - n] != after[-1 - n]), shorter - head)
    blocks = [(0, 0, head), (len(before) - tail, len(after) - tail, tail)]
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) + len(new) <= _LONG:
        found = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        blocks += ((head + one.a, head + one.b, one.size) for one in found)
    return blocks


def _carried(owners: list[Owner | None], kept: list[Block], n_after: int, owner: Owner | None) -> list[Owner | None]:
    after = [owner] * n_after
    for old, new, size in kept:
        after[new : new + size] = owners[old : old + size]
    return after
