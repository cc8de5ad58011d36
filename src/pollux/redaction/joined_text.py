"""Texts that belong together, read as one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

_NARROW = 60
"""A line of fewer columns is not taken for one that fills the screen."""


class Pieces(NamedTuple):
    """Texts, and what stands between each and the next: nothing where one goes on with the other."""

    texts: Sequence[str]
    gap: str | Sequence[str] = ""

    @property
    def gaps(self) -> Sequence[str]:
        """What stands behind each text but the last."""
        return (self.gap,) * (len(self.texts) - 1) if isinstance(self.gap, str) else self.gap

    @property
    def whole(self) -> str:
        """All texts as one."""
        if isinstance(self.gap, str):
            return self.gap.join(self.texts)
        return "".join(part for pair in zip(self.texts, (*self.gaps, ""), strict=True) for part in pair)

    @property
    def starts(self) -> Sequence[int]:
        """Where each text begins in the whole."""
        widths = (len(text) + len(gap) for text, gap in zip(self.texts, self.gaps, strict=False))
        return list(accumulate(widths, initial=0))

    @property
    def seams(self) -> Sequence[int]:
        """Where one text goes on with another."""
        return [start for start, gap in zip(self.starts[1:], self.gaps, strict=True) if not gap]

    def replaced(self, spans: Sequence[tuple[int, int]], words: Sequence[str]) -> Pieces:
        """Put a word where each span begins, and cut the rest of the span from the texts that it reaches into."""
        if len(self.texts) == 1:
            return Pieces([_replaced(self.texts[0], spans, words)])
        texts: list[str] = []
        number, is_begun = 0, False
        for text, start in zip(self.texts, self.starts, strict=True):
            end, at, parts = start + len(text), 0, []
            while number < len(spans) and spans[number][0] < end:
                first, last = spans[number]
                parts.append(text[at : max(first - start, at)])
                if not is_begun:
                    parts.append(words[number])
                at = min(max(last - start, at), len(text))
                is_begun = last > end
                if is_begun:
                    break
                number += 1
            texts.append("".join((*parts, text[at:])))
        return Pieces(texts, self.gap)


def _replaced(text: str, spans: Sequence[tuple[int, int]], words: Sequence[str]) -> str:
    parts: list[str] = []
    at = 0
    for (start, end), word in zip(spans, words, strict=True):
        parts += text[at:start], word
        at = end
    return "".join((*parts, text[at:]))


def screen(rows: Sequence[Sequence[str]]) -> Pieces:
    """Read a terminal's screen: a line that fills it goes on in the next."""
    lines = ["".join(row) for row in rows]
    width = max(map(len, lines), default=0)
    gaps: list[str] = []
    for row, line in zip(rows, lines, strict=True):
        is_full = len(line) == width >= _NARROW and not line.endswith(" ")
        gaps += [""] * (len(row) - 1)
        gaps += ["" if is_full else "\n"] if row else []
    return Pieces([cell for row in rows for cell in row], gaps[:-1])
