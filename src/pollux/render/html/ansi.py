"""Terminal colours as classes: a page has a fixed set of them, so that no style has to be made for a session.

Any colour becomes the nearest of the usual 256, of which the first sixteen look as the page's own theme wants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from pollux.model import Cell
from pollux.render.html.markup import Html, element, joined, text

_SEQUENCE = re.compile(r"\x1b\[([0-9;:]*)m")
_HEX = re.compile(r"#([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})")
_STEPS = (0, 95, 135, 175, 215, 255)
_CUBE = 16
_GREYS = 232
_BASIC = (
    *((0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (0, 0, 128), (128, 0, 128), (0, 128, 128), (192, 192, 192)),
    *((128, 128, 128), (255, 0, 0), (0, 255, 0), (255, 255, 0), (0, 0, 255), (255, 0, 255), (0, 255, 255)),
    (255, 255, 255),
)


@dataclass(frozen=True, slots=True)
class Look:
    """How characters are written; a colour is one of the 256."""

    fg: int | None = None
    bg: int | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    inverse: bool = False

    @property
    def classes(self) -> str:
        """The classes that make it look so."""
        fg, bg = (self.bg, self.fg) if self.inverse else (self.fg, self.bg)
        names = [f"f{fg}" if fg is not None else "fi" if self.inverse else ""]
        names += [f"b{bg}" if bg is not None else "bi" if self.inverse else ""]
        names += [name for name in ("bold", "dim", "italic", "underline") if getattr(self, name)]
        return " ".join(filter(None, names))


def has_colours(words: str) -> bool:
    """Tell whether a text holds sequences that colour it."""
    return bool(_SEQUENCE.search(words))


def coloured(words: str) -> Html:
    """Write a text with the colours that are in it; other sequences are shown as what they are."""
    return joined(_runs(words.replace("\r\n", "\n")))


def cells(line: tuple[Cell, ...]) -> Html:
    """Write a line of a recorded screen; nothing in it may begin another."""
    end = len(line)
    while end and not (line[end - 1].text.strip() or line[end - 1].bg or line[end - 1].inverse):
        end -= 1
    return joined(_run(cell.text.replace("\n", "\u240a"), _cell_look(cell)) for cell in line[:end])


def palette() -> str:
    """Give the style rules of all colours but the first sixteen, which are the theme's."""
    rules = []
    for number in range(_CUBE, 256):
        value = "#{:02x}{:02x}{:02x}".format(*_rgb(number))
        rules.append(f".f{number}{{color:{value}}}.b{number}{{background:{value}}}")
    return "".join(rules)


def _runs(words: str) -> Iterator[Html]:
    look, at = Look(), 0
    for found in _SEQUENCE.finditer(words):
        if found.start() > at:
            yield _run(words[at : found.start()], look)
        look, at = _changed(look, found[1]), found.end()
    if at < len(words):
        yield _run(words[at:], look)


def _run(words: str, look: Look) -> Html:
    classes = look.classes
    return element("span", words, class_=classes) if classes else text(words)


_FLAGS = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"inverse": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"inverse": False},
}


@lru_cache(maxsize=1024)
def _changed(look: Look, given: str) -> Look:
    """Follow one sequence."""
    codes = [int(code) if code else 0 for code in re.split("[;:]", given[:200])]
    while codes:
        code = codes.pop(0)
        if code == 0:
            look = Look()
        elif code in _FLAGS:
            look = replace(look, **_FLAGS[code])
        elif code in {38, 48}:
            look = _painted(look, _extended(codes), is_ink=code == 38)  # noqa: PLR2004
        elif code in {39, 49}:
            look = _painted(look, None, is_ink=code == 39)  # noqa: PLR2004
        elif (found := _basic(code)) is not None:
            look = _painted(look, found, is_ink=code // 10 in {3, 9})
    return look


def _painted(look: Look, colour: int | None, *, is_ink: bool) -> Look:
    return replace(look, fg=colour) if is_ink else replace(look, bg=colour)


def _basic(code: int) -> int | None:
    """Give the colour of the short codes: 30 to 37 and 90 to 97, and ten more for the background."""
    for first, number in ((30, 0), (40, 0), (90, 8), (100, 8)):
        if first <= code < first + 8:
            return number + code - first
    return None


def _extended(codes: list[int]) -> int | None:
    """Take a colour of many off the codes: `5;number` or `2;red;green;blue`."""
    kind = codes.pop(0) if codes else 0
    if kind == 5 and codes:  # noqa: PLR2004
        return min(codes.pop(0), 255)
    if kind == 2 and len(codes) >= 3:  # noqa: PLR2004
        red, green, blue = (min(codes.pop(0), 255) for _ in range(3))
        return _nearest(red, green, blue)
    return None


def _cell_look(cell: Cell) -> Look:
    return Look(_from_hex(cell.fg), _from_hex(cell.bg), cell.bold, cell.dim, cell.italic, cell.underline, cell.inverse)


@lru_cache(maxsize=1024)
def _from_hex(colour: str) -> int | None:
    found = _HEX.fullmatch(colour)
    return _nearest(*(int(part, 16) for part in found.groups())) if found else None


@lru_cache(maxsize=4096)
def _nearest(red: int, green: int, blue: int) -> int:
    def distance(number: int) -> int:
        r, g, b = _rgb(number)
        return (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2

    return min(range(256), key=distance)


def _rgb(number: int) -> tuple[int, int, int]:
    if number < _CUBE:
        return _BASIC[number]
    if number >= _GREYS:
        grey = 8 + 10 * (number - _GREYS)
        return grey, grey, grey
    number -= _CUBE
    return _STEPS[number // 36], _STEPS[number // 6 % 6], _STEPS[number % 6]
