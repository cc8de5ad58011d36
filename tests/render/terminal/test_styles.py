"""Text can be read on light and on dark terminals: the styles that renderers use, and the colours of recorded screens.

The palettes are those of VS Code's terminal, light on white and dark on #1e1e1e, as of 2025. No colour but the four of
`TEXT` has a contrast of 4.5:1 on both: yellow and cyan are too pale on white; red, blue and magenta too dark on black.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from rich.color import ANSI_COLOR_NAMES, Color
from rich.style import Style

import pollux
from pollux.model import Cell, ScreenDisplay
from pollux.render.terminal.screen import Console, screen_text
from pollux.text.contrast import RGB, contrast

LIGHT, DARK = (255, 255, 255), (30, 30, 30)
PALETTES = {
    LIGHT: {"green": "107c10", "bright_red": "cd3131", "bright_blue": "0451a5", "bright_magenta": "bc05bc"},
    DARK: {"green": "0dbc79", "bright_red": "f14c4c", "bright_blue": "3b8eea", "bright_magenta": "d670d6"},
}
TEXT = ("green", "bright_red", "bright_blue", "bright_magenta")
ATTRIBUTES = ("bold", "italic", "underline", "none")
SECONDARY = "dim"
FOR_TEXT, FOR_THE_REST = 4.5, 3
RENDERERS = sorted((Path(pollux.__file__).parent / "render" / "terminal").glob("*.py"))
STYLE_WORDS = {*ANSI_COLOR_NAMES, *ATTRIBUTES, SECONDARY, "reverse", "blink", "strike"}


def rgb(digits: str) -> RGB:
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("background", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_of_text_can_be_read(background: RGB, name: str) -> None:
    assert contrast(rgb(PALETTES[background][name]), background) >= FOR_TEXT


@pytest.mark.parametrize("background", [LIGHT, DARK], ids=["light", "dark"])
def test_grey_of_secondary_text_can_be_read(background: RGB) -> None:
    style = Console().get_style(SECONDARY)
    assert style.color is not None
    assert not style.dim
    assert contrast(style.color.get_truecolor(), background) >= FOR_THE_REST


@pytest.mark.parametrize("path", RENDERERS, ids=lambda path: path.name)
def test_renderers_use_no_other_style(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        words = node.value.split()
        if not words or not {*words} <= STYLE_WORDS:
            continue
        is_text = {*words} <= {*TEXT, *ATTRIBUTES}
        assert is_text or words == [SECONDARY], f"{path.name}:{node.lineno}: {node.value!r}"


@pytest.mark.parametrize("name", ["bar.complete", "bar.finished", "bar.back", "progress.percentage"])
def test_progress_bar_has_the_same_colours(name: str) -> None:
    color = Console().get_style(name).color
    assert color in (None, Color.parse("color(244)"), *map(Color.parse, TEXT))


@pytest.mark.parametrize(
    "digits", ["000000", "ffffff", "ffff00", "00ffff", "0000ff", "000080", "cd0000", "e5e5e5", "7f7f7f", "00cd00"]
)
def test_recorded_colour_can_be_read_on_any_terminal(digits: str) -> None:
    style = style_of(Cell("x", fg=f"#{digits}"))
    assert style.color is not None
    for background in (LIGHT, DARK):
        assert contrast(style.color.get_truecolor(), background) >= FOR_THE_REST


@pytest.mark.parametrize(("background", "ink"), [("ffff00", "000000"), ("000080", "ffffff"), ("cd0000", "ffffff")])
def test_recorded_background_gets_black_or_white_text(background: str, ink: str) -> None:
    style = style_of(Cell("x", bg=f"#{background}"))
    assert (style.color, style.bgcolor) == (Color.from_rgb(*rgb(ink)), Color.from_rgb(*rgb(background)))


def test_recorded_pair_of_colours_is_unchanged() -> None:
    style = style_of(Cell("x", fg="#ffff00", bg="#000080"))
    assert (style.color, style.bgcolor) == (Color.from_rgb(255, 255, 0), Color.from_rgb(0, 0, 128))


def style_of(cell: Cell) -> Style:
    (span,) = screen_text(ScreenDisplay(((cell,),))).spans
    assert isinstance(span.style, Style)
    return span.style
