"""Names are learned from all that a message holds, however it is written."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redaction.test_places import PLACES, call, message
from tests.redaction.test_redactor import session

from pollux.model import Message, Problem, Text
from pollux.redaction import redactor
from pollux.redaction.mentions import may_tell, people
from pollux.redaction.messages import texts, written
from pollux.redaction.names import KnownNames

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
"""What teaches which names."""
AROUND = ("", " ", "\n", "\t", "\r\n", '"', "'", "\\n", "\0", "\b", "\f", "\x1b", "\x7f", "\xa0", "検", ":")


def learned(*messages: Message) -> frozenset[str]:
    found = redactor()
    for one in messages:
        found.learn(one)
    return found._names.all()


def told(text: str) -> set[str]:
    """Say what a text teaches when it is read on its own."""
    names = KnownNames()
    for one in people(text):
        if one.is_sure:
            names.add(one.value, one.rule)
    return {*names.all()}


@pytest.mark.parametrize("text", TELLING)
@pytest.mark.parametrize("place", [place for place in PLACES if place != "key"])
def test_a_name_is_learned_wherever_it_stands(place: str, text: str) -> None:
    assert learned(PLACES[place](f"see {text}")) == TELLING[text]


@pytest.mark.parametrize("text", TELLING)
def test_as_much_is_learned_from_a_message_as_from_its_texts(text: str) -> None:
    for before, behind in itertools.product(AROUND, AROUND):
        made = call(args={"a": f"{before}{text}{behind}"}, output="x")
        assert learned(made) == told(f"{before}{text}{behind}"), (before, behind)


@given(st.lists(st.sampled_from([*TELLING, *AROUND, "home", "/home/", "users", "@", "x", "\\", "\ud83d"]), max_size=8))
def test_as_much_is_learned_from_any_message(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert learned(message(Text(text), extra={"x": [text]})) == told(text)


def test_what_is_known_is_not_read_again() -> None:
    json = written(message(Text("/home/wilma/.config and wilma@thinkpad:~$ ls")))
    names = KnownNames()
    assert json is not None
    assert may_tell(json, names)
    redactor_ = redactor(extra_names=["wilma", "thinkpad"])
    assert not may_tell(json, redactor_._names)


def test_a_message_without_people_is_not_read() -> None:
    json = written(message(Text("at home, with users, @ 5"), extra={"a": "/homely/x"}))
    assert json is not None
    assert not may_tell(json, KnownNames())


def test_what_json_cannot_hold_is_read_all_the_same() -> None:
    assert learned(message(Text("\ud83d /home/wilma/.config"))) == {"wilma"}
    deep: object = "/home/wilma/.config"
    for _ in range(5000):
        deep = [deep]
    assert learned(message(extra={"deep": deep})) == {"wilma"}


def test_a_session_teaches_too() -> None:
    found = redactor()
    found.session(session(problems=(Problem("x", "see /home/wilma/.config"),)))
    assert found.text("wilma") == "[redacted:user#1]"


def test_all_texts_are_listed() -> None:
    made = call(args={"a": [{"b": "one"}, "two"]}, output="three", display=None)
    assert {"one", "two", "three"} <= {*texts(made)}
