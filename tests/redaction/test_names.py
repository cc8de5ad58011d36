"""Names are learned from every field of a message, in every encoding."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redaction.test_places import PLACES, call, message
from tests.redaction.test_redactor import session

from pollux.model import Message, Problem, Text
from pollux.redaction import redactor
from pollux.redaction.messages import all_texts, encode
from pollux.redaction.names import KnownNames, find_people, may_name_people
from pollux.redaction.rules import HOST, USER

TELLING = {
    "/home/wilma/.config": {"wilma"},
    "/Users/wilma/Library/x": {"wilma"},
    "C:\\Users\\wilma\\Desktop": {"wilma"},
    "C:\\\\\\\\Users\\\\\\\\wilma\\\\\\\\AppData": {"wilma"},
    "D:/Users/wilma/.ssh": {"wilma"},
    "/home/jürgen/.config": {"jürgen"},
    "/home/山田太郎/.config": {"山田太郎"},
    "wilma@thinkpad:~/src$": {"wilma", "thinkpad"},
    "wilma@thinkpad:~/検索$ ls": {"wilma", "thinkpad"},
    "[wilma@thinkpad src]$ make": {"wilma", "thinkpad"},
}
"""Texts, and the names they teach."""
AROUND = ("", " ", "\n", "\t", "\r\n", '"', "'", "\\n", "\0", "\b", "\f", "\x1b", "\x7f", "\xa0", "検", ":")


def learned(*messages: Message) -> frozenset[str]:
    redaction = redactor()
    for each in messages:
        redaction.learn(each)
    return redaction._names.all()


def names_in(text: str) -> set[str]:
    """Return the names that a text teaches."""
    names = KnownNames()
    for person in find_people(text):
        if person.is_sure:
            names.add(person.value, person.rule)
    return {*names.all()}


@pytest.mark.parametrize("text", TELLING)
@pytest.mark.parametrize("place", [place for place in PLACES if place != "key"])
def test_name_is_learned_from_every_field(place: str, text: str) -> None:
    assert learned(PLACES[place](f"see {text}")) == TELLING[text]


@pytest.mark.parametrize("text", TELLING)
def test_message_and_its_texts_teach_the_same_names(text: str) -> None:
    for before, behind in itertools.product(AROUND, AROUND):
        made = call(args={"a": f"{before}{text}{behind}"}, output="x")
        assert learned(made) == names_in(f"{before}{text}{behind}"), (before, behind)


@given(st.lists(st.sampled_from([*TELLING, *AROUND, "home", "/home/", "users", "@", "x", "\\", "\ud83d"]), max_size=8))
def test_any_message_and_its_texts_teach_the_same_names(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert learned(message(Text(text), extra={"x": [text]})) == names_in(text)


def test_message_with_known_names_is_not_searched() -> None:
    json = encode(message(Text("/home/wilma/.config and wilma@thinkpad:~$ ls")))
    names = KnownNames()
    assert json is not None
    assert may_name_people(json, names)
    names.add("wilma", USER)
    names.add("thinkpad", HOST)
    assert not may_name_people(json, names)


def test_message_without_names_is_not_searched() -> None:
    json = encode(message(Text("at home, with users, @ 5"), extra={"a": "/homely/x"}))
    assert json is not None
    assert not may_name_people(json, KnownNames())


def test_message_that_json_cannot_hold_is_searched() -> None:
    assert learned(message(Text("\ud83d /home/wilma/.config"))) == {"wilma"}
    deep: object = "/home/wilma/.config"
    for _ in range(5000):
        deep = [deep]
    assert learned(message(extra={"deep": deep})) == {"wilma"}


def test_session_teaches_names() -> None:
    redaction = redactor()
    redaction.session(session(problems=(Problem("x", "see /home/wilma/.config"),)))
    assert redaction.text("wilma") == "[redacted:user#1]"


def test_all_texts_of_a_message() -> None:
    made = call(args={"a": [{"b": "one"}, "two"]}, output="three", display=None)
    assert {"one", "two", "three"} <= {*all_texts(made)}
