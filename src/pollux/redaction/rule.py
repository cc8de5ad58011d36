"""The form of a rule, and functions that build the most common ones.

A rule has anchors: literal pieces of text. Its pattern is tried only where one of them occurs. The anchors of all rules
are searched for in one pass, so that a text without any costs next to nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypedDict, Unpack

from pollux.redaction.checks import Check, is_real


class RuleKind(StrEnum):
    """What a rule finds."""

    SECRET = "secret"  # noqa: S105  not a password
    EMAIL = "e-mail"
    NAME = "name"
    PATH = "path"
    WORD = "word"
    PHONE = "phone number"
    CARD = "card number"
    IP = "IP address"
    HOST = "host name"


LEFT = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=[\[;\d]m))"
"""Where a word begins: also after an escaped line end, a percent escape or a colour."""
SEP = r"""[ \t"'`\\\])*]{0,16}(?:=>|:=|==?|[:>|,])[ \t"'`\\(\[*]{0,16}"""
"""Between a name and its value, in any language and however often escaped."""
WORD = "[A-Za-z0-9_-]"
ALNUM = "[A-Za-z0-9]"
BASE64 = "[A-Za-z0-9+/]"
HEX = "[0-9a-f]"
UUID = f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"


def some(characters: str, least: int) -> str:
    """Return a pattern for at least so many characters."""
    return f"{characters}{{{least},}}"


def just(characters: str, number: int) -> str:
    """Return a pattern for exactly so many characters."""
    return f"{characters}{{{number}}}"


@dataclass(frozen=True, eq=False)
class Rule:
    """A row of the table of rules."""

    id: str
    finds: str
    kind: RuleKind
    anchors: tuple[str, ...]
    """Where the pattern is tried; in any case if `any_case`."""
    tail: str
    """Pattern of what follows an anchor. Its group `secret` is replaced, or all of it with the anchor."""
    check: Check | None = is_real
    any_case: bool = False
    guard: str = ""
    """Assertion about the text before the anchor, which is tested before the pattern."""
    probe: str = ""
    """Pattern of what must follow the anchor, tested likewise; by default the beginning of `tail`."""
    left: str = ""
    """Pattern, for the reversed text, of the part of the secret to the left of the anchor."""
    left_reach: int = 128
    """Number of characters to the left that `left` may match."""
    in_run: bool = False
    """Whether the secret contains a long run of plain characters, and the anchor is in it or just to its left."""
    pseudonym_label: str = ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern from the anchor on."""
        anchor = f"(?{'i' if self.any_case else ''}:{'|'.join(map(re.escape, self.anchors))})"
        if "(?P<secret>" in self.tail:
            return re.compile(f"{self.guard}{anchor}{self.tail}")
        return re.compile(f"{self.guard}(?P<secret>{anchor}{self.tail})")

    @cached_property
    def left_pattern(self) -> re.Pattern[str] | None:
        """The pattern of `left`."""
        return re.compile(self.left) if self.left else None

    @property
    def label(self) -> str:
        """The label in the pseudonym."""
        return self.pseudonym_label or self.id


class RuleOptions(TypedDict, total=False):
    """Fields of a rule that a row may set."""

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
    tail: str,
    *,
    is_word: bool = False,
    **options: Unpack[RuleOptions],
) -> Rule:
    """Return a rule for a secret with a known beginning; with `is_word`, only at the beginning of a word."""
    names = (anchors,) if isinstance(anchors, str) else anchors
    options.setdefault("in_run", True)
    options.setdefault("guard", LEFT if is_word else "")
    return Rule(id_, finds, RuleKind.SECRET, names, tail, **options)


def after(id_: str, finds: str, anchors: str | tuple[str, ...], tail: str, **options: Unpack[RuleOptions]) -> Rule:
    """Return a rule for a secret that is recognised by the text before it, in any case."""
    names = (anchors,) if isinstance(anchors, str) else anchors
    return Rule(id_, finds, RuleKind.SECRET, names, tail, any_case=True, **options)
