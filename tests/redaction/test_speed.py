"""Redaction is fast, and the time for a text grows with its length, not with the square of it.

Times are processor times, relative to the current speed of the machine, and the best of several rounds, because other
programs may be running.
"""

from __future__ import annotations

import os
import re
import sysconfig
import time
from pathlib import Path
from typing import Any

import pytest
from scripts.redaction_speed import Work, home_works, load_sessions, processor_seconds
from tests.corpus.trees import WHOLE, all_trees, groups, needs_corpus
from tests.redaction.samples import ROWS, sample
from tests.redaction.test_places import call, message
from tests.redaction.test_redactor import session

from pollux.cli.demo import HOME as DEMO
from pollux.model import FunctionResponse, Message
from pollux.redaction import OPTIONAL_RULES, RULES, Redactor, redactor

pytestmark = pytest.mark.skipif("POLLUX_SPEED" not in os.environ, reason="takes minutes: `make test-speed` runs it")

BAR = 50e6
"""Characters per second."""
SIZE = 500_000
"""Five million characters may take two seconds; this is a tenth of them."""
LIMIT = 0.2
_PROBE = "/home/Some text, some more: 1234567890 " * 25_000
_QUIET = 3.5e-3
"""Seconds that the probe takes on the machine for which the limits were chosen."""
_ROUNDS = 25

LINES = [
    *("a", "0", " ", ".", "=", "+", "@", "!", "~", '"', "\\", "\x1b", "\0", "é", "検", "ab12", "a/a", "[[", "x@", "%4"),
    *("\\u", "-----BEGIN ", "eyJ", ".eyJ", "-eyJaaaaaaaa", "eyJaaaaaaaa.", "a://b:", "https://", "{}[]", "QUJD\n"),
    *("YWFhYWFhYWFhYWFhYWFhYWFh", "ghp_", "MTMT", "xoxb ", "/home/", "-home-", "home", "cookie: a=", "$6$a", "!AQ"),
    *("&#", "&amp;", "&#61;", "&lt", "+", "?a=", "?a=b&", "?a=b+", "\u200b", "a\u200b", "aaaaaaaaaaaaaaaaaaaa\n"),
    *(f"{'a' * 40}\n", f"{'a b ' * 10}\n", "pass", "pw", "psk", "phrase", "mnemonic ", "seed phrase: word "),
    *(
        "seed phrase is word\n",
        "mnemonic\n1. word\n",
        "recovery phrase\n",
        "login -p ",
        "vault login a-",
        "wandb login ",
    ),
    *("docker login a ", "redis-cli -h ", "mongo a ", "smbclient -U a% ", "net use \\\\a ", "htpasswd -b a "),
    *("create secret --from-literal=a=", "recovery codes: ", "recovery codes:\na1b2c-3d4e5\n", "backup codes 1. "),
    *("password for a b c d ", "the password is ", "token is ", "AKIA,", "unseal key ", "L1aaaaaaaaaaaaaaaa"),
    *("eyJaaaaaaaaaa..", "---- BEGIN ", "---- END private key ", "_KEY=", "api_key=", "--with-token <<< "),
    *("ldapsearch -x ", "sqlcmd -S ", "lftp -u a,", "echo ", "echo a:b", "echo abcdefg |", "echo a:abcdefg | chpass"),
    *(" -pw ", "-passin pass:", '"d\\\\"', '"d": "'),
    *("Q~", "sig=", "api_key", "0.", "t1.", "SG.", "x@y.io", "@a:/", "-us", "private key -----"),
]
"""Repeated, these make the worst lines: endless values, and values that start over and over again."""
NUMBERS_AND_HOSTS = [
    *("ssh ", "ssh a ", "ssh -p 1 a@", "1 ", "1-", "+2 ", "+21", "+2(", "phone:", "tel: 1 ", "a.", "a.a.", "aa.com"),
    *(
        "://a",
        "://a.",
        "://a@",
        "10.",
        "1.1.1.1 ",
        "2001:",
        "::",
        "4111 ",
        "41",
        "0049 1",
        "(415) ",
        "acme ",
        "m\\u00fc",
    ),
]
SECRETS = [
    *("pw: abc123x ", "the password is abc123xyz ", "redis-cli -a abc123x ", "api_key=key1a2B3c4D5e6F7 "),
    *("a://b:c@", "x@y.io ", "/home/mara/x ", "mara@box:~/x$ ls\n", "password=abc123x "),
    "AKIAA1B2C3D4E5F6G7H8 ",
]
"""The shortest secrets; repeated, they make a text of nothing but secrets."""


def slowness() -> float:
    """Return how much slower than usual the machine currently searches texts, which is most of redaction."""
    start = time.process_time()
    low = _PROBE.lower()
    assert not any(word in low for word in ("pass", "secret", "users", "curl"))
    assert not re.search(r"[\x00\x01]", low[:200_000])
    return max((time.process_time() - start) / _QUIET, 1)


def quiet_seconds(work: Work) -> float:
    """Return the processor time of a work, corrected for other load."""
    before = slowness()
    return processor_seconds(work) / ((before + slowness()) / 2)


def is_fast(work: Work, least: float) -> bool:
    """Return whether a work reached a speed, in characters per second, in any of several rounds."""
    return any(work.n_chars / quiet_seconds(work) >= least for _ in range(_ROUNDS))


def seconds(text: str, **custom: Any) -> float:  # noqa: ANN401  arguments of a redactor
    """Return the best time of three."""
    work = Work("", len(text), lambda: iter([_read(text, **custom)]))
    return min(quiet_seconds(work) for _ in range(3))


def _read(text: str, **custom: Any) -> Redactor:  # noqa: ANN401  arguments of a redactor
    used = redactor(**custom)
    used.text(text)
    return used


@needs_corpus
@pytest.mark.parametrize(
    ("number", "least"),
    [
        pytest.param(0, 0.8 * BAR, id="as an export redacts them"),  # these sessions have five messages each
        pytest.param(1, BAR, id="messages"),
        pytest.param(2, BAR, id="texts"),
    ],
)
def test_speed_on_the_corpus(number: int, least: float) -> None:
    sessions = [(session_, [*group.messages()]) for tree in all_trees(WHOLE) for session_, group in groups(tree)]
    assert is_fast(home_works(sessions)[number], least)


def test_speed_on_a_session_with_program_sources() -> None:
    messages: list[Message] = []
    for text in programs():
        messages.append(call(args={"file_path": f"/home/mara/src/{len(messages)}.py"}, output=text))
        messages.append(message(FunctionResponse("c1", "read_file", {"output": text})))  # as the client records it
    assert is_fast(home_works([(session(), messages)])[0], BAR)


def test_speed_on_program_sources() -> None:
    texts = programs()
    alone = Work("", sum(map(len, texts)), lambda: map(_read, texts))
    assert is_fast(alone, 0.75 * BAR)


def programs() -> list[str]:
    """Return some of Python's own sources."""
    library = Path(sysconfig.get_path("stdlib"))
    folders = ("asyncio", "email", "json", "xml", "concurrent", "unittest", "importlib")
    return [path.read_text("utf-8") for folder in folders for path in sorted((library / folder).rglob("*.py"))]


def test_speed_on_short_texts_with_paths() -> None:
    assert all(is_fast(work, 0.1 * BAR) for work in home_works(load_sessions(DEMO)))


@pytest.mark.parametrize("line", LINES, ids=ascii)
def test_time_of_worst_lines(line: str) -> None:
    assert seconds((line * (SIZE // len(line) + 1))[:SIZE]) < LIMIT


def test_time_of_a_huge_line() -> None:
    assert seconds("a1B2c3D4-_" * 500_000) < 1


@pytest.mark.parametrize("line", SECRETS, ids=ascii)
def test_time_grows_with_the_number_of_secrets(line: str) -> None:
    few, many = line * 5_000, line * 20_000
    assert seconds(few) / 5_000 < 40e-6
    assert seconds(many) < 8 * seconds(few)


@pytest.mark.parametrize("line", [*LINES, *NUMBERS_AND_HOSTS], ids=ascii)
def test_time_of_worst_lines_with_custom_rules(line: str) -> None:
    text = (line * (SIZE // len(line) + 1))[:SIZE]
    assert seconds(text, words=["Müller", "Acme Corp", "田中"], rules=[rule.id for rule in OPTIONAL_RULES]) < 2 * LIMIT


def test_time_of_repeated_anchors() -> None:
    for rule in RULES:
        for anchor in rule.anchors[:2]:
            for more in ("", "-a1B"):
                assert seconds((anchor + more) * (10_000 // len(anchor + more))) < LIMIT, (anchor, more)


def test_time_of_a_text_full_of_secrets() -> None:
    for id_ in ROWS:
        text = sample(id_).text
        assert seconds(f"{text}\n" * (10_000 // len(text))) < LIMIT, id_
