"""Search sessions without the index: open each one and test the text of every part.

Used for regular expressions, for `--scan`, for session files without an archive, and for sessions that are not indexed
yet. A session whose archived bytes cannot contain a required text is not opened.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from pollux.archive.readings import source_of
from pollux.formats.source import Source
from pollux.model import Message
from pollux.search.confirm import SlowRegexError, spans_of
from pollux.search.fact_tests import is_about_sessions, passes_content_tests
from pollux.search.parts import PartText, message_parts
from pollux.search.plan import Clause, conditions, leaves
from pollux.search.terms import AllOf, AnyOf, Node, Not, Phrase, Regex, Word
from pollux.search.texts import MessageHead, PartMatch
from pollux.search.values import MESSAGE_SCOPE, SESSION_SCOPE
from pollux.sessions.grouping import OpenSession
from pollux.sessions.replay.reading import build_message

_MOST_OF_CONDITION = 3
"""Parts for one condition of a session whose words are in several messages."""
_BACKSLASHES = 64
_SHORTEST = 3
"""Characters of a literal that is worth looking for."""
_ESCAPED = re.compile(rb"\\u00[2-7]")
"""A printable ASCII character that another program than the client wrote as an escape, or the text of an escape."""
_SCREEN = b'"inverse":'
"""In the display of a terminal's screen, whose lines are cut into differently styled texts."""
_FOLDABLE = re.compile(rb"[\x80-\xff]|\\u")
_LITERAL_RUN = re.compile(r"[A-Za-z0-9_]+")
_TOKEN = re.compile(
    r"""
    \\[dDwWsSbBnrt] | \\[^A-Za-z0-9]      # an escape of one character or class
    | \[\^?\]?(?:\\.|[^\]\[\\])*\]       # a class in brackets
    | \(\?: | [()|]
    | [*+?][?+]? | \{\d*,?\d*\}[?+]?       # a repetition of what precedes it
    | [^\\\[(){|*+?]
    """,
    re.VERBOSE | re.DOTALL,
)
"""One element of a regular expression in the common syntax."""
_UNCOMMON = re.compile(r"\(\?(?!:)|\(\*|[^\x00-\x7f]")
"""Groups with a special meaning, and characters that JSON may write in several ways."""
_WORD_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


class ScannedSession(NamedTuple):
    """The parts of a session that match."""

    scope: str
    matches: list[PartMatch]


Admits = Callable[[Clause, int], bool]
"""Returns whether the facts of the message at a position of the timeline satisfy a clause."""


OnSlow = Callable[[SlowRegexError], None]
"""Receives the error of each text that is left out, because a regular expression takes too long for it."""


class StoppedScanError(Exception):
    """The time was over before all messages of a session were read."""

    def __init__(self, result: ScannedSession | None) -> None:
        """Store what matches among the messages that were read."""
        self.result = result
        super().__init__()


class SessionScan:
    """The scan of one session, message by message."""

    def __init__(
        self, clauses: Sequence[Clause], admits: Admits, on_slow: OnSlow, *, is_shortened: bool = False
    ) -> None:
        """Prepare a scan for some clauses; `is_shortened` leaves out the middle of texts of many megabytes."""
        self._admits, self._on_slow, self._is_shortened = admits, on_slow, is_shortened
        self._whole = [clause for clause in clauses if is_about_sessions(clause)]
        """Clauses that are satisfied if no part of the session has certain texts."""
        self._clauses = [clause for clause in clauses if not is_about_sessions(clause)]
        self._spread = [_Spread(clause.without_events) for clause in clauses if clause.may_be_spread]
        self._matches: list[PartMatch] = []

    def run(self, group: OpenSession, is_over: Callable[[], bool] = lambda: False) -> ScannedSession | None:
        """Return the parts of a session that satisfy a clause, in order; None if there are none.

        If no part satisfies a whole clause, but several together do, the parts for each of its conditions are returned.
        Raises `StoppedScanError` as soon as the time is over.
        """
        for seq, (located, entry) in enumerate(group.timeline):
            if is_over():
                self._whole = []
                raise StoppedScanError(self._result())
            if self._whole or any(self._admits(clause, seq) for clause in self._every_clause()):
                self._add(seq, build_message(located.reading, entry, shortened=self._is_shortened))
        return self._result()

    def _every_clause(self) -> Iterator[Clause]:
        yield from self._clauses
        for spread in self._spread:
            yield spread.clause

    def _add(self, seq: int, message: Message) -> None:
        """Test the parts of a message."""

        def is_admitted(clause: Clause) -> bool:
            return self._admits(clause, seq) and passes_content_tests(clause, message)

        admitted = [clause for clause in self._clauses if is_admitted(clause)]
        spread = [spread for spread in self._spread if not self._matches and is_admitted(spread.clause)]
        head = MessageHead(message.id, seq, message.kind, message.fate, message.at)
        for part in message_parts(message):
            try:
                self._whole = [clause for clause in self._whole if _is_without(clause, part)]
                match = _first_match(admitted, head, part)
                if match:
                    self._matches.append(match)
                elif not self._matches:
                    for candidate in spread:
                        candidate.add(head, part)
            except SlowRegexError as error:
                self._on_slow(error)

    def _result(self) -> ScannedSession | None:
        if self._matches:
            return ScannedSession(MESSAGE_SCOPE, self._matches)
        if self._whole:
            return ScannedSession(SESSION_SCOPE, [])
        complete = [spread.matches() for spread in self._spread if spread.is_complete]
        return ScannedSession(SESSION_SCOPE, complete[0]) if complete else None


def _is_without(clause: Clause, part: PartText) -> bool:
    """Return whether a part has none of the texts that a clause excludes."""
    return part.kind not in clause.kinds or spans_of(clause.texts, part.text) is not None


def _first_match(clauses: Iterable[Clause], head: MessageHead, part: PartText) -> PartMatch | None:
    for clause in clauses:
        if part.kind in clause.kinds:
            groups = spans_of(clause.texts, part.text)
            if groups is not None:
                return PartMatch(head, part.kind, part.text, groups, clause.texts)
    return None


class _Spread:
    """Collects the parts that satisfy single conditions of a clause, without those that it excludes."""

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self._found: list[tuple[tuple[Node, ...], list[PartMatch]]] = []
        for condition in conditions(clause):
            self._found.append(((condition, *clause.negative), []))

    @property
    def is_complete(self) -> bool:
        return all(matches for _, matches in self._found)

    def add(self, head: MessageHead, part: PartText) -> None:
        for texts, matches in self._found:
            if part.kind in self.clause.kinds and len(matches) < _MOST_OF_CONDITION:
                groups = spans_of(texts, part.text)
                if groups is not None:
                    matches.append(PartMatch(head, part.kind, part.text, groups, texts))

    def matches(self) -> list[PartMatch]:
        return [match for _, matches in self._found for match in matches]


class Prefilter:
    """Decides by the archived bytes of a session whether it can satisfy a clause."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        """Derive the texts that the bytes have to contain; there may be none."""
        self._alternatives = [list(_literals(clause.positive)) for clause in clauses]
        self._has_folded = any(text.is_folded for literals in self._alternatives for text in literals)
        self.is_useful = all(self._alternatives)
        """Whether every clause requires some text."""

    def may_match(self, sources: Iterable[Source]) -> bool:
        """Return False only if no file of a session can contain what a clause requires."""
        if not self.is_useful:
            return True
        missing = [set(literals) for literals in self._alternatives]
        for source in sources:
            data = source.whole()
            if _SCREEN in data or _has_escapes(data):
                return True
            is_foldable = self._has_folded and _FOLDABLE.search(data) is not None
            lowered = data.lower() if self._has_folded and not is_foldable else b""
            for literals in missing:
                literals.difference_update([text for text in literals if text.is_in(data, lowered, is_foldable)])
            if not all(missing):
                return True
        return False


def _has_escapes(data: bytes) -> bool:
    """Return whether a printable ASCII character is written as an escape: after an odd number of backslashes."""
    for match in _ESCAPED.finditer(data):
        before = data[max(0, match.start() - _BACKSLASHES) : match.start() + 1]
        if (len(before) - len(before.rstrip(b"\\"))) % 2:
            return True
    return False


class Literal(NamedTuple):
    """Bytes that every match contains."""

    data: bytes
    is_folded: bool
    """Whether the text may differ in case and accents."""

    def is_in(self, data: bytes, lowered: bytes, is_foldable: bool) -> bool:  # noqa: FBT001  a hot loop
        """Return whether some bytes may contain it; characters beyond ASCII may fold to anything."""
        if self.is_folded:
            return is_foldable or self.data in lowered
        return self.data in data


def session_sources(database: sqlite3.Connection, session_id: str) -> Iterator[Source]:
    """Yield the archived bytes of the files of a session. Raises `DamagedArchiveError`."""
    rows = database.execute("SELECT file_version_id FROM session_files WHERE session_id = ?", (session_id,)).fetchall()
    for (version_id,) in rows:
        yield source_of(database, version_id)


def _literals(nodes: Collection[Node]) -> Iterator[Literal]:
    """Yield texts that the bytes must contain for all nodes to match."""
    for node in nodes:
        if isinstance(node, AllOf):
            yield from _literals([child for child in node.nodes if not isinstance(child, Not)])
        elif isinstance(node, Regex):
            if literal := regex_literal(node.pattern):
                is_folded = "i" in node.flags
                yield Literal((literal.lower() if is_folded else literal).encode(), is_folded)
        elif isinstance(node, Word | Phrase) and (piece := longest_piece(node.text)):
            yield Literal(piece.lower().encode(), is_folded=True)
        elif isinstance(node, AnyOf) and len({*leaves(node)}) == 1:
            yield from _literals(node.nodes[:1])


def longest_piece(text: str) -> str | None:
    """Return the longest run of letters or digits that a text has to contain in one piece."""
    pieces = [piece for run in _LITERAL_RUN.findall(text) for piece in _WORD_PIECE.findall(run)]
    longest = max(pieces, key=len, default="")
    return longest if len(longest) >= _SHORTEST and text.isascii() else None


def regex_literal(pattern: str) -> str | None:
    """Return the longest plain text that every match of an expression contains; None if there is none.

    Only letters, digits and underscores outside groups count: they are written alike in a text and in JSON, and never
    stand across two texts of a part. Expressions beyond the common syntax have none.
    """
    if _UNCOMMON.search(pattern):
        return None
    runs = [""]
    depth = position = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            return None
        position = token.end()
        text = token[0]
        if text == "|" and depth == 0:
            return None
        depth += text.startswith("(") - (text == ")")
        if text[0] in "*?{":
            runs[-1] = runs[-1][:-1]  # the last character may be missing
        if depth == 0 and _LITERAL_RUN.fullmatch(text):
            runs[-1] += text
        else:
            runs.append("")
    longest = max(runs, key=len)
    return longest if len(longest) >= _SHORTEST else None
