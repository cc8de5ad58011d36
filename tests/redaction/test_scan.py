"""Caches do not change the result of redaction."""

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
    redaction = redactor()
    assert redaction.text("ask wilma") == "ask wilma"
    assert (
        redaction.text("in /home/wilma/.config, ask wilma")
        == "in /home/[redacted:user#1]/.config, ask [redacted:user#1]"
    )
    assert redaction.text("ask wilma") == "ask [redacted:user#1]"


def test_disguised_name_is_found_in_a_cached_text() -> None:
    text = "path%2Fwilm%61"
    assert redactor().text(text) == text
    assert redactor(user_name="wilma").text(text) == "path%2F[redacted:user#1]"


def test_repeated_text_is_counted_again() -> None:
    for id_ in ROWS:
        redaction, text = redactor(), sample(id_).text
        first = redaction.text(text)
        counts = [replacement.count for replacement in redaction.report().replaced]
        assert redaction.text(text) == first
        assert [replacement.count for replacement in redaction.report().replaced] == [2 * count for count in counts], (
            id_
        )
        assert all(replacement.distinct == 1 for replacement in redaction.report().replaced)


def test_repeated_text_is_reported_in_each_place() -> None:
    redaction, text = redactor(), f"take {sample('github-token').text} now"
    redaction.redact_text(text, "here")
    redaction.redact_text(text, "there")
    assert [(finding.where, finding.count, finding.excerpt) for finding in redaction.findings()] == [
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
