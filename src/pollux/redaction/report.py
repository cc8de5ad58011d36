"""What was replaced, and what could not be looked into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pollux.redaction.rule import Kind, Rule
from pollux.redaction.rules import RULES

_RANK = {rule.id: rank for rank, rule in enumerate(RULES)}


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


@dataclass(slots=True)
class Ledger:
    """Keeps account while a redactor works."""

    session: str | None = None
    message: str | None = None
    findings: dict[tuple[str, str | None, str | None, str], Finding] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    values: dict[str, set[str]] = field(default_factory=dict)
    first: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    unscanned: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    sizes: Counter[tuple[str, str, bool]] = field(default_factory=Counter)

    def note(self, rule: Rule, pseudonym: str, where: str, excerpt: Callable[[], str]) -> None:
        """Note that something was replaced."""
        self.counts[rule.id] += 1
        self.values.setdefault(rule.id, set()).add(pseudonym)
        self.first.setdefault(rule.id, (self.session, self.message))
        key = (rule.id, self.session, self.message, where)
        known = self.findings.get(key)
        self.findings[key] = Finding(*key, known.excerpt, known.count + 1) if known else Finding(*key, excerpt())

    def note_unscanned(self, what: str, media_type: str, size: int, *, is_dropped: bool = False) -> None:
        """Note that something could not be looked into."""
        key = (what, media_type, is_dropped)
        self.unscanned[key] += 1
        self.sizes[key] += size

    def report(self) -> Report:
        """Sum up."""
        rules = {rule.id: rule for rule in RULES}
        return Report(
            tuple(
                Replaced(id_, rules[id_].kind, rules[id_].finds, count, len(self.values[id_]), *self.first[id_])
                for id_, count in sorted(self.counts.items(), key=lambda item: _RANK[item[0]])
            ),
            tuple(
                Unscanned(what, media_type, count, self.sizes[what, media_type, is_dropped], is_dropped)
                for (what, media_type, is_dropped), count in sorted(self.unscanned.items())
            ),
        )


def masked(value: str, kind: Kind) -> str:
    """Show so little of a value that nobody else learns it, and so much that its owner knows it."""
    shown = value[:4] if kind is Kind.SECRET and len(value) >= 20 else value[:1] if len(value) >= 8 else ""
    return f"{shown}…({len(value)})"
