"""Texts that belong together, such as the parts of a message, joined so that rules match across their borders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

_MIN_SCREEN = 60
"""Narrower lines do not fill a screen."""


class JoinedText(NamedTuple):
    """Texts, and what separates each from the next: nothing where one continues the other."""

    texts: Sequence[str]
    gap: str | Sequence[str] = ""

    @property
    def gaps(self) -> Sequence[str]:
        """The gap after each text but the last."""
        return (self.gap,) * (len(self.texts) - 1) if isinstance(self.gap, str) else self.gap

    @property
    def text(self) -> str:
        """All texts as one."""
        if isinstance(self.gap, str):
            return self.gap.join(self.texts)
        parts: list[str] = []
        for text, gap in zip(self.texts, (*self.gaps, ""), strict=True):
            parts += text, gap
        return "".join(parts)

    @property
    def starts(self) -> Sequence[int]:
        """The position of each text in `text`."""
        widths = (len(text) + len(gap) for text, gap in zip(self.texts, self.gaps, strict=False))
        return list(accumulate(widths, initial=0))

    @property
    def seams(self) -> Sequence[int]:
        """The positions where one text continues another."""
        return [start for start, gap in zip(self.starts[1:], self.gaps, strict=True) if not gap]

    def replace(self, spans: Sequence[tuple[int, int]], replacements: Sequence[str]) -> JoinedText:
        """Replace spans, each in the text where it starts; the rest of a span is cut from the texts it reaches into."""
        if len(self.texts) == 1:
            return JoinedText([_replace_spans(self.texts[0], spans, replacements)])
        texts: list[str] = []
        number, is_continued = 0, False
        for text, start in zip(self.texts, self.starts, strict=True):
            end, at, parts = start + len(text), 0, []
            while number < len(spans) and spans[number][0] < end:
                first, last = spans[number]
                parts.append(text[at : max(first - start, at)])
                if not is_continued:
                    parts.append(replacements[number])
                at = min(max(last - start, at), len(text))
                is_continued = last > end
                if is_continued:
                    break
                number += 1
            texts.append("".join((*parts, text[at:])))
        return JoinedText(texts, self.gap)


def _replace_spans(text: str, spans: Sequence[tuple[int, int]], replacements: Sequence[str]) -> str:
    parts: list[str] = []
    at = 0
    for (start, end), replacement in zip(spans, replacements, strict=True):
        parts += text[at:start], replacement
        at = end
    return "".join((*parts, text[at:]))


def join_screen(rows: Sequence[Sequence[str]]) -> JoinedText:
    """Join the cells of a terminal's screen; a line that fills the screen continues in the next."""
    lines = ["".join(row) for row in rows]
    width = max(map(len, lines), default=0)
    gaps: list[str] = []
    for row, line in zip(rows, lines, strict=True):
        is_full = len(line) == width >= _MIN_SCREEN and not line.endswith(" ")
        gaps += [""] * (len(row) - 1)
        gaps += ["" if is_full else "\n"] if row else []
    return JoinedText([cell for row in rows for cell in row], gaps[:-1])
