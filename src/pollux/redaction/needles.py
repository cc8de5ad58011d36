"""The anchors of rules that are not looked for around runs.

Each of them contains one of a few *needles*, which are looked for in the whole text, in lower case. Those that begin
with the same letter are looked for together: a regular expression that begins with one letter runs over all others
faster than three needles are looked for one by one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pollux.redaction.anchors import Place
from pollux.redaction.rule import Rule

NEEDLES = {
    "": (
        *("pass", "pw", "psk", "phrase", "pi_key", "psearch", "padd", "pmodify", "p -u "),
        *("cret", "covery", "ckup", "cli ", "cookie:", "cmd ", "cho "),
        *("me/", "me-", "mongo", "mnemonic"),
        *("login", "users", "authorization", "@", "$", "!", "~"),
    ),
    ":": (":5432:",),
    "@": ("://",),
    "%": ("smbclient",),
    "\\": ("net use",),
    "cret": ("from-literal=",),
    "private key": ("----",),
    "curl": ("-user", " -u"),
    "mysql": (" -p",),
}
"""Needles by what else there must be in a text before they mean something."""
TOGETHER = "pcm"
"""First letters of needles that are looked for together: not too common ones."""
_LONG = 1 << 20
"""In a text that is longer, hits are not listed, because there may be millions of them; listing is faster."""

_Hits: TypeAlias = Callable[[str], Iterator[re.Match[str]]]


class _Cut(NamedTuple):
    """An anchor, cut where its needle begins."""

    before: str
    behind: str
    rule: Rule


_Row: TypeAlias = tuple[str, _Hits, Mapping[str, list[_Cut]]]


class Needles:
    """Finds the anchors of rules in a whole text."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Take the rules, and sort their anchors by needle."""
        self._rows: defaultdict[str, list[_Row]] = defaultdict(list)
        """By what must be in a text: the needle itself, or what it depends on."""
        anchors = [(anchor.lower(), rule) for rule in rules for anchor in rule.anchors]
        for gate, needles in NEEDLES.items():
            for needle in needles:
                found = [_cut(needle, anchor, rule) for anchor, rule in anchors if needle in anchor]
                anchors = [(anchor, rule) for anchor, rule in anchors if needle not in anchor]
                if found:
                    self._rows[gate or needle].append((needle, _any_of(needle, found), _by_last(found)))
        if anchors:
            raise ValueError(f"no needle for {anchors}")
        self._alone = [needle for needle in self._rows if needle[0] not in TOGETHER]
        self._together = [_any_needle(group) for group in _by_first_letter(self._rows)]

    def places(self, low: str) -> list[Iterator[Place]]:
        """Return the places in a text, which is given in lower case: needle by needle, each from left to right."""
        present = [needle for needle in self._alone if needle in low]
        for pattern in self._together:
            present += {*pattern.findall(low)} if len(low) < _LONG else {hit[0] for hit in pattern.finditer(low)}
        if not present:
            return []
        found: list[Iterator[Place]] = []
        for needle in present:
            found += [_places(low, row) for row in self._rows[needle] if row[0] == needle or row[0] in low]
        return found


def _by_first_letter(needles: Iterable[str]) -> list[list[str]]:
    groups = [[needle for needle in needles if needle.startswith(letter)] for letter in TOGETHER]
    return [group for group in groups if group]


def _any_needle(needles: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for needles that begin with the same letter."""
    tails = "|".join(re.escape(needle[1:]) for needle in needles)
    return re.compile(f"{needles[0][0]}(?:{tails})")


def _places(low: str, row: _Row) -> Iterator[Place]:
    _, hits, found = row
    for hit in hits(low):
        at = hit.start()
        for one in found[low[at - 1] if at else ""]:
            if low.startswith(one.behind, at) and low.endswith(one.before, 0, at):
                yield Place(at - len(one.before), at + len(one.behind), one.rule)


def to_latin(text: str) -> bytes:
    """Return a text with one byte for each character, and a question mark for each that is not in Latin-1."""
    return text.encode("latin-1", "replace")


def to_lower(latin: bytes) -> str:
    """Return a text in lower case with one character for each byte; only ASCII letters have a case."""
    return latin.lower().decode("latin-1")


def _by_last(found: Sequence[_Cut]) -> Mapping[str, list[_Cut]]:
    """Sort anchors by the character that stands before the needle; some do not care."""
    any_ = [one for one in found if not one.before]
    lasts = {one.before[-1] for one in found if one.before}
    careful = {last: [one for one in found if not one.before or one.before[-1] == last] for last in lasts}
    return defaultdict(lambda: any_, careful)


def _cut(needle: str, anchor: str, rule: Rule) -> _Cut:
    before = anchor[: anchor.index(needle)]
    return _Cut(before, anchor[len(before) :], rule)


def _any_of(needle: str, found: Iterable[_Cut]) -> _Hits:
    """Write a pattern for a needle with what may stand around it; it begins with letters, which makes it fast."""
    around: defaultdict[str, set[str]] = defaultdict(set)
    for one in found:
        before = f"{one.rule.guard}{re.escape(one.before)}"
        around[re.escape(one.behind[len(needle) :]) + one.rule.probe].add(before)
    each = (
        f"(?={behind})"
        if "" in befores
        else f"(?:{'|'.join(f'(?<={one}{re.escape(needle)})' for one in sorted(befores))})(?={behind})"
        for behind, befores in sorted(around.items())
    )
    return re.compile(f"{re.escape(needle)}(?:{'|'.join(each)})", re.ASCII).finditer
