"""Where rules are to be tried: the anchors of most of them, looked for together.

Most secrets hold a long *run* of letters, digits and `_ - + /`, which is rare in other text: their anchors are looked
for only around such runs, by one regular expression. For those of all others there are `needles`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from pollux.redaction.rule import Rule

_COMMON = " etoianrsldhufcpmgybkwvx0123456789_-./:"
_CLASS = re.compile(r"(\[(?:[^\]\\]|\\.)+\])\{(\d+)")
_LOOKED_BACK = 3
_PROBED = 16
"""So many characters behind an anchor are looked at before its pattern is tried, if the rule does not say which."""


class Place(NamedTuple):
    """Where a rule is to be tried."""

    start: int
    end: int
    """Where the anchor ends."""
    rule: Rule


class _Anchor(NamedTuple):
    """An anchor, and which of its characters is looked for."""

    text: str
    at: int
    rule: Rule

    def looks_like(self, other: _Anchor) -> bool:
        """Tell whether both can stand at the same place, as far as is looked at."""
        back = min(self.at, other.at, _LOOKED_BACK)
        mine, others = self.text[self.at - back :].lower(), other.text[other.at - back :].lower()
        return mine.startswith(others) or others.startswith(mine)

    def stands(self, text: str, at: int) -> bool:
        """Tell whether it stands in a text."""
        start = at - self.at
        if self.rule.any_case:
            return text[start : start + len(self.text)].lower() == self.text if start >= 0 else False
        return start >= 0 and text.startswith(self.text, start)


class Finder:
    """Finds the anchors of rules around runs.

    The regular expression begins with a small set of rare characters, one of which each anchor contains: Python's
    engine runs over all others several times faster than it tries alternatives.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Take the rules, and sort their anchors by their rarest character."""
        self._tries: list[tuple[_Anchor, ...]] = [()]  # groups are counted from one
        by_char: defaultdict[str, list[_Anchor]] = defaultdict(list)
        for anchor in _anchors(rules):
            for char in _cases(anchor.text[anchor.at], anchor.rule):
                by_char[char].append(anchor)
        commonest_first = sorted(by_char, key=lambda char: (-_commonness(char), char))
        self._search = re.compile("|".join(self._alternative(char, by_char[char]) for char in commonest_first)).search

    def next(self, text: str, start: int, end: int) -> tuple[int, Sequence[Place]]:
        """Find the next place in a part of a text, and where to go on; the rules to try there may begin before it."""
        hit = self._search(text, start, end)
        if hit is None:
            return end, ()
        at = hit.start()
        found = (anchor for anchor in self._tries[hit.lastindex or 0] if anchor.stands(text, at))
        return at + 1, [Place(at - one.at, at - one.at + len(one.text), one.rule) for one in found]

    def _alternative(self, char: str, anchors: Sequence[_Anchor]) -> str:
        """Write the pattern for one character: each anchor with an empty group, so that it is known which was found."""
        found: defaultdict[_Around, list[_Anchor]] = defaultdict(list)
        for anchor in sorted(anchors, key=lambda anchor: (-len(anchor.text), anchor.text)):
            found[_around(anchor, char)].append(anchor)
        ordered = sorted(found.items(), key=lambda item: item[0].rank)
        for number, (_, several) in enumerate(ordered):
            # What comes earlier was tried before this one, in vain.
            later = [anchor for _, others in ordered[number:] for anchor in others]
            self._tries.append(tuple(anchor for anchor in later if several[0].looks_like(anchor)))
        by_width: defaultdict[int, list[str]] = defaultdict(list)
        for (width, first), group in groupby((around for around, _ in ordered), key=lambda around: around.rank):
            by_width[width].append(f"{first}(?:{'|'.join(around.pattern(char) for around in group)})")
        widths = [f"(?{'<=' if width else '='}{'|'.join(one)})" for width, one in by_width.items()]
        return f"{re.escape(char)}{_gate(char, anchors)}(?:{'|'.join(widths)})"


class _Around(NamedTuple):
    """What stands around the character that is looked for, as patterns."""

    before: tuple[str, ...]
    behind: str
    guard: str

    @property
    def rank(self) -> tuple[int, str]:
        """Its place among others: the longest before the character first, sorted by what they begin with."""
        return -len(self.before), self.before[0] if self.before else ""

    def pattern(self, char: str) -> str:
        """Write it without what it begins with; the empty group tells that it was found."""
        if not self.before:
            return f"(?={self.behind}){self.guard}()" if self.guard else f"{self.behind}()"
        return f"{''.join(self.before[1:])}{re.escape(char)}(?={self.behind}){self.guard}()"


def _gate(char: str, anchors: Iterable[_Anchor]) -> str:
    """Write what stands right before a character, or else right behind it, so that a line of dashes is soon done."""
    before: set[str] = set()
    behind: set[str] = set()
    for anchor in anchors:
        beside = anchor.text[anchor.at - 1] if anchor.at else anchor.text[1:2]
        (before if anchor.at else behind).update(map(re.escape, _cases(beside, anchor.rule)))
    first = f"(?<=[{''.join(sorted(before))}]{re.escape(char)})" if before else "(?!)"
    return f"(?:{first}|(?=[{''.join(sorted(behind))}]))" if behind else first


def _around(anchor: _Anchor, char: str) -> _Around:
    spelled = [_spelled(one, anchor.rule) for one in anchor.text]
    seen = max(anchor.at - _LOOKED_BACK, 0)
    guard = f"(?<={anchor.rule.guard}{''.join(spelled[: anchor.at])}{re.escape(char)})"
    guard = guard if anchor.rule.guard or seen else ""
    return _Around(tuple(spelled[seen : anchor.at]), "".join(spelled[anchor.at + 1 :]) + _probe(anchor.rule), guard)


def _anchors(rules: Iterable[Rule]) -> list[_Anchor]:
    """Choose for each anchor the character to look for, so that as little text as possible has one of these."""
    found = [_Anchor(text.lower() if rule.any_case else text, 0, rule) for rule in rules for text in rule.anchors]
    chosen: list[str] = []
    while left := [anchor for anchor in found if not set(chosen) & set(anchor.text)]:
        reach: defaultdict[str, int] = defaultdict(int)
        for anchor in left:
            for char in set(anchor.text):
                reach[char] += 1
        chosen.append(min(sorted(reach), key=lambda char: _commonness(char) / reach[char]))
    return [anchor._replace(at=_rarest(anchor.text, chosen)) for anchor in found]


def _rarest(text: str, chosen: Sequence[str]) -> int:
    """Tell which character to look for; the farther it stands behind, the more is known from what stands before it."""
    return min((at for at, char in enumerate(text) if char in chosen), key=lambda at: (_commonness(text[at]), -at))


def _commonness(char: str) -> int:
    return len(_COMMON) - _COMMON.index(char) + 1 if char in _COMMON else 1


def _cases(char: str, rule: Rule) -> list[str]:
    return sorted({char.lower(), char.upper()}) if rule.any_case else [char]


def _spelled(char: str, rule: Rule) -> str:
    cases = _cases(char, rule)
    return f"[{''.join(cases)}]" if len(cases) > 1 else re.escape(char)


def _probe(rule: Rule) -> str:
    """Write what follows the anchors of a rule: so many characters of a class as there must be."""
    found = None if rule.probe else _CLASS.match(rule.rest)
    return f"{found[1]}{{{min(int(found[2]), _PROBED)}}}" if found else rule.probe
