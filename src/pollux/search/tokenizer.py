r"""Split text into tokens: one function, with a version, for the texts in the index and for queries.

The index uses FTS5's tokenizer `ascii`, which splits at every ASCII character that is no letter or digit, and takes
each other character for a letter. So a text is flattened before it is indexed: variants of a character become one,
marks and invisible characters are dropped, and other symbols become spaces. Then

- runs of scripts without spaces between words become overlapping pairs and their last character (`超时错` becomes
  `超时 时错 错`), so that a run of any length is a phrase of pairs, and a single character is a prefix,
- each emoji is a token of its own,
- a `v` before a digit is a token of its own (`v2.1`),
- the pieces of each compound such as `getUserById` are appended to the text, while the compound stays in its place.

Whether appended pieces that happen to be adjacent belong to one compound is not in the index; `highlight` checks it.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import filterfalse
from operator import add
from typing import Literal, NamedTuple

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


_PAIRED_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1100, 0x11FF),  # Hangul letters
    (0x1780, 0x17FF),  # Khmer
    (0x19E0, 0x19FF),
    (0x3005, 0x3007),
    (0x3021, 0x302F),
    (0x3031, 0x3035),
    (0x3038, 0x303C),
    (0x3041, 0x30FA),  # kana
    (0x30FC, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),
    (0x16FE0, 0x18DFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),
)
"""Scripts without spaces between words, and Korean, whose particles stick to the words."""

_EMOJI_RANGES = (
    (0x231A, 0x231B),
    (0x23E9, 0x23F3),
    (0x23F8, 0x23FA),
    (0x25AA, 0x25AB),
    (0x25B6, 0x25B6),
    (0x25C0, 0x25C0),
    (0x25FB, 0x25FE),
    (0x2600, 0x27BF),
    (0x2934, 0x2935),
    (0x2B05, 0x2B07),
    (0x2B1B, 0x2B1C),
    (0x2B50, 0x2B50),
    (0x2B55, 0x2B55),
    (0x303D, 0x303D),
    (0x1F000, 0x1F3FA),
    (0x1F400, 0x1FAFF),
)

_DROPPED_RANGES = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x0300, 0x036F),  # accents
    (0x0483, 0x0489),
    (0x0591, 0x05BD),  # Hebrew points
    (0x05BF, 0x05BF),
    (0x05C1, 0x05C2),
    (0x05C4, 0x05C5),
    (0x05C7, 0x05C7),
    (0x0610, 0x061A),  # Arabic vowels
    (0x061C, 0x061C),
    (0x0640, 0x0640),  # tatweel, which stretches a word
    (0x064B, 0x065F),
    (0x0670, 0x0670),
    (0x06D6, 0x06DC),
    (0x06DF, 0x06E4),
    (0x06E7, 0x06E8),
    (0x06EA, 0x06ED),
    (0x115F, 0x1160),  # fillers
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x200B, 0x200C),  # of no width; the joiner U+200D is kept inside emoji
    (0x200E, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x20D0, 0x20FF),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFE20, 0xFE2F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x1F3FB, 0x1F3FF),  # skin tones
    (0xE0000, 0xE0FFF),
)

_APOSTROPHES = frozenset({0x02BB, 0x02BC, 0x02BD})
"""Letters by their category that separate words like the ASCII apostrophe."""

JOINER = "\u200d"
SEPARATORS = "\\x00-/:-@\\[-`{-\\x7f"
"""The ASCII characters between words, for use in a class of a regular expression."""


def _class_of(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


PAIRED = _class_of(_PAIRED_RANGES)
EMOJI = _class_of(_EMOJI_RANGES)
NO_LETTERS = f"{SEPARATORS}{PAIRED}{EMOJI}{JOINER}"
"""Everything in a flat text that is not part of a word."""

_FLAG_LETTERS = "[\U0001f1e6-\U0001f1ff]"
_REST_OF_EMOJI = f"(?<={_FLAG_LETTERS}){_FLAG_LETTERS}|(?:{JOINER}[{EMOJI}])*"
_TERMS = re.compile(f"(?P<word>[^{NO_LETTERS}]+)|(?P<paired>[{PAIRED}]+)|(?P<emoji>[{EMOJI}](?:{_REST_OF_EMOJI}))")
_WORDS = re.compile(f"[^{NO_LETTERS}]+")
_UNSPACED = re.compile(f"[{PAIRED}{EMOJI}](?:(?<=[{PAIRED}])[{PAIRED}]*|{_REST_OF_EMOJI})")
"""Runs and emoji; the expression begins with a set, because `re` then skips other characters quickly."""
_LOOSE_JOINERS = re.compile(f"(?<![{EMOJI}]){JOINER}|{JOINER}(?![{EMOJI}])")

_ESCAPE = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and movements
    r"|\x1b\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[()][0-9A-Za-z]"  # character sets
)
ESCAPES = re.compile(_ESCAPE)
"""Sequences with which a program controls a terminal."""
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_COLOURED_OTHERS = re.compile("\x1b\\[[0-9;:]*m[^\x00-\x7f]")
"""A colour before a character that may combine with the one before the colour."""
_PLAIN = "\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc-\u30fe\u3400-\u4dbf\u4e00-\u9ffc\uac00-\ud7a3"
"""Characters that are their own flat form, unless a mark follows."""
_PUNCTUATION = re.compile(
    "[\u00a0\u00ab\u00b7\u00bb\u2010-\u2027\u2030-\u205e\u2190-\u21ff\u2500-\u259f\u3000-\u3003\u3008-\u3020\u30fb"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)
"""Frequent characters that only separate words."""
_COMPLEX = re.compile(f"[^\x00-\x7f{_PLAIN}]")
_COMPLEX_RUNS = re.compile(f"[^\x00-\x7f{_PLAIN}][^\x00-\x7f{_PLAIN}]*")
_COMPOSED_WITH_PLAIN = re.compile("[\u1160-\u11ff\u3099\u309a\uff9e\uff9f]")
_SPECIAL = re.compile(f"{_ESCAPE}|[^\x00-\x7f]+")
_SPECIAL_BUT_PLAIN = re.compile(f"{_ESCAPE}|[^\x00-\x7f{_PLAIN}]+")
"""Everything that is flattened; the rest of a text stays as it is."""
_SAMPLE = 2000
"""Characters from which the quicker of two ways to flatten a text is guessed; both give the same."""
_CASED = re.compile("[^\x00-\x7f\u2e80-\ua63f\uac00-\ud7ff][^A-Z\u2e80-\ua63f\uac00-\ud7ff]*")
"""Stretches that contain no capital letters of ASCII, whose case matters for compounds."""
_MARKS = re.compile(
    "[^\\w\\s\x00-\x7f\u2000-\u20cf\u2100-\u2ccf\u2e00-\u3029\u3030-\u3098\u309b-\ua66e\uac00-\ud7ff\U0001f000-\U0001faff]{32,}"
)
"""Long runs that may consist of marks; Python needs quadratic time to bring marks into order."""
_MOST_MARKS = 30
_SHORT = 4
"""Length of the runs whose result is cached: most are a quotation mark, an accented letter or a Korean word."""
_TRADE_MARKS = re.compile("[\u2120\u2122]")
"""Their compatibility forms are letters, which would join the word before them."""

_OTHER_CHARACTER = "?"
"""Stands for each character that is not ASCII while compounds are looked for."""
_ASCII_SPACES = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum() and code != ord("?")})
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


def index_text(text: str) -> str:
    """Return a text as FTS5's tokenizer `ascii` has to get it, followed by the pieces of its compounds."""
    flat = flatten(text)
    if flat.isascii():
        body = _ASCII_VERSIONS.sub(r"\g<0> ", flat)
    else:
        body = _VERSIONS.sub(r"\g<0> ", _UNSPACED.sub(_spaced, flat))
    return f"{body} {' '.join(_all_pieces(flat))}".replace("\0", " ")


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
    whole: list[Term] = []
    split: list[Term] = []
    flat = flatten(text)
    for match in _TERMS.finditer(flat):
        kind, run = match.lastgroup, match[0]
        if kind == "word":
            words = [Term("word", token.text) for token in _word_tokens(run, 0)]
            whole += words
            split += [Term("word", piece.casefold()) for piece in compound_pieces(run)] or words
        else:
            term = Term("paired" if kind == "paired" else "emoji", run)
            whole.append(term)
            split.append(term)
    if not whole:
        return ()
    last = whole[-1]
    is_open = is_prefix or (last.kind == "paired" and len(last.text) == 1)
    return tuple(TokenSequence(terms, is_open) for terms in dict.fromkeys((tuple(whole), tuple(split))))


def flatten(text: str) -> str:
    """Return a text with one form for each character, and with its ASCII characters, except terminal sequences."""
    if "\x1b" in text and not _COLOURED_OTHERS.search(text):
        text = _COLOURS.sub("", text)
    text = without_punctuation(text)
    if is_flat(text):
        return text
    sample = text[:_SAMPLE]
    if len(_COMPLEX.findall(sample)) * 8 > len(sample) and "\x1b" not in text:
        return _fold(text)
    return _special(text).sub(flatten_special, text)


def without_punctuation(text: str) -> str:
    """Return a text of the same length with spaces for frequent punctuation outside ASCII."""
    return text if text.isascii() else _PUNCTUATION.sub(" ", text)


def is_flat(text: str) -> bool:
    """Return whether a text without punctuation is its own flat form."""
    return "\x1b" not in text and (text.isascii() or not _COMPLEX.search(text))


def special_runs(text: str) -> Iterator[re.Match[str]]:
    """Yield the runs of a text without punctuation that `flatten_special` changes."""
    return _special(text).finditer(text)


def _special(text: str) -> re.Pattern[str]:
    if _COMPOSED_WITH_PLAIN.search(text):
        return _SPECIAL
    return _SPECIAL_BUT_PLAIN if "\x1b" in text else _COMPLEX_RUNS


def flatten_special(match: re.Match[str]) -> str:
    """Return the flat form of a run of characters that are not ASCII, or of a terminal sequence."""
    run = match[0]
    if run[0] == "\x1b":
        return "" if run[-1] == "m" or run[1] == "]" else " "
    return flatten_run(run)


def flatten_run(run: str) -> str:
    """Return the flat form of a run of characters that are not ASCII."""
    return _fold_short(run) if len(run) <= _SHORT else _fold(run)


def is_dropped(char: str) -> bool:
    """Return whether a character is left out of the flat text, except for the joiner of emoji."""
    return _CHARACTERS[ord(char)] is None


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
    ascii_text = flat.replace(_OTHER_CHARACTER, " ")
    if not flat.isascii():
        ascii_text = ascii_text.encode("ascii", "replace").decode()
    pieces: list[str] = []
    for word in filterfalse(str.islower, dict.fromkeys(ascii_text.translate(_ASCII_SPACES).split())):
        compound = compound_pieces(word)
        if compound and _OTHER_CHARACTER in word:  # what is next to its ASCII letters decides how it is split
            return [piece for other in dict.fromkeys(_WORDS.findall(flat)) for piece in compound_pieces(other)]
        pieces += compound
    return pieces


def _spaced(match: re.Match[str]) -> str:
    run = match[0]
    return _pairs_of_short(run) if len(run) <= _SHORT else _pairs(run)


def _pairs(run: str) -> str:
    """Return a run with spaces between its tokens."""
    if len(run) == 1 or JOINER in run or "\U0001f1e6" <= run[0] <= "\U0001f1ff":
        return f" {run} "
    return f" {' '.join(map(add, run, run[1:]))} {run[-1]} "


_pairs_of_short = lru_cache(maxsize=16_384)(_pairs)


def _fold(text: str) -> str:
    """Return the flat form of a text without terminal sequences; its ASCII letters keep their case."""
    if _MARKS.search(text):
        text = _MARKS.sub(_with_fewer_marks, text)
    flat = unicodedata.normalize("NFKD", _TRADE_MARKS.sub(" ", text)).translate(_CHARACTERS)
    if JOINER in flat:
        flat = _LOOSE_JOINERS.sub("", flat)
    flat = unicodedata.normalize("NFC", flat)
    return flat if flat.isascii() else _CASED.sub(_casefolded, flat)


_fold_short = lru_cache(maxsize=4096)(_fold)


def _casefolded(match: re.Match[str]) -> str:
    return match[0].casefold().replace("\u0131", "i")


def _with_fewer_marks(match: re.Match[str]) -> str:
    kept: list[str] = []
    n_marks = 0
    for char in match[0]:
        n_marks = n_marks + 1 if unicodedata.combining(char) else 0
        if n_marks <= _MOST_MARKS:
            kept.append(char)
    return "".join(kept)


class _Characters(dict[int, int | str | None]):
    """What becomes of each character after its decomposition, for `str.translate`; filled when it is needed."""

    def __missing__(self, code: int) -> int | str | None:
        action = _action(code)
        if len(self) < 1 << 16:
            self[code] = action
        return action


def _action(code: int) -> int | str | None:
    if code < 0x80 or chr(code) == JOINER:  # noqa: PLR2004
        return code
    if _is_in(code, _DROPPED_RANGES):
        return None
    is_letter = unicodedata.category(chr(code))[0] in "LMN" and code not in _APOSTROPHES
    return code if is_letter or _is_in(code, _EMOJI_RANGES) else " "


def _is_in(code: int, ranges: Sequence[tuple[int, int]]) -> bool:
    index = bisect_right(ranges, (code, sys.maxunicode)) - 1
    return index >= 0 and code <= ranges[index][1]


_CHARACTERS = _Characters()
