"""The user's own words are found in any case and in every disguise."""

from __future__ import annotations

import base64
import html
import json
import unicodedata
from collections.abc import Callable
from urllib.parse import quote

import pytest
from tests.redaction.test_places import message

from pollux.model import FunctionCall, FunctionResponse, ToolCall
from pollux.redaction import redactor
from pollux.redaction.names import word_fault

WORD = "[redacted:word#1]"


@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("Acme", "Acme, ACME and acme's aCmE", f"{WORD}, {WORD} and {WORD}'s {WORD}"),
        ("acme", "acmeism, pacme, acme2 stay", "acmeism, pacme, acme2 stay"),
        ("acme", "ACME_TOKEN_FILE my_acme.py acme-api", f"{WORD}_TOKEN_FILE my_{WORD}.py {WORD}-api"),
        ("Project  Falcon", "project falcon, Project\n  Falcon", f"{WORD}, {WORD}"),
        ("C++", "in C++17 or c++", f"in {WORD}17 or {WORD}"),
        ("x-7", "the X-7 and x-70", f"the {WORD} and x-70"),
        ("田中", "田中さんは東京の人", f"{WORD}さんは東京の人"),
        ("Acme", "株式会社Acmeの人", f"株式会社{WORD}の人"),
        ("Straße", "STRASSE, straße", f"{WORD}, {WORD}"),
        ("Müller", unicodedata.normalize("NFD", "MÜLLER"), WORD),
        ("mu\u0308ller", "Müller", WORD),
        ("redacted", "it was redacted", f"it was {WORD}"),
        ("token", "token", WORD),
    ],
)
def test_word_matches_in_any_case_at_word_borders(word: str, text: str, expected: str) -> None:
    assert redactor(words=[word]).text(text) == expected


@pytest.mark.parametrize("word", ["Falcon", "Müller", "田中", "Project Falcon"])
@pytest.mark.parametrize(
    "disguise",
    [
        str,
        json.dumps,
        lambda text: json.dumps(json.dumps({"a": f"\n{text}\n"})),
        quote,
        html.escape,
        lambda text: "".join(f"&#{ord(char)};" for char in text),
        lambda text: base64.b64encode(f"see the word {text} here, please".encode()).decode(),
        lambda text: text[:1] + "\x1b[31m" + text[1:],
        lambda text: text[:1] + "\u200b" + text[1:],
        lambda text: text.upper(),
        lambda text: "\\u0046alcon" if text == "Falcon" else text,
    ],
    ids=[
        "plain",
        "json",
        "json in json",
        "url",
        "html",
        "entities",
        "base64",
        "colour",
        "zero width",
        "upper",
        "ascii",
    ],
)
def test_word_is_found_in_every_disguise(word: str, disguise: Callable[[str], str]) -> None:
    text = f"look: {disguise(word)} !"
    assert "[redacted:" in redactor(words=[word]).text(text)


def test_list_of_words_may_be_long() -> None:
    words = [f"customer{number}" for number in range(5000)]
    assert redactor(words=words).text("for Customer4711, not customer5000") == f"for {WORD}, not customer5000"


def test_word_split_over_parts_is_found() -> None:
    parts = redactor(words=["Falcon"]).json([{"text": "about Fal"}, {"text": "con today"}])
    assert parts == [{"text": f"about {WORD}"}, {"text": " today"}]


def test_word_keeps_its_pseudonym_in_every_spelling() -> None:
    redaction = redactor(words=["Acme", "Müller"])
    assert redaction.text("ACME M\\u00fcller müller acme") == (
        "[redacted:word#1] [redacted:word#2] [redacted:word#2] [redacted:word#1]"
    )
    assert [(row.rule, row.kind, row.count, row.distinct) for row in redaction.report().replaced] == [
        ("word", "word", 4, 2)
    ]


def test_word_is_replaced_in_tool_names() -> None:
    tool = ToolCall("1", "mcp_acme_search", "mcp_acme_search", "Other", "other", "acme search", "success", {"acme": 1})
    done = redactor(words=["acme"]).message(message(tool_calls=(tool,)))
    assert "acme" not in repr(done)
    parts = (FunctionCall("1", "mcp_acme_search", {}), FunctionResponse("1", "mcp_acme_search", {}))
    assert "acme" not in repr(redactor(words=["acme"]).message(message(*parts)))
    assert redactor(user_name="acme").message(message(*parts)).parts == parts


def test_text_that_was_clean_is_searched_again_for_other_words() -> None:
    text = "a plain sentence about falcons and 10.20.30.40"
    assert redactor().text(text) == text
    assert redactor(words=["falcons"]).text(text) == f"a plain sentence about {WORD} and 10.20.30.40"
    assert redactor(rules=["ip-address"]).text(text).endswith("[redacted:ip-address#1]")
    assert redactor(words=["sentence"]).text(text) == f"a plain {WORD} about falcons and 10.20.30.40"


@pytest.mark.parametrize(
    ("word", "is_good"), [("Acme", True), ("x7", True), ("田", True), ("C#", False), ("a", False), ("--", False)]
)
def test_words_that_are_too_short_are_refused(word: str, *, is_good: bool) -> None:
    assert (word_fault(word) is None) == is_good
