"""Records are valid for an independent judge: `cddl-verifier` reads the schema of the draft itself.

Where a rule refers to the pattern of another rule, the judge would accept any text, so the two patterns are inserted
there; the schema is not changed otherwise.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import values
from tests.corpus.trees import Tree, every_release, history
from tests.exports.vac_cases import (
    CALL,
    EVENT,
    INVALID,
    METADATA,
    PROTECTED,
    REASONING,
    RESULT,
    VALID,
    attributed,
    envelope,
)
from tests.exports.vac_records import ALL, subject_of
from tests.exports.vac_schema import problems

from pollux import homes
from pollux.cli.demo import HOME
from pollux.exports.source import ExportSource
from pollux.exports.vac.encode import render_cbor, render_json
from pollux.sessions.reader import history as history_of

cddl_verifier = pytest.importorskip("cddl_verifier", reason="the judge is not installed: pip install cddl-verifier")

SCHEMA = Path(__file__).parents[1] / "data" / "vac" / "agent-conversation.cddl"


@cache
def judge() -> Any:  # noqa: ANN401  it has no types
    text = SCHEMA.read_text("utf-8")
    for name in ("date-time-regexp", "uri-regexp"):
        pattern = re.search(rf'^{name} = (".*")$', text, re.MULTILINE)
        assert pattern
        assert f".regexp {name}" in text
        text = text.replace(f".regexp {name}", f".regexp {pattern[1]}")
    return cddl_verifier.Validator(text)


def verdict(data: object, **more: bool) -> str:
    """Return the faults that the judge finds, or an empty text."""
    faults = judge().validate(data, "start", **more)
    return "" if faults.valid else faults.format() or "invalid"


def assert_valid(subject: ExportSource) -> None:
    data = b"".join(render_json(subject))
    assert verdict(json.loads(data)) == ""
    assert verdict(b"".join(render_cbor(subject)), require_deterministic=True) == ""
    assert problems(json.loads(data)) == []


@every_release
def test_each_session_of_the_corpus_is_a_valid_record(trees: list[Tree]) -> None:
    for tree in trees:
        for session in history(tree).sessions:
            for options in (None, ALL):
                assert_valid(subject_of(history(tree), session, options))


@pytest.mark.parametrize("number", range(23))
def test_each_session_of_the_demo_is_a_valid_record(number: int) -> None:
    history = history_of(homes(HOME))
    for options in (None, ALL):
        assert_valid(subject_of(history, history.sessions[number], options))


@pytest.mark.parametrize("name", VALID)
def test_judge_accepts_valid_records(name: str) -> None:
    assert verdict(cbor2.dumps(VALID[name])) == ""


@pytest.mark.parametrize("name", INVALID)
def test_judge_rejects_invalid_records(name: str) -> None:
    assert verdict(cbor2.dumps(INVALID[name]))


# Our own checker and the judge agree on any values

RICH = VALID["all members of the record"] | {
    "session": VALID["all members of the session"]["session"]
    | {
        "entries": [
            VALID["assistant with all members"]["session"]["entries"][0],
            {**CALL, "call-id": "c", "children": [{**RESULT, "is-error": False, "status": "success"}]},
            {**REASONING, "subject": "s", "encrypted": "e", "timestamp": 1},
            {**EVENT, "data": {"a": 1}},
            {"type": "assistant", "token-usage": {"input": 1, "cost": 0.5}},
        ]
    },
    "file-attribution": attributed()["file-attribution"],
}


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Return the path of each value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*way, key)
        yield from places(item, (*way, key))


odd = values | st.sampled_from(
    ["2026-11-15T19:30:00Z", "user", "tool-call", "ai", "#x", {}, [], [{}], 0, -1, 1.5, b"x", True]
)


def changed(data: st.DataObject, original: Any) -> Any:  # noqa: ANN401
    """Return a record with a value replaced, removed or added."""
    value = copy.deepcopy(original)
    *way, last = data.draw(st.sampled_from([*places(value)]))
    inner = value
    for key in way:
        inner = inner[key]
    match data.draw(st.sampled_from(["other", "none", "more"])):
        case "other":
            inner[last] = data.draw(odd)
        case "none":
            del inner[last]
        case _ if isinstance(inner, dict):
            inner[data.draw(st.sampled_from(["x", "id", "children", "timestamp", 7]))] = data.draw(odd)
        case _:
            inner.append(data.draw(odd))
    return value


@settings(max_examples=500)
@given(st.data())
def test_own_checker_agrees_with_the_judge_on_records(data: st.DataObject) -> None:
    value = changed(data, RICH)
    assert bool(problems(value)) == bool(faults := verdict(cbor2.dumps(value))), faults or problems(value)


@settings(max_examples=300)
@given(st.data())
def test_own_checker_agrees_with_the_judge_on_envelopes(data: st.DataObject) -> None:
    protected = changed(data, PROTECTED | {33: [b"a", b"b"], 34: [-16, b"h"]})
    value = envelope(protected, changed(data, {100: METADATA, 33: b"a"}))
    assert bool(problems(value)) == bool(faults := verdict(cbor2.dumps(value))), faults or problems(value)
