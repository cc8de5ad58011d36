"""The clauses of a query, and what of them the index evaluates."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pollux.errors import PolluxError
from pollux.search.fact_tests import is_about_sessions
from pollux.search.parts import PartKind
from pollux.search.plan import EVERY_KIND, Clause, clauses, conditions, is_exact, match_expression
from pollux.search.query import parse_query
from pollux.search.terms import FieldTest, Not, Phrase, Word

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def parsed(query: str) -> tuple[Clause, ...]:
    return clauses(parse_query(query, now=NOW))


def only(query: str) -> Clause:
    (clause,) = parsed(query)
    return clause


def fact_names(clause: Clause) -> list[str]:
    names = []
    for test in clause.facts:
        if isinstance(test, Not):
            assert isinstance(test.node, FieldTest)
            names.append(f"-{test.node.name}")
        else:
            names.append(test.name)
    return names


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("a1 b2", [(2, [])]),
        ("a1 OR b2", [(1, [])]),
        ("(a1 OR b2) -c3", [(2, [])]),
        ("a1 file:x", [(1, ["file"])]),
        ("a1 -file:x", [(1, ["-file"])]),
        ("a1 OR file:x", [(1, []), (0, ["file"])]),
        ("a1 (b2 OR file:x)", [(2, []), (1, ["file"])]),
        ("a1 -(b2 file:x)", [(2, []), (1, ["-file"])]),
        ("a1 -(b2 OR file:x)", [(2, ["-file"])]),
        ("(a1 file:x) OR (b2 file:y)", [(1, ["file"]), (1, ["file"])]),
        ("file:x cmd:y", [(0, ["file", "cmd"])]),
        ("", [(0, [])]),
    ],
)
def test_words_stay_together_and_fields_are_apart(query: str, expected: list[tuple[int, list[str]]]) -> None:
    assert [(len(clause.texts), fact_names(clause)) for clause in parsed(query)] == expected


def test_in_names_kinds() -> None:
    assert only("a1 in:prompt,answer").kinds == {PartKind.PROMPT, PartKind.ANSWER}
    assert only("a1 -in:output").kinds == EVERY_KIND - {PartKind.OUTPUT}
    assert only("a1 in:prompt -in:output").kinds == {PartKind.PROMPT}
    assert parsed("a1 in:prompt in:output") == ()
    assert [clause.kinds for clause in parsed("a1 (in:prompt OR in:output)")] == [
        {PartKind.PROMPT},
        {PartKind.OUTPUT},
    ]


def test_too_many_alternatives_are_refused() -> None:
    query = " ".join(f"(w{number} OR file:f{number})" for number in range(6))
    with pytest.raises(PolluxError, match="too many conditions"):
        parsed(query)


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("alpha", '("alpha")'),
        ("alpha beta", '("alpha") AND ("beta")'),
        ("alpha OR beta", '(("alpha") OR ("beta"))'),
        ("alpha -beta", '(("alpha")) NOT ("beta")'),
        ("alpha -(beta OR gamma)", '(("alpha")) NOT ("beta" OR "gamma")'),
        ('alpha -"beta gamma"', '("alpha")'),
        ("alpha -bet* -C++ -maxRetry", '("alpha")'),
        ("alpha re:/x/", '("alpha")'),
        ("alpha OR re:/x/", None),
        ("re:/x/", None),
        ("-alpha file:x", None),
    ],
)
def test_the_index_proposes_at_least_what_matches(query: str, expression: str | None) -> None:
    assert match_expression(only(query).texts) == expression


@pytest.mark.parametrize(
    ("query", "is_exactly"),
    [("alpha", True), ("alpha -beta", True), ('alpha -"b c"', False), ("alpha re:/x/", False), ("alpha OR beta", True)],
)
def test_whether_the_index_is_exact(query: str, is_exactly: bool) -> None:  # noqa: FBT001
    assert is_exact(only(query).texts) is is_exactly


def test_conditions_are_what_several_messages_may_have() -> None:
    clause = only('alpha "b c" (d OR e) -f file:x')
    assert [type(node).__name__ for node in conditions(clause)] == ["Word", "Phrase", "AnyOf"]
    assert [type(node).__name__ for node in clause.negative] == ["Not"]
    assert isinstance(clause.positive[0], Word)
    assert isinstance(clause.positive[1], Phrase)
    assert clause.may_be_spread
    assert fact_names(clause.without_events) == []
    assert only("alpha file:x").may_be_spread
    assert not only("alpha role:user").may_be_spread
    assert not only("file:x").may_be_spread


def test_a_clause_may_only_describe_sessions() -> None:
    assert is_about_sessions(only("project:x -alpha"))
    assert is_about_sessions(only("project:x"))
    assert not is_about_sessions(only("file:x -alpha"))
    assert not is_about_sessions(only("alpha"))
