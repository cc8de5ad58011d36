"""What stands right beside a finding, and may only be seen for what it is when that is gone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pollux.redaction.matches import Found
from pollux.redaction.rule import Kind

_REST = re.compile(r"[\w+/=@.~\\-]*")
_GLUE, _NAME_GLUE = re.compile(r"[\w+/.~%\\-]"), re.compile(r"[\w-]")


def is_glued(text: str, found: Found) -> bool:
    """Tell whether what stands beside may only now be seen for what it is: a word or a path with an end there."""
    before, behind = text[max(found.start - 1, 0) : found.start], text[found.end : found.end + 1]
    if found.rule.kind is not Kind.SECRET:
        return _NAME_GLUE.search(before + behind) is not None
    return before == "@" or _GLUE.search(before + behind) is not None  # an @ behind it is only that of a URL


def with_rest(text: str, found: Sequence[Found]) -> list[Found]:
    """Take in all that is glued to what was found, so that a chain of secrets comes to its end."""
    done: list[Found] = []
    at = 0
    for one in found:
        before, behind = _REST.match(text[at : one.start][::-1]), _REST.match(text, one.end)
        if before and behind and one.start >= at:
            start, at = one.start - before.end(), behind.end()
            done.append(one._replace(start=start, end=at, value=text[start:at]))
    return done
