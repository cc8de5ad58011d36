"""Redaction is fast, and no text makes it slow: time grows with the length of a text and not with its square.

Times are those of the processor, by the pace at which it does something simple just then, and the best of some rounds:
others may be at work on the same machine.
"""

from __future__ import annotations

import os
import re
import sysconfig
import time
from pathlib import Path

import pytest
from scripts.redaction_speed import Work, home_works, opened, processor_seconds
from tests.corpus.trees import WHOLE, all_trees, groups, needs_corpus
from tests.redaction.samples import ROWS, sample
from tests.redaction.test_places import call, message
from tests.redaction.test_redactor import session

from pollux.cli.demo import HOME as DEMO
from pollux.model import FunctionResponse, Message
from pollux.redaction import RULES, Redactor, redactor

pytestmark = pytest.mark.skipif("POLLUX_SPEED" not in os.environ, reason="takes minutes: `make test-speed` runs it")

BAR = 50e6
"""Characters a second."""
SIZE = 500_000
"""A tenth of the five million characters that are to take no longer than two seconds."""
LIMIT = 0.2
_PROBE = "/home/Some text, some more: 1234567890 " * 25_000
_QUIET = 3.5e-3
"""Seconds that the probe takes on the machine these limits are for."""
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
"""What repeated makes a line of the worst kind: endless, never ended, or beginning over and over again."""
SECRETS = [
    *("pw: abc123x ", "the password is abc123xyz ", "redis-cli -a abc123x ", "api_key=key1a2B3c4D5e6F7 "),
    *("a://b:c@", "x@y.io ", "/home/mara/x ", "mara@box:~/x$ ls\n", "password=abc123x "),
    "AKIAA1B2C3D4E5F6G7H8 ",
]
"""What repeated makes a text of nothing but secrets, and the shortest there are."""


def slowness() -> float:
    """Say how much longer the machine takes just now for what redaction does most: to look through texts."""
    start = time.process_time()
    low = _PROBE.lower()
    assert not any(word in low for word in ("pass", "secret", "users", "curl"))
    assert not re.search(r"[\x00\x01]", low[:200_000])
    return max((time.process_time() - start) / _QUIET, 1)


def quiet_seconds(work: Work) -> float:
    """Measure in the time of a machine that has nothing else to do."""
    before = slowness()
    return processor_seconds(work) / ((before + slowness()) / 2)


def is_fast(work: Work, least: float) -> bool:
    """Tell whether a work was ever as fast as it should be, in so many characters a second."""
    return any(work.n_chars / quiet_seconds(work) >= least for _ in range(_ROUNDS))


def seconds(text: str) -> float:
    """Measure the best of three times."""
    work = Work("", len(text), lambda: iter([_read(text)]))
    return min(quiet_seconds(work) for _ in range(3))


def _read(text: str) -> Redactor:
    found = redactor()
    found.text(text)
    return found


@needs_corpus
@pytest.mark.parametrize(
    ("number", "least"),
    [
        pytest.param(0, 0.8 * BAR, id="as an export redacts them"),  # these sessions have five messages each
        pytest.param(1, BAR, id="messages"),
        pytest.param(2, BAR, id="texts"),
    ],
)
def test_the_sessions_of_the_corpus(number: int, least: float) -> None:
    found = [(one, [*group.messages()]) for tree in all_trees(WHOLE) for one, group in groups(tree)]
    assert is_fast(home_works(found)[number], least)


def test_a_session_in_which_programs_are_read() -> None:
    said: list[Message] = []
    for text in programs():
        said.append(call(args={"file_path": f"/home/mara/src/{len(said)}.py"}, output=text))
        said.append(message(FunctionResponse("c1", "read_file", {"output": text})))  # as the client records it
    assert is_fast(home_works([(session(), said)])[0], BAR)


def test_programs() -> None:
    texts = programs()
    alone = Work("", sum(map(len, texts)), lambda: map(_read, texts))
    assert is_fast(alone, 0.75 * BAR)


def programs() -> list[str]:
    """Read some of Python's own sources, all different."""
    library = Path(sysconfig.get_path("stdlib"))
    folders = ("asyncio", "email", "json", "xml", "concurrent", "unittest", "importlib")
    return [path.read_text("utf-8") for folder in folders for path in sorted((library / folder).rglob("*.py"))]


def test_short_texts_full_of_paths() -> None:
    assert all(is_fast(work, 0.1 * BAR) for work in home_works(opened(DEMO)))


@pytest.mark.parametrize("line", LINES, ids=ascii)
def test_no_line_takes_long(line: str) -> None:
    assert seconds((line * (SIZE // len(line) + 1))[:SIZE]) < LIMIT


def test_a_huge_line_takes_less_than_a_second() -> None:
    assert seconds("a1B2c3D4-_" * 500_000) < 1


@pytest.mark.parametrize("line", SECRETS, ids=ascii)
def test_nothing_but_secrets_takes_time_by_their_number(line: str) -> None:
    few, many = line * 5_000, line * 20_000
    assert seconds(few) / 5_000 < 40e-6
    assert seconds(many) < 8 * seconds(few)


def test_no_rule_is_slow_when_it_begins_again_and_again() -> None:
    for rule in RULES:
        for anchor in rule.anchors[:2]:
            for more in ("", "-a1B"):
                assert seconds((anchor + more) * (10_000 // len(anchor + more))) < LIMIT, (anchor, more)


def test_a_text_full_of_secrets_takes_time_by_its_length() -> None:
    for id_ in ROWS:
        text = sample(id_).text
        assert seconds(f"{text}\n" * (10_000 // len(text))) < LIMIT, id_
