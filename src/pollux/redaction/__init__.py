"""Redaction: secrets, e-mail addresses and names out of what is handed over, pseudonyms in their place."""

from __future__ import annotations

from pollux.redaction.redactor import Redactor, redactor
from pollux.redaction.report import Finding, Replaced, Report, Unscanned
from pollux.redaction.rule import Kind, Rule
from pollux.redaction.rules import RULES

__all__ = ("RULES", "Finding", "Kind", "Redactor", "Replaced", "Report", "Rule", "Unscanned", "redactor", "table")


def table() -> list[tuple[str, str, str]]:
    """Give the rules as rows for a page: id, what it finds, kind."""
    return [(rule.id, rule.finds, rule.kind.value) for rule in RULES]
