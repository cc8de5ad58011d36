"""Matches of rules in a text: try a rule where its anchor is, resolve overlaps, assign pseudonyms."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pollux.redaction.anchors import AnchorHit
from pollux.redaction.rule import Rule, RuleKind
from pollux.redaction.rules import ALL_RULES

_MAX_RETRIED, _MAX_SIGNS = 1000, 8
"""A value that fails its check is not tried again if it is longer than this, or has more `=` and `:` or more blanks:
otherwise a text that repeats an anchor would take time quadratic in its length."""
_PSEUDONYM = re.compile(r"\[redacted:[a-z0-9-]+#[0-9]+\]")
_NOT_DIGIT = re.compile(r"\D")
_KEY_NOISE = re.compile(r"\\[nrt]|[^A-Za-z0-9]")
_RANK = {rule.id: rank for rank, rule in enumerate(ALL_RULES)}
_ADJACENT_RUN = re.compile(r"[\w+/=@.~\\-]*")
_ADJACENT, _ADJACENT_TO_NAME = re.compile(r"[\w+/.~%\\-]"), re.compile(r"[\w-]")


class RuleMatch(NamedTuple):
    """A part of a text to be replaced."""

    start: int
    end: int
    rule: Rule
    value: str
    is_sure: bool = False
    """Whether the value is certainly a name, so that it can be replaced elsewhere, too."""


def try_rule(text: str, hit: AnchorHit, searched: dict[Rule, int]) -> RuleMatch | None:
    """Return the match of a rule at its anchor.

    Args:
        text: the text.
        hit: the rule and its anchor.
        searched: where the last match or rejected value of each rule ends; anchors before that are skipped.

    """
    start, anchor_end, rule = hit
    if anchor_end <= searched.get(rule, 0):
        return None
    match = rule.pattern.match(text, start)
    if match is None:
        return None
    first, end = match.span("secret")
    if rule.left_pattern is not None:
        left = rule.left_pattern.match(text[max(start - rule.left_reach, 0) : start][::-1])
        if left is None:
            return None
        end = max(end, start) if first < end else start
        first = start - left.end()
    value = text[first:end]
    if rule.check is None or rule.check(value, match):
        searched[rule] = end
        return RuleMatch(first, end, rule, value, "sure" in match.re.groupindex and match["sure"] is not None)
    n_signs, n_blanks = value.count("=") + value.count(":"), value.count(" ") + value.count("\n")
    if len(value) > _MAX_RETRIED or n_signs > _MAX_SIGNS or n_blanks > _MAX_SIGNS:
        searched[rule] = end
    return None


def try_rules(text: str, hits: Iterable[AnchorHit]) -> Iterator[RuleMatch]:
    """Yield the matches of rules at their anchors, which come from left to right."""
    searched: dict[Rule, int] = {}
    for hit in hits:
        match = try_rule(text, hit, searched)
        if match:
            yield match


def resolve_overlaps(matches: list[RuleMatch], text: str) -> list[RuleMatch]:
    """Return the matches without overlaps: none inside a pseudonym, and no name that overlaps a secret."""
    if "[redacted:" in text:
        pseudonyms = [pseudonym.span() for pseudonym in _PSEUDONYM.finditer(text)]
        matches = [match for match in matches if not _overlaps(match, pseudonyms)]
    secrets = _merge([match for match in matches if match.rule.kind is RuleKind.SECRET])
    if len(secrets) == len(matches):
        return secrets
    taken = [(match.start, match.end) for match in secrets]
    names = [match for match in matches if match.rule.kind is not RuleKind.SECRET and not _overlaps(match, taken)]
    names = _merge(names)
    return sorted((*secrets, *names), key=lambda match: match.start) if secrets else names


def _overlaps(match: RuleMatch, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a match overlaps one of the spans, which are sorted."""
    after = bisect_left(spans, (match.end, 0))
    return after > 0 and spans[after - 1][1] > match.start


def _merge(matches: list[RuleMatch]) -> list[RuleMatch]:
    """Merge overlapping matches into their union, with the rule that comes first in the table."""
    if all(match.end <= following.start for match, following in pairwise(matches)):
        return matches
    merged: list[RuleMatch] = []
    for match in sorted(matches, key=lambda match: (match.start, -match.end, _RANK[match.rule.id])):
        last = merged[-1] if merged else None
        if last is None or match.start >= last.end:
            merged.append(match)
        elif match.end > last.end:
            better = min(last, match, key=lambda each: _RANK[each.rule.id])
            merged[-1] = better._replace(start=last.start, end=match.end)
    return merged


def has_neighbour(text: str, match: RuleMatch) -> bool:
    """Return whether a word or path touches a match: a rule may match it once a pseudonym marks its border."""
    before, behind = text[max(match.start - 1, 0) : match.start], text[match.end : match.end + 1]
    if match.rule.kind is not RuleKind.SECRET:
        return _ADJACENT_TO_NAME.search(before + behind) is not None
    return before == "@" or _ADJACENT.search(before + behind) is not None  # an @ behind it belongs to a URL


def with_neighbours(text: str, matches: Sequence[RuleMatch]) -> list[RuleMatch]:
    """Return the matches extended by the characters that touch them, to end a chain of secrets without gaps."""
    extended: list[RuleMatch] = []
    at = 0
    for match in matches:
        before, behind = _ADJACENT_RUN.match(text[at : match.start][::-1]), _ADJACENT_RUN.match(text, match.end)
        if before and behind and match.start >= at:
            start, at = match.start - before.end(), behind.end()
            extended.append(match._replace(start=start, end=at, value=text[start:at]))
    return extended


class Pseudonyms:
    """Assigns `[redacted:label#number]` to values: the same to the same value, numbered by first appearance."""

    def __init__(self) -> None:
        """Start with no values."""
        self._by_label: dict[str, dict[str, str]] = {}

    def assign(self, match: RuleMatch) -> str:
        """Return the pseudonym of a value."""
        rule, value = match.rule, match.value
        key = value if rule.kind is RuleKind.SECRET else value.casefold()
        if rule.kind in (RuleKind.PHONE, RuleKind.CARD):
            key = _NOT_DIGIT.sub("", value)  # +1 415 555 2671 and +1-415-555-2671
        elif rule.id.startswith("private-key"):
            key = _KEY_NOISE.sub("", value)  # the same key in a diff, in JSON and in a file
        pseudonyms = self._by_label.setdefault(rule.label, {})
        return pseudonyms.get(key) or pseudonyms.setdefault(key, f"[redacted:{rule.label}#{len(pseudonyms) + 1}]")
