"""Where rules are to be tried: the anchors of all of them, looked for together.

There are two kinds of rules. Most secrets hold a long *run* of letters, digits and `_ - + /`, which is rare in other
text; their anchors are looked for only around such runs, by one regular expression. The anchors of all others contain one
of a few *needles*, each of which is looked for in the whole text, in small letters, as fast as memory is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from pollux.redaction.rule import Rule

Hits: TypeAlias = Callable[[bytes, int], Iterator[re.Match[bytes]]]

NEEDLES = ("pass", "pwd", "secret", "authorization", "cookie:", ":5432:", "home", "users", "-----", "://")
RARE = ("@", "$", "!", "~")
"""Single characters are found faster still."""
GATED = {"-user": "curl", " -u ": "curl", " -p": "mysql"}
"""Needles that mean something only in a text with another word."""

_COMMON = "etoianrsldhufcpmgybkwvx0123456789_-./:"
_CLASS = re.compile(r"(\[(?:[^\]\\]|\\.)+\])\{(\d+)")
_LOOKED_BACK = 2
_PROBED = 8
"""So many characters behind an anchor are looked at before its pattern is tried."""


class Place(NamedTuple):
    """Where a rule is to be tried."""

    start: int
    rule: Rule


class Needles:
    """Finds the anchors of rules in a whole text."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rows: list[tuple[bytes, bytes, Hits, list[_Around]]] = []
        anchors = [(anchor.lower(), rule) for rule in rules for anchor in rule.anchors]
        for needle in (*NEEDLES, *RARE, *GATED):
            found = [_around(needle, anchor, rule) for anchor, rule in anchors if needle in anchor]
            anchors = [(anchor, rule) for anchor, rule in anchors if needle not in anchor]
            gate = GATED.get(needle, needle)
            self._rows.append((gate.encode(), needle.encode(), _any_of(needle.encode(), found), found))
        if anchors:
            raise ValueError(f"no needle for {anchors}")

    def places(self, low: bytes) -> Iterator[Place]:
        """Yield the places in a text, given in small letters and one byte a character."""
        for gate, needle, hits, found in self._rows:
            first = low.find(needle) if gate is needle or gate in low else -1
            for hit in hits(low, first) if first >= 0 else ():
                at = hit.start()
                for one in found:
                    if low.startswith(one.behind, at) and low.endswith(one.before, 0, at):
                        yield Place(at - len(one.before), one.rule)


class _Around(NamedTuple):
    """An anchor, cut where its needle begins."""

    before: bytes
    behind: bytes
    rule: Rule


def _around(needle: str, anchor: str, rule: Rule) -> _Around:
    before = anchor[: anchor.index(needle)]
    return _Around(before.encode(), anchor[len(before) :].encode(), rule)


def _any_of(needle: bytes, found: Iterable[_Around]) -> Hits:
    """Write a pattern for a needle with what may stand around it; it begins with letters, which makes it fast."""
    around = {
        (b"(?<=%b)" % re.escape(one.before + needle) if one.before else b"")
        + b"(?=%b)" % (re.escape(one.behind[len(needle) :]) + one.rule.probe.encode())
        for one in found
    }
    return re.compile(b"%b(?:%b)" % (re.escape(needle), b"|".join(sorted(around)))).finditer


class _Anchor(NamedTuple):
    """An anchor, and which of its characters is looked for."""

    text: str
    at: int
    rule: Rule

    @property
    def before(self) -> str:
        """What is looked at to the left of that character; the rest is left to the pattern."""
        return self.text[max(self.at - _LOOKED_BACK, 0) : self.at]

    def looks_like(self, other: _Anchor) -> bool:
        """Tell whether both can stand at the same place, as far as is looked at."""
        back = min(self.at, other.at, _LOOKED_BACK)
        mine, others = self.text[self.at - back :].lower(), other.text[other.at - back :].lower()
        return mine.startswith(others) or others.startswith(mine)

    def stands(self, text: str, at: int) -> bool:
        """Tell whether it stands in a text."""
        if self.at <= _LOOKED_BACK:
            return True
        there = text[at - self.at : at]
        return (there.lower() if self.rule.any_case else there) == self.text[: self.at]


class Finder:
    """Finds the anchors of rules around runs.

    The regular expression begins with a small set of rare characters, one of which each anchor contains: Python's engine
    runs over all others several times faster than it tries alternatives.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._tries: list[tuple[_Anchor, ...]] = [()]  # groups are counted from one
        by_char: defaultdict[str, list[_Anchor]] = defaultdict(list)
        for anchor in _anchors(rules):
            for char in _cases(anchor.text[anchor.at], anchor.rule):
                by_char[char].append(anchor)
        commonest_first = sorted(by_char, key=lambda char: (-_commonness(char), char))
        self._hits = re.compile("|".join(self._alternative(char, by_char[char]) for char in commonest_first)).finditer

    def places(self, text: str, start: int, end: int) -> Iterator[Place]:
        """Yield the places in a part of a text."""
        for hit in self._hits(text, start, end):
            at = hit.start()
            for anchor in self._tries[hit.lastindex or 0]:
                if anchor.stands(text, at):
                    yield Place(at - anchor.at, anchor.rule)

    def _alternative(self, char: str, anchors: Sequence[_Anchor]) -> str:
        """Write the pattern for one character: each anchor with an empty group, so that it is known which was found."""
        by_pattern: dict[tuple[tuple[str, ...], str], _Anchor] = {}
        for anchor in sorted(anchors, key=lambda anchor: (-len(anchor.before), -len(anchor.text), anchor.text)):
            before = tuple(_spelled(one, anchor.rule) for one in anchor.before)
            behind = "".join(_spelled(one, anchor.rule) for one in anchor.text[anchor.at + 1 :]) + _probe(anchor.rule)
            by_pattern.setdefault((before, behind), anchor)
        by_width: defaultdict[int, list[str]] = defaultdict(list)
        for first, several in groupby(sorted(by_pattern.items(), key=_by_width), key=_by_width):
            patterns: list[str] = []
            for (before, behind), anchor in several:
                self._tries.append(tuple(other for other in anchors if anchor.looks_like(other)))
                ahead = f"{re.escape(char)}(?={behind})" if before else behind
                patterns.append(f"{''.join(before[1:])}{ahead}()")
            by_width[first[0]].append(f"{first[1]}(?:{'|'.join(patterns)})")
        widths = [f"(?{'<=' if width else '='}{'|'.join(one)})" for width, one in by_width.items()]
        return f"{re.escape(char)}(?:{'|'.join(widths)})"


def _by_width(item: tuple[tuple[tuple[str, ...], str], _Anchor]) -> tuple[int, str]:
    """Sort what may stand before a character by its length and its first character; the longest are tried first."""
    (before, _behind), _anchor = item
    return -len(before), before[0] if before else ""


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
    return min((at for at, char in enumerate(text) if char in chosen), key=lambda at: _commonness(text[at]))


def _commonness(char: str) -> int:
    return len(_COMMON) - _COMMON.index(char) + 1 if char in _COMMON else 1


def _cases(char: str, rule: Rule) -> list[str]:
    return sorted({char.lower(), char.upper()}) if rule.any_case else [char]


def _spelled(char: str, rule: Rule) -> str:
    cases = _cases(char, rule)
    return f"[{''.join(cases)}]" if len(cases) > 1 else re.escape(char)


def _probe(rule: Rule) -> str:
    if rule.probe:
        return rule.probe
    _, _, rest = rule.source.partition(re.escape(rule.anchors[-1]))
    found = _CLASS.match(rest.removeprefix(")"))
    return f"{found[1]}{{{min(int(found[2]), _PROBED)}}}" if found else ""
