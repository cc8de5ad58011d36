"""Redaction is fast, and no text makes it slow: time grows with the length of a text and not with its square."""

from __future__ import annotations

import os
import re
import time

import pytest
from tests.redaction.samples import ROWS, sample

from pollux.redaction import RULES, redactor

pytestmark = pytest.mark.skipif("POLLUX_SPEED" not in os.environ, reason="takes minutes: `make test-speed` runs it")

SIZE = 500_000
"""A tenth of the five million characters that are to take less than a second."""
LIMIT = 0.1
_QUIET = 4e-9
"""Seconds a character that the simplest of patterns takes on the machine these limits are for."""

LINES = [
    *(
        "a",
        "0",
        " ",
        ".",
        "=",
        "+",
        "@",
        "!",
        "~",
        '"',
        "\\",
        "\x1b",
        "\0",
        "é",
        "検",
        "ab12",
        "a/a",
        "[[",
        "x@",
        "%4",
        "\\u",
    ),
    *(
        "-----BEGIN ",
        "eyJ",
        ".eyJ",
        "-eyJaaaaaaaa",
        "eyJaaaaaaaa.",
        "a://b:",
        "https://",
        "{}[]",
        "YWFhYWFhYWFhYWFhYWFhYWFh",
        "QUJD\n",
    ),
    *(
        "ghp_",
        "MTMT",
        "xoxb ",
        "/home/",
        "-home-",
        "home",
        "cookie: a=",
        "$6$a",
        "!AQ",
        "Q~",
        "sig=",
        "api_key",
        "0.",
        "t1.",
        "SG.",
    ),
]
"""What repeated makes a line of the worst kind: endless, never ended, or beginning over and over again."""


def seconds(text: str) -> float:
    """Measure in the time of a machine that has nothing else to do; the better of two times, for others work here."""
    return min(_seconds(text) for _ in range(2))


def _seconds(text: str) -> float:
    probe = "some text " * 20_000
    start = time.process_time()
    re.compile(r"[\x00\x01]").search(probe)
    slowness = max((time.process_time() - start) / len(probe) / _QUIET, 1)
    start = time.process_time()
    redactor().text(text)
    return (time.process_time() - start) / slowness


@pytest.mark.parametrize("line", LINES, ids=ascii)
def test_no_line_takes_long(line: str) -> None:
    assert seconds((line * (SIZE // len(line) + 1))[:SIZE]) < LIMIT


def test_a_huge_line_takes_less_than_a_second() -> None:
    assert seconds("a1B2c3D4-_" * 500_000) < 1


def test_no_rule_is_slow_when_it_begins_again_and_again() -> None:
    for rule in RULES:
        for anchor in rule.anchors[:2]:
            for more in ("", "-a1B"):
                assert seconds((anchor + more) * (10_000 // len(anchor + more))) < LIMIT, (anchor, more)


def test_a_text_full_of_secrets_takes_time_by_its_length() -> None:
    for id_ in ROWS:
        text = sample(id_).text
        assert seconds(f"{text}\n" * (10_000 // len(text))) < LIMIT, id_
