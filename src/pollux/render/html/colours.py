"""Syntax colours and terminal colours as classes, so that all pages share one style sheet.

A terminal colour becomes the nearest of the usual 256. `palette` writes their rules: the first 16 from a table, the
others computed, with ink light enough and paper dark enough to be read on the page's dark terminals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from pygments.token import Comment, Generic, Keyword, Literal, Name, Operator, _TokenType

from pollux.model import Cell
from pollux.render.html.markup import Html, element, joined, long_text, text
from pollux.text.contrast import BLACK, RGB, WHITE, blend, contrast
from pollux.views.languages import lexer_for

_SYNTAX: tuple[tuple[_TokenType, str], ...] = (
    (Comment.Preproc, "sp"),
    (Comment, "sc"),
    (Keyword.Type, "st"),
    (Keyword.Constant, "sn"),
    (Keyword, "sk"),
    (Operator.Word, "sk"),
    (Literal.String, "ss"),
    (Literal.Number, "sn"),
    (Literal.Date, "sn"),
    (Name.Function, "sf"),
    (Name.Class, "st"),
    (Name.Builtin, "sf"),
    (Name.Decorator, "sp"),
    (Name.Tag, "sk"),
    (Name.Attribute, "sp"),
    (Name.Variable, "sp"),
    (Generic.Inserted, "add"),
    (Generic.Deleted, "del"),
    (Generic.Heading, "sk"),
    (Generic.Subheading, "sk"),
)
"""The first matching row decides."""


def coloured_code(code: str, language: str) -> Html:
    """Return code with the colours of its language, or plain if `views.languages` has no lexer for it."""
    lexer = lexer_for(language, code)
    if lexer is None:
        return long_text(code)
    tokens = [*lexer.get_tokens(code)]
    if "".join(value for _, value in tokens) != code:
        return text(code)
    spans = []
    for name, run in groupby(tokens, lambda token: _syntax_class(token[0])):
        value = "".join(value for _, value in run)
        spans.append(element("span", value, class_=name) if name and value.strip() else text(value))
    return joined(spans)


@lru_cache(maxsize=512)
def _syntax_class(token: _TokenType) -> str:
    return next((name for kind, name in _SYNTAX if token in kind), "")


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
_BLACKS = frozenset({0, 16, *range(_GREYS, 238)})
TERMINAL = (20, 24, 35)
"""The lightest background of a terminal on a page: `--term` of the light theme."""
INK = (214, 217, 226)
"""Text without a colour: `--glint`."""
_FIRST_INKS = (
    *["#8a8781", "#f0857a", "#8fcf8f", "#e3c26f", "#85b4ef", "#d9a0e0", "#7fd0d0", "#d8d5cd"],
    *["#98948c", "#ff9d94", "#a8e6a8", "#f5dc8c", "#a6caff", "#ecb9f2", "#9be8e8", "#fff"],
)
_FIRST_PAPERS = (
    *["#000", "#7d2a22", "#2a5c2f", "#6b5310", "#27466e", "#5d3466", "#1f5858", "#5b5954"],
    *["#45433f", "#963a30", "#336737", "#6c5617", "#345b8c", "#744180", "#266464", "#595752"],
)
"""The 16 colours that every terminal defines as it likes."""
CONTRAST = 4.5
"""The least contrast of text with its background (WCAG 2, level AA)."""


@dataclass(frozen=True, slots=True)
class TextStyle:
    """Colours and attributes of terminal text; a colour is one of the 256."""

    fg: int | None = None
    bg: int | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    inverse: bool = False

    @property
    def classes(self) -> str:
        """Return the classes for this style."""
        fg, bg = (self.bg, self.fg) if self.inverse else (self.fg, self.bg)
        if self.inverse and bg is None:
            names = ["fi", "bi"]  # light paper, on which no ink but the darkest can be read
        else:
            if bg is not None and fg in _BLACKS:
                fg = None  # every paper of the palette is dark
            names = [f"f{fg}"] if fg is not None else []
            names += [f"b{bg}"] if bg is not None else []
        names += [name for name in ("bold", "dim", "italic", "underline") if getattr(self, name)]
        return " ".join(names)


def has_colours(words: str) -> bool:
    """Return whether a text contains colour sequences."""
    return bool(_SEQUENCE.search(words))


def coloured(words: str) -> Html:
    """Return a text with the colours of its sequences; sequences of other kinds become visible."""
    return joined(_spans(words.replace("\r\n", "\n")))


def cells(line: tuple[Cell, ...]) -> Html:
    """Return a line of a recorded screen; a line break in a cell becomes visible."""
    end = len(line)
    while end and not (line[end - 1].text.strip() or line[end - 1].bg or line[end - 1].inverse):
        end -= 1
    return joined(_span(cell.text.replace("\n", "\u240a"), _cell_style(cell)) for cell in line[:end])


def palette() -> str:
    """Return the style rules of the 256 colours."""
    rules = []
    for number, (ink, paper) in enumerate(zip(_FIRST_INKS, _FIRST_PAPERS, strict=True)):
        rules.append(f".f{number}{{color:{ink}}}.b{number}{{background:{paper}}}")
    for number in range(_CUBE, 256):
        colour = _rgb(number)
        ink = _hex(_blend_until_readable(colour, WHITE, TERMINAL))
        paper = _hex(_blend_until_readable(colour, BLACK, INK))
        rules.append(f".f{number}{{color:{ink}}}.b{number}{{background:{paper}}}")
    return "".join(rules)


def _blend_until_readable(colour: RGB, towards: RGB, against: RGB) -> RGB:
    """Mix a colour with white or black, as little as it takes to be read against another."""
    for percent in range(0, 101, 5):
        mixed = blend(colour, towards, percent)
        if contrast(mixed, against) >= CONTRAST:
            return mixed
    return towards


def _hex(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _spans(words: str) -> Iterator[Html]:
    style, at = TextStyle(), 0
    for sequence in _SEQUENCE.finditer(words):
        if sequence.start() > at:
            yield _span(words[at : sequence.start()], style)
        style, at = _apply(style, sequence[1]), sequence.end()
    if at < len(words):
        yield _span(words[at:], style)


def _span(words: str, style: TextStyle) -> Html:
    classes = style.classes
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
def _apply(style: TextStyle, sequence: str) -> TextStyle:
    codes = [int(code) if code else 0 for code in re.split("[;:]", sequence[:200])]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = TextStyle()
        elif code in _FLAGS:
            style = replace(style, **_FLAGS[code])
        elif code in {38, 48}:
            style = _painted(style, _extended(codes), is_ink=code == 38)  # noqa: PLR2004
        elif code in {39, 49}:
            style = _painted(style, None, is_ink=code == 39)  # noqa: PLR2004
        else:
            colour = _basic(code)
            if colour is not None:
                style = _painted(style, colour, is_ink=code // 10 in {3, 9})
    return style


def _painted(style: TextStyle, colour: int | None, *, is_ink: bool) -> TextStyle:
    return replace(style, fg=colour) if is_ink else replace(style, bg=colour)


def _basic(code: int) -> int | None:
    """Return the colour of a short code: 30 to 37 and 90 to 97, and ten more for the background."""
    for first, number in ((30, 0), (40, 0), (90, 8), (100, 8)):
        if first <= code < first + 8:
            return number + code - first
    return None


def _extended(codes: list[int]) -> int | None:
    """Pop `5;number` or `2;red;green;blue` off the codes and return the colour."""
    kind = codes.pop(0) if codes else 0
    if kind == 5 and codes:  # noqa: PLR2004
        return min(codes.pop(0), 255)
    if kind == 2 and len(codes) >= 3:  # noqa: PLR2004
        red, green, blue = (min(codes.pop(0), 255) for _ in range(3))
        return _nearest(red, green, blue)
    return None


def _cell_style(cell: Cell) -> TextStyle:
    fg, bg = _from_hex(cell.fg), _from_hex(cell.bg)
    return TextStyle(fg, bg, cell.bold, cell.dim, cell.italic, cell.underline, cell.inverse)


@lru_cache(maxsize=1024)
def _from_hex(colour: str) -> int | None:
    match = _HEX.fullmatch(colour)
    return _nearest(*(int(part, 16) for part in match.groups())) if match else None


@lru_cache(maxsize=4096)
def _nearest(red: int, green: int, blue: int) -> int:
    def distance(number: int) -> int:
        r, g, b = _rgb(number)
        return (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2

    return min(range(256), key=distance)


def _rgb(number: int) -> RGB:
    if number < _CUBE:
        return _BASIC[number]
    if number >= _GREYS:
        grey = 8 + 10 * (number - _GREYS)
        return grey, grey, grey
    number -= _CUBE
    return _STEPS[number // 36], _STEPS[number // 6 % 6], _STEPS[number % 6]
