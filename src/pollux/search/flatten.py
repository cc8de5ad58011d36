"""Flatten texts: give each character one form, so that texts are equal if a reader takes them for the same.

Variants of a character become one, marks and invisible characters are dropped, terminal sequences are removed, and
other symbols become spaces. Whoever changes a flat form has to increase `tokenizer.VERSION`.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

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


def _class_of(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


PAIRED = _class_of(_PAIRED_RANGES)
EMOJI = _class_of(_EMOJI_RANGES)
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
SHORT_RUN = 4
"""Length of the runs whose result is cached: most are a quotation mark, an accented letter or a Korean word."""
_TRADE_MARKS = re.compile("[\u2120\u2122]")
"""Their compatibility forms are letters, which would join the word before them."""


def is_dense(text: str) -> bool:
    """Return whether a text seems to contain many characters that are not ASCII, so that it is flattened as a whole."""
    sample = text[:_SAMPLE]
    return not sample.isascii() and len(sample.encode("ascii", "ignore")) * 8 < len(sample) * 7


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
    return _fold_short(run) if len(run) <= SHORT_RUN else _fold(run)


def is_dropped(char: str) -> bool:
    """Return whether a character is left out of the flat text, except for the joiner of emoji."""
    return _CHARACTERS[ord(char)] is None


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
