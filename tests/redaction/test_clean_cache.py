"""What is remembered from one text to the next, and from one redactor to the next, changes nothing that is found."""

from __future__ import annotations

from tests.redaction.samples import ROWS, sample

from pollux.redaction import redactor
from pollux.redaction.clean_cache import PLAIN, Kept, clean, forget


def test_a_text_that_was_plain_is_looked_at_by_those_who_know_a_name_in_it() -> None:
    text = "wilma wrote this"
    assert redactor().text(text) == text
    assert text in PLAIN
    assert redactor(user_name="wilma").text(text) == "[redacted:user#1] wrote this"
    assert redactor(user_name="fred flint").text(text) == text
    assert redactor(extra_names=["this"]).text(text) == "wilma wrote [redacted:name#1]"


def test_a_text_that_was_clean_is_looked_at_again_when_a_name_is_learned() -> None:
    found = redactor()
    assert found.text("ask wilma") == "ask wilma"
    assert (
        found.text("in /home/wilma/.config, ask wilma") == "in /home/[redacted:user#1]/.config, ask [redacted:user#1]"
    )
    assert found.text("ask wilma") == "ask [redacted:user#1]"


def test_a_disguised_name_is_found_though_others_found_the_text_clean() -> None:
    text = "path%2Fwilm%61"
    assert redactor().text(text) == text
    assert redactor(user_name="wilma").text(text) == "path%2F[redacted:user#1]"


def test_what_comes_again_is_counted_again() -> None:
    for id_ in ROWS:
        found, text = redactor(), sample(id_).text
        first = found.text(text)
        counts = [one.count for one in found.report().replaced]
        assert found.text(text) == first
        assert [one.count for one in found.report().replaced] == [2 * count for count in counts], id_
        assert all(one.distinct == 1 for one in found.report().replaced)


def test_what_comes_again_elsewhere_is_told_there() -> None:
    found, text = redactor(), f"take {sample('github-token').text} now"
    found.one(text, "here")
    found.one(text, "there")
    assert [(one.where, one.count, one.excerpt) for one in found.findings()] == [
        ("here", 1, "take ghp_…(40) now"),
        ("there", 1, "take ghp_…(40) now"),
    ]


def test_not_more_is_kept_than_fits() -> None:
    kept = Kept()
    for number in range(100):
        kept.keep(f"{number}{'x' * 100_000}")
    assert 0 < sum(map(len, kept)) <= 2 << 20
    kept.keep("y" * (3 << 20))
    assert not kept


def test_all_can_be_forgotten() -> None:
    redactor(user_name="wilma").text("some text")
    assert PLAIN
    assert clean(frozenset({"wilma"}))
    forget()
    assert not PLAIN
    assert not clean(frozenset({"wilma"}))
