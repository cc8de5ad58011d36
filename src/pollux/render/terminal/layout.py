"""The layout of a transcript: lines with a mark before or a note beside them, fast for lines of any length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from itertools import dropwhile, islice
from typing import TypeAlias

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from pollux.render.terminal.screen import encodable
from pollux.reports.periods import local
from pollux.text.escape import escape_controls, make_visible
from pollux.views.transcript import Block, HiddenBlock

Row: TypeAlias = "tuple[Text | str, Text | str, str]"
"""The mark before a line, the line, and its style."""
LONG_LINE = 2_000
"""Characters above which a line is broken anywhere, not only between words."""

# Characters that Pollux, and Rich for its lists and tables, write themselves, and their ASCII substitutes.
_MARKS = str.maketrans("▌│┊✦✻✓✔✗⊘▶○⋯…▣•·→─━↳", "||:*~+*x/>o~~#*->-->")


@dataclass(frozen=True, slots=True)
class PageFormat:
    """What the renderers of a transcript need to know about the terminal."""

    zone: tzinfo | None
    encoding: str

    @property
    def is_unicode(self) -> bool:
        """Whether the terminal has every character."""
        return self.encoding.lower().startswith("utf")

    def text(self, text: str) -> str:
        """Return text of several lines that the terminal can show."""
        return encodable(make_visible(text), self.encoding)

    def line(self, text: str) -> str:
        """Return text in one line that the terminal can show."""
        return self.text(" ".join(text.split()))

    def clock(self, at: datetime | None) -> str:
        """Return the local time of day; empty without a time."""
        return f"{local(at, self.zone):%H:%M}" if at else ""

    def day(self, block: Block) -> date | None:
        """Return the local day of a block."""
        at = None if isinstance(block, HiddenBlock) else block.at
        return local(at, self.zone).date() if at else None


def lay_out(rows: Iterable[Row], lead: Text | None = None) -> Iterator[RenderableType]:
    """Yield rows in chunks, so that a long output appears at once and is never in memory as a whole."""
    remaining = iter(rows)
    while chunk := tuple(islice(remaining, 500)):
        yield _Rows(chunk, lead or Text())


@dataclass(frozen=True, slots=True)
class _Rows:
    """Lines with a mark before each."""

    rows: tuple[Row, ...]
    lead: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lead = [*_segments(self.lead, console)]
        room = options.max_width - cell_len(self.lead.plain)
        for before, line, style in self.rows:
            first = before if isinstance(before, Text) or not before else Text(before)
            width = cell_len(first.plain) if isinstance(first, Text) else 0
            line_style = console.get_style(style)
            for number, piece in enumerate(_pieces(console, line, max(room - width, 8))):
                yield from lead
                if isinstance(first, Text):
                    yield from [Segment(" " * width)] if number else _segments(first, console)
                if isinstance(piece, Text):
                    yield from _segments(piece, console)
                else:
                    yield Segment(piece, line_style)
                yield Segment.line()


@dataclass(frozen=True, slots=True)
class Gutter:
    """A renderable with a mark to the left of its first line, and another or the same to the left of the others."""

    body: RenderableType
    first: Text | str
    others: str | None = None
    style: str = ""
    most: int | None = None
    """Columns at most."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        first = self.first if isinstance(self.first, Text) else Text(self.first, self.style)
        others = Text(first.plain if self.others is None else self.others, self.style)
        width = min(options.max_width, self.most or options.max_width) - cell_len(first.plain)
        lines = console.render_lines(self.body, options.update(width=max(width, 1), height=None), pad=False)
        # Rich begins lists and code with an empty line.
        for number, line in enumerate(dropwhile(_is_blank, lines)):
            before, content = others if number else first, [*_trimmed(line)]
            yield from _segments(before if content else Text(before.plain.rstrip(), self.style), console)
            yield from content
            yield Segment.line()


@dataclass(frozen=True, slots=True)
class Aside:
    """A renderable with a note to the right of its first line."""

    body: RenderableType
    note: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - len(self.note) - 2
        if not self.note or room < 2 * len(self.note):
            yield self.body
            return
        lines = console.render_lines(self.body, options.update(width=room, height=None), pad=False)
        for number, line in enumerate(lines):
            yield from line if number else Segment.adjust_line_length(line, room)
            if not number:
                yield Segment(f"  {self.note}", console.get_style("dim"))
            yield Segment.line()


@dataclass(frozen=True, slots=True)
class Safe:
    """The last check: replaces characters that a terminal would obey, or does not have."""

    body: RenderableType
    encoding: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        is_unicode = self.encoding.lower().startswith("utf")
        for segment in console.render(self.body, options):
            text = escape_controls(segment.text)
            if not is_unicode:
                text = encodable(text.translate(_MARKS), self.encoding)
            yield Segment(text, segment.style, segment.control)


def _segments(text: Text, console: Console) -> Iterable[Segment]:
    """Render a text within a line, including its base style, which Rich leaves out."""
    return Segment.apply_style(text.render(console), console.get_style(text.style))


def _pieces(console: Console, line: Text | str, width: int) -> Iterable[Text | str]:
    """Break a line between words, or anywhere if it is too long for prose."""
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
    """Remove the spaces with which Rich fills lines, unless they are coloured."""
    end = len(line)
    while end and line[end - 1].text.isspace() and not _is_coloured(line[end - 1].style):
        end -= 1
    yield from line[: end - 1]
    if end:
        text, style, control = line[end - 1]
        yield Segment(text if _is_coloured(style) else text.rstrip(), style, control)


def _is_coloured(style: Style | None) -> bool:
    return style is not None and bool(style.bgcolor or style.reverse or style.underline)
