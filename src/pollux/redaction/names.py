"""Names: learn those of users and hosts from a text, and find them wherever they are words.

`CustomNames` also finds what the user asks for: words of their own and optional rules. Words match in any case and only
as whole words. Letters outside ASCII also match as JSON, URLs and HTML write them; `disguises` undoes the escapes of
ASCII characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from html.entities import codepoint2name
from itertools import chain
from urllib.parse import quote

from pollux.redaction.anchors import TextAnchors, to_latin, to_lower
from pollux.redaction.matches import RuleMatch, try_rule, try_rules
from pollux.redaction.rule import Rule
from pollux.redaction.rules import HOST, RULES, USER, WORD
from pollux.redaction.rules.names import is_distinct
from pollux.redaction.rules.optional import OptionalRule

_MAX_NAMES = 200
"""Names that are searched for; a longer list is one of accounts, not of people who matter here."""
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b2ff"
    r"\U00020000-\U0003ffff"
)
"""Characters of scripts that put no blanks between words, or join particles to them: CJK, Hangul, Thai, Khmer."""
_is_unspaced = re.compile(f"[{_UNSPACED}]").match
_LEFT_BORDER = rf"(?:(?<![^\W_])|(?<=\\[nrtbf])|(?<=[{_UNSPACED}]))"
_RIGHT_BORDER = rf"(?:(?![^\W_])|(?=[{_UNSPACED}]))"
_GAP = r"(?:\s|\\{1,16}[nrt])+"
"""Between the parts of a word with blanks: a line may end there."""
_ASCII_RUN = re.compile(r"[a-z0-9]+")


class KnownNames:
    """The names learned so far."""

    def __init__(self) -> None:
        """Start with no names."""
        self._rules: dict[str, Rule] = {}
        self._spellings: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None
        self.n_ignored = 0
        """Names beyond `_MAX_NAMES`."""

    def add(self, name: str, rule: Rule) -> bool:
        """Return whether a name was added; known names and common words are not."""
        plain = name.strip().casefold()
        if not plain or plain in self._rules or not is_distinct(name):
            return False
        if len(self._rules) >= _MAX_NAMES:
            self.n_ignored += 1
            return False
        self._rules[plain] = rule
        self._spellings |= dict.fromkeys((plain, plain.capitalize(), plain.title(), plain.upper()))
        self._pattern = None
        return True

    def all(self) -> frozenset[str]:
        """Return all names, as a key for caches."""
        return frozenset(self._rules)

    def __contains__(self, name: str) -> bool:
        """Return whether a name is known."""
        return name.casefold() in self._rules

    def are_in(self, text: str) -> bool:
        """Return whether a text may contain one of the names."""
        for spelling in self._spellings:  # noqa: SIM110  twice as fast
            if spelling in text:
                return True
        return False

    def find(self, text: str) -> Iterator[RuleMatch]:
        """Yield the names in a text."""
        if KnownNames.are_in(self, text):
            self._pattern = self._pattern or _names_pattern(self._spellings)
            for match in self._pattern.finditer(text):
                yield RuleMatch(*match.span(), self._rules[match[0].casefold()], match[0])


def _names_pattern(spellings: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for whole words; it starts with letters, which makes it fast."""
    longest_first = map(re.escape, sorted(spellings, key=lambda spelling: (-len(spelling), spelling)))
    return re.compile("|".join(rf"{spelling}(?<![^\W_]{spelling})(?![^\W_])" for spelling in longest_first))


def find_people(text: str) -> Iterator[RuleMatch]:
    """Yield the users and hosts that home folders and shell prompts in a text name: much faster than a scan."""
    for hits in _people_anchors().hits(to_lower(to_latin(text))):
        yield from try_rules(text, hits)


def may_name_people(json: bytes, names: KnownNames) -> bool:
    """Return whether texts encoded as JSON may name users or hosts that are not known yet.

    The rules match there as in the texts themselves, except at line ends and next to letters of several bytes.
    """
    if b"@" in json and not json.isascii():
        return True
    text = ""
    for hit in chain.from_iterable(_people_anchors().hits(json.lower().decode("latin-1"))):
        text = text or json.decode("latin-1")
        match = try_rule(text, hit, {})
        if match is None or match.value not in names:
            return True
    return False


@cache
def _people_anchors() -> TextAnchors:
    return TextAnchors(rule for rule in RULES if rule.anchors and rule.label in {USER.label, HOST.label})


class CustomNames(KnownNames):
    """The names learned so far, together with the user's words and optional rules."""

    def __init__(self, words: Iterable[str], rules: Iterable[OptionalRule]) -> None:
        """Prepare the search for words, which `word_fault` must accept, and for rules."""
        super().__init__()
        self._words: dict[str, str] = {}
        """The longest ASCII part of each word, which is searched for first because that is fast."""
        for word in map(_normalized, words):
            self._words[word] = max(_ASCII_RUN.findall(word), key=len, default="")
        self._searches: list[tuple[Rule, re.Pattern[str], re.Pattern[str]]] = []
        for rule, patterns in rules:
            self._searches += [(rule, re.compile(gate), re.compile(pattern)) for gate, pattern in patterns]

    def all(self) -> frozenset[str]:
        """Return all names, words and rules, as a key for caches."""
        words = {f"word {word}" for word in self._words}
        return super().all() | words | {f"rule {rule.id}" for rule, *_ in self._searches}

    def are_in(self, text: str) -> bool:
        """Return whether a text may contain a name, or contains something the user asked for."""
        return super().are_in(text) or next(self._find_custom(text), None) is not None

    def find(self, text: str) -> Iterator[RuleMatch]:
        """Yield the names in a text, and what the user asked for."""
        yield from super().find(text)
        yield from self._find_custom(text)

    def _find_custom(self, text: str) -> Iterator[RuleMatch]:
        folded = text.casefold() if self._words else ""
        for word, probe in self._words.items():
            if probe in folded:
                for match in _word_pattern(word).finditer(text):
                    yield RuleMatch(*match.span(), WORD, word)
        for rule, gate, pattern in self._searches:
            for match in pattern.finditer(text) if gate.search(text) else ():
                value = match["secret"]
                if rule.check is None or rule.check(value, match):
                    yield RuleMatch(*match.span("secret"), rule, value)


def word_fault(word: str) -> str | None:
    """Return why a word cannot be replaced, or None if it can."""
    n_letters = sum(char.isalnum() for char in word)
    if n_letters >= 2 or _is_unspaced(word.strip()):
        return None
    return "it needs at least two letters or digits" if n_letters else "it has no letters or digits"


def _normalized(word: str) -> str:
    return " ".join(unicodedata.normalize("NFC", word).lower().split())


@lru_cache(1024)
def _word_pattern(word: str) -> re.Pattern[str]:
    spelled = "".join(_GAP if char == " " else _spellings(char) for char in word)
    left = _LEFT_BORDER if word[0].isalnum() and not _is_unspaced(word[0]) else ""
    right = _RIGHT_BORDER if word[-1].isalnum() and not _is_unspaced(word[-1]) else ""
    return re.compile(f"{left}(?i:{spelled}){right}")  # the ranges of the borders would be slow to fold


def _spellings(char: str) -> str:
    """Return a pattern for a character as it is, decomposed, and escaped in either case."""
    if char.isascii():
        return re.escape(char)
    spellings: list[str] = []
    for case in dict.fromkeys((char, char.upper(), char.casefold())):
        spellings += [re.escape(case), re.escape(unicodedata.normalize("NFD", case))]
        if not case.isascii():
            spellings += _escapes(case)
    return f"(?:{'|'.join(dict.fromkeys(spellings))})"


def _escapes(text: str) -> list[str]:
    """Return patterns for a text as JSON, URLs and HTML escape it."""
    units = text.encode("utf-16-be")
    json = "".join(rf"\\{{1,16}}u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    escapes = [json, quote(text)]
    if len(text) == 1:
        code = ord(text)
        escapes += [f"&#{code};", f"&#x0{{0,4}}{code:x};"]
        escapes += [f"&{codepoint2name[code]};"] if code in codepoint2name else []
    return escapes
