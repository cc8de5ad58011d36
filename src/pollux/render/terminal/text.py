"""Text that fits a terminal: not too wide, in characters that it has, and with the colours of a recorded screen."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.style import Style
from rich.text import Text

from pollux.model import Cell, ScreenDisplay
from pollux.text.escape import clean


def encodable(text: str, encoding: str) -> str:
    """Write with a backslash what a terminal of this encoding has no character for."""
    if encoding.lower().startswith("utf"):
        return text
    return text.replace("…", "...").encode(encoding, "backslashreplace").decode(encoding)


def cut(text: str, width: int, *, ellipsis: str = "…") -> str:
    """Cut a line to so many cells, of which an East Asian character or an emoji takes two."""
    # Of a text of many megabytes the beginning is enough; nothing honest has eight characters in one cell.
    beginning = text[: 8 * width + 8]
    if len(beginning) == len(text) and cell_len(text) <= width:
        return text
    room = width - cell_len(ellipsis)
    return set_cell_size(beginning, room).rstrip() + ellipsis if room > 0 else ellipsis[:width]


def line(text: str, width: int, *, ellipsis: str = "…") -> str:
    """Make one clean line of any text, of at most so many cells."""
    return cut(" ".join(clean(text[: 16 * width + 16]).split()), width, ellipsis=ellipsis)


_HEX = re.compile(r"#[0-9a-fA-F]{6}")


def screen_text(display: ScreenDisplay) -> Text:
    """Give a recorded terminal screen with its colours."""
    text = Text(no_wrap=False, end="")
    for number, cells in enumerate(display.lines):
        row = Text()
        for cell in cells:
            # A cell is part of a line: nothing in it may begin another.
            row.append(clean(cell.text).replace("\n", "\u240a"), _style(cell))
        if not any(cell.bg or cell.inverse for cell in cells):
            row.rstrip()
        text.append("\n" if number else "").append_text(row)
    return text


def _style(cell: Cell) -> Style:
    return Style(
        color=Color.parse(cell.fg) if _HEX.fullmatch(cell.fg) else None,
        bgcolor=Color.parse(cell.bg) if _HEX.fullmatch(cell.bg) else None,
        bold=cell.bold or None,
        italic=cell.italic or None,
        underline=cell.underline or None,
        dim=cell.dim or None,
        reverse=cell.inverse or None,
    )
