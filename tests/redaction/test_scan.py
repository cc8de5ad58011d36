"""Caches do not change what is found."""

from __future__ import annotations

from tests.redaction.samples import ROWS, sample

from pollux.redaction import redactor
from pollux.redaction.scan import PLAIN, TextCache, clean_texts, clear_caches


def test_plain_text_is_searched_for_names() -> None:
    text = "wilma wrote this"
    assert redactor().text(text) == text
    assert text in PLAIN
    assert redactor(user_name="wilma").text(text) == "[redacted:user#1] wrote this"
    assert redactor(user_name="fred flint").text(text) == text
    assert redactor(words=["this"]).text(text) == "wilma wrote [redacted:word#1]"


def test_clean_text_is_searched_again_after_a_name_is_learned() -> None:
    found = redactor()
    assert found.text("ask wilma") == "ask wilma"
    assert (
        found.text("in /home/wilma/.config, ask wilma") == "in /home/[redacted:user#1]/.config, ask [redacted:user#1]"
    )
    assert found.text("ask wilma") == "ask [redacted:user#1]"


def test_disguised_name_is_found_in_a_cached_text() -> None:
    text = "path%2Fwilm%61"
    assert redactor().text(text) == text
    assert redactor(user_name="wilma").text(text) == "path%2F[redacted:user#1]"


def test_repeated_text_is_counted_again() -> None:
    for id_ in ROWS:
        found, text = redactor(), sample(id_).text
        first = found.text(text)
        counts = [one.count for one in found.report().replaced]
        assert found.text(text) == first
        assert [one.count for one in found.report().replaced] == [2 * count for count in counts], id_
        assert all(one.distinct == 1 for one in found.report().replaced)


def test_repeated_text_is_reported_in_each_place() -> None:
    found, text = redactor(), f"take {sample('github-token').text} now"
    found.redact_text(text, "here")
    found.redact_text(text, "there")
    assert [(one.where, one.count, one.excerpt) for one in found.findings()] == [
        ("here", 1, "take ghp_…(40) now"),
        ("there", 1, "take ghp_…(40) now"),
    ]


def test_cache_is_limited() -> None:
    kept = TextCache()
    for number in range(100):
        kept.keep(f"{number}{'x' * 100_000}")
    assert 0 < sum(map(len, kept)) <= 2 << 20
    kept.keep("y" * (3 << 20))
    assert not kept


def test_caches_can_be_cleared() -> None:
    redactor(user_name="wilma").text("some text")
    assert PLAIN
    assert clean_texts(frozenset({"wilma"}))
    clear_caches()
    assert not PLAIN
    assert not clean_texts(frozenset({"wilma"}))
