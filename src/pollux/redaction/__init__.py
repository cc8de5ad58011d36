"""Redaction: replace secrets, e-mail addresses and names by pseudonyms before a session is given to others."""

from __future__ import annotations

from pollux.redaction.redactor import Redactor, redactor
from pollux.redaction.report import Finding, RedactionSummary, Replaced, Unscanned
from pollux.redaction.rule import Rule, RuleKind
from pollux.redaction.rules import OPTIONAL, RULES

OPTIONAL_RULES = tuple(row.rule for row in OPTIONAL)
"""Rules that are off unless they are switched on."""

__all__ = (
    "OPTIONAL_RULES",
    "RULES",
    "Finding",
    "RedactionSummary",
    "Redactor",
    "Replaced",
    "Rule",
    "RuleKind",
    "Unscanned",
    "redactor",
    "table",
)


def table() -> list[tuple[str, str, str]]:
    """Return the rules as rows of a page: id, what it finds, kind; optional rules come last."""
    rows = [(rule.id, rule.finds, rule.kind.value) for rule in RULES]
    return rows + [(rule.id, rule.finds, f"{rule.kind.value}, off by default") for rule in OPTIONAL_RULES]
