"""The terminal: a console on which text is never markup, and text that fits its width and its characters.

Nobody knows the colours of a terminal, so Pollux uses only those that can be read on light and on dark backgrounds:
green, bright red, bright blue and bright magenta for text, and one grey for what matters less.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

from rich import console
from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from pollux.model import Cell, ScreenDisplay
from pollux.text.contrast import BLACK, RGB, WHITE, blend, contrast, luminance
from pollux.text.escape import make_visible

Renderable: TypeAlias = console.RenderableType
"""What a console can print."""
_SECONDS_BETWEEN_DRAWINGS = 0.1
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_GREY = "color(244)"
"""#808080: 3.9:1 on white and 4.2:1 on #1e1e1e. Terminals that dim text by half leave 2.8:1 on white."""
_THEME = Theme(
    {
        "dim": _GREY,
        "bar.back": _GREY,
        "bar.complete": "bright_blue",
        "bar.finished": "green",
        "progress.percentage": "none",
        "progress.remaining": "none",
    }
)
_DARKEST, _LIGHTEST = 0.14, 0.3
"""Luminances between which a colour has a contrast of 3:1 with white and with #1e1e1e."""


class Console(console.Console):
    """Rich's console, except that a string is always text: `[red]` and `:smile:` are printed as they are."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  Rich's
        """Create a console with any options of Rich's but those that interpret text."""
        super().__init__(markup=False, emoji=False, highlight=False, theme=_THEME, **options)

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error, where Rich would end the process."""
        raise BrokenPipeError


class Bar:
    """A progress bar on the error stream, which disappears when it is stopped."""

    def __init__(self, label: str, total: int) -> None:
        """Draw an empty bar."""
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415  seldom needed

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        # Not refreshed by a thread: a process with threads cannot be forked safely, and forks do the work.
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
        self._task = self._progress.add_task(label, total=total)
        self._drawn = 0.0
        self._progress.start()

    def update(self, done: int, total: int) -> None:
        """Set the progress; the bar is drawn again at most ten times a second."""
        self._progress.update(self._task, completed=done, total=total)
        if time.monotonic() - self._drawn > _SECONDS_BETWEEN_DRAWINGS:
            self._progress.refresh()
            self._drawn = time.monotonic()

    def stop(self) -> None:
        """Remove the bar."""
        self._progress.stop()


def edited(part: Renderable, edit: Callable[[str], str]) -> Renderable:
    """Return a string or text after a change; anything else as it is."""
    if isinstance(part, str):
        return edit(part)
    if isinstance(part, Text) and edit(part.plain) != part.plain:
        part = part.copy()
        part.plain = edit(part.plain)
    return part


def encodable(text: str, encoding: str) -> str:
    """Return text with backslash escapes for the characters that an encoding lacks."""
    if encoding.lower().startswith("utf"):
        return text
    return text.replace("…", "...").encode(encoding, "backslashreplace").decode(encoding)


def cut(text: str, width: int, *, ellipsis: str = "…") -> str:
    """Return a line cut to a number of terminal cells, of which an East Asian character or an emoji takes two."""
    # The beginning of a text of many megabytes is enough: no real text has eight characters per cell.
    beginning = text[: 8 * width + 8]
    if len(beginning) == len(text) and cell_len(text) <= width:
        return text
    room = width - cell_len(ellipsis)
    return set_cell_size(beginning, room).rstrip() + ellipsis if room > 0 else ellipsis[:width]


def cut_start(text: str, width: int) -> str:
    """Return a line without its beginning if it has more than a number of terminal cells."""
    if cell_len(text) <= width:
        return text
    start, room = len(text), width - 1
    while start and cell_len(text[start - 1]) <= room:
        start -= 1
        room -= cell_len(text[start])
    return f"…{text[start:]}" if width > 0 else ""


def line(text: str, width: int, *, ellipsis: str = "…") -> str:
    """Return any text as one line without control characters, cut to a number of terminal cells."""
    return cut(" ".join(make_visible(text[: 16 * width + 16]).split()), width, ellipsis=ellipsis)


def screen_text(display: ScreenDisplay) -> Text:
    """Return a recorded terminal screen in its colours."""
    text = Text(no_wrap=False, end="")
    for number, cells in enumerate(display.lines):
        row = Text()
        for cell in cells:
            # A cell is part of a line, so a line feed in it is shown and not obeyed.
            row.append(make_visible(cell.text).replace("\n", "\u240a"), _style(cell))
        if not any(cell.bg or cell.inverse for cell in cells):
            row.rstrip()
        text.append("\n" if number else "").append_text(row)
    return text


def _style(cell: Cell) -> Style:
    fg, bg = _ink(cell.fg, cell.bg), _rgb(cell.bg)
    return Style(
        color=Color.from_rgb(*fg) if fg else Color.parse(_GREY) if cell.dim else None,
        bgcolor=Color.from_rgb(*bg) if bg else None,
        bold=cell.bold or None,
        italic=cell.italic or None,
        underline=cell.underline or None,
        reverse=cell.inverse or None,
    )


@lru_cache(maxsize=1024)
def _ink(fg: str, bg: str) -> RGB | None:
    """Return the colour of text so that it can be read: on its own background, or on that of any terminal."""
    ink, paper = _rgb(fg), _rgb(bg)
    if paper:
        return ink or max(BLACK, WHITE, key=lambda colour: contrast(colour, paper))
    if ink is None:
        return None
    goal = BLACK if luminance(ink) > _LIGHTEST else WHITE
    blends = (blend(ink, goal, percent) for percent in range(0, 101, 2))
    return next(colour for colour in blends if _DARKEST <= luminance(colour) <= _LIGHTEST)


def _rgb(colour: str) -> RGB | None:
    if not _HEX.fullmatch(colour):
        return None
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
