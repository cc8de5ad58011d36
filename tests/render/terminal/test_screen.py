from __future__ import annotations

import pytest
from rich.cells import cell_len
from tests.cpu_time import cpu_seconds

from pollux.model import Cell, ScreenDisplay
from pollux.render.terminal.screen import cut, encodable, line, screen_text


@pytest.mark.parametrize("piece", ["a", "日", "\x00", "a\x00", "\x1b[", "\x1b[1;31m", "\t", "\u200d"])
def test_hostile_line_is_cut_quickly(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    with cpu_seconds(10):
        line(text, 80)
        cut(text, 80)


def test_encodable() -> None:
    assert encodable("é日", "utf-8") == "é日"
    assert encodable("é日", "UTF-16") == "é日"
    assert encodable("a…", "ascii") == "a..."
    assert encodable("é日", "latin-1") == "é\\u65e5"
    assert encodable("é日", "ascii") == "\\xe9\\u65e5"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("日本語", 6, "日本語"),
        ("日本語テ", 6, "日本…"),
        ("日本語テ", 5, "日本…"),
        ("🚀🚀🚀", 4, "🚀…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("", 0, ""),
    ],
)
def test_cut_counts_cells(text: str, width: int, expected: str) -> None:
    assert cut(text, width) == expected
    assert cell_len(expected) <= width


def test_cut_uses_another_ellipsis() -> None:
    assert cut("abcdef", 5, ellipsis="...") == "ab..."
    assert cut("abcdef", 2, ellipsis="...") == ".."


def test_line_has_no_breaks_or_control_characters() -> None:
    assert line(" a\n\tb\x1b[31m\x07 c ", 80) == "a b␇ c"
    assert line("word " * 100, 10) == "word word…"


def test_recorded_screen_keeps_colours_and_no_control_characters() -> None:
    lines = (
        (Cell("ok ", fg="#00ff00", bold=True), Cell("\x1b[2J\n", italic=True), Cell("   ")),
        (Cell("bar  ", bg="#000080", inverse=True),),
        (Cell("plain", fg="red; rm", bg="#12", underline=True, dim=True),),
    )
    text = screen_text(ScreenDisplay(lines))
    assert text.plain == "ok ␛[2J␊\nbar  \nplain"
    styles = [str(span.style) for span in text.spans]
    assert styles == ["bold #00ad00", "italic", "reverse #ffffff on #000080", "underline color(244)"]
