r"""Split text into tokens: one function, with a version, for the texts in the index and for queries.

The index uses FTS5's tokenizer `ascii`, which splits at every ASCII character that is no letter or digit, and takes
each other character for a letter. So a text is flattened before it is indexed (`flatten`). Then

- runs of scripts without spaces between words become overlapping pairs and their last character (`超时错` becomes
  `超时 时错 错`), so that a run of any length is a phrase of pairs, and a single character is a prefix,
- each emoji is a token of its own,
- a `v` before a digit is a token of its own (`v2.1`),
- the pieces of each compound such as `getUserById` are appended to the text, while the compound stays in its place.

Whether appended pieces that happen to be adjacent belong to one compound is not in the index; `highlight` checks it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import filterfalse
from operator import add
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Literal, NamedTuple

from pollux.search.flatten import EMOJI, JOINER, PAIRED, SHORT_RUN, flatten, is_dense

VERSION = f"1/{unicodedata.unidata_version}"
"""Version of the tokens that a text has; an index with another version has to be built again."""
TermKind = Literal["word", "paired", "emoji"]


class Token(NamedTuple):
    """A token of a flat text, and its place there."""

    text: str
    start: int
    end: int


class Term(NamedTuple):
    """A run of characters of one kind in a query."""

    kind: TermKind
    text: str


class TokenSequence(NamedTuple):
    """Terms that have to follow each other in a text."""

    terms: tuple[Term, ...]
    is_prefix: bool
    """Whether the last token may go on."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the terms; the last term leaves out a final single character, since its run may go on."""
        tokens: list[str] = []
        for term in self.terms:
            if term.kind == "paired":
                tokens += map(add, term.text, [*term.text[1:], ""])
            else:
                tokens.append(term.text)
        last = self.terms[-1]
        if last.kind == "paired" and len(last.text) > 1:
            tokens.pop()
        return tuple(tokens)


SEPARATORS = "\\x00-/:-@\\[-`{-\\x7f"
"""The ASCII characters between words, for use in a class of a regular expression."""
NO_LETTERS = f"{SEPARATORS}{PAIRED}{EMOJI}{JOINER}"
"""Everything in a flat text that is not part of a word."""
_FLAG_LETTERS = "[\U0001f1e6-\U0001f1ff]"
_REST_OF_EMOJI = f"(?<={_FLAG_LETTERS}){_FLAG_LETTERS}|(?:{JOINER}[{EMOJI}])*"
_TERMS = re.compile(f"(?P<word>[^{NO_LETTERS}]+)|(?P<paired>[{PAIRED}]+)|(?P<emoji>[{EMOJI}](?:{_REST_OF_EMOJI}))")
_WORDS = re.compile(f"[^{NO_LETTERS}]+")
_UNSPACED = re.compile(f"[{PAIRED}{EMOJI}](?:(?<=[{PAIRED}])[{PAIRED}]*|{_REST_OF_EMOJI})")
"""Runs and emoji; the expression begins with a set, because `re` then skips other characters quickly."""
_OTHER_CHARACTER = "?"
"""Stands for each character that is not ASCII while compounds are looked for."""
_FOREIGN = re.compile("[^\x00-\x7f]")
_FOREIGN_RUNS = re.compile("([^\x00-\x7f]+)")
_HIGH_BYTES = bytes(range(128, 256))
_LOWER, _UPPER, _DIGITS = ascii_lowercase.encode(), ascii_uppercase.encode(), digits.encode()
_SEPARATOR_BYTES = bytes({*range(128)} - {*_LOWER, *_UPPER, *_DIGITS})
_SPACES = bytes.maketrans(_SEPARATOR_BYTES, b" " * len(_SEPARATOR_BYTES))
_LETTER_SHAPES = bytes.maketrans(_LOWER + _HIGH_BYTES + _UPPER + _DIGITS, b"a" * 154 + b"A" * 26 + b"0" * 10)
_HUMP_SHAPES = (b"aA", b"0A", b"AAa")
"""What `_HUMP` finds, so that a text without compounds is recognised at the speed of a substring search."""
_VERSION_SHAPES = bytes.maketrans(b"V" + _DIGITS, b"v" + b"0" * 10)
_ANY_VERSION = b"v0"
_ASCII_VERSIONS = re.compile("[vV](?=[0-9])(?<![A-Za-z0-9][vV])")
_VERSIONS = re.compile(f"[vV](?=[0-9])(?<![^{NO_LETTERS}][vV])")
_HUMP = re.compile("[^A-Z][A-Z]|[A-Z]{2}[^A-Z0-9]")
_PIECES = re.compile(
    "[vV](?=[0-9])"
    "|[A-Z]{2,}s(?![^A-Z])"  # parseURLs
    "|[A-Z]+(?![^A-Z0-9])(?:[0-9][^A-Z]*)?"  # the HTTP of HTTPServer, the HTML5 of HTML5Parser
    "|[A-Z]?[^A-Z]+"
)
LONGEST_COMPOUND = 80
"""Longer words are encoded data, whose pieces nobody looks for."""
_MOST_BYTES = 4 * LONGEST_COMPOUND
"""A word with more bytes has more characters than the longest compound, and would only fill the cache."""


def index_text(text: str) -> str:
    """Return a text as FTS5's tokenizer `ascii` has to get it, followed by the pieces of its compounds."""
    flat, body = _flat_and_spaced(text)
    if _ANY_VERSION in flat.encode("utf-8", "replace").translate(_VERSION_SHAPES):
        body = (_ASCII_VERSIONS if flat.isascii() else _VERSIONS).sub(r"\g<0> ", body)
    return f"{body} {' '.join(_all_pieces(flat))}".replace("\0", " ")


def _flat_and_spaced(text: str) -> tuple[str, str]:
    """Return a flat text, and the same with spaces between the tokens of runs and emoji.

    Both are made from one list of the runs that are not ASCII, most of which are short and cached.
    """
    if "\x1b" in text or is_dense(text):
        flat = flatten(text)
        return flat, flat if flat.isascii() else _UNSPACED.sub(_spaced, flat)
    if text.isascii():
        return text, text
    stretches = _FOREIGN_RUNS.split(text)
    runs = stretches[1::2]
    stretches[1::2] = [_flat_short(run) if len(run) <= SHORT_RUN else flatten(run) for run in runs]
    flat = "".join(stretches)
    stretches[1::2] = [_spaced_short(run) if len(run) <= SHORT_RUN else _spaced_run(run) for run in runs]
    return flat, "".join(stretches)


def match_word(word: str, *, is_prefix: bool = False) -> str | None:
    """Return the FTS5 expression that finds a word; None if nothing in it can be searched for.

    A word with characters between its letters is a phrase: `src/app.py` finds `src`, `app` and `py` next to each other.
    """
    return _any_of(_phrase(reading) for reading in readings(word, is_prefix=is_prefix))


def match_phrase(text: str) -> str | None:
    """Return the FTS5 expression that finds words next to each other; None if nothing can be searched for."""
    return match_word(text)


def match_word_loose(word: str, *, is_prefix: bool = False) -> str | None:
    """Return the expression that finds the tokens of a word anywhere in a text, for a table that has no phrases."""
    return _any_of(_conjunction(reading) for reading in readings(word, is_prefix=is_prefix))


def match_phrase_loose(text: str) -> str | None:
    """Return the expression that finds the tokens of a phrase anywhere in a text."""
    return match_word_loose(text)


def readings(text: str, *, is_prefix: bool = False) -> tuple[TokenSequence, ...]:
    """Return what may stand in a text for it to contain a query: the words as they are, and compounds in pieces."""
    unsplit: list[Term] = []
    split: list[Term] = []
    flat = flatten(text)
    for match in _TERMS.finditer(flat):
        kind, run = match.lastgroup, match[0]
        if kind == "word":
            words = [Term("word", token.text) for token in _word_tokens(run, 0)]
            unsplit += words
            split += [Term("word", piece.casefold()) for piece in compound_pieces(run)] or words
        else:
            term = Term("paired" if kind == "paired" else "emoji", run)
            unsplit.append(term)
            split.append(term)
    if not unsplit:
        return ()
    last = unsplit[-1]
    is_open = is_prefix or (last.kind == "paired" and len(last.text) == 1)
    return tuple(TokenSequence(terms, is_open) for terms in dict.fromkeys((tuple(unsplit), tuple(split))))


def place_tokens(flat: str) -> Iterator[Token]:
    """Yield the tokens of a flat text in their places, as FTS5 gets them; without the pieces of compounds."""
    for match in _TERMS.finditer(flat):
        run, start = match[0], match.start()
        if match.lastgroup == "word":
            yield from _word_tokens(run, start)
        elif match.lastgroup == "paired":
            for at in range(len(run)):
                pair = run[at : at + 2]
                yield Token(pair, start + at, start + at + len(pair))
        else:
            yield Token(run, start, match.end())


def compound_pieces(word: str) -> list[str]:
    """Return the pieces of a flat word such as `getUserById`, in their case; none if it is no compound."""
    if len(word) > LONGEST_COMPOUND or word.isupper() or not _HUMP.search(word):
        return []
    pieces = _PIECES.findall(word)
    return pieces if len(pieces) > 1 else []


def _word_tokens(word: str, start: int) -> Iterator[Token]:
    end = start + len(word)
    if _ASCII_VERSIONS.match(word):
        yield Token(word[0].casefold(), start, start + 1)
        word, start = word[1:], start + 1
    yield Token(word.casefold(), start, end)


def _any_of(expressions: Iterable[str]) -> str | None:
    alternatives = list(expressions)
    if len(alternatives) > 1:
        return f"({' OR '.join(alternatives)})"
    return alternatives[0] if alternatives else None


def _phrase(reading: TokenSequence) -> str:
    return f'"{" ".join(reading.tokens)}"{" *" if reading.is_prefix else ""}'


def _conjunction(reading: TokenSequence) -> str:
    *earlier, last = (f'"{token}"' for token in reading.tokens)
    tokens = [*dict.fromkeys(earlier), f"{last} *" if reading.is_prefix else last]
    return f"({' AND '.join(tokens)})" if len(tokens) > 1 else tokens[0]


def _all_pieces(flat: str) -> list[str]:
    """Return the pieces of each compound of a flat text once."""
    data = flat.encode("utf-8", "replace")
    shapes = data.translate(_LETTER_SHAPES)
    if not any(hump in shapes for hump in _HUMP_SHAPES):
        return []
    pieces: list[str] = []
    for word in filterfalse(bytes.isdigit, filterfalse(bytes.islower, dict.fromkeys(data.translate(_SPACES).split()))):
        if len(word) <= _MOST_BYTES and (compound := _pieces_of_word(word)):
            if not word.isascii():  # what is next to its ASCII letters decides how it is split
                return [piece for other in dict.fromkeys(_WORDS.findall(flat)) for piece in compound_pieces(other)]
            pieces += compound
    return pieces


@lru_cache(maxsize=16_384)
def _pieces_of_word(word: bytes) -> list[str]:
    return compound_pieces(_FOREIGN.sub(_OTHER_CHARACTER, word.decode()))


def _spaced_run(run: str) -> str:
    return _UNSPACED.sub(_spaced, flatten(run))


_flat_short = lru_cache(maxsize=4096)(flatten)
_spaced_short = lru_cache(maxsize=4096)(_spaced_run)


def _spaced(match: re.Match[str]) -> str:
    run = match[0]
    return _pairs_of_short(run) if len(run) <= SHORT_RUN else _pairs(run)


def _pairs(run: str) -> str:
    """Return a run with spaces between its tokens."""
    if len(run) == 1 or JOINER in run or "\U0001f1e6" <= run[0] <= "\U0001f1ff":
        return f" {run} "
    return f" {' '.join(map(add, run, run[1:]))} {run[-1]} "


_pairs_of_short = lru_cache(maxsize=16_384)(_pairs)
