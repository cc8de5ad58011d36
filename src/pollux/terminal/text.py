"""Text that is fit for a terminal: without tricks, not too wide, and numbers and times as people say them.

What a session holds comes from models, programs and web pages. None of it may move the cursor, change the title, hide
behind other text or run from right to left over what follows.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.style import Style
from rich.text import Text

from pollux.model import Cell, ScreenDisplay

TAB = 4

# Colours alone are harmless, but they are noise once they do not colour.
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")

# Invisible, or able to reorder their surroundings. The joiners are letters of some scripts and make families of emoji:
# they stay between two characters that are neither ASCII nor of the neighbouring alphabets.
_TRICKS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but not line feed and tab
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # invisible in the middle of scripts
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"  # spaces of no width, separators, embeddings, isolates
    "\u3164\ufeff\uffa0\ufff9-\ufffb"  # fillers, byte order mark, interlinear notes
    "\ud800-\udfff"  # half of a character
    "\U000e0000-\U000e0fff"  # tags and selectors that can hide a whole text
    "]+"
    "|(?<![\u0590-\U000dffff])[\u200c\u200d]|[\u200c\u200d](?![\u0590-\U000dffff])"
)

_PICTURES = 0x2400
"""Where Unicode has pictures of the control characters."""


def clean(text: str) -> str:
    """Make visible what a terminal would act upon, and leave out colours; lines stay lines."""
    return _expanded(safe(_COLOUR.sub("", text.replace("\r\n", "\n"))))


def safe(text: str) -> str:
    """Make visible what a terminal would act upon, whatever it is."""
    return _TRICKS.sub(_shown, text)


def _shown(tricks: re.Match[str]) -> str:
    return "".join(map(_picture, tricks[0]))


@lru_cache(maxsize=1024)
def _picture(trick: str) -> str:
    code = ord(trick)
    if code < 0x20:  # noqa: PLR2004
        return chr(_PICTURES + code)
    if code == 0x7F:  # noqa: PLR2004
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004
        return "\ufffd"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"  # noqa: PLR2004


def _expanded(text: str) -> str:
    return text.expandtabs(TAB) if "\t" in text else text


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


def count(number: int) -> str:
    """Say a number in about three digits: 999, 12.3k, 4.5M."""
    return _scaled(number, ("", "k", "M", "B"))


def size(number: int) -> str:
    """Say a number of bytes in about three digits: 999 B, 12.3 kB, 4.5 MB."""
    return _scaled(number, (" B", " kB", " MB", " GB", " TB"))


def _scaled(number: int, units: tuple[str, ...]) -> str:
    value, scale = float(number), 0
    while abs(value) >= 999.5 and scale < len(units) - 1:  # noqa: PLR2004
        value, scale = value / 1000, scale + 1
    if not scale:
        return f"{number}{units[0]}"
    return f"{value:.1f}{units[scale]}" if abs(value) < 99.95 else f"{value:,.0f}{units[scale]}"  # noqa: PLR2004


_SPANS = (
    (timedelta(days=365), "year"),
    (timedelta(days=30), "month"),
    (timedelta(days=7), "week"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
)


def ago(then: datetime, now: datetime) -> str:
    """Say how long ago something was, or how soon it will be."""
    distance = abs(now - then)
    for span, name in _SPANS:
        if distance >= span:
            number = distance // span
            words = f"{number} {name}{'' if number == 1 else 's'}"
            return f"{words} ago" if then < now else f"in {words}"
    return "just now" if then <= now else "in a moment"


def age(then: datetime, now: datetime) -> str:
    """Say how old something is in a column's few characters: 5min, 3h, 2d, 6w, 14mo."""
    distance = max(now - then, timedelta())
    for span, unit in _UNITS:
        if distance >= 2 * span:
            return f"{distance // span}{unit}"
    return f"{distance // timedelta(minutes=1)}min"


_UNITS = (
    (timedelta(days=30), "mo"),
    (timedelta(days=7), "w"),
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
)


def lasted(span: timedelta) -> str:
    """Say how long something took, in its two largest units."""
    minutes = int(span.total_seconds()) // 60
    if minutes < 1:
        return f"{max(0, int(span.total_seconds()))} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


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
