from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pollux.model import Cell, ScreenDisplay
from pollux.terminal.text import age, ago, clean, count, cut, encodable, lasted, line, safe, screen_text, size


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b[2J\x1b[H", "␛[2J␛[H"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\x1b]8;;http://x\x1b\\click\x1b]8;;\x1b\\", "␛]8;;http://x␛\\click␛]8;;␛\\"),
        ("\x9b31m", "\\x9b31m"),
        ("a\x00b\x7f\x85", "a␀b␡\\x85"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("\tb\na\tb", "    b\na   b"),
        ("user\u202etxt.exe\u202c", "user\\u{202e}txt.exe\\u{202c}"),
        ("\u2066x\u2069", "\\u{2066}x\\u{2069}"),
        ("pass\u200bword\ufeff", "pass\\u{200b}word\\u{feff}"),
        ("ad\u200dmin x\u200c", "ad\\u{200d}min x\\u{200c}"),
        ("a\u2028b", "a\\u{2028}b"),
        ("\U000e0048\U000e0069", "\\u{e0048}\\u{e0069}"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_tricks_become_visible(hostile: str, harmless: str) -> None:
    assert clean(hostile) == harmless


@pytest.mark.parametrize(
    "honest",
    ["naïve – “quoted” …", "日本語メモ", "שלום עולם", "می‌خواهم", "👨‍👩‍👧 ❤️ 🚀", "क्‍ष", "e\u0301", "a\nb"],
)
def test_honest_text_stays(honest: str) -> None:
    assert clean(honest) == honest


@given(st.text())
def test_nothing_that_a_terminal_acts_upon_is_left(text: str) -> None:
    cleaned = clean(text)
    assert all(ord(each) >= 0x20 or each == "\n" for each in cleaned)
    assert not set(cleaned) & {*map(chr, range(0x7F, 0xA0)), *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"}
    cleaned.encode()
    assert safe(cleaned) == cleaned


@pytest.mark.parametrize("piece", ["a", "日", "a b ", "\x1b[1;31m"])
def test_five_megabytes_in_one_line_are_quick(piece: str) -> None:
    text = piece * (5_000_000 // len(piece))
    start = time.perf_counter()
    clean(text)
    assert time.perf_counter() - start < 10  # a fraction of a second


@pytest.mark.parametrize("piece", ["a", "日", "\x00", "a\x00", "\x1b[", "\x1b[1;31m", "\t", "\u200d"])
def test_a_line_of_nothing_but_tricks_is_quick(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    start = time.perf_counter()
    clean(text)
    line(text, 80)
    cut(text, 80)
    assert time.perf_counter() - start < 10  # a fraction of a second; a square of it would take hours


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
def test_cut_goes_by_cells(text: str, width: int, expected: str) -> None:
    assert cut(text, width) == expected
    assert cell_len(expected) <= width


def test_cut_with_other_dots() -> None:
    assert cut("abcdef", 5, ellipsis="...") == "ab..."
    assert cut("abcdef", 2, ellipsis="...") == ".."


def test_line_is_one_clean_line() -> None:
    assert line(" a\n\tb\x1b[31m\x07 c ", 80) == "a b␇ c"
    assert line("word " * 100, 10) == "word word…"


@pytest.mark.parametrize(
    ("number", "words", "octets"),
    [
        (0, "0", "0 B"),
        (999, "999", "999 B"),
        (1000, "1.0k", "1.0 kB"),
        (12_345, "12.3k", "12.3 kB"),
        (123_456, "123k", "123 kB"),
        (999_999, "1.0M", "1.0 MB"),
        (4_500_000, "4.5M", "4.5 MB"),
        (7_000_000_000, "7.0B", "7.0 GB"),
        (5_000_000_000_000, "5,000B", "5.0 TB"),
        (-1500, "-1.5k", "-1.5 kB"),
    ],
)
def test_numbers_in_three_digits(number: int, words: str, octets: str) -> None:
    assert (count(number), size(number)) == (words, octets)


@pytest.mark.parametrize(
    ("distance", "past", "future"),
    [
        (timedelta(seconds=5), "just now", "in a moment"),
        (timedelta(minutes=1), "1 minute ago", "in 1 minute"),
        (timedelta(hours=5), "5 hours ago", "in 5 hours"),
        (timedelta(days=3), "3 days ago", "in 3 days"),
        (timedelta(days=15), "2 weeks ago", "in 2 weeks"),
        (timedelta(days=65), "2 months ago", "in 2 months"),
        (timedelta(days=800), "2 years ago", "in 2 years"),
    ],
)
def test_ago(distance: timedelta, past: str, future: str) -> None:
    now = datetime(2026, 11, 15, tzinfo=UTC)
    assert (ago(now - distance, now), ago(now + distance, now)) == (past, future)


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (timedelta(days=-1), "0min"),
        (timedelta(minutes=90), "90min"),
        (timedelta(hours=3), "3h"),
        (timedelta(days=2), "2d"),
        (timedelta(days=45), "6w"),
        (timedelta(days=430), "14mo"),
    ],
)
def test_age(distance: timedelta, words: str) -> None:
    now = datetime(2026, 11, 15, tzinfo=UTC)
    assert age(now - distance, now) == words


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(seconds=-1), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(minutes=12), "12 min"),
        (timedelta(hours=3, minutes=5), "3 h 5 min"),
        (timedelta(days=2, hours=1), "2 d 1 h"),
    ],
)
def test_lasted(span: timedelta, words: str) -> None:
    assert lasted(span) == words


def test_a_screen_keeps_its_colours_and_loses_its_tricks() -> None:
    lines = (
        (Cell("ok ", fg="#00ff00", bold=True), Cell("\x1b[2J\n", italic=True), Cell("   ")),
        (Cell("bar  ", bg="#000080", inverse=True),),
        (Cell("plain", fg="red; rm", bg="#12", underline=True, dim=True),),
    )
    text = screen_text(ScreenDisplay(lines))
    assert text.plain == "ok ␛[2J␊\nbar  \nplain"
    styles = [str(span.style) for span in text.spans]
    assert styles == ["bold #00ff00", "italic", "reverse on #000080", "dim underline"]
