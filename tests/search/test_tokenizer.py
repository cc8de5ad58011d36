"""The tokenizer, against a real FTS5 table and against the highlighter: both must give the same answers."""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pollux.library.config import DEMO_HOME
from pollux.search import tokenizer
from pollux.search.flatten import _DROPPED_RANGES, _EMOJI_RANGES, _PAIRED_RANGES, flatten
from pollux.search.highlight import Needle, find_spans
from pollux.search.tokenizer import (
    VERSION,
    index_text,
    match_phrase,
    match_phrase_loose,
    match_word,
    match_word_loose,
    place_tokens,
    readings,
)

TABLE = "CREATE VIRTUAL TABLE parts USING fts5(text, content='', columnsize=0, detail=full, tokenize='ascii')"


class Trap(NamedTuple):
    number: str
    text: str
    found: tuple[str, ...] = ()
    """Queries that find the text; a phrase is in quotation marks, a prefix ends with an asterisk."""
    refused: tuple[str, ...] = ()
    """Queries that do not find it."""
    accidents: tuple[str, ...] = ()
    """Queries with which the index finds the text, but the highlighter does not."""


TRAPS = (
    Trap("1", "连接超时错误", ("超", "误", "超时", "超时错", "连接超时错误"), ("时超", "超错", "错超时")),
    Trap("2", "接続が拒否されました", ("拒否", "接続", "が", "されました"), ("否拒",)),
    Trap("3", unicodedata.normalize("NFD", "시간 초과 오류"), ("초과", "초", "시간"), ("과초",)),
    Trap("3 reversed", "시간 초과 오류", (unicodedata.normalize("NFD", "초과"),)),
    Trap("4", "ﾀｲﾑｱｳﾄ", ("タイムアウト", "アウト", "ｱｳﾄ"), ("アト",)),
    Trap("5", "カ\u3099イド", ("ガ", "ガイ", "ガイド"), ("カ", "カイ")),
    Trap("5 half width", "ｶﾞｲﾄﾞ", ("ガイド",), ("カイト",)),
    Trap("6", "请修复parseConfig函数", ("parseconfig", "函数", "修复parseConfig", "config"), ("复函",)),
    Trap("6 stop", "执行。milter", ("执行。milter", "milter", "行"), ("执行milt",)),
    Trap("6 runs", "地址127.0.0.1,将会使smbd失败", ("127.0.0.1,将会使smbd", "使smbd", "smbd失"), ("会smbd",)),
    Trap("7", "ＡＢＣ１２３", ("abc123", "ABC123", "ＡＢＣ１２３", "abc*"), ("abc",)),
    Trap("8", "cafe\u0301 creme", ("café", "cafe", "CAFÉ", '"café crème"'), ("caf",)),
    Trap("8 reversed", "café", ("cafe\u0301", "cafe"), ()),
    Trap("9", "Straße", ("strasse", "STRASSE", "straße", "Stras*"), ("strase",)),
    Trap("9 reversed", "STRASSE", ("straße",)),
    Trap("10 a", "İstanbul", ("istanbul", "ISTANBUL", "İstanbul"), ()),
    Trap("10 b", "ISPARTA", ("isparta", "ısparta"), ()),
    Trap("10 c", "ılık", ("ilik", "ILIK", "ılık"), ()),
    Trap("11", "ﬁle", ("file", "fi*", "ﬁle"), ("le",)),
    Trap("12 a", "مُحَمَّد", ("محمد",), ("محم",)),
    Trap("12 b", "שָׁלוֹם", ("שלום",), ("שלו",)),
    Trap("12 c", "محـــمد", ("محمد",), ()),
    Trap("13", "การเชื่อมต่อหมดเวลาแล้ว", ("หมดเวลา", "เวลา", "เชื่อมต่อ"), ("ลาเว",)),
    Trap("14 a", "done🚀", ("🚀", "done"), ("done🚀🚀",)),
    Trap("14 b", "👍🏽", ("👍", "👍🏿"), ("👎",)),
    Trap("14 c", "by 👩🏽‍💻, ❤️‍🔥", ("👩‍💻", "❤‍🔥"), ("🔥", "👩")),
    Trap("14 d", "🇫🇷🇩🇪 ok", ("🇩🇪", "🇫🇷"), ("🇷🇩",)),
    Trap("14 e", "✅ done ✔️", ("✅", "✔"), ("✗",)),
    Trap("15", "GitHub Actions", ("github", "hub", '"github actions"', "GitHub"), (), ('"actions git"',)),
    Trap("15 phrase", "GitHub Actions", (), ('"hub actions"',)),
    Trap(
        "16", "getUserById", ("user", "getuserbyid", "getUser", "get_user", "by", "getUs*"), ('"user get"', "getUserId")
    ),
    Trap("17", "HTTPServer", ("server", "http", "HTTPServer", "http_server"), ("https",)),
    Trap("17 plural", "parseURLs()", ("URLs", "parse"), ()),
    Trap("18 a", "MAX_RETRY_COUNT", ("maxRetryCount", "max_retry_count", "retryCount", "retry"), ("countRetry",)),
    Trap("18 b", "maxRetryCount", ("MAX_RETRY_COUNT", "max_retry", "retry_count"), ("count_retry",)),
    Trap("19", "getName setValue", ("name", '"get name"', '"set value"'), ('"value get"',), ('"name set"',)),
    Trap("20", "src/views/app.py", ("views/app.py", "app.py", "views/app", "src\\views"), ("src/app.py",)),
    Trap("21", "C:\\Users\\mara", ("C:\\Users\\mara", "users\\mara", "mara"), ("C:\\mara",)),
    Trap("22 a", "std::vector<int>", ("std::vector", "std::vector<int>", "vector"), ("vector::std",)),
    Trap("22 b", "see http://localhost:8080/", ("http://localhost:8080", "localhost:8080", "8080"), ("localhost:80",)),
    Trap("22 c", "<mara@example.com>", ("mara@example.com", "example.com"), ("mara@com",)),
    Trap("22 d", "version 1.2.3", ("1.2.3", "1.2"), ("1.3", "1.2.3.4")),
    Trap("22 e", "git commit --no-verify", ("--no-verify", "no-verify"), ("verify-no",)),
    Trap("22 f", "echo $HOME_DIR", ("$HOME_DIR", "home_dir", "HOME"), ("DIR_HOME",)),
    Trap("22 g", "@src/main.rs", ("@src/main.rs", "main.rs"), ("src.rs",)),
    Trap("22 h", "fixes #123", ("#123", "123"), ("#12",)),
    Trap("23", "upgrade to 1.23", ("1.23",), ("1.2.3",)),
    Trap("24", "error[E0308]: mismatched types", ("E0308", "e0308", "error[E0308]"), ("0308",)),
    Trap("25", "\x1b[31mFAILED\x1b[0m tests", ("failed", '"failed tests"'), ("31mfailed", "31m")),
    Trap("25 inside", "get\x1b[1;31mUser\x1b[0mById", ("getUserById", "user"), ()),
    Trap("25 move", "old\x1b[2Knew \x1b]8;;http://x.org\x07link\x1b]8;;\x07", ("old", "new", "link"), ("oldnew",)),
    Trap("26 a", "I don’t", ("don't", "don’t"), ("dont",)),
    Trap("26 b", "I don't", ("don’t", "donʼt"), ("dont",)),
    Trap("27", "foo\u200bbar", ("foobar", "foo\u200bbar", "foo*"), ("foo", "bar")),
    Trap("28", json.loads('"\\u8d85\\u65f6"'), ("超时",), ()),
    Trap("41 a", "cats AND dogs, NEAR(", ("AND", "NEAR(", "and"), ("NOT", "OR")),
    Trap("41 b", 'say "col: x" ^x x*', ("col:", "^x", "x", '"say col"'), ()),
    Trap("43", "nul\0byte half\ud83dhalf \udc00", ("nul", "byte", "half", '"half half"'), ("nulbyte",)),
    Trap("44", "v2.13.4-rc.1", ("2.13.4", "v2.13.4", "v2", "rc.1", "V2.13.4-rc.1"), ("2.13.4.1", "v13")),
    Trap("44 compound", "apiV2Client v2Api", ("v2", "apiV2", "v2Api", "api_v2_client"), ()),
    Trap("§10 C++", "written in C++ and C#", ("C++", "C#", "c"), (), ("C--", "$c")),
    Trap("§10 C", "written in C", ("C", "c"), (), ("C++", "C#")),
    Trap("§10 .NET", "ASP.NET Core", (".NET", "net", ".net"), ()),
    Trap("§10 net", "the net result", ("net",), (), (".NET",)),
    Trap("§10 hash", "commit a1b2c3d4e5f6", ("a1b2c3d*", "a1b2c3d4e5f6"), ("a1b2c3d",)),
    Trap("§10 port", "port5432", ("port5432",), ("5432",)),
    Trap("§10 punctuation", "Is there a timeout", ("timeout?", "(timeout)", "timeout."), ()),
    Trap("§10 trade mark", "Gemini™ x²", ("gemini", "x2"), ()),
    Trap("§10 Cyrillic", "Ошибка: Ёлка", ("ошибка", "елка", "ОШИБ*"), ("ошиб",)),
    Trap("§10 Hindi", "त्रुटि हुई", ("त्रुटि", "हुई"), ("त",)),
    Trap("§10 Lao", "ຫມົດເວລາ", ("ເວລາ",), ()),
    Trap("§10 Khmer", "អស់ពេល", ("ពេល",), ()),
    Trap("§10 Burmese", "အချိန်ကုန်", ("ကုန်",), ()),
)


def queries(name: str) -> list[tuple[Trap, str]]:
    return [(trap, query) for trap in TRAPS for query in getattr(trap, name)]


def labelled(name: str) -> list[object]:
    return [pytest.param(trap.text, query, id=f"{trap.number}: {query!a}") for trap, query in queries(name)]


@contextmanager
def table(*texts: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(TABLE)
        for row, text in enumerate(texts):
            database.execute("INSERT INTO parts (rowid, text) VALUES (?, ?)", (row, index_text(text)))
        yield database


def rows(database: sqlite3.Connection, match: str | None) -> list[int]:
    if match is None:
        return []
    return [row for (row,) in database.execute("SELECT rowid FROM parts WHERE parts MATCH ? ORDER BY rowid", (match,))]


def stored_tokens(database: sqlite3.Connection) -> set[str]:
    """Return the tokens that FTS5 has made of the texts."""
    database.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, parts, row)")
    return {token for (token,) in database.execute("SELECT term FROM vocabulary")}


def needle_of(query: str) -> Needle:
    if query.startswith('"'):
        return Needle(query.strip('"'), is_phrase=True)
    if query.endswith("*"):
        return Needle(query[:-1], is_prefix=True)
    return Needle(query)


def match_of(needle: Needle) -> str | None:
    return match_phrase(needle.text) if needle.is_phrase else match_word(needle.text, is_prefix=needle.is_prefix)


def is_indexed(text: str, query: str) -> bool:
    with table(text) as database:
        return rows(database, match_of(needle_of(query))) == [0]


@pytest.mark.parametrize(("text", "query"), labelled("found"))
def test_a_query_finds_a_text(text: str, query: str) -> None:
    assert is_indexed(text, query), (index_text(text), match_of(needle_of(query)))
    assert find_spans(text, needle_of(query))


@pytest.mark.parametrize(("text", "query"), labelled("refused"))
def test_a_query_does_not_find_a_text(text: str, query: str) -> None:
    assert not is_indexed(text, query), (index_text(text), match_of(needle_of(query)))
    assert not find_spans(text, needle_of(query))


@pytest.mark.parametrize(("text", "query"), labelled("accidents"))
def test_the_highlighter_refuses_what_the_index_finds_by_accident(text: str, query: str) -> None:
    assert is_indexed(text, query)
    assert not find_spans(text, needle_of(query))


def test_a_query_without_letters_has_no_expression() -> None:
    for query in ("", " ", "*", '"', "--", "***", "^", "()", "\0", "\ud800", "—", "\u200b", "\x1b[31m"):
        assert match_word(query) is None
        assert match_phrase(query) is None
        assert find_spans("any text", Needle(query)) == []


def test_an_expression_can_be_combined() -> None:
    with table("get user", "getUser x", "x") as database:
        either = match_word("getUser")
        assert rows(database, f"{either} AND {match_word('x')}") == [1]
        assert rows(database, f"{match_word('x')} NOT {either}") == [2]


def test_a_loose_expression_needs_no_phrases() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(TABLE.replace("full", "none"))
        for row, text in enumerate(("user get", "getUser 超时错", "x", "时错 超时", "app.test.py")):
            database.execute("INSERT INTO parts (rowid, text) VALUES (?, ?)", (row, index_text(text)))
        assert rows(database, match_word_loose("getUser")) == [0, 1]
        assert rows(database, match_word_loose("超时错")) == [1, 3]
        assert rows(database, match_word_loose("错")) == [1, 3]
        assert rows(database, match_word_loose("app.te", is_prefix=True)) == [4]
        assert rows(database, match_phrase_loose("get get user")) == [0, 1]
        assert match_word_loose("--") is None


def test_the_pieces_of_a_compound_are_appended_once() -> None:
    assert index_text("getUser getUser getUser") == "getUser getUser getUser get User"
    assert index_text("plain words, A1B2 TITLE Title URLs").rstrip() == "plain words, A1B2 TITLE Title URLs"


def test_compounds_between_other_characters_are_split() -> None:
    for text, pieces in {
        "what?Foo is?Bar": "",
        "修复parseConfig函数 ж": "parse Config",
        "жBar ✓ getName": "ж Bar get Name",
        "✓ getName?": "get Name",
    }.items():
        assert " ".join(tokenizer._all_pieces(flatten(text))) == pieces


def test_a_word_too_long_to_be_a_name_has_no_pieces() -> None:
    data = "aGVsbG8gd29ybGQ" * 8
    assert index_text(data).rstrip() == data
    assert find_spans(data, Needle("Vsb")) == []
    assert find_spans(data, Needle(data))


def test_the_ranges_of_characters_are_in_order() -> None:
    for ranges in (_PAIRED_RANGES, _EMOJI_RANGES, _DROPPED_RANGES):
        ends = [end for pair in ranges for end in pair]
        assert ends == sorted(ends)


def test_the_version_names_the_version_of_unicode() -> None:
    assert unicodedata.unidata_version in VERSION


def test_the_flat_form_of_each_character_is_final() -> None:
    """A token is found by itself, so flattening a flat character again must not change it."""
    for first in (*range(0, 0x34000, 0x1000), 0xE0000, 0xF0000, 0x10F000):  # all others are unassigned or private
        flat = flatten("\n".join(map(chr, range(max(first, 0x80), first + 0x1000))))
        again = flatten(flat)
        unstable = [f"{ord(char):x}" for char, other in zip(flat, again, strict=False) if char != other]
        assert not unstable


TEXTS = st.text(st.characters(exclude_categories=()), max_size=40) | st.text(
    st.sampled_from(
        "aZ19v V_.\n\t\0\x1b[m超时错한글กำか\u3099ｶﾞ\u0301\u200b\u200d\ufe0f👩💻🏽🇩🇪éßİıﬁ™²\ud800\u0951\u1161\u11a8ー々"
    ),
    max_size=30,
)


@given(TEXTS)
@example("A\u0338\u0951\u0301")
@example("ﬃﬁ v2é")
@example("aßB İ ŉ ǰ")
@example("㍿ ㌀ ℀")
@example("v2v3 V2Api xV2")
@settings(max_examples=400)
def test_every_token_of_a_text_finds_it(text: str) -> None:
    with table(text) as database:
        tokens = stored_tokens(database)
        for token in tokens:
            assert rows(database, match_word(token)) == [0], (token, index_text(text))
            assert find_spans(text, Needle(token)), (token, index_text(text))


@given(TEXTS)
@settings(max_examples=300)
def test_a_text_finds_itself(text: str) -> None:
    match = match_phrase(text)
    if match is not None and text.count(" ") < 8:
        with table(text) as database:
            assert rows(database, match) == [0]
        assert find_spans(text, Needle(text, is_phrase=True))


@given(TEXTS)
@example("カ\u3099")
@example("ハﾟ")
@example("가\u11a8")
@example("é—Éa超ß" * 3)
@settings(max_examples=300)
def test_each_way_to_flatten_a_text_gives_the_same_tokens(text: str) -> None:
    ways = (
        text,
        text + "\n" + "x" * 10 * len(text),  # mostly ASCII
        text + "\n" + "超" * 10 * len(text),
        text + "\n" + "é" * 2000,
        text + "\n\x1b[0m",
    )
    tokens = [*place_tokens(flatten(text))]
    for way in ways:
        assert [token.text for token in place_tokens(flatten(way))][: len(tokens)] == [token.text for token in tokens]


SAMPLES = st.sampled_from(
    (
        " ",
        "getUser",
        "URLs",
        "HTMLPage5",
        "v2Api",
        "V3",
        "TITLE",
        "12",
        "a_b",
        "?",
        "É",
        "é",
        "—",
        "时",
        "超时",
        "👍🏽",
        "x" * 90,
    )
)


@given(st.lists(SAMPLES | TEXTS, max_size=12).map("".join))
@example("时" * 90 + "getUser")
@example("getUser 超时getUser")
@settings(max_examples=500)
def test_the_quick_way_to_index_a_text_gives_the_same(text: str) -> None:
    """The index depends on `VERSION`, so a quicker way has to give the same text, not only one as good."""
    assert index_text(text) == index_simply(text)
    padded = f"{text}\n{' plain' * len(text)}"  # mostly ASCII
    assert index_text(padded) == index_simply(padded)


def index_simply(text: str) -> str:
    """Return the text for the index by flattening it as a whole and looking at each of its words."""
    flat = flatten(text)
    body = tokenizer._VERSIONS.sub(r"\g<0> ", tokenizer._UNSPACED.sub(tokenizer._spaced, flat))
    words = dict.fromkeys(re.findall("[0-9A-Za-z?]+", re.sub("[^\x00-\x7f]", "?", flat.replace("?", " "))))
    compounds = [word for word in words if tokenizer.compound_pieces(word)]
    if any("?" in word for word in compounds):
        compounds = [*dict.fromkeys(tokenizer._WORDS.findall(flat))]
    pieces = [piece for word in compounds for piece in tokenizer.compound_pieces(word)]
    return f"{body} {' '.join(pieces)}".replace("\0", " ")


def test_marks_in_large_numbers_take_no_quadratic_time() -> None:
    text = "a" + "\u0951\u0952" * 500_000  # would take hours if normalised as it is
    assert len(index_text(text)) < 100


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)


def texts_of(folder: Path) -> set[str]:
    texts: set[str] = set()
    for path in sorted(folder.rglob("*.json*")):
        for line in re.split("\n(?={)", path.read_text("utf-8", "surrogateescape")):
            try:
                texts.update(strings(json.loads(line)))
            except ValueError:
                texts.add(line)
    return texts


def test_every_token_of_the_demo_finds_its_text() -> None:
    texts = sorted(texts_of(DEMO_HOME))
    assert len(texts) > 100
    with table(*texts) as database:
        n_tokens = 0
        database.execute("CREATE VIRTUAL TABLE temp.places USING fts5vocab(main, parts, instance)")
        by_token: dict[str, set[int]] = {}
        for token, row in database.execute("SELECT term, doc FROM places"):
            by_token.setdefault(token, set()).add(row)
        for token, expected in by_token.items():
            n_tokens += 1
            hits = rows(database, match_word(token))
            assert expected <= set(hits), token
            for row in hits:
                assert find_spans(texts[row], Needle(token)), (token, texts[row])
        assert n_tokens > 1000


def test_readings_of_a_compound() -> None:
    tokens = [reading.tokens for reading in readings("foo.getUser")]
    assert tokens == [("foo", "getuser"), ("foo", "get", "user")]
