"""Find compares only messages whose bytes may contain the words, in whatever way a client has written them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.builders import SESSION, chats, gemini, header, log, put, user

from pollux.library.config import configure
from pollux.library.find_in_session import LAST_CASED, excerpt, find_in_session
from pollux.library.library import Library
from pollux.library.packed_timeline import BLOCK
from pollux.model import Fate, Kind, Message, Origin, Text

TEXTS = ("Die Straße ist nass", "STRASSE", "größer", "GRÖSSER", "東京 🔭", "ﬁne words", "\u212bngström", "plain words")
N_OTHERS = 300


def find(folder: Path, words: str, dumps: Callable[[object], str]) -> tuple[list[str], int]:
    """Return the texts that contain some words, and how many messages were unpacked."""
    others = [gemini(f"o{number}", f"something else {number}") for number in range(N_OTHERS)]
    records = [header(), *(user(f"u{number}", text) for number, text in enumerate(TEXTS)), *others]
    put(
        chats(folder / "home") / "session-2026-11-15T19-30-6ece72aa.jsonl",
        log(*(dumps(one).encode() for one in records)),
    )
    config = configure(named_homes=[folder / "home"], archive=folder / "archive.db")
    with Library(config) as library:
        conversation = library.conversation(library.session(SESSION))
        found = find_in_session(conversation, words)
        unpacked = conversation.timeline.n_unpacked
        conversation.close()
    assert found.n_messages == len(TEXTS) + N_OTHERS
    return [TEXTS[number - 1] for number in found.at], unpacked


def utf8(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("dumps", [utf8, json.dumps])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("straße", [0, 1]),
        ("STRASSE", [0, 1]),
        ("ß", [0, 1, 2, 3]),
        ("größer", [2, 3]),
        ("京", [4]),
        ("🔭", [4]),
        ("fine", [5]),
        ("Ångström", [6]),
        ("WORDS", [5, 7]),
        ("é", []),
    ],
)
def test_words_are_found_however_they_are_written(
    tmp_path: Path, dumps: Callable[[object], str], words: str, expected: list[int]
) -> None:
    found, unpacked = find(tmp_path, words, dumps)
    assert found == [TEXTS[number] for number in expected]
    assert unpacked <= BLOCK, "messages that cannot contain the words were compared"


def test_all_characters_with_another_case_are_known() -> None:
    cased = [char for char in map(chr, range(sys.maxunicode + 1)) if char.casefold() != char]
    assert ord(cased[-1]) <= LAST_CASED


@pytest.mark.parametrize(
    ("text", "words", "marked"),
    [
        ("a plain needle, and a NEEDLE", "needle", ["needle", "NEEDLE"]),
        ("Die Straße ist naß", "STRASSE", ["Straße"]),
        ("ßßß: die Straße", "sse", ["ße"]),
        ("ßa", "sa", ["ßa"]),
        ("ﬁne", "n", ["n"]),
        ("nothing", "else", []),
    ],
)
def test_excerpt_marks_the_words_as_they_are_written(text: str, words: str, marked: list[str]) -> None:
    message = Message("m", Kind.USER, Origin.HUMAN, Fate.ACTIVE, None, (Text(text),))
    found = excerpt(message, words)
    assert [found.text[span.start : span.end] for span in found.spans] == marked
