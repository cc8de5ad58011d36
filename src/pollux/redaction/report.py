"""What was replaced, and what could not be looked into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pollux.redaction.rule import Kind, Rule
from pollux.redaction.rules import RULES

_Place: TypeAlias = tuple[str, str | None, str | None, str]
"""A rule, a session, a message, and where in it."""
_Kind: TypeAlias = tuple[str, str, bool]
"""What could not be looked into, its media type, and whether it was dropped."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found in one place of a message; the excerpt does not give it away."""

    rule: str
    session: str | None
    message: str | None
    where: str
    excerpt: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a rule found in all."""

    rule: str
    kind: Kind
    finds: str
    count: int
    distinct: int
    session: str | None
    """Where it was first seen."""
    message: str | None


@dataclass(frozen=True, slots=True)
class Unscanned:
    """Data that could not be looked into, by what it is."""

    what: str
    media_type: str
    count: int
    size: int
    """Bytes."""
    is_dropped: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What was done to all that was redacted."""

    replaced: tuple[Replaced, ...] = ()
    unscanned: tuple[Unscanned, ...] = ()


class Ledger:
    """Keeps account while a redactor works."""

    __slots__ = ("_counts", "_excerpts", "_pseudonyms", "_unscanned", "message", "session")

    def __init__(self) -> None:
        """Begin with nothing."""
        self.session: str | None = None
        self.message: str | None = None
        self._excerpts: dict[_Place, str] = {}
        self._counts: dict[_Place, int] = {}
        self._pseudonyms: dict[str, set[str]] = {}
        self._unscanned: dict[_Kind, tuple[int, int]] = {}

    def note(self, rule: Rule, pseudonym: str, where: str, excerpt: Callable[[], str], n_times: int = 1) -> None:
        """Note that something was replaced."""
        place = (rule.id, self.session, self.message, where)
        if place in self._counts:
            self._counts[place] += n_times
        else:
            self._counts[place], self._excerpts[place] = n_times, excerpt()
        self._pseudonyms.setdefault(rule.id, set()).add(pseudonym)

    def note_unscanned(self, what: str, media_type: str, size: int, *, is_dropped: bool = False) -> None:
        """Note that something could not be looked into."""
        key = (what, media_type, is_dropped)
        count, total = self._unscanned.get(key, (0, 0))
        self._unscanned[key] = count + 1, total + size

    def findings(self) -> tuple[Finding, ...]:
        """List what was found, place by place."""
        return tuple(Finding(*place, self._excerpts[place], count) for place, count in self._counts.items())

    def report(self, n_ignored: int) -> Report:
        """Sum up, with the names that were too many."""
        names = {("names beyond the first 200, as words", "", False): (n_ignored, 0)} if n_ignored else {}
        return Report(
            tuple(self._replaced(rule) for rule in RULES if rule.id in self._pseudonyms),
            tuple(
                Unscanned(what, media_type, count, size, is_dropped)
                for (what, media_type, is_dropped), (count, size) in sorted((self._unscanned | names).items())
            ),
        )

    def _replaced(self, rule: Rule) -> Replaced:
        counts = {place: count for place, count in self._counts.items() if place[0] == rule.id}
        _, session, message, _ = next(iter(counts))
        distinct = len(self._pseudonyms[rule.id])
        return Replaced(rule.id, rule.kind, rule.finds, sum(counts.values()), distinct, session, message)


def masked(value: str, kind: Kind) -> str:
    """Show so little of a value that nobody else learns it, and so much that its owner knows it."""
    shown = value[:4] if kind is Kind.SECRET and len(value) >= 20 else value[:1] if len(value) >= 8 else ""
    return f"{shown}…({len(value)})"
