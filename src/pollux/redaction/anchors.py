"""Find the anchors of rules, the places where a rule is to be tried.

Most secrets contain a long *run* of letters, digits and `_ - + /`, which is rare in other text. `RunAnchors` searches
for their anchors around such runs only, with one regular expression. `TextAnchors` searches the whole text, in lower
case, for the anchors of all other rules by a few *needles* that these contain. Needles with the same first letter are
searched for together: a regular expression that starts with one letter skips all others faster than three separate
searches.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

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
"""Needles by what else a text must contain before they are searched for."""
GROUPED = "pcm"
"""First letters of needles that are searched for together: letters that are not too common."""
_LISTED = 1 << 20
"""In longer texts hits are not listed, because there may be millions of them; in shorter ones listing is faster."""
_COMMON = " etoianrsldhufcpmgybkwvx0123456789_-./:"
"""Characters by how common they are, the most common first."""
_FIRST_CLASS = re.compile(r"(\[(?:[^\]\\]|\\.)+\])\{(\d+)")
_LOOK_BACK = 3
_MAX_PROBE = 16
"""Number of characters after an anchor that are tested before its pattern, if the rule has no probe."""


class AnchorHit(NamedTuple):
    """A rule to try, and where its anchor starts and ends."""

    start: int
    end: int
    rule: Rule


class _RunAnchor(NamedTuple):
    """An anchor, and the index of its character that is searched for."""

    text: str
    at: int
    rule: Rule

    def may_coincide(self, other: _RunAnchor) -> bool:
        """Return whether both may match at the same character, as far as `_LOOK_BACK` tells."""
        back = min(self.at, other.at, _LOOK_BACK)
        mine, theirs = self.text[self.at - back :].lower(), other.text[other.at - back :].lower()
        return mine.startswith(theirs) or theirs.startswith(mine)

    def is_at(self, text: str, at: int) -> bool:
        start = at - self.at
        if start < 0:
            return False
        if self.rule.any_case:
            return text[start : start + len(self.text)].lower() == self.text
        return text.startswith(self.text, start)


class RunAnchors:
    """Finds anchors around runs.

    The regular expression starts with a small set of rare characters, of which each anchor contains one: Python's
    engine skips all other characters several times faster than it tries alternatives.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Compile the anchors of the rules, sorted by their rarest character."""
        self._candidates: list[tuple[_RunAnchor, ...]] = [()]  # by group; groups count from 1
        by_char: defaultdict[str, list[_RunAnchor]] = defaultdict(list)
        for anchor in _run_anchors(rules):
            for char in _cases(anchor.text[anchor.at], anchor.rule):
                by_char[char].append(anchor)
        commonest_first = sorted(by_char, key=lambda char: (-_commonness(char), char))
        self._search = re.compile("|".join(self._alternative(char, by_char[char]) for char in commonest_first)).search

    def next(self, text: str, start: int, end: int) -> tuple[int, Sequence[AnchorHit]]:
        """Return where to continue, and the rules to try at the next anchor, which may start before `start`."""
        match = self._search(text, start, end)
        if match is None:
            return end, ()
        at = match.start()
        anchors = (anchor for anchor in self._candidates[match.lastindex or 0] if anchor.is_at(text, at))
        return at + 1, [AnchorHit(at - anchor.at, at - anchor.at + len(anchor.text), anchor.rule) for anchor in anchors]

    def _alternative(self, char: str, anchors: Sequence[_RunAnchor]) -> str:
        """Return the pattern for a character, in which an empty group after each anchor tells which one matched."""
        by_surroundings: defaultdict[_Surroundings, list[_RunAnchor]] = defaultdict(list)
        for anchor in sorted(anchors, key=lambda anchor: (-len(anchor.text), anchor.text)):
            by_surroundings[_surroundings(anchor, char)].append(anchor)
        ordered = sorted(by_surroundings.items(), key=lambda item: item[0].rank)
        for number, (_, same) in enumerate(ordered):
            # The alternatives before this one have failed.
            remaining = [anchor for _, others in ordered[number:] for anchor in others]
            self._candidates.append(tuple(anchor for anchor in remaining if same[0].may_coincide(anchor)))
        by_width: defaultdict[int, list[str]] = defaultdict(list)
        for (width, first), group in groupby((around for around, _ in ordered), key=lambda around: around.rank):
            by_width[width].append(f"{first}(?:{'|'.join(around.pattern(char) for around in group)})")
        widths = [f"(?{'<=' if width else '='}{'|'.join(patterns)})" for width, patterns in by_width.items()]
        return f"{re.escape(char)}{_neighbours(char, anchors)}(?:{'|'.join(widths)})"


class _Surroundings(NamedTuple):
    """Patterns of what surrounds the character that is searched for."""

    before: tuple[str, ...]
    behind: str
    guard: str

    @property
    def rank(self) -> tuple[int, str]:
        """Sort key: the longest `before` first, then by its first pattern."""
        return -len(self.before), self.before[0] if self.before else ""

    def pattern(self, char: str) -> str:
        """Return the pattern without the first of `before`; the empty group tells that it matched."""
        if not self.before:
            return f"(?={self.behind}){self.guard}()" if self.guard else f"{self.behind}()"
        return f"{''.join(self.before[1:])}{re.escape(char)}(?={self.behind}){self.guard}()"


def _neighbours(char: str, anchors: Iterable[_RunAnchor]) -> str:
    """Return a pattern of what is next to a character, so that a line of dashes is skipped quickly."""
    before: set[str] = set()
    behind: set[str] = set()
    for anchor in anchors:
        neighbour = anchor.text[anchor.at - 1] if anchor.at else anchor.text[1:2]
        (before if anchor.at else behind).update(map(re.escape, _cases(neighbour, anchor.rule)))
    first = f"(?<=[{''.join(sorted(before))}]{re.escape(char)})" if before else "(?!)"
    return f"(?:{first}|(?=[{''.join(sorted(behind))}]))" if behind else first


def _surroundings(anchor: _RunAnchor, char: str) -> _Surroundings:
    spelled = [_spelled(each, anchor.rule) for each in anchor.text]
    seen = max(anchor.at - _LOOK_BACK, 0)
    guard = f"(?<={anchor.rule.guard}{''.join(spelled[: anchor.at])}{re.escape(char)})"
    guard = guard if anchor.rule.guard or seen else ""
    behind = "".join(spelled[anchor.at + 1 :]) + _probe(anchor.rule)
    return _Surroundings(tuple(spelled[seen : anchor.at]), behind, guard)


def _run_anchors(rules: Iterable[Rule]) -> list[_RunAnchor]:
    """Choose for each anchor the character to search for, so that these characters are few and rare in texts."""
    anchors = [_RunAnchor(text.lower() if rule.any_case else text, 0, rule) for rule in rules for text in rule.anchors]
    chosen: list[str] = []
    remaining = anchors
    while remaining:
        n_anchors: defaultdict[str, int] = defaultdict(int)
        for anchor in remaining:
            for char in set(anchor.text):
                n_anchors[char] += 1
        chosen.append(min(sorted(n_anchors), key=lambda char: _commonness(char) / n_anchors[char]))
        remaining = [anchor for anchor in remaining if not set(chosen) & set(anchor.text)]
    return [anchor._replace(at=_rarest(anchor.text, chosen)) for anchor in anchors]


def _rarest(text: str, chosen: Sequence[str]) -> int:
    """Return the index of the rarest chosen character; the last one, because more is known of what precedes it."""
    places = [at for at, char in enumerate(text) if char in chosen]
    return min(places, key=lambda at: (_commonness(text[at]), -at))


def _commonness(char: str) -> int:
    return len(_COMMON) - _COMMON.index(char) + 1 if char in _COMMON else 1


def _cases(char: str, rule: Rule) -> list[str]:
    return sorted({char.lower(), char.upper()}) if rule.any_case else [char]


def _spelled(char: str, rule: Rule) -> str:
    cases = _cases(char, rule)
    return f"[{''.join(cases)}]" if len(cases) > 1 else re.escape(char)


def _probe(rule: Rule) -> str:
    """Return the probe of a rule, or the character class that its pattern starts with."""
    first = None if rule.probe else _FIRST_CLASS.match(rule.tail)
    return f"{first[1]}{{{min(int(first[2]), _MAX_PROBE)}}}" if first else rule.probe


class _CutAnchor(NamedTuple):
    """An anchor, cut where its needle starts."""

    before: str
    behind: str
    rule: Rule


class _Needle(NamedTuple):
    """A text that anchors contain."""

    text: str
    hits: Callable[[str], Iterator[re.Match[str]]]
    by_previous: Mapping[str, list[_CutAnchor]]
    """The anchors by the character before the needle."""


class TextAnchors:
    """Finds anchors in a whole text."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Sort the anchors of the rules by needle. Raises `ValueError` for an anchor that contains none."""
        self._rows: defaultdict[str, list[_Needle]] = defaultdict(list)
        """By what a text must contain: the needle itself, or what it depends on."""
        anchors = [(anchor.lower(), rule) for rule in rules for anchor in rule.anchors]
        for gate, needles in NEEDLES.items():
            for needle in needles:
                cut = [_cut(needle, anchor, rule) for anchor, rule in anchors if needle in anchor]
                anchors = [(anchor, rule) for anchor, rule in anchors if needle not in anchor]
                if cut:
                    self._rows[gate or needle].append(_Needle(needle, _needle_search(needle, cut), _by_previous(cut)))
        if anchors:
            raise ValueError(f"no needle for {anchors}")
        self._single = [needle for needle in self._rows if needle[0] not in GROUPED]
        self._grouped: list[re.Pattern[str]] = []
        for letter in GROUPED:
            group = [needle for needle in self._rows if needle.startswith(letter)]
            if group:
                tails = "|".join(re.escape(needle[1:]) for needle in group)
                self._grouped.append(re.compile(f"{letter}(?:{tails})"))

    def hits(self, low: str) -> list[Iterator[AnchorHit]]:
        """Return the anchors in a text in lower case: an iterator for each needle, from left to right."""
        present = [needle for needle in self._single if needle in low]
        for pattern in self._grouped:
            present += {*pattern.findall(low)} if len(low) < _LISTED else {match[0] for match in pattern.finditer(low)}
        if not present:
            return []
        hits: list[Iterator[AnchorHit]] = []
        for needle in present:
            hits += [_hits(low, row) for row in self._rows[needle] if row.text == needle or row.text in low]
        return hits


def _hits(low: str, needle: _Needle) -> Iterator[AnchorHit]:
    for match in needle.hits(low):
        at = match.start()
        for anchor in needle.by_previous[low[at - 1] if at else ""]:
            if low.startswith(anchor.behind, at) and low.endswith(anchor.before, 0, at):
                yield AnchorHit(at - len(anchor.before), at + len(anchor.behind), anchor.rule)


def _by_previous(anchors: Sequence[_CutAnchor]) -> Mapping[str, list[_CutAnchor]]:
    unconditional = [anchor for anchor in anchors if not anchor.before]
    by_previous: defaultdict[str, list[_CutAnchor]] = defaultdict(lambda: unconditional)
    for previous in {anchor.before[-1] for anchor in anchors if anchor.before}:
        by_previous[previous] = [anchor for anchor in anchors if not anchor.before or anchor.before[-1] == previous]
    return by_previous


def _cut(needle: str, anchor: str, rule: Rule) -> _CutAnchor:
    before = anchor[: anchor.index(needle)]
    return _CutAnchor(before, anchor[len(before) :], rule)


def _needle_search(needle: str, anchors: Iterable[_CutAnchor]) -> Callable[[str], Iterator[re.Match[str]]]:
    """Return a search for a needle with its surroundings; the pattern starts with letters, which makes it fast."""
    befores_by_behind: defaultdict[str, set[str]] = defaultdict(set)
    for anchor in anchors:
        behind = re.escape(anchor.behind[len(needle) :]) + anchor.rule.probe
        befores_by_behind[behind].add(f"{anchor.rule.guard}{re.escape(anchor.before)}")
    alternatives: list[str] = []
    for behind, befores in sorted(befores_by_behind.items()):
        condition = f"(?={behind})"
        if "" not in befores:
            look_behinds = [f"(?<={before}{re.escape(needle)})" for before in sorted(befores)]
            condition = f"(?:{'|'.join(look_behinds)}){condition}"
        alternatives.append(condition)
    return re.compile(f"{re.escape(needle)}(?:{'|'.join(alternatives)})", re.ASCII).finditer


def to_latin(text: str) -> bytes:
    """Return a text with one byte for each character, and a question mark for those that are not in Latin-1."""
    return text.encode("latin-1", "replace")


def to_lower(latin: bytes) -> str:
    """Return a text in lower case with one character for each byte; only ASCII letters have a case."""
    return latin.lower().decode("latin-1")
