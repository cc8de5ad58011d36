"""Decodings of a text map positions to their origin, and no disguise hides a secret."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus, unquote, unquote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redaction.samples import ROWS, Sample, samples

from pollux.redaction import redactor
from pollux.redaction.disguises import decodings

_PIECES = (
    "a",
    "bc",
    " ",
    "\n",
    "%41",
    "%2F",
    "%",
    "%4",
    "\\u0041",
    "\\x41",
    "\\/",
    "\\\\",
    "\\",
    "\x1b[31m",
    "\x1b]x\x07",
    "é",
    "&#61;",
    "&amp;",
    "+",
    "?a=b",
    "\u200b",
)
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=30).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", ["plain"]),
        ("a\x1b[1;31mb\x1b[0mc", ["abc", "a\x1fb\x1fc"]),
        ("a\x1b]0;title\x07b", ["ab", "a\x1fb"]),
        ("a\\u001b[31mb", ["ab", "a\x1fb"]),
        ("a%3Db", ["a%3Db", "a=b"]),
        ("a%3db", ["a%3db", "a=b"]),
        ("a%253Db", ["a%253Db", "a%3Db", "a=b"]),
        ("a\\u003db", ["a\\u003db", "a=b"]),
        ("a\\\\\\u003db", ["a\\\\\\u003db", "a=b"]),
        ("a\\/b", ["a\\/b", "a/b"]),
        ("a%0Ab %zz 100%", ["a%0Ab %zz 100%", "a\nb %zz 100%"]),
        ("a%01b %zz 100%", ["a%01b %zz 100%"]),
        ("a+b%3Dc", ["a+b%3Dc", "a b=c", "a+b=c"]),
        ("a + b%3Dc", ["a + b%3Dc", "a + b=c", "a + b=c"]),
        ("a&#61;&quot;b&#x2F;&amp;lt;", ["a&#61;&quot;b&#x2F;&amp;lt;", 'a="b/&lt;', 'a="b/<']),
        ("a&b;&#300;&nbsp;", ["a&b;&#300;&nbsp;"]),
        ("a\u200bb\u00adc", ["a\u200bb\u00adc", "abc"]),
        ("%5Cu0041", ["%5Cu0041", "\\u0041", "A"]),
    ],
)
def test_decodings(text: str, expected: list[str]) -> None:
    assert [reading.text for reading in decodings(text)] == expected


def test_seams() -> None:
    assert [reading.text for reading in decodings("abcdef", [2, 4])] == ["abcdef", "ab\x1fcd\x1fef"]


def test_only_text_near_an_escape_is_decoded() -> None:
    text = f"{'x' * 5000}%41{'y' * 5000}%42{'z' * 5000}"
    _, again = decodings(text)
    assert again.text == f"\x1f{'x' * 400}A{'y' * 400}\x1f{'y' * 400}B{'z' * 400}\x1f"
    at = again.text.index("A")
    assert again.origin(at, at + 1) == (5000, 5003)
    assert again.origin(at - 1, at + 2) == (4999, 5004)


def test_only_text_near_a_seam_is_decoded() -> None:
    joined, again = decodings(f"{'x' * 5000}{'y' * 5000}", [5000])
    assert joined.text == f"{'x' * 5000}{'y' * 5000}"
    assert again.text == f"\x1f{'x' * 400}\x1f{'y' * 400}\x1f"
    assert again.origin(402, 404) == (5000, 5002)


@given(TEXTS, st.lists(st.integers(min_value=0, max_value=60), max_size=4))
def test_every_position_has_an_origin(text: str, cuts: list[int]) -> None:
    seams = sorted({min(cut, len(text)) for cut in cuts})
    for reading in decodings(text, seams):
        last = 0
        for at, char in enumerate(reading.text):
            start, end = reading.origin(at, at + 1)
            assert 0 <= start <= end <= len(text)
            assert start >= last
            last = start
            if char != "\x1f" and end - start == 1:
                assert text[start:end] == char or (text[start:end], char) == ("+", " ")


# Every sample in every disguise

INVISIBLE = {
    "soft hyphen": "\u00ad",
    "zero-width space": "\u200b",
    "zero-width non-joiner": "\u200c",
    "zero-width joiner": "\u200d",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
}


def numbered(number: str) -> Callable[[str], str]:
    """Return a text with numbered lines."""
    return lambda text: "\n".join(number.format(at) + line for at, line in enumerate(text.split("\n"), 8))


def folded(width: int, newline: str = "\n") -> Callable[[str], str]:
    """Return a text wrapped at a width, as `fold` does."""
    return lambda text: newline.join(
        line[at : at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width)
    )


def escaped(each: str, *, is_all: bool = False) -> Callable[[str], str]:
    """Return a text with entities for all characters, or for all but letters, digits and blanks."""
    return lambda text: "".join(
        each.format(ord(char)) if is_all or not (char.isalnum() or char.isspace()) else char for char in text
    )


def unescaped_json(text: str) -> str:
    """Return a text without the escapes of JSON, at any depth."""
    return re.sub(r'\\+(["/\\])', r"\1", re.sub(r"\\+n", "\n", text))


DISGUISES: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "JSON": (json.dumps, unescaped_json),
    "JSON in JSON": (lambda text: json.dumps(json.dumps({"note": text})), unescaped_json),
    "a query": (lambda text: f"https://acme.io/?q={quote(text, safe='')}&x=1", unquote),
    "a form": (lambda text: f"https://acme.io/?q={quote_plus(text)}&x=1", unquote_plus),
    "a URL in a URL": (
        lambda text: f"https://acme.io/?q={quote(quote(text, safe=''))}",
        lambda text: unquote(unquote(text)),
    ),
    "a URL in JSON": (lambda text: json.dumps(f"https://acme.io/?q={quote(text, safe='')}"), unquote),
    "HTML": (html.escape, html.unescape),
    "HTML with numbers": (escaped("&#{};"), html.unescape),
    "HTML with hexadecimal numbers": (escaped("&#x{:X};"), html.unescape),
    "HTML with nothing but numbers": (escaped("&#{};", is_all=True), html.unescape),
    "lines numbered as by cat": (numbered("{:6}\t"), str),
    "lines numbered as by grep": (numbered("{}:"), str),
    "lines numbered in a box": (numbered("{:3} | "), str),
    "quoted lines": (numbered("> "), str),
    "indented lines": (numbered("    "), str),
    "lines of Windows": (lambda text: text.replace("\n", "\r\n"), str),
    "broken at 40 columns": (folded(40), str),
    "broken at 64 columns": (folded(64), str),
    "broken at 76 columns": (folded(76), str),
    "broken at 80 columns": (folded(80), str),
    "broken at 76 columns by Windows": (folded(76, "\r\n"), str),
}
"""Functions that disguise a text, and that undo it."""


def all_samples() -> Iterator[Sample]:
    for id_ in ROWS:
        yield from samples(id_)


def is_shown(secret: str, text: str) -> bool:
    """Return whether a text contains a line of a secret, regardless of line breaks."""
    shown = "".join(text.split())
    return any("".join(line.split()) in shown for line in secret.split("\n"))


@pytest.mark.parametrize("name", DISGUISES)
def test_no_disguise_hides_a_secret(name: str) -> None:
    disguised, undone = DISGUISES[name]
    left = []
    for sample in all_samples():
        if name == "JSON in JSON" and "\\\\\\\\" in sample.text:  # more backslashes than a rule looks at
            continue
        done = redactor().text(disguised(f"see {sample.text} there"))
        if is_shown(sample.secret, undone(done)):
            left.append(sample.text)
    assert not left


@pytest.mark.parametrize("name", INVISIBLE)
def test_no_invisible_character_hides_a_secret(name: str) -> None:
    for sample in all_samples():
        third = len(sample.secret) // 3 or 1
        cut = [sample.secret[:third], sample.secret[third : 2 * third], sample.secret[2 * third :]]
        done = redactor().text(f"see {sample.text.replace(sample.secret, INVISIBLE[name].join(cut))} there")
        assert not is_shown(sample.secret, done.replace(INVISIBLE[name], ""))


def test_disguised_secret_has_the_pseudonym_of_the_plain_one() -> None:
    token = next(samples("github-token")).secret
    redaction = redactor()
    plain = redaction.text(token)
    forms = (f"{token[:9]}\u200b{token[9:]}", f"see {'x' * 27} {token[:8]}\n{token[8:]}", token.replace("_", "&#95;"))
    assert all(redaction.text(form).endswith(plain) for form in forms)
