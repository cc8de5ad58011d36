"""The anchors of rules that are not looked for around runs.

Each of them contains one of a few *needles*, which are looked for in the whole text, in small letters, as fast as
memory is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pollux.redaction.anchors import Place
from pollux.redaction.rule import Rule

NEEDLES = {
    "": ("pass", "pwd", "secret", "authorization", "home", "users", "@", "$", "!", "~"),
    ":": ("cookie:", ":5432:"),
    "@": ("://",),
    "private key": ("-----",),
    "curl": ("-user", " -u "),
    "mysql": (" -p",),
}
"""By what else there must be in a text before they mean something; what is rare or short is soon looked for."""

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
        self._rows: list[tuple[str, list[_Row]]] = []
        anchors = [(anchor.lower(), rule) for rule in rules for anchor in rule.anchors]
        for gate, needles in NEEDLES.items():
            rows = []
            for needle in needles:
                found = [_cut(needle, anchor, rule) for anchor, rule in anchors if needle in anchor]
                anchors = [(anchor, rule) for anchor, rule in anchors if needle not in anchor]
                if found:
                    rows.append((needle, _any_of(needle, found), _by_last(found)))
            self._rows += [(gate, rows)] if rows else []
        if anchors:
            raise ValueError(f"no needle for {anchors}")

    def places(self, low: str) -> Iterator[Iterator[Place]]:
        """Yield the places in a text, which is given in small letters: needle by needle, each from left to right."""
        rows = [row for gate, rows in self._rows if gate in low for row in rows if row[0] in low]
        return (_places(low, row) for row in rows)


def _places(low: str, row: _Row) -> Iterator[Place]:
    _, hits, found = row
    for hit in hits(low):
        at = hit.start()
        for one in found[low[at - 1] if at else ""]:
            if low.startswith(one.behind, at) and low.endswith(one.before, 0, at):
                yield Place(at - len(one.before), at + len(one.behind), one.rule)


def lowered(text: str) -> str:
    """Write a text in small letters, one character for each; what is no Latin letter is lost."""
    return text.lower() if text.isascii() else text.encode("latin-1", "replace").lower().decode("latin-1")


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
