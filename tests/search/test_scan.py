"""Scans, and what of a session's bytes decides that it need not be opened."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import answers, asks, call, gemini, header, line, log, put, user

from pollux.errors import PolluxError
from pollux.formats.source import Source
from pollux.search.confirm import spans_of
from pollux.search.plan import Clause, clauses
from pollux.search.query import parse_query
from pollux.search.scan import Prefilter, ScannedSession, SessionScan, StoppedScanError, regex_literal
from pollux.search.values import MESSAGE_SCOPE, SESSION_SCOPE
from pollux.sessions.reader import from_file

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def parsed(query: str) -> tuple[Clause, ...]:
    return clauses(parse_query(query, now=NOW))


def scan(path: Path, query: str) -> ScannedSession | None:
    return SessionScan(parsed(query), lambda _clause, _seq: True, raise_error).run(from_file(path)[1])


def raise_error(error: PolluxError) -> None:
    raise error


def may_match(query: str, *data: bytes) -> bool:
    return Prefilter(parsed(query)).may_match(Source(Path("x.jsonl"), data=bytes_) for bytes_ in data)


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("timeout", "timeout"),
        ("time[ -]?out", "time"),
        (r"\w+_handler\(", "_handler"),
        ("(?:abc)?handler", "handler"),
        ("abc(def)*handler", "handler"),
        ("handlers?", "handler"),
        ("handlers*x", "handler"),
        ("handler{2,3}zz", "handle"),
        ("handlers{0}", "handler"),
        ("handler+abc", "handler"),
        ("foo|barbaz", None),
        ("(foo|barbaz)quux", "quux"),
        ("[abcdef]+", None),
        ("[]abc]def", "def"),
        (r"[\]abc]def", "def"),
        (r"\x41bcdef", None),
        (r"\u0041bcdef", None),
        (r"\Abcdef", None),
        (r"(\w+) \1bcd", None),
        ("(?i)abcdef", None),
        ("(?=abcdef)", None),
        ("(?#abcdef)x", None),
        ("(?:timeout){e<=3}", None),
        (r"\p{Lu}abcd", None),
        ("连接超时abc", None),
        ("ab", None),
        ("", None),
        (r"C\+\+ compiler", "compiler"),
        ("^second$", "second"),
        ("a.b.c.def", "def"),
    ],
)
def test_the_literal_of_an_expression(pattern: str, literal: str | None) -> None:
    assert regex_literal(pattern) == literal


_PIECES = st.sampled_from(["abc", "def", "ghij", "x", "[a-f]", "(?:abc|d)", ".", r"\w", r"\.", "(z)"])
_REPEATS = st.sampled_from(["", "", "", "+", "*", "?", "{2}", "{0,2}", "+?", "*?"])


@given(st.lists(st.tuples(_PIECES, _REPEATS), max_size=6), st.text("abcdefghijxz.", max_size=40))
def test_a_literal_is_in_every_match(pieces: list[tuple[str, str]], text: str) -> None:
    pattern = "".join(piece + repeat for piece, repeat in pieces)
    literal = regex_literal(pattern)
    for match in regex.finditer(pattern, text, overlapped=True):
        assert literal is None or literal in match[0]


@pytest.mark.parametrize(
    ("query", "text", "is_possible"),
    [
        ("re:/timeout/", "a timeout here", True),
        ("re:/timeout/", "a Timeout here", False),
        ("re:/timeout/i", "a Timeout here", True),
        ("re:/timeout/i", "nothing here", False),
        ("re:/timeout/", "nothing, but naïve", False),
        ("re:/kelvin/i", "\u212aelvin", True),
        ("timeout", "a TimeOut here", True),
        ("timeout", "nothing here", False),
        ("getUser", "get_user", True),
        ("file", "ﬁle", True),
        ("cafe", "café", True),
        ("timeout missing", "a timeout here", False),
        ("timeout OR missing", "nothing here", True),
        ("timeout -missing", "a timeout here", True),
        ("超时", "nothing here", True),
        ("re:/a/", "nothing here", True),
    ],
)
def test_bytes_decide_whether_a_session_is_opened(query: str, text: str, is_possible: bool) -> None:  # noqa: FBT001
    assert may_match(query, line(user(content=text))) is is_possible


def test_escapes_are_no_reason_to_skip_a_session() -> None:
    escaped = b'{"id":"u1","type":"user","content":"\\u0074imeout"}'
    assert may_match("re:/timeout/", escaped)
    assert may_match("timeout", escaped)
    assert not may_match("re:/timeout/", line(user(content="the text \\u0074imeout, and \\\\u0074imeout")))
    assert not may_match("re:/timeout/", line(user(content="a bell \x07 and an escape \x1b[31m")))


def test_cells_of_a_screen_are_no_reason_to_skip_a_session() -> None:
    cells = [{"text": "time", "inverse": False}, {"text": "out", "inverse": True}]
    assert may_match("re:/timeout/", line(gemini(toolCalls=[call(resultDisplay=[cells])])))


def test_words_may_be_in_different_files() -> None:
    assert may_match("alpha beta", line(user(content="alpha")), line(user(content="beta")))
    assert not may_match("alpha beta", line(user(content="alpha")), line(user(content="alpha")))


@given(st.text(max_size=20), st.booleans())
def test_what_the_bytes_exclude_no_scan_finds(word: str, is_ascii: bool) -> None:  # noqa: FBT001
    text = f"before {word} after"
    try:
        query = parsed(word)
    except PolluxError:
        return
    data = json.dumps(user(content=text), ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    if Prefilter(query).may_match([Source(Path("x.jsonl"), data=data)]):
        return
    assert all(spans_of(clause.texts, text) is None for clause in query)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    made = call("c1", "run_shell_command", args={"command": "make lint"}, result=[answers(output="E501 line too long")])
    records: Iterable[object] = [
        header(),
        user("u1", "please fix the linter", second=1),
        gemini(
            "g1", "I run it", second=2, toolCalls=[made], thoughts=[{"subject": "Plan", "description": "lint first"}]
        ),
        gemini("g2", [asks("c2", "read_file", file_path="setup.cfg"), {"text": "reading"}], second=3),
        user("u2", [answers("c2", "read_file", "max-line-length = 100")], second=4),
    ]
    return put(tmp_path / "session-2026-11-15T19-30-6ece72aa.jsonl", log(*records))


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("linter", ["0 0"]),
        ("re:/lint\\w*/", ["0 0", "1 2", "1 3"]),
        ("re:/lint\\w*/ -in:thoughts", ["0 0", "1 3"]),
        ("re:/E\\d+/", ["1 4"]),
        ("setup.cfg", ["2 3"]),
        ("max-line-length", ["2 4"]),
        ("nothing", []),
        ("lint -make", ["1 2"]),
    ],
)
def test_every_part_of_a_session_is_scanned(session: Path, query: str, places: list[str]) -> None:
    result = scan(session, query)
    matches = result.matches if result else []
    assert [f"{match.head.seq} {int(match.kind)}" for match in matches] == places
    assert result is None or result.scope == MESSAGE_SCOPE
    assert all(group for match in matches for group in match.groups)


def test_words_of_several_messages_are_collected(session: Path) -> None:
    result = scan(session, "please reading")
    assert result is not None
    assert result.scope == SESSION_SCOPE
    assert {match.head.id for match in result.matches} == {"u1", "g2"}
    assert scan(session, "please nothing") is None
    assert scan(session, "please reading -fix") is None


def test_a_slow_expression_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "session-2026-11-15T19-30-6ece72aa.jsonl", log(header(), user(content="a" * 60 + "b")))
    with pytest.raises(PolluxError, match="takes too long"):
        scan(path, "re:/(a|aa|aaa)+$/")


def test_a_scan_that_is_stopped_tells_what_it_found(session: Path) -> None:
    answers_ = iter([False, False, True])
    scan_ = SessionScan(parsed("re:/lint\\w*/"), lambda _clause, _seq: True, raise_error)
    with pytest.raises(StoppedScanError) as stopped:
        scan_.run(from_file(session)[1], lambda: next(answers_))
    assert stopped.value.result is not None
    assert {match.head.id for match in stopped.value.result.matches} == {"u1", "g1"}
    without = SessionScan(parsed("-nothing project:x"), lambda _clause, _seq: True, raise_error)
    with pytest.raises(StoppedScanError) as stopped:
        without.run(from_file(session)[1], lambda: True)
    assert stopped.value.result is None
