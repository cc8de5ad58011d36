"""Lines with something before or beside them: what a transcript is laid out with, quick for lines of any length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import dropwhile, islice
from typing import TypeAlias

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from pollux.render.terminal.text import encodable
from pollux.text.escape import safe

Row: TypeAlias = "tuple[Text | str, Text | str, str]"
"""What stands before a line, the line, its style."""
LONG_LINE = 2_000
"""Characters above which a line is broken anywhere."""

# What we (and Rich, for its lists and tables) write ourselves, and what stands for it where there is only ASCII.
_MARKS = str.maketrans("▌│┊✦✻✓✔✗⊘▶○⑂⋯…▣•·→─━", "||:*~+*x/>oY~~#*->--")


def lay_out(rows: Iterable[Row], lead: Text | None = None) -> Iterator[RenderableType]:
    """Give so many rows at a time that a long output neither waits for its end nor is held as a whole."""
    rest = iter(rows)
    while some := tuple(islice(rest, 500)):
        yield _Rows(some, lead or Text())


@dataclass(frozen=True, slots=True)
class _Rows:
    """Lines as they are, each with something before it; quick for lines of any length."""

    rows: tuple[Row, ...]
    lead: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lead = [*_segments(self.lead, console)]
        room = options.max_width - cell_len(self.lead.plain)
        for before, line, style in self.rows:
            first = before if isinstance(before, Text) or not before else Text(before)
            width = cell_len(first.plain) if isinstance(first, Text) else 0
            look = console.get_style(style)
            for number, piece in enumerate(_pieces(console, line, max(room - width, 8))):
                yield from lead
                if isinstance(first, Text):
                    yield from [Segment(" " * width)] if number else _segments(first, console)
                if isinstance(piece, Text):
                    yield from _segments(piece, console)
                else:
                    yield Segment(piece, look)
                yield Segment.line()


@dataclass(frozen=True, slots=True)
class Gutter:
    """Something with a mark at the left of its first line, and another one (or the same) at the left of all others."""

    body: RenderableType
    first: Text | str
    rest: str | None = None
    style: str = ""
    most: int | None = None
    """Columns it fills at most."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        first = self.first if isinstance(self.first, Text) else Text(self.first, self.style)
        rest = Text(first.plain if self.rest is None else self.rest, self.style)
        width = min(options.max_width, self.most or options.max_width) - cell_len(first.plain)
        lines = console.render_lines(self.body, options.update(width=max(width, 1), height=None), pad=False)
        # Rich begins lists and code with an empty line.
        for number, line in enumerate(dropwhile(_is_blank, lines)):
            before, shown = rest if number else first, [*_trimmed(line)]
            yield from _segments(before if shown else Text(before.plain.rstrip(), self.style), console)
            yield from shown
            yield Segment.line()


@dataclass(frozen=True, slots=True)
class Aside:
    """Something with a few words at the right of its first line."""

    body: RenderableType
    words: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - len(self.words) - 2
        if not self.words or room < 2 * len(self.words):
            yield self.body
            return
        lines = console.render_lines(self.body, options.update(width=room, height=None), pad=False)
        for number, line in enumerate(lines):
            yield from line if number else Segment.adjust_line_length(line, room)
            if not number:
                yield Segment(f"  {self.words}", Style(dim=True))
            yield Segment.line()


@dataclass(frozen=True, slots=True)
class Safe:
    """The last check: nothing gets past it that a terminal would act upon, or has no character for."""

    body: RenderableType
    encoding: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        is_unicode = self.encoding.lower().startswith("utf")
        for segment in console.render(self.body, options):
            text = safe(segment.text)
            if not is_unicode:
                text = encodable(text.translate(_MARKS), self.encoding)
            yield Segment(text, segment.style, segment.control)


def _segments(text: Text, console: Console) -> Iterable[Segment]:
    """Render a text within a line; Rich does that without the style of the whole."""
    return Segment.apply_style(text.render(console), console.get_style(text.style))


def _pieces(console: Console, line: Text | str, width: int) -> Iterable[Text | str]:
    """Break a line between words; one that is too long for prose, just anywhere."""
    if isinstance(line, Text):
        return line.wrap(console, width)
    if len(line) <= width // 2 or (len(line) <= width and line.isascii()):
        return (line,)
    if len(line) <= LONG_LINE:
        return (piece.plain for piece in Text(line).wrap(console, width))
    if line.isascii():
        return (line[start : start + width] for start in range(0, len(line), width))
    return chop_cells(line, width)


def _is_blank(line: list[Segment]) -> bool:
    return not any(segment.text.strip() or _is_coloured(segment.style) for segment in line)


def _trimmed(line: list[Segment]) -> Iterator[Segment]:
    """Take off the blanks with which Rich fills lines up, unless they are coloured."""
    end = len(line)
    while end and line[end - 1].text.isspace() and not _is_coloured(line[end - 1].style):
        end -= 1
    yield from line[: end - 1]
    if end:
        text, style, control = line[end - 1]
        yield Segment(text if _is_coloured(style) else text.rstrip(), style, control)


def _is_coloured(style: Style | None) -> bool:
    return style is not None and bool(style.bgcolor or style.reverse or style.underline)
