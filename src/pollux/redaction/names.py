"""Names that are known, wherever they stand as words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pollux.redaction.people import is_distinct
from pollux.redaction.rule import Rule
from pollux.redaction.rules import NAME
from pollux.redaction.scan import Found

_MOST = 200
"""So many names are looked for; a list of users is no list of people who matter here."""


class KnownNames:
    """The names learned so far; they only become more."""

    def __init__(self) -> None:
        """Know nobody yet."""
        self._rules: dict[str, Rule] = {}
        self._spellings: tuple[str, ...] = ()
        self._find: re.Pattern[str] | None = None
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
        self._spellings = tuple(dict.fromkeys(one for known in self._rules for one in _spellings(known)))
        longest_first = sorted(self._spellings, key=lambda spelling: (-len(spelling), spelling))
        self._find = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest_first))})(?![^\W_])")
        return True

    def find(self, text: str) -> Iterator[Found]:
        """Yield the names in a text."""
        if self._find is None or not any(spelling in text for spelling in self._spellings):
            return
        for match in self._find.finditer(text):
            yield Found(*match.span(), self._rules[match[0].casefold()], match[0])


def _spellings(name: str) -> tuple[str, ...]:
    return name, name.capitalize(), name.title(), name.upper()
