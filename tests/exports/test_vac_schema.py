"""The checker of records accepts and rejects the same values as the schema, and names the place of each problem."""

from __future__ import annotations

from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exports import vac_cases
from tests.exports.vac_cases import CALL, INVALID, USER, VALID, envelope, record
from tests.exports.vac_schema import problems


@pytest.mark.parametrize("name", VALID)
def test_valid_records_have_no_problems(name: str) -> None:
    assert problems(VALID[name]) == []


@pytest.mark.parametrize("name", INVALID)
def test_invalid_records_have_problems(name: str) -> None:
    (problem,) = problems(INVALID[name])
    assert problem


@pytest.mark.parametrize("name", [*VALID, *INVALID])
def test_decoded_record_has_no_problems(name: str) -> None:
    value = VALID.get(name, INVALID.get(name))
    assert bool(problems(cbor2.loads(cbor2.dumps(value)))) is (name in INVALID)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "should be a map, not an array of 0"),
        (record(version=None), "version: should be a text, not null"),
        (record(version=b"3"), "version: should be a text, not a byte string"),
        (record(USER, CALL | {"name": 5}), "session.entries[1].name: should be a text, not 5"),
        (record(USER | {"id": True}), "session.entries[0].id: should be a text, not true or false"),
        (record(USER | {"id": "x", "type": "y" * 50}).copy(), None),
        (record(USER | {1: 2}), "session.entries[0]: 1 is no name of a member"),
        (
            vac_cases.used(total=2**70),
            "session.entries[0].token-usage.total: should be an integer from 0 on, not a larger number",
        ),
        (cbor2.CBORTag(18, {}), "should be an array of 4, not a map"),
        (cbor2.CBORTag(17, []), "should be CBOR tag 18, not CBOR tag 17"),
        (envelope(unprotected=7), "[1]: should be a map, not 7"),
        (record(CALL | {"name": object()}), "session.entries[0].name: should be a text, not something else"),
        (record(CALL | {"name": cbor2.CBORTag(1, 2)}), "session.entries[0].name: should be a text, not CBOR tag 1"),
    ],
)
def test_problem_names_reason_and_path(value: Any, problem: str | None) -> None:  # noqa: ANN401
    (actual,) = problems(value)
    if problem is None:
        assert actual.endswith(f"not '{'y' * 40}'")
    else:
        assert actual == problem


def test_number_of_listed_problems_is_bounded() -> None:
    assert len(problems(record(*[7] * 10_000))) == 100


def test_deep_nesting_is_a_problem() -> None:
    entry = CALL
    for _ in range(5000):
        entry = CALL | {"children": [entry]}
    assert problems(record(entry)) == ["nested too deeply to be looked at"]


@given(st.sampled_from([*VALID]), st.data())
def test_record_with_swapped_values_is_checked_to_its_end(name: str, data: st.DataObject) -> None:
    value = VALID[name]
    if isinstance(value, dict):
        changed = dict(value) | {data.draw(st.sampled_from([*value])): data.draw(st.none() | st.integers() | st.text())}
        assert all(isinstance(problem, str) for problem in problems(changed))
