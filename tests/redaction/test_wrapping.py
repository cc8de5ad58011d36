"""Line breaks that cut a word are told from those that do not."""

from __future__ import annotations

import pytest
from tests.redaction.samples import sample

from pollux.redaction import redactor
from pollux.redaction.wrapping import line_breaks, long_runs, outline

GITHUB, GITLAB = sample("github-token").secret, [sample("gitlab-token", seed).secret for seed in range(3)]
MANY_LINES = "\n" * 30
"""With so many lines, only a line break next to a long run counts."""


def breaks(text: str) -> list[str]:
    """Return the text on both sides of each line break that cuts a word."""
    latin = text.encode("latin-1")
    shape = outline(latin)
    positions = line_breaks(latin, shape, long_runs(shape))
    return [f"{text[max(start - 4, 0) : start]}|{text[end : end + 4]}" for start, end in positions]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{'a' * 40}\n{'b' * 30}", ["aaaa|bbbb"]),
        (f"{'a' * 40}\r\n{'b' * 30}", ["aaaa|bbbb"]),
        (f"{'a' * 40}\n{'b' * 40}\n{'c' * 9}", ["aaaa|bbbb", "bbbb|cccc"]),
        (f"{'a' * 47}\n{'b' * 30}", ["aaaa|bbbb"]),
        (f"{'a b ' * 10}\n{'c d ' * 5}", ["a b |c d "]),
        (f"{'a b ' * 11}ab\n{'c d ' * 5}", []),
        (f"{'a' * 40}\n{'b' * 41}", []),
        (f"{'a' * 39}\n{'b' * 30}", []),
        (f"{'a' * 40}\n\n{'b' * 30}", []),
        (f"{'a' * 40}", []),
        ("", []),
        (f"{MANY_LINES}{'a b ' * 10}ab\ncd", []),
        (f"{MANY_LINES}{'a b ' * 10}{'c' * 20}\ndefg", ["cccc|defg"]),
        (f"{MANY_LINES}{'a b ' * 10}{'c' * 20}\ndef", []),
        (f"{MANY_LINES}{'a b ' * 10}{'c' * 20}\n  defg", []),
        (f"{MANY_LINES}{'a b ' * 10}defg\n{'c' * 20}", ["defg|cccc"]),
    ],
)
def test_line_breaks(text: str, expected: list[str]) -> None:
    assert breaks(text) == expected


def test_list_of_tokens_is_not_joined() -> None:
    listed = "\n".join(f"{'-' * 20} {token}" for token in GITLAB)
    expected = "\n".join(f"{'-' * 20} [redacted:gitlab-token#{number}]" for number in (1, 2, 3))
    assert redactor().text(listed) == expected
    bare = "\n".join(f"{token}{token[::-1]}" for token in GITLAB)
    assert redactor().text(bare).count("[redacted:gitlab-token#") == 3


@pytest.mark.parametrize("behind", ["thanks", "Thanks for it", "OTHER_NAME=value", "name: value"])
def test_word_on_the_line_after_a_token_stays(behind: str) -> None:
    text = f"please take this one: {GITLAB[0]}\n{behind}"
    assert redactor().text(text) == f"please take this one: [redacted:gitlab-token#1]\n{behind}"
    text = f"please write to mara.muster@acme-industries.io\n{behind}"
    assert redactor().text(text) == f"please write to [redacted:email#1]\n{behind}"


def test_broken_token_is_replaced_as_one() -> None:
    line = f"see {'x' * 40} {GITHUB}"
    assert redactor().text(f"{line[:64]}\n{line[64:]} there") == f"see {'x' * 40} [redacted:github-token#1] there"
