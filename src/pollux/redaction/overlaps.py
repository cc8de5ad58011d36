"""Of several findings that overlap, one is left."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from pollux.redaction.matches import Found
from pollux.redaction.pseudonyms import PSEUDONYM
from pollux.redaction.rule import Kind
from pollux.redaction.rules import RULES

_RANK = {rule.id: rank for rank, rule in enumerate(RULES)}


def apart(found: list[Found], text: str) -> list[Found]:
    """Leave one of several that overlap, and none that is redacted already; a name in or around a secret is none."""
    if "[redacted:" in text:
        pseudonyms = [match.span() for match in PSEUDONYM.finditer(text)]
        found = [one for one in found if not _is_in(one, pseudonyms)]
    secrets = _merged([one for one in found if one.rule.kind is Kind.SECRET])
    if len(secrets) == len(found):
        return secrets
    taken = [(one.start, one.end) for one in secrets]
    names = _merged([one for one in found if one.rule.kind is not Kind.SECRET and not _is_in(one, taken)])
    return sorted((*secrets, *names), key=lambda one: one.start) if secrets else names


def _is_in(found: Found, spans: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a part overlaps one of some spans, which are in order."""
    after = bisect_left(spans, (found.end, 0))
    return after > 0 and spans[after - 1][1] > found.start


def _merged(found: list[Found]) -> list[Found]:
    """Leave that which holds the others, named after the first rule of those as long; if neither does, they are one."""
    if all(one.end <= other.start for one, other in pairwise(found)):
        return found
    kept: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end, _RANK[one.rule.id])):
        last = kept[-1] if kept else None
        if last is None or one.start >= last.end:
            kept.append(one)
        elif one.end > last.end:
            better = min(last, one, key=lambda each: _RANK[each.rule.id])
            kept[-1] = better._replace(start=last.start, end=one.end)
    return kept
