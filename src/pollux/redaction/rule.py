"""What a rule is, and the few forms in which most of them are written.

A rule has anchors: literal pieces of text, one of which must be there before its pattern is tried at that very place.
All anchors together are looked for in one pass, so that a text without any costs next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypedDict, Unpack

from pollux.redaction.checks import is_real

Check = Callable[[str, re.Match[str]], bool]
"""Whether a value is what it looks like, with the match that it comes from."""


class Kind(StrEnum):
    """What is found."""

    SECRET = "secret"  # noqa: S105  the word, not one of them
    EMAIL = "e-mail"
    NAME = "name"
    PATH = "path"


LEFT = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=[\[;\d]m))"
"""Where a word begins; an escaped line end, a percent escape and the end of a colour are no part of it."""
SEP = r"""[ \t"'`\\\])*]{0,16}(?:=>|:=|==?|[:>|,])[ \t"'`\\(\[*]{0,16}"""
"""Between a name and its value, in whatever language, however often escaped."""
WORD = "[A-Za-z0-9_-]"
ALNUM = "[A-Za-z0-9]"
BASE64 = "[A-Za-z0-9+/]"
HEX = "[0-9a-f]"
UUID = f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"


def some(characters: str, least: int) -> str:
    """Write a pattern for so many characters or more."""
    return f"{characters}{{{least},}}"


def just(characters: str, number: int) -> str:
    """Write a pattern for so many characters."""
    return f"{characters}{{{number}}}"


@dataclass(frozen=True, eq=False)
class Rule:
    """One row of the table."""

    id: str
    finds: str
    kind: Kind
    anchors: tuple[str, ...]
    """Where the pattern is tried; in any case of letters if `any_case`."""
    rest: str
    """The pattern of what follows an anchor. Its group `secret` is replaced; without one, all is, with the anchor."""
    check: Check | None = is_real
    any_case: bool = False
    guard: str = ""
    """What is asked of the text before the anchor, as an assertion that is looked at before the pattern is tried."""
    probe: str = ""
    """What must follow the anchor, likewise; if not said, the beginning of the rest."""
    left: str = ""
    """What must stand to the left of the anchor and belongs to the secret, as a pattern for the reversed text."""
    left_reach: int = 128
    """So many characters to the left are read."""
    in_run: bool = False
    """The secret holds a long run of plain characters, and its anchor is in it or close to its left."""
    label: str = ""
    """The word in the pseudonym, where it is not the id."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern, which begins with an anchor."""
        anchor = f"(?{'i' if self.any_case else ''}:{'|'.join(map(re.escape, self.anchors))})"
        if "(?P<secret>" in self.rest:
            return re.compile(f"{self.guard}{anchor}{self.rest}")
        return re.compile(f"{self.guard}(?P<secret>{anchor}{self.rest})")

    @cached_property
    def left_pattern(self) -> re.Pattern[str] | None:
        """The compiled pattern of what stands to the left, read backwards."""
        return re.compile(self.left) if self.left else None

    @property
    def word(self) -> str:
        """The word in the pseudonym."""
        return self.label or self.id


class Options(TypedDict, total=False):
    """What a row may say besides; see the fields of a rule."""

    check: Check | None
    guard: str
    probe: str
    left: str
    left_reach: int
    in_run: bool


def token(
    id_: str,
    finds: str,
    anchors: str | tuple[str, ...],
    rest: str,
    *,
    is_word: bool = False,
    **options: Unpack[Options],
) -> Rule:
    """Make a rule for a secret that begins with something well known; with `is_word`, only where a word begins."""
    names = (anchors,) if isinstance(anchors, str) else anchors
    options.setdefault("in_run", True)
    options.setdefault("guard", LEFT if is_word else "")
    return Rule(id_, finds, Kind.SECRET, names, rest, **options)


def after(id_: str, finds: str, anchors: str | tuple[str, ...], rest: str, **options: Unpack[Options]) -> Rule:
    """Make a rule for a secret that is known by what stands before it, in any case of letters."""
    names = (anchors,) if isinstance(anchors, str) else anchors
    return Rule(id_, finds, Kind.SECRET, names, rest, any_case=True, **options)
