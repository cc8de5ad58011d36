"""Places of words in the original text, and the lines around them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pollux.search.highlight import Needle, find_spans, snippet
from pollux.search.tokenizer import readings
from pollux.search.values import TextSpan

TEXTS = st.text(st.characters(exclude_categories=()), max_size=60) | st.text(
    st.sampled_from(
        "aZ19v V_.\n\t\0\x1b[m超时错한글กำか\u3099ｶﾞ\u0301\u200b\u200d\ufe0f👩💻🏽🇩🇪éßİıﬁ™²\ud800\u0951\u1161\u11a8ー々"
    ),
    max_size=30,
)


def slices(text: str, query: str, *, is_prefix: bool = False, is_phrase: bool = False) -> list[str]:
    spans = find_spans(text, Needle(query, is_prefix=is_prefix, is_phrase=is_phrase))
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("the ﬁle, the file", "file", ["ﬁle", "file"]),
        ("Straße und STRASSE", "strasse", ["Straße", "STRASSE"]),
        ("x İstanbul y", "istanbul", ["İstanbul"]),
        ("x ﾀｲﾑｱｳﾄ y", "アウト", ["ｱｳﾄ"]),
        ("ｶﾞｲﾄﾞ", "ガ", ["ｶﾞ"]),
        ("カ\u3099イ", "ガ", ["カ\u3099"]),
        (unicodedata.normalize("NFD", "시간 초과 오류"), "초과", [unicodedata.normalize("NFD", "초과")]),
        ("cafe\u0301 noir", "café", ["cafe\u0301"]),
        ("a foo\u200bbar b", "foobar", ["foo\u200bbar"]),
        ("a get\x1b[31mUser\x1b[0mById b", "user", ["User"]),
        ("a get\x1b[31mUser\x1b[0mById b", "getuserbyid", ["get\x1b[31mUser\x1b[0mById"]),
        ("\x1b[31mFAILED\x1b[0m", "failed", ["FAILED"]),
        ("by 👩🏽‍💻!", "👩‍💻", ["👩🏽‍💻"]),
        ("👍🏽👍", "👍", ["👍🏽", "👍"]),
        ("done🚀🚀", "🚀", ["🚀", "🚀"]),
        ("连接超时错误，超时", "超时", ["超时", "超时"]),
        ("连接超时错误", "误", ["误"]),
        ("ＡＢＣ１２３ abc123", "abc123", ["ＡＢＣ１２３", "abc123"]),
        ("getUserById get_user USER", "user", ["User", "user", "USER"]),
        ("getUserById get_user", "getUser", ["getUser", "get_user"]),
        ("a --no-verify b", "--no-verify", ["no-verify"]),
        ("C++ c C# ++C", "C++", ["C++"]),
        ("ASP.NET, net", ".NET", [".NET"]),
        ("v2.13.4", "2.13.4", ["2.13.4"]),
        ("v2.13.4", "v2", ["v2"]),
        ("foo ---------- bar", "foo bar", ["foo ---------- bar"]),
    ],
)
def test_spans_are_offsets_of_the_original_text(text: str, query: str, expected: list[str]) -> None:
    assert slices(text, query) == expected


def test_a_prefix_marks_what_was_typed() -> None:
    assert slices("timeout timeouts TIME", "time", is_prefix=True) == ["time", "time", "TIME"]
    assert slices("setTimeout", "time", is_prefix=True) == ["Time"]
    assert slices("setTimeout", "setTime", is_prefix=True) == ["setTime"]


def test_no_more_spans_than_the_limit() -> None:
    assert len(find_spans("a " * 100, Needle("a"), limit=7)) == 7
    assert len(find_spans("é a " * 100, Needle("a"), limit=7)) == 7


def test_a_text_is_read_only_as_far_as_needed() -> None:
    for unit in ("timeout ", "timeout é ", "超时", "\x1b[31mtimeout\x1b[0m "):
        needle = Needle("超时" if unit == "超时" else "timeout")
        text = unit * (20_000_000 // len(unit))
        assert len(find_spans(text, needle)) == 50


@pytest.mark.parametrize(
    "unit", ["HUBX", "HUBX ", "aGVsbG8Hub", "hubhub", "Hub\u200d", "🇩", "超", "a\u0301", "x" * 70 + "Hub"]
)
@pytest.mark.parametrize("query", ["hub", "hub hub", "🇩🇪", "超时", "a á a"])
def test_a_hostile_text_ends(unit: str, query: str) -> None:
    text = unit * (1_000_000 // len(unit))
    for span in find_spans(text, Needle(query)):
        assert readings(text[span.start : span.end])


def test_a_place_behind_the_first_block_is_found() -> None:
    for filling in ("é ", "超", "\x1b[0m-", "é", "—\n"):
        for n_before in (61_440, 65_530, 65_536, 120_001):
            text = (filling * n_before)[:n_before] + " getUserById, 错误 " + filling * 5_000
            assert slices(text, "getUserById") == ["getUserById"]
            assert slices(text, "user") == ["User"]
            assert slices(text, "错误") == ["错误"]


def test_places_in_two_blocks_are_given_once() -> None:
    text = "é timeout " * 20_000
    spans = find_spans(text, Needle("timeout"), limit=1_000_000)
    assert len(spans) == 20_000
    assert spans == sorted(set(spans))


def is_in(text: str, needle: str, *, is_whole: bool) -> bool:
    """Return whether the tokens of a highlighted text are those of the needle, or contain them if it is not whole."""
    for actual in readings(text):
        for wanted in readings(needle):
            if actual.tokens == wanted.tokens:
                return True
            if not is_whole and contains(actual.tokens, wanted.tokens):
                return True
    return False


def contains(tokens: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    runs = [tokens[at : at + len(wanted)] for at in range(len(tokens) - len(wanted) + 1)]
    return any(run[:-1] == wanted[:-1] and run[-1].startswith(wanted[-1]) for run in runs)


@given(TEXTS, st.data())
@example("a超\u200b时b", None)
@settings(max_examples=400)
def test_a_highlighted_text_has_the_tokens_of_the_needle(text: str, data: st.DataObject | None) -> None:
    first = data.draw(st.integers(0, len(text))) if data else 1
    last = data.draw(st.integers(first, len(text))) if data else 4
    needle = Needle(text[first:last])
    is_whole = all(unicodedata.is_normalized("NFKC", char) for char in text)
    ends = 0
    for span in find_spans(text, needle):
        assert ends <= span.start < span.end <= len(text)
        assert is_in(text[span.start : span.end], needle.text, is_whole=is_whole), text[span.start : span.end]
        ends = span.end


def test_a_snippet_shows_the_words_around() -> None:
    text = "The connection to the server failed\nbecause of a timeout after 30 seconds. " * 3
    spans = find_spans(text, Needle("timeout"))
    line = snippet(text, spans[:1], width=40)
    assert [line.text[span.start : span.end] for span in line.spans] == ["timeout"]
    assert "\n" not in line.text
    assert line.text == line.text.strip()
    assert 30 <= len(line.text) <= 64
    assert (line.has_before, line.has_after) == (True, True)


def test_a_short_text_is_shown_whole() -> None:
    line = snippet("one\t two\r\nthree", [TextSpan(5, 8)])
    assert line.text == "one two three"
    assert line.spans == (TextSpan(4, 7),)
    assert not line.has_before
    assert not line.has_after


def test_a_snippet_without_spans_is_the_start_of_the_text() -> None:
    assert snippet("", []).text == ""
    line = snippet("  word " * 100, [], width=20)
    assert line.text.startswith("word word")
    assert (line.has_before, line.has_after) == (False, True)


def test_the_best_place_has_most_spans() -> None:
    text = "red " + "x " * 300 + "red green red " + "y " * 300
    spans = sorted(find_spans(text, Needle("red")) + find_spans(text, Needle("green")))
    line = snippet(text, spans, width=60)
    assert [line.text[span.start : span.end] for span in line.spans] == ["red", "green", "red"]


def test_colours_are_left_out_and_controls_are_visible() -> None:
    text = "a\x1b[31mFAILED\x1b[0m b\x07c \u202edesrever \x00"
    line = snippet(text, find_spans(text, Needle("failed")))
    assert line.text.startswith("aFAILED b\u2407c ")
    assert line.spans == (TextSpan(1, 7),)
    assert all(char.isprintable() for char in line.text)


def test_colours_take_no_room() -> None:
    text = "\x1b[1;31mERROR\x1b[0m: \x1b[33mtimeout\x1b[0m after \x1b[1m30\x1b[0m s" * 9
    line = snippet(text, find_spans(text, Needle("timeout"))[:1], width=28)
    assert line.text.startswith("ERROR: timeout after 30")
    assert line.spans == (TextSpan(7, 14),)


@pytest.mark.parametrize("width", range(8, 60))
def test_no_terminal_sequence_is_cut(width: int) -> None:
    text = "x\x1b[1;31mERROR\x1b[0m:\x1b[38;5;200mtimeout\x1b[0m after\x1b[1m30\x1b[0ms" * 3
    for span in find_spans(text, Needle("timeout")):
        line = snippet(text, [span], width)
        assert [line.text[inner.start : inner.end] for inner in line.spans] == ["timeout"]
        assert line.text in "xERROR:timeout after30s" * 3


def test_a_snippet_of_invisible_characters_is_not_much_longer() -> None:
    line = snippet("\u202e" * 5000 + "x" + "\U000e0041" * 5000, [TextSpan(5000, 5001)], width=200)
    assert len(line.text) <= 250
    assert [line.text[span.start : span.end] for span in line.spans] == ["x"]


def test_a_snippet_begins_and_ends_with_whole_characters() -> None:
    text = "e\u0301" * 300 + "x" + "👩🏽‍💻" * 300
    line = snippet(text, [TextSpan(600, 601)], width=40)
    assert not unicodedata.combining(line.text[0])
    assert line.text.endswith("👩🏽‍💻")


def test_a_span_longer_than_the_width_is_cut() -> None:
    text = "foo " + "-" * 5000 + " bar"
    line = snippet(text, find_spans(text, Needle("foo bar")), width=100)
    assert len(line.text) <= 130
    assert line.spans
    assert line.has_after


@given(TEXTS, st.integers(1, 80), st.data())
@settings(max_examples=300)
def test_highlights_are_inside_their_snippet(text: str, width: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, len(text)))
    spans = find_spans(text, Needle(text[first:last]))
    line = snippet(text, spans, width)
    line.text.encode()
    assert "\n" not in line.text
    assert bool(line.spans) == bool(spans)
    ends = 0
    for span in line.spans:
        assert ends <= span.start < span.end <= len(line.text)
        ends = span.end


def test_a_million_spans_are_no_burden() -> None:
    spans = [TextSpan(at, at + 1) for at in range(0, 200_000, 2)] * 10
    line = snippet("a " * 100_000, spans, width=100)
    assert len(line.text) <= 130
