"""Compile the regular expressions of a query."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from pollux.errors import InvalidQueryError
from pollux.search.terms import Regex

if TYPE_CHECKING:
    import regex

_MOST_ITEMS = 5_000
"""Characters, sets and groups that a pattern may have with its repetitions: the library writes all of them out."""
_ITEMS = re.compile(
    r"""
    (?P<nothing> \(\?\#[^)]*\) | \(\?(?:[abefiLmprsuwx-]|V[01])+\) | \s+ )  # a comment, flags or spaces
    | (?P<open> \( ) | (?P<close> \) )
    | \{ (?P<least>\d*) ,? (?P<most>\d*) \}
    | \\. | \[\^?\]?(?:\\.|[^\]\\])*\] | .               # a character or a set
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_IGNORES_SPACES = re.compile(r"\(\?[A-Za-z0-9-]*x", re.ASCII)


@lru_cache(maxsize=64)
def compile_regex(node: Regex) -> regex.Pattern[str]:
    """Return the compiled pattern of a node that `parse_query` returned."""
    import regex  # noqa: PLC0415  only for queries with `re:`

    flags = 0
    for letter in node.flags:
        flags |= getattr(regex, letter.upper())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a set inside a set, which later versions will read differently
        return regex.compile(node.pattern, flags)


def check_regex(node: Regex, query: str, first: int) -> None:
    """Raise `InvalidQueryError` if a pattern that begins at a position of the query cannot be compiled."""
    import regex  # noqa: PLC0415  only for queries with `re:`

    too_large = InvalidQueryError(
        "this regular expression is too large", "Use a simpler one.", query=query, position=first
    )
    if _n_items(node.pattern) > _MOST_ITEMS:
        raise too_large
    try:
        compile_regex(node)
    except regex.error as error:
        at = first + (error.pos or 0)
        raise InvalidQueryError(
            f"this is not a regular expression ({error.msg})",
            "Correct it; write \\ before a special character.",
            query=query,
            position=at,
        ) from None
    except (RecursionError, OverflowError, ValueError, MemoryError):
        raise too_large from None


def _n_items(pattern: str) -> int:
    """Return about how many items a pattern has with all repetitions written out, rather too many than too few."""
    matches = [*_ITEMS.finditer(pattern)]
    if _IGNORES_SPACES.search(pattern):  # a comment may stand before a repetition
        return len(matches) * prod(_repetitions(match) for match in matches)
    groups: list[list[int]] = [[]]
    for match in matches:
        if match["nothing"]:
            continue
        if match["open"]:
            groups.append([])
        elif match["least"] is not None:
            groups[-1].append((groups[-1].pop() if groups[-1] else 1) * _repetitions(match))
        elif match["close"] and len(groups) > 1:
            n_items = sum(groups.pop())
            groups[-1].append(max(n_items, 1))
        else:
            groups[-1].append(1)
    return sum(map(sum, groups))


def _repetitions(match: re.Match[str]) -> int:
    """Return the larger number of `{2,5}`, but no number that would take long to multiply."""
    numbers = [(match[name] or "").lstrip("0") for name in ("least", "most")]
    if any(len(number) > len(str(_MOST_ITEMS)) for number in numbers):
        return _MOST_ITEMS + 1
    return max(int(number or 1) for number in numbers)
