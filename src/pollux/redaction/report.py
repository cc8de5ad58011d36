"""What a redactor replaced, and what it could not read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pollux.redaction.rule import Rule, RuleKind
from pollux.redaction.rules import ALL_RULES

_Place: TypeAlias = tuple[str, str | None, str | None, str]
"""A rule, a session, a message, and the field."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule matched in one field of a message; the excerpt masks the value."""

    rule: str
    session: str | None
    message: str | None
    where: str
    excerpt: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a rule matched altogether."""

    rule: str
    kind: RuleKind
    finds: str
    count: int
    distinct: int
    session: str | None
    """Where it matched first."""
    message: str | None


@dataclass(frozen=True, slots=True)
class Unscanned:
    """Data of one type that could not be read."""

    what: str
    media_type: str
    count: int
    size: int
    """Bytes."""
    is_dropped: bool = False


@dataclass(frozen=True, slots=True)
class RedactionSummary:
    """What was replaced, and what could not be read."""

    replaced: tuple[Replaced, ...] = ()
    unscanned: tuple[Unscanned, ...] = ()


class Ledger:
    """Records what a redactor does to a session and its messages."""

    __slots__ = ("_counts", "_excerpts", "_pseudonyms", "_unscanned", "message", "session")

    def __init__(self) -> None:
        """Start with no records."""
        self.session: str | None = None
        self.message: str | None = None
        self._excerpts: dict[_Place, str] = {}
        self._counts: dict[_Place, int] = {}
        self._pseudonyms: dict[str, set[str]] = {}
        self._unscanned: dict[tuple[str, str, bool], tuple[int, int]] = {}

    def note(self, rule: Rule, pseudonym: str, where: str, excerpt: Callable[[], str], n_times: int = 1) -> None:
        """Record that a value was replaced by a pseudonym."""
        place = (rule.id, self.session, self.message, where)
        if place in self._counts:
            self._counts[place] += n_times
        else:
            self._counts[place], self._excerpts[place] = n_times, excerpt()
        self._pseudonyms.setdefault(rule.id, set()).add(pseudonym)

    def note_unscanned(self, what: str, media_type: str, size: int, *, is_dropped: bool = False) -> None:
        """Record data that could not be read."""
        key = (what, media_type, is_dropped)
        count, total = self._unscanned.get(key, (0, 0))
        self._unscanned[key] = count + 1, total + size

    def findings(self) -> tuple[Finding, ...]:
        """Return what was replaced, field by field."""
        return tuple(Finding(*place, self._excerpts[place], count) for place, count in self._counts.items())

    def report(self, n_ignored_names: int) -> RedactionSummary:
        """Return the totals; names beyond the limit count as data that could not be read."""
        unscanned = dict(self._unscanned)
        if n_ignored_names:
            unscanned["names beyond the first 200, as words", "", False] = (n_ignored_names, 0)
        rows: list[Unscanned] = []
        for (what, media_type, is_dropped), (count, size) in sorted(unscanned.items()):
            rows.append(Unscanned(what, media_type, count, size, is_dropped))
        replaced = tuple(self._replaced(rule) for rule in ALL_RULES if rule.id in self._pseudonyms)
        return RedactionSummary(replaced, tuple(rows))

    def _replaced(self, rule: Rule) -> Replaced:
        counts = {place: count for place, count in self._counts.items() if place[0] == rule.id}
        _, session, message, _ = next(iter(counts))
        distinct = len(self._pseudonyms[rule.id])
        return Replaced(rule.id, rule.kind, rule.finds, sum(counts.values()), distinct, session, message)


def mask(value: str, kind: RuleKind) -> str:
    """Return so little of a value that only its owner recognises it."""
    n_shown = 4 if kind is RuleKind.SECRET and len(value) >= 20 else len(value) >= 8
    return f"{value[:n_shown]}…({len(value)})"
