"""Names that are known, wherever they stand as words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pollux.redaction.matches import Found
from pollux.redaction.people import is_distinct
from pollux.redaction.rule import Rule
from pollux.redaction.rules import NAME

_MOST = 200
"""So many names are looked for; a list of users is no list of people who matter here."""


class KnownNames:
    """The names learned so far; they only become more."""

    def __init__(self) -> None:
        """Know nobody yet."""
        self._rules: dict[str, Rule] = {}
        self._spellings: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None
        self.n_ignored = 0
        """Names that came when there were too many."""

    def add(self, name: str, rule: Rule) -> bool:
        """Learn a name, unless it is known or, where nobody asked for it, a common word; tell whether it was."""
        plain = name.strip().casefold()
        if not plain or plain in self._rules or (rule is not NAME and not is_distinct(name)):
            return False
        if len(self._rules) >= _MOST and rule is not NAME:
            self.n_ignored += 1
            return False
        self._rules[plain] = rule
        self._spellings |= dict.fromkeys((plain, plain.capitalize(), plain.title(), plain.upper()))
        self._pattern = None
        return True

    def all(self) -> frozenset[str]:
        """Give all names."""
        return frozenset(self._rules)

    def knows(self, name: str) -> bool:
        """Tell whether a name is known."""
        return name.casefold() in self._rules

    def are_in(self, text: str) -> bool:
        """Tell whether a name may be in a text."""
        for spelling in self._spellings:  # noqa: SIM110  twice as fast
            if spelling in text:
                return True
        return False

    def find(self, text: str) -> Iterator[Found]:
        """Yield the names in a text."""
        if self.are_in(text):
            self._pattern = self._pattern or _pattern(self._spellings)
            for match in self._pattern.finditer(text):
                yield Found(*match.span(), self._rules[match[0].casefold()], match[0])


def _pattern(spellings: Iterable[str]) -> re.Pattern[str]:
    """Write a pattern for words; it begins with letters, which makes it fast."""
    longest_first = map(re.escape, sorted(spellings, key=lambda spelling: (-len(spelling), spelling)))
    return re.compile("|".join(rf"{one}(?<![^\W_]{one})(?![^\W_])" for one in longest_first))
