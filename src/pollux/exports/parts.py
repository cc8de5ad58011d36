"""A transcript in several files: every so many prompts begin another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import quote

from pollux.exports.source import Subject, folder_beside
from pollux.views.conversation import Numbered, numbered


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a transcript."""

    number: int
    """From 1."""
    blocks: Iterable[Numbered[Subject]]
    has_next: Callable[[], bool]
    """Tells, once all blocks are taken, whether another part follows."""


Page = Callable[[Part], Iterator[bytes]]


def in_parts(subject: Subject, suffix: str, page: Page) -> Iterator[bytes]:
    """Yield the first part; the others, if they are wanted, go beside it, one at a time in memory."""
    split = subject.wanted.split if subject.beside else None
    cut = groupby(numbered(subject), lambda one: max(one.prompt - 1, 0) // split if split else 0)
    waiting = [blocks for _, blocks in [next(cut, (0, ()))]]

    def has_next() -> bool:
        waiting.extend(blocks for _, blocks in [next(cut, (0, None))] if blocks is not None)
        return bool(waiting)

    yield from page(Part(1, waiting.pop(), has_next))
    number = 1
    while waiting and subject.beside:
        number += 1
        subject.beside(_name(number, suffix), b"".join(page(Part(number, waiting.pop(), has_next))))


def links(part: Part, subject: Subject, suffix: str, *, has_next: bool = False) -> Iterator[tuple[str, str]]:
    """Yield where a part leads to: all sessions, the first part, the one before and the next one."""
    up = "../" if part.number > 1 else ""
    if subject.index_page:
        yield "All sessions", f"{up}{quote(subject.index_page)}"
    if part.number > 1:
        first = f"{up}{quote(subject.name)}"
        yield "First part", first
        yield "Part before", _name(part.number - 1, suffix) if part.number - 1 > 1 else first
    if has_next:
        folder = "" if up else f"{quote(folder_beside(subject.name))}/"
        yield "Next part", f"{folder}{_name(part.number + 1, suffix)}"


def _name(number: int, suffix: str) -> str:
    return f"part-{number}{suffix}"
