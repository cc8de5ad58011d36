from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cpu_time import cpu_seconds

from pollux.text.escape import escape_controls, make_visible


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
    assert make_visible(hostile) == harmless


@pytest.mark.parametrize(
    "honest",
    ["naïve – “quoted” …", "日本語メモ", "שלום עולם", "می‌خواهم", "👨‍👩‍👧 ❤️ 🚀", "क्‍ष", "e\u0301", "a\nb"],
)
def test_honest_text_stays(honest: str) -> None:
    assert make_visible(honest) == honest


@given(st.text())
def test_nothing_that_a_terminal_acts_upon_is_left(text: str) -> None:
    cleaned = make_visible(text)
    assert all(ord(each) >= 0x20 or each == "\n" for each in cleaned)
    assert not set(cleaned) & {*map(chr, range(0x7F, 0xA0)), *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"}
    cleaned.encode()
    assert escape_controls(cleaned) == cleaned


@pytest.mark.parametrize("piece", ["a", "日", "a b ", "\x1b[1;31m"])
def test_line_of_five_megabytes_is_escaped_in_linear_time(piece: str) -> None:
    text = piece * (5_000_000 // len(piece))
    with cpu_seconds(10):
        make_visible(text)


@pytest.mark.parametrize("piece", ["a", "日", "\x00", "a\x00", "\x1b[", "\x1b[1;31m", "\t", "\u200d"])
def test_line_of_control_characters_is_escaped_in_linear_time(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    with cpu_seconds(10):
        make_visible(text)
