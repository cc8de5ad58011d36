from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pollux.model import Json
from pollux.views.excerpts import Excerpt, Limits, compact, fold, line, pretty, shorten

SHORT = Limits(head=2, tail=1, chars=120)


def test_shorten_keeps_both_ends() -> None:
    text = "\n".join(str(n) for n in range(100, 400))
    excerpt = shorten(text, SHORT)
    assert excerpt == Excerpt("100\n101", "399", 297, len(text) - 10)
    assert excerpt.hidden == "297 more lines, 1,189 characters"
    assert shorten(text, None) == Excerpt(text)
    assert shorten("\na\nb\n\n", SHORT) == Excerpt("a\nb")


def test_shorten_does_not_hide_a_gap_as_short_as_its_note() -> None:
    assert shorten("a\nb\nc\nd", SHORT) == Excerpt("a\nb\nc\nd")


def test_very_long_line_is_cut_by_characters() -> None:
    excerpt = shorten("x" * 5_000_000, SHORT)
    assert (len(excerpt.head), len(excerpt.tail), excerpt.hidden) == (80, 40, "4,999,880 more characters")
    assert shorten("x" * 5_000, Limits(head=1, tail=0, chars=100)) == Excerpt("x" * 100, "", 0, 4_900)


def test_fold_hides_all_text() -> None:
    assert fold("a\nb\n").hidden == "2 lines, 3 characters"
    assert fold("").hidden == ""


def test_line_is_shortened_to_its_width() -> None:
    assert line(" a\n\tb ") == "a b"
    assert line("abcdef", 4) == "abc…"
    assert line("a" + " " * 100 + "b", 4) == "a…"


def test_json_on_one_line_and_on_several() -> None:
    assert compact({"a": [1.5, None, True], "b": "é"}) == '{"a": [1.5, null, true], "b": "é"}'
    assert json.loads(pretty({"a": 1})) == {"a": 1}
    deep: Json = []
    for _ in range(5000):
        deep = [deep]
    assert compact(deep) == pretty(deep) == "(nested too deeply to be shown)"


@given(st.text(alphabet="a\n", max_size=400), st.integers(0, 5), st.integers(0, 5), st.integers(3, 60))
def test_hidden_text_is_counted(text: str, head: int, tail: int, chars: int) -> None:
    excerpt = shorten(text, Limits(head, tail, chars))
    stripped = text.strip("\n")
    assert len(excerpt.head) + len(excerpt.tail) + excerpt.hidden_chars == len(stripped)
    assert stripped.startswith(excerpt.head)
    assert stripped.endswith(excerpt.tail)
    assert excerpt.hidden_lines <= stripped.count("\n") + 1
