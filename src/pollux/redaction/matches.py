"""What a rule finds at a place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pollux.redaction.anchors import Place
from pollux.redaction.rule import Rule

_LONG, _JUNK = 1000, 8
"""A value that failed its check is not tried again if it is this long, or has so many signs of equality or blanks:
otherwise a text that repeats the anchor of a rule would take time that grows with its square."""


class Found(NamedTuple):
    """A part of a text that is to be replaced."""

    start: int
    end: int
    rule: Rule
    value: str
    is_sure: bool = False
    """Whether the name that was found can be looked for elsewhere."""


def tried(text: str, place: Place, done: dict[Rule, int]) -> Found | None:
    """Try one rule at one place, unless it is in what the rule has already found, or taken for junk."""
    at, behind, rule = place
    if behind <= done.get(rule, 0) or (match := rule.pattern.match(text, at)) is None:
        return None
    start, end = match.span("secret")
    if rule.left_pattern is not None:
        left = rule.left_pattern.match(text[max(at - rule.left_reach, 0) : at][::-1])
        if left is None:
            return None
        start, end = at - left.end(), max(end, at) if start < end else at
    value = text[start:end]
    if rule.check is None or rule.check(value, match):
        done[rule] = end
        return Found(start, end, rule, value, "sure" in match.re.groupindex and match["sure"] is not None)
    if (
        len(value) > _LONG
        or value.count("=") + value.count(":") > _JUNK
        or value.count(" ") + value.count("\n") > _JUNK
    ):
        done[rule] = end
    return None


def all_tried(text: str, places: Iterable[Place]) -> Iterator[Found]:
    """Try rules at places, which are given from left to right."""
    done: dict[Rule, int] = {}
    return (found for place in places if (found := tried(text, place, done)))
