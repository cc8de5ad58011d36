"""Where rules are to be tried: the anchors of all of them, looked for together.

There are two kinds of rules. Most secrets hold a long *run* of letters, digits and `_ - + /`, which is rare in other
text; their anchors are looked for only around such runs, by one regular expression. The anchors of all others contain
one of a few *needles*, each of which is looked for in the whole text, in small letters, as fast as memory is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from pollux.redaction.rule import Rule

Hits: TypeAlias = Callable[[bytes, int], Iterator[re.Match[bytes]]]

NEEDLES = ("pass", "pwd", "secret", "authorization", "cookie:", ":5432:", "home", "users", "-----", "://")
RARE = ("@", "$", "!", "~")
"""Single characters are found faster still."""
GATED = {"-user": "curl", " -u ": "curl", " -p": "mysql"}
"""Needles that mean something only in a text with another word."""

_NOTHING = -1
_COMMON = "etoianrsldhufcpmgybkwvx0123456789_-./:"
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


class Needles:
    """Finds the anchors of rules in a whole text."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Take the rules, and sort their anchors by needle."""
        self._rows: list[tuple[bytes, bytes, Hits, Mapping[int, list[_Cut]]]] = []
        anchors = [(anchor.lower(), rule) for rule in rules for anchor in rule.anchors]
        for needle in (*NEEDLES, *RARE, *GATED):
            found = [_cut(needle, anchor, rule) for anchor, rule in anchors if needle in anchor]
            anchors = [(anchor, rule) for anchor, rule in anchors if needle not in anchor]
            gate = GATED.get(needle, "")
            if found:
                self._rows.append((gate.encode(), needle.encode(), _any_of(needle.encode(), found), _by_last(found)))
        if anchors:
            raise ValueError(f"no needle for {anchors}")

    def places(self, low: bytes) -> Iterator[Place]:
        """Yield the places in a text, given in small letters and one byte a character."""
        for gate, needle, hits, found in self._rows:
            first = low.find(needle) if gate in low else -1
            for hit in hits(low, first) if first >= 0 else ():
                at = hit.start()
                for one in found[low[at - 1] if at else _NOTHING]:
                    if low.startswith(one.behind, at) and low.endswith(one.before, 0, at):
                        yield Place(at - len(one.before), at + len(one.behind), one.rule)


class _Cut(NamedTuple):
    """An anchor, cut where its needle begins."""

    before: bytes
    behind: bytes
    rule: Rule


def _by_last(found: Sequence[_Cut]) -> Mapping[int, list[_Cut]]:
    """Sort anchors by the character that stands before the needle; some do not care."""
    any_ = [one for one in found if not one.before]
    lasts = {one.before[-1] for one in found if one.before}
    careful = {last: [one for one in found if not one.before or one.before[-1] == last] for last in lasts}
    return defaultdict(lambda: any_, careful)


def _cut(needle: str, anchor: str, rule: Rule) -> _Cut:
    before = anchor[: anchor.index(needle)]
    return _Cut(before.encode(), anchor[len(before) :].encode(), rule)


def _any_of(needle: bytes, found: Iterable[_Cut]) -> Hits:
    """Write a pattern for a needle with what may stand around it; it begins with letters, which makes it fast."""
    around = {
        b"(?<=%b%b)(?=%b)"
        % (
            one.rule.guard.encode(),
            re.escape(one.before + needle),
            re.escape(one.behind[len(needle) :]) + one.rule.probe.encode(),
        )
        for one in found
    }
    return re.compile(b"%b(?:%b)" % (re.escape(needle), b"|".join(sorted(around)))).finditer


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
