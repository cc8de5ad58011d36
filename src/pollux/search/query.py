"""Parse the query language: words, phrases, `OR`, `-`, brackets, prefixes, regular expressions and fields.

Spaces mean "and"; `OR` joins only its neighbours. Most special characters are special only where a word begins, so that
`main()`, `std::vector`, `http://x`, `C:\\x` and `--no-verify` are words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from pollux.errors import InvalidQueryError
from pollux.search import ranges
from pollux.search.fields import QueryField, ValueKind, field_named, similar_choice, similar_field
from pollux.search.flatten import PAIRED
from pollux.search.patterns import check_regex, compile_regex
from pollux.search.terms import (
    AllOf,
    AnyOf,
    FieldTest,
    Node,
    Not,
    Phrase,
    Query,
    Regex,
    Word,
    is_only_negative,
    leaves,
    wanted_texts,
)
from pollux.search.tokenizer import readings
from pollux.text.escape import printable

__all__ = [
    "AllOf",
    "AnyOf",
    "FieldTest",
    "Node",
    "Not",
    "Phrase",
    "Query",
    "Regex",
    "Word",
    "compile_regex",
    "leaves",
    "parse_query",
    "wanted_texts",
]

MOST_CHARACTERS, MOST_TERMS, MOST_WORDS_OF_PHRASE = 2_000, 64, 32
_MOST_LEVELS = 16
_SHORTEST_PREFIX = 3
_SHOWN = 40
_FIELD = re.compile(r"([A-Za-z]+):(?![:\s\\]|//|$)", re.ASCII)
_STARTED_FIELD = re.compile(r"-?([A-Za-z]+):", re.ASCII)
_PATTERN = re.compile(r"/((?:[^/\\]|\\.)*)(/?)([A-Za-z]*)", re.DOTALL | re.ASCII)
_FLAGS = "ims"
_OPENS_VALUE = ("<", ">", "=", "..")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(f"[{PAIRED}]")
"""Characters of Chinese, Japanese, Korean, Thai and other scripts in which one character may be a word."""
_UNSPACED_WORD = 8
"""Such characters that count as one word."""
_TO_QUOTE = "To search for this text, put it in quotation marks."


def parse_query(text: str, *, now: datetime, zone: tzinfo | None = None, is_typing: bool = False) -> Query:
    """Parse a query. Raises `InvalidQueryError`.

    Args:
        text: as typed.
        now: to which ages such as `7d` refer.
        zone: of dates; None for the system's own.
        is_typing: whether the user has not finished it: the last word is the beginning of one, open quotation marks
            and brackets are closed, and a field without a complete value is left out.

    """
    return _Parser(text, now, zone, is_typing=is_typing).parse()


class _Parser:
    """Reads one query from left to right."""

    def __init__(self, text: str, now: datetime, zone: tzinfo | None, *, is_typing: bool) -> None:
        self._typed = text
        self._text = text.replace("\0", " ")  # SQLite ends a text at NUL
        self._now, self._zone, self._is_typing = now, zone, is_typing
        self._at = 0
        self._n_terms = 0
        self._left_out: list[str] = []

    def parse(self) -> Query:
        if len(self._text) > MOST_CHARACTERS:
            number = f"{len(self._text):,} characters; the limit is {MOST_CHARACTERS:,}"
            raise self._invalid(MOST_CHARACTERS, f"it is too long ({number})", "Shorten it.")
        nodes = self._items(0)
        if is_only_negative(AllOf(nodes)):
            if not self._is_typing:
                raise self._invalid(0, 'it has only parts with "-"', "Add a word that the text has to contain.")
            self._left_out.append(self._typed.strip())
            nodes = ()
        return Query(self._typed, AllOf(nodes), tuple(self._left_out))

    def _items(self, level: int) -> tuple[Node, ...]:
        """Parse up to the end, or up to the bracket that ends a group."""
        nodes: list[Node] = []
        joins = False
        while not self._is_at_end(level):
            start = self._at
            if self._raw_word(level) == "OR":
                if joins or not nodes:
                    self._left_out.append("OR")
                joins = bool(nodes)
                continue
            self._at = start
            node = self._operand(level)
            if node is None:
                joins = False
            elif joins:
                nodes[-1] = self._either(nodes[-1], node, start)
                joins = False
            else:
                nodes.append(node)
        if joins:
            self._left_out.append("OR")
        return tuple(_flattened(nodes))

    def _either(self, left: Node, right: Node, at: int) -> Node:
        for side in (left, right):
            if is_only_negative(side):
                raise self._invalid(
                    at, 'one side of "OR" has only parts with "-"', "Add a word to it, or leave it out."
                )
        nodes = left.nodes if isinstance(left, AnyOf) else (left,)
        return AnyOf((*nodes, *(right.nodes if isinstance(right, AnyOf) else (right,))))

    def _operand(self, level: int) -> Node | None:
        """Parse a word, phrase, pattern, field or group, with the minus before it; None if it is left out."""
        start = self._at
        if not self._has_minus(level):
            return self._primary(level)
        self._at += 1
        node = self._primary(level, is_negated=True)
        return None if node is None else Not(node, start)

    def _has_minus(self, level: int) -> bool:
        if self._text[self._at] != "-" or self._text.startswith("--", self._at):
            return False
        if self._text.startswith(('-"', "-("), self._at):
            return True
        start = self._at
        word = self._raw_word(level)
        self._at = start
        return _is_searchable(word)

    def _primary(self, level: int, *, is_negated: bool = False) -> Node | None:
        start = self._at
        if self._text[start] == "(":
            return self._group(level)
        if self._text[start] == '"':
            return self._phrase()
        match = _FIELD.match(self._text, start)
        if match and not (level and self._text[match.end()] == ")"):
            field = field_named(match[1])
            if field is not None:
                return self._field(field, match, level)
            similar = similar_field(match[1])
            if similar is not None:
                reason = f'there is no field "{match[1]}:"'
                raise self._invalid(start, reason, f'Did you mean "{similar.name}:"? {_TO_QUOTE}')
        return self._word(level, is_negated=is_negated)

    def _group(self, level: int) -> Node | None:
        start = self._at
        if level >= _MOST_LEVELS:
            raise self._invalid(start, f"more than {_MOST_LEVELS} brackets are inside each other", "Use fewer.")
        self._at += 1
        nodes = self._items(level + 1)
        if self._at < len(self._text):
            self._at += 1
        elif not self._is_typing:
            advice = "Close it with a bracket. To search for a bracket itself, put it in quotation marks."
            raise self._invalid(start, "the bracket has no end", advice)
        if not nodes:
            self._left_out.append(self._typed[start : self._at])
            return None
        return nodes[0] if len(nodes) == 1 else AllOf(nodes)

    def _phrase(self) -> Node | None:
        start = self._at
        text = self._quoted()
        if not _is_searchable(text):
            self._left_out.append(self._typed[start : self._at])
            return None
        self._count(start)
        self._check_length(text, start)
        return Phrase(text.strip(), start)

    def _quoted(self) -> str:
        """Read what is between quotation marks."""
        start = self._at
        end = self._text.find('"', start + 1)
        if end < 0:
            if not self._is_typing:
                raise self._invalid(
                    start, "the quotation mark has no end", "Add the second one, or leave out the first."
                )
            end = len(self._text)
        self._at = min(end + 1, len(self._text))
        return self._text[start + 1 : end]

    def _word(self, level: int, *, is_negated: bool) -> Node | None:
        start = self._at
        word = self._raw_word(level)
        if self._is_unfinished_field(word):
            self._left_out.append(word)
            return None
        text = word.rstrip("*")
        if not _is_searchable(text):
            self._left_out.append(word)
            return None
        is_prefix = len(text) < len(word)
        if is_prefix and not _is_long_enough(text) and not self._is_typing:
            reason = f'"{_shown(word)}" would match too many words'
            raise self._invalid(start, reason, f"Write at least {_SHORTEST_PREFIX} letters before the *.")
        if self._is_typing and self._at == len(self._text) and not is_negated:
            is_prefix = True
            if not _is_long_enough(text) and self._n_terms:
                self._left_out.append(word)
                return None
        self._count(start)
        self._check_length(text, start)
        return Word(text, is_prefix and _is_long_enough(text), start)

    def _is_unfinished_field(self, word: str) -> bool:
        if not self._is_typing or self._at < len(self._text):
            return False
        match = _STARTED_FIELD.fullmatch(word)
        return match is not None and field_named(match[1]) is not None

    def _field(self, field: QueryField, match: re.Match[str], level: int) -> Node | None:
        """Parse a test; what the user is still typing is left out if it is not valid yet."""
        start = self._at
        self._at = match.end()
        self._count(start)
        try:
            if field.kind is ValueKind.PATTERN:
                return self._pattern(start)
            values = self._values(level)
            if not values:
                raise self._invalid_value(field, start, self._text[match.end() : self._at])
            for _ in values[1:]:
                self._count(start)
            if field.name != "has":
                return self._test(field, values, start)
            tests = tuple(self._test(field, [value], start) for value in values)  # of messages, or of sessions
            return tests[0] if len(tests) == 1 else AnyOf(tests)
        except InvalidQueryError:
            if not self._is_typing or self._at < len(self._text):
                raise
            self._left_out.append(self._typed[start:])
            return None

    def _test(self, field: QueryField, values: Sequence[str], start: int) -> FieldTest:
        match field.kind:
            case ValueKind.CHOICE:
                return FieldTest(field.name, tuple(self._choice(field, value, start) for value in values), start)
            case ValueKind.TEXT:
                for value in values:
                    if not value.strip("* "):
                        raise self._invalid_value(field, start, value)
                return FieldTest(field.name, tuple(value.strip() for value in values), start)
            case _:
                bounds = tuple(self._bounds(field, value, start) for value in values)
                return FieldTest(field.name, tuple(values), start, bounds)

    def _choice(self, field: QueryField, value: str, start: int) -> str:
        choice = value.strip().lower()
        if choice in field.choices:
            return choice
        similar = similar_choice(choice, field.choices)
        choices = f"{', '.join(field.choices[:-1])} or {field.choices[-1]}"
        advice = f'Did you mean "{field.name}:{similar}"?' if similar else f"Use {choices}."
        raise self._invalid(start, f'"{field.name}:" has no value "{_shown(value)}"', f"{advice} {_TO_QUOTE}")

    def _bounds(self, field: QueryField, value: str, start: int) -> ranges.Bounds:
        try:
            if field.kind is ValueKind.NUMBER:
                return ranges.number_bounds(value.strip(), field.unit)
            if field.kind is ValueKind.AGE:
                return ranges.age_bounds(value, now=self._now)
            if field.name == "on":
                return ranges.time_bounds(value.strip(), now=self._now, zone=self._zone)
            moment = ranges.start_of(value, now=self._now, zone=self._zone)
        except ValueError:
            raise self._invalid_value(field, start, value) from None
        return ranges.Bounds(moment) if field.name == "after" else ranges.Bounds(None, moment)

    def _invalid_value(self, field: QueryField, start: int, value: str) -> InvalidQueryError:
        return self._invalid(
            start, f'"{field.name}:" cannot use "{_shown(value)}"', f"Write {field.wants}. {_TO_QUOTE}"
        )

    def _pattern(self, start: int) -> Node:
        match = _PATTERN.match(self._text, self._at)
        if match is None:
            self._raw_word(0)
            raise self._invalid(
                start, '"re:" has no slash', "Write the pattern between slashes, as in re:/time[ -]?out/i."
            )
        first = self._at + 1
        self._at = match.end()
        if not match[2]:
            self._at = len(self._text)  # it may contain spaces
            raise self._invalid(
                start, 'the pattern of "re:" has no end', "Close it with a slash; write one inside as \\/."
            )
        if not match[1]:
            raise self._invalid(
                start, '"re:" has an empty pattern', "Write the pattern between slashes, as in re:/time[ -]?out/i."
            )
        if self._at < len(self._text) and not (self._text[self._at].isspace() or self._text[self._at] == ")"):
            advice = "Write a space after it. A slash inside the pattern is written as \\/."
            raise self._invalid(self._at, "the pattern ended at the slash before", advice)
        flags = "".join(sorted(set(match[3].lower())))
        if unknown := flags.strip(_FLAGS):
            advice = "Use i to ignore case, m for lines, s to let a dot match line ends."
            raise self._invalid(match.start(3), f'a regular expression has no flag "{unknown[0]}"', advice)
        node = Regex(match[1].replace("\\/", "/"), flags, start)
        check_regex(node, self._typed, first)
        return node

    def _values(self, level: int) -> list[str]:
        """Read the values of a field, separated by commas; quotation marks surround spaces and commas."""
        values = [""]
        n_open = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"' and (not values[-1] or values[-1].endswith(_OPENS_VALUE)):
                values[-1] += self._quoted()
                continue
            if char.isspace() or (char == ")" and level and n_open <= 0):
                break
            n_open += {"(": 1, ")": -1}.get(char, 0)
            self._at += 1
            if char == ",":
                values.append("")
            else:
                values[-1] += char
        return [value for value in values if value.strip()]

    def _raw_word(self, level: int) -> str:
        """Read up to a space, or up to the bracket that ends the group."""
        start = self._at
        n_open = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            if char.isspace() or (char == ")" and level and n_open <= 0):
                break
            n_open += {"(": 1, ")": -1}.get(char, 0)
            self._at += 1
        return self._text[start : self._at]

    def _is_at_end(self, level: int) -> bool:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at == len(self._text) or (level > 0 and self._text[self._at] == ")")

    def _count(self, at: int) -> None:
        self._n_terms += 1
        if self._n_terms > MOST_TERMS:
            raise self._invalid(at, f"it has more than {MOST_TERMS} words", "Use fewer.")

    def _check_length(self, text: str, at: int) -> None:
        n_words = 0
        for word in _WORD.findall(text):
            n_words += 1 + len(_UNSPACED.findall(word)) // _UNSPACED_WORD
        if n_words > MOST_WORDS_OF_PHRASE:
            reason = f"a phrase of {n_words} words is too long; the limit is {MOST_WORDS_OF_PHRASE}"
            raise self._invalid(at, reason, "Search for a part of it.")

    def _invalid(self, at: int, reason: str, advice: str) -> InvalidQueryError:
        return InvalidQueryError(reason, advice, query=self._typed, position=at)


def _flattened(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield nodes that all have to match, with the nodes of groups in place of the groups."""
    for node in nodes:
        if isinstance(node, AllOf):
            yield from node.nodes
        else:
            yield node


def _is_searchable(text: str) -> bool:
    """Return whether the tokenizer finds a word in a text."""
    return bool(readings(text))


def _is_long_enough(text: str) -> bool:
    return _UNSPACED.search(text) is not None or sum(map(str.isalnum, text)) >= _SHORTEST_PREFIX


def _shown(text: str) -> str:
    return printable(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
