"""Pseudonyms: what stands in place of a value that was replaced."""

from __future__ import annotations

import re

from pollux.redaction.matches import Found
from pollux.redaction.rule import Kind

PSEUDONYM = re.compile(r"\[redacted:[a-z0-9-]+#[0-9]+\]")
_NOISE = re.compile(r"\\[nrt]|[^A-Za-z0-9]")


class Pseudonyms:
    """Gives the same value the same name, numbered as they come."""

    def __init__(self) -> None:
        """Begin with none."""
        self._named: dict[str, dict[str, str]] = {}

    def of(self, found: Found) -> str:
        """Name what was found."""
        rule, value = found.rule, found.value
        key = value if rule.kind is Kind.SECRET else value.casefold()
        if rule.id.startswith("private-key"):
            key = _NOISE.sub("", value)  # the same key in a diff, in JSON and in a file
        named = self._named.setdefault(rule.word, {})
        return named.get(key) or named.setdefault(key, f"[redacted:{rule.word}#{len(named) + 1}]")
