"""Evaluate the fields of a query: which sessions may match, and which of their messages do."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping

import msgspec

from pollux.model import Message
from pollux.search import facts
from pollux.search.facts import FactPlace, FactRows
from pollux.search.fields import Level
from pollux.search.plan import Clause
from pollux.search.terms import FieldTest, Not

_BROAD: Mapping[str, frozenset[str]] = {
    "role": frozenset({"user", "gemini"}),
    "fate": frozenset({"active"}),
    "status": frozenset({"success"}),
}
"""Tests that nearly every session has a message for: it takes longer to look the sessions up than to test hits."""
MANY = 500
"""Number of sessions from which on it takes longer to name all that pass a test than to test those with hits."""


class Admitted(msgspec.Struct, frozen=True):
    """The messages of some sessions whose facts satisfy a clause."""

    included: tuple[Mapping[str, Collection[int]], ...] = ()
    """For each test: the messages that pass it."""
    excluded: tuple[Mapping[str, Collection[int]], ...] = ()

    def has(self, session_id: str, seq: int) -> bool:
        """Return whether a message satisfies all tests."""
        if any(seq in failed.get(session_id, ()) for failed in self.excluded):
            return False
        return all(seq in passed.get(session_id, ()) for passed in self.included)

    def messages(self, session_id: str) -> set[int] | None:
        """Return the messages of a session that satisfy all tests; None if only exclusions say which."""
        if not self.included:
            return None
        passed = set.intersection(*(set(test.get(session_id, ())) for test in self.included))
        return {seq for seq in passed if self.has(session_id, seq)}


NO_TESTS = Admitted()


class FactTests:
    """The tests of fields on one state of the facts."""

    def __init__(self, database: sqlite3.Connection, place: FactPlace) -> None:
        """Store the facts, and what projects and folders are compared with."""
        self._database, self._place = database, place
        self._sessions: dict[FieldTest, set[str]] = {}
        self._rows: dict[FieldTest, list[FactRows]] = {}

    def sessions(self, clause: Clause) -> set[str] | None:
        """Return the sessions that may satisfy the tests of a clause; None for all."""
        included: set[str] | None = None
        excluded: set[str] = set()
        for test, is_negated in _session_tests(clause):
            ids = self._sessions_of(test)
            if is_negated:
                excluded |= ids
            else:
                included = ids if included is None else included & ids
        if not excluded:
            return included
        if included is None:
            included = {row[0] for row in self._database.execute("SELECT session_id FROM sessions")}
        return included - excluded

    def have_few_sessions(self, clause: Clause) -> bool:
        """Return whether some test of a clause leaves few sessions, so that it takes little time to name them all."""
        return any(not is_negated and self._has_few(test) for test, is_negated in _session_tests(clause))

    def sessions_among(self, clause: Clause, ids: Collection[str]) -> set[str]:
        """Return those of some sessions that may satisfy the tests of a clause."""
        passing = set(ids)
        for test, is_negated in _session_tests(clause):
            if test in self._sessions or facts.is_computed(test):
                members = self._sessions_of(test)
            else:
                members = facts.sessions_of(self._database, test, self._place, among=passing) or set()
            passing = passing - members if is_negated else passing & members
        return passing

    def admitted(self, clause: Clause, ids: Collection[str]) -> Admitted:
        """Return which messages of some sessions satisfy the tests of a clause."""
        included: list[Mapping[str, Collection[int]]] = []
        excluded: list[Mapping[str, Collection[int]]] = []
        for test, is_negated in _tests(clause):
            if facts.level(test) == Level.MESSAGE:
                messages = facts.messages_of(self._database, test, ids)
                (excluded if is_negated else included).append(messages)
        return Admitted(tuple(included), tuple(excluded)) if included or excluded else NO_TESTS

    def passing(self, clause: Clause, session_id: str, positions: Collection[int]) -> set[int]:
        """Return those of some messages of a session that satisfy the tests of a clause."""
        left = set(positions)
        for test, is_negated in _tests(clause):
            if left and facts.level(test) == Level.MESSAGE:
                if test not in self._rows:
                    self._rows[test] = facts.present_rows(self._database, test)
                messages = facts.passing_messages(self._database, self._rows[test], session_id, left)
                left = left - messages if is_negated else messages
        return left

    def _has_few(self, test: FieldTest) -> bool:
        if test not in self._sessions and not facts.is_computed(test):
            ids = facts.sessions_of(self._database, test, self._place, most=MANY)
            assert ids is not None
            if len(ids) >= MANY:
                return False
            self._sessions[test] = ids
        return len(self._sessions_of(test)) < MANY

    def _sessions_of(self, test: FieldTest) -> set[str]:
        if test not in self._sessions:
            ids = facts.sessions_of(self._database, test, self._place)
            assert ids is not None
            self._sessions[test] = ids
        return self._sessions[test]


def has_message_tests(clause: Clause) -> bool:
    """Return whether some tests concern single messages."""
    return any(facts.level(test) in (Level.MESSAGE, facts.CONTENT) for test, _ in _tests(clause))


def has_session_tests(clause: Clause) -> bool:
    """Return whether some tests say which sessions may satisfy a clause."""
    return any(True for _ in _session_tests(clause))


def is_about_sessions(clause: Clause) -> bool:
    """Return whether a clause only describes a session: by its fields, and by texts that none of its parts contains."""
    return not clause.positive and not has_message_tests(clause)


def has_content_tests(clause: Clause) -> bool:
    """Return whether some tests need the message itself, because no fact says it."""
    return any(facts.level(test) == facts.CONTENT for test, _ in _tests(clause))


def passes_content_tests(clause: Clause, message: Message) -> bool:
    """Return whether a message satisfies the tests that need the message itself."""
    for test, is_negated in _tests(clause):
        if facts.level(test) == facts.CONTENT and facts.has_image(message) == is_negated:
            return False
    return True


def _session_tests(clause: Clause) -> Iterator[tuple[FieldTest, bool]]:
    """Yield the tests that say which sessions may satisfy a clause, each with whether it is negated."""
    for test, is_negated in _tests(clause):
        level = facts.level(test)
        if level not in (Level.SESSION, Level.MESSAGE) or (is_negated and level != Level.SESSION):
            continue
        if clause.positive and not _BROAD.get(test.name, frozenset()).isdisjoint(test.values):
            continue
        yield test, is_negated


def _tests(clause: Clause) -> Iterator[tuple[FieldTest, bool]]:
    """Yield the tests of a clause, each with whether it is negated."""
    for node in clause.facts:
        if isinstance(node, Not):
            assert isinstance(node.node, FieldTest)
            yield node.node, True
        else:
            yield node, False
