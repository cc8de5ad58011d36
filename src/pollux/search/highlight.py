"""Find the places of a query's words in a text, and cut a line around them.

The index knows which texts may contain a word; this module reads the text itself. A regular expression proposes places
in the flat text (see `words`), the tokens around each place confirm it, and the offsets are converted to those of the
original text. That refuses what the index finds by accident: pieces of two compounds that happen to be adjacent, and
`c` where the query says `C++`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from pollux.search import tokenizer
from pollux.search.flatten import (
    EMOJI,
    ESCAPES,
    JOINER,
    flatten,
    flatten_run,
    flatten_special,
    is_dropped,
    is_flat,
    special_runs,
    without_punctuation,
)
from pollux.search.tokenizer import NO_LETTERS, SEPARATORS, Term, TokenSequence
from pollux.search.values import Snippet, TextSpan
from pollux.text.escape import escape_controls

_WORD = f"[^{NO_LETTERS}]"
_SEPARATOR = frozenset(filter(re.compile(f"[{SEPARATORS}]").match, map(chr, range(128))))
_LETTER = r"[^\W_]"
_LOWER = f"[^A-Z{SEPARATORS}]"
_NOT_LATIN = "[^\x00-\xff]"
_OTHER = "[^\x00-\u0dff]"
"""From Thai on: the scripts without spaces, emoji, and a few others."""
_BLOCK = 1 << 16
"""Characters that are flattened at once, so that a long text is read only as far as needed."""
_OVERLAP = 1 << 12
_MOST_REFUSALS = 10_000
"""Proposals that may be refused in a block, so that a hostile text cannot take all the time."""
_REACH = 128
"""Characters that are read on each side of a proposal; more than a compound has."""
_RUN_BEFORE = re.compile(f"{_WORD}+|[{EMOJI}{JOINER}]+")
_RUN_AFTER = re.compile(f"{_WORD}*[{EMOJI}{JOINER}]*")
_WORD_AFTER = re.compile(f"{_WORD}*")
_IS_EMOJI = re.compile(f"[{EMOJI}]")
_SPACES = re.compile(r"\s+")
_MOST_SPANS = 1000
"""Spans among which a snippet looks for the best place."""
_SLACK = 24
"""Characters by which a snippet may be longer, or begin later, so that it does not cut a word."""
_ROUNDS = 6
"""How often the part of a text that a snippet takes is extended because terminal sequences take up room."""
_PLAIN_BEFORE = "([{<'\"`,;:!?"
_PLAIN_AFTER = "([{<'\"`)]}>.,;:!?"
"""Punctuation around a typed word that says nothing about what is searched for; `C++`, `.NET` and `#12` have other."""


class Needle(msgspec.Struct, frozen=True):
    """A word or phrase of a query, as it was typed."""

    text: str
    is_prefix: bool = False
    is_phrase: bool = False


class _Plan(NamedTuple):
    readings: tuple[TokenSequence, ...]
    pattern: re.Pattern[str]
    before: str
    after: str
    """Symbols that the text must have around the tokens."""
    rarest: str
    """The longest term: a text without it is not looked at any further."""


class _Segment(NamedTuple):
    """A run of the original text that differs from the flat text."""

    start: int
    end: int
    flat_start: int
    flat_end: int


def find_spans(text: str, needle: Needle, limit: int = 50) -> list[TextSpan]:
    """Return the first places of a needle in a text, in order and without overlaps; none if it is not there."""
    plan = _plan(needle)
    if plan is None:
        return []
    return _first(_spans_of_blocks(text, plan), limit)


def snippet(text: str, spans: Sequence[TextSpan], width: int = 200) -> Snippet:
    """Return about `width` characters around the place with most spans, on one line and without control characters."""
    first, last = _best_cluster(spans, width)
    start, end = _window(text, first, last, width)
    inside = [TextSpan(span.start, min(span.end, end)) for span in spans[:_MOST_SPANS] if start <= span.start < end]
    pieces: list[str] = []
    marked: list[TextSpan] = []
    length, at = 0, start
    for span in sorted(inside):
        if span.start < at:
            continue
        gap = _shown(text[at : span.start])
        if not length:
            gap = gap.lstrip()
        shown = _shown(text[span.start : span.end])
        marked.append(TextSpan(length + len(gap), length + len(gap) + len(shown)))
        pieces += (gap, shown)
        length, at = marked[-1].end, span.end
    tail = _shown(text[at:end]).rstrip()
    pieces.append(tail if length else tail.lstrip())
    has_before = bool(text[max(0, start - _OVERLAP) : start].strip())
    has_after = bool(text[end : end + _OVERLAP].strip())
    return Snippet("".join(pieces), tuple(marked), has_before=has_before, has_after=has_after)


def _first(spans: Iterator[TextSpan], limit: int) -> list[TextSpan]:
    collected: list[TextSpan] = []
    for span in spans:
        if len(collected) >= limit:
            break
        collected.append(span)
    return collected


@lru_cache(maxsize=256)
def _plan(needle: Needle) -> _Plan | None:
    readings = tokenizer.readings(needle.text, is_prefix=needle.is_prefix)
    if not readings:
        return None
    before, after = _symbols(needle, readings[0])
    pattern = _pattern(readings, before, after)
    rarest = max((term.text for term in readings[-1].terms), key=len)
    return _Plan(readings, pattern, before, after, rarest)


def _symbols(needle: Needle, reading: TokenSequence) -> tuple[str, str]:
    """Return the symbols before and after a needle of one token that belong to it, such as the `++` of `C++`."""
    if len(reading.tokens) > 1 or reading.terms[0].kind != "word":
        return "", ""
    flat = flatten(needle.text).strip()
    token = next(tokenizer.place_tokens(flat))
    before = flat[: token.start].lstrip(_PLAIN_BEFORE)
    after = "" if needle.is_prefix else flat[token.end :].rstrip(_PLAIN_AFTER)
    return ("" if " " in before else before), ("" if " " in after else after)


def _pattern(readings: tuple[TokenSequence, ...], before: str, after: str) -> re.Pattern[str]:
    """Return the expression that proposes places in a flat text.

    It starts with characters, because `re` then skips quickly to the places where a match may begin. Its conditions on
    the characters around a term are looser than necessary: a set of all letters takes long to compile.
    """
    head, last = readings[0].terms[0], readings[-1].terms[-1]
    symbols = f"(?<={re.escape(before)}.)" if before else ""
    branches = "|".join(_branch(reading) for reading in readings)
    end = "" if readings[0].is_prefix else _end(last)
    return re.compile(f"{_start(head)}{symbols}(?:{branches}){end}(?={re.escape(after)})")


def _branch(reading: TokenSequence) -> str:
    """Return the expression of the terms, without the first character: in their places, or as a compound."""
    texts = [reading.terms[0].text[1:], *(term.text for term in reading.terms[1:])]
    literals = [f"(?ai:{re.escape(text)})" if text else "" for text in texts]
    in_place = literals[0]
    for earlier, later, literal in zip(reading.terms, reading.terms[1:], literals[1:], strict=False):
        in_place += _gap(earlier, later) + literal
    if len(literals) > 1 and all(term.kind == "word" for term in reading.terms):
        return f"{in_place}|{''.join(literals)}"
    return in_place


def _start(term: Term) -> str:
    """Return the expression of the first character of a term, with the condition on what is before it."""
    first = term.text[0]
    if term.kind != "word":
        return re.escape(first)
    if not first.isascii():
        return f"{first}(?:(?<!{_LETTER}.)|(?<={_OTHER}.))"
    if not first.isalpha():
        return f"{first}(?:(?<!{_LETTER}.)|(?<={_NOT_LATIN}.)|(?<=[vV].))"
    upper = first.upper()
    return (
        f"(?:{first}(?:(?<!{_LETTER}.)|(?<={_NOT_LATIN}.))"
        f"|{upper}(?:(?<!{_LETTER}.)|(?<={_NOT_LATIN}.)|(?<={_LOWER}.)|(?<=[A-Z].)(?={_LOWER})))"
    )


def _end(term: Term) -> str:
    """Return the condition on what is after a term."""
    if term.kind != "word":
        return ""
    other = _NOT_LATIN if term.text[-1].isascii() else _OTHER
    ends = [f"(?!{_LETTER})", f"(?={other})", f"(?<={_LOWER})(?=[A-Z])", f"(?<=[A-Z])(?=[A-Z]{_LOWER})"]
    if term.text == "v":
        ends.append("(?=[0-9])")
    return f"(?:{'|'.join(ends)})"


def _gap(earlier: Term, later: Term) -> str:
    if earlier.kind == later.kind == "word":
        return f"[{SEPARATORS}]{'*' if earlier.text == 'v' else '+'}"
    if earlier.kind == later.kind == "paired":
        return f"[{SEPARATORS}]+"
    return f"[{SEPARATORS}]*"


def _places(flat: str, plan: _Plan) -> Iterator[TextSpan]:
    """Yield the confirmed places in a flat text."""
    at = n_refusals = 0
    while n_refusals < _MOST_REFUSALS:
        match = plan.pattern.search(flat, at)
        if match is None:
            return
        start, end = match.span()
        if _is_confirmed(flat, start, end, plan.readings):
            yield TextSpan(start - len(plan.before), end + len(plan.after))
            at = end
        else:
            n_refusals += 1
            at = _after_refusal(flat, start)


def _after_refusal(flat: str, start: int) -> int:
    """Return where to go on: after the word if it is too long to be a compound, since nothing else in it can match."""
    if _end_of_word(flat, start) - start < _REACH:
        return start + 1
    match = _WORD_AFTER.match(flat, start)
    return match.end() if match else start + 1


def _is_confirmed(flat: str, start: int, end: int, readings: tuple[TokenSequence, ...]) -> bool:
    """Return whether the tokens at a place are those of a reading: in their places, or as pieces of one compound."""
    if _is_certain(flat, start, end, readings):
        return True
    run = _RUN_BEFORE.match(flat[max(0, start - _REACH) : start][::-1])
    left = start - len(run[0]) if run else start
    right = _end_of_run(flat, end)
    tokens = [token for token in tokenizer.place_tokens(flat[left : right + 1]) if left + token.start >= start]
    is_in_place = bool(tokens) and left + tokens[0].start == start
    if is_in_place and any(_begins_with([token.text for token in tokens], reading) for reading in readings):
        return True
    pieces = tokenizer.compound_pieces(flat[left : _end_of_word(flat, start)])
    at = left
    for index, piece in enumerate(pieces):
        if at == start:
            folded = [later.casefold() for later in pieces[index:]]
            return any(_begins_with(folded, reading) for reading in readings)
        at += len(piece)
    return False


def _is_certain(flat: str, start: int, end: int, readings: tuple[TokenSequence, ...]) -> bool:
    """Return whether a place is a word between two ASCII separators, as most places are."""
    is_word = len(readings) == len(readings[0].terms) == 1 and readings[0].terms[0].kind == "word"
    if not is_word or (start and flat[start - 1] not in _SEPARATOR):
        return False
    return readings[0].is_prefix or end == len(flat) or flat[end] in _SEPARATOR


def _end_of_run(flat: str, at: int) -> int:
    match = _RUN_AFTER.match(flat, at, at + _REACH)
    return match.end() if match else at


def _end_of_word(flat: str, at: int) -> int:
    match = _WORD_AFTER.match(flat, at, at + _REACH)
    return match.end() if match else at


def _begins_with(tokens: Sequence[str], reading: TokenSequence) -> bool:
    expected = reading.tokens
    if len(tokens) < len(expected) or tuple(tokens[: len(expected) - 1]) != expected[:-1]:
        return False
    last = tokens[len(expected) - 1]
    return last.startswith(expected[-1]) if reading.is_prefix else last == expected[-1]


def _spans_of_blocks(text: str, plan: _Plan) -> Iterator[TextSpan]:
    """Yield the places in a text that may have to be flattened, block by block."""
    done = 0
    for start, end in _blocks(text):
        block = without_punctuation(text[start:end])
        for span in _spans_of_block(block, plan):
            is_cut = (span.start == 0 and start > 0) or (span.end == len(block) and end < len(text))
            if not is_cut and start + span.start >= done:
                done = start + span.end
                yield TextSpan(start + span.start, done)


def _spans_of_block(block: str, plan: _Plan) -> Iterator[TextSpan]:
    if is_flat(block):
        if plan.rarest in block.casefold():
            yield from _places(block, plan)
    elif plan.rarest in flatten(block).casefold():
        flat, segments = _flattened(block)
        for place in _places(flat, plan):
            yield _original(block, place, segments)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ends of overlapping blocks, which begin and end at a line or a space where there is one."""
    start = 0
    while len(text) - start > _BLOCK:
        end = _last_space(text, start + _BLOCK - _OVERLAP, start + _BLOCK)
        yield start, end
        start = _last_space(text, end - 2 * _OVERLAP, end - _OVERLAP)
    yield start, len(text)


def _last_space(text: str, first: int, last: int) -> int:
    at = max(text.rfind("\n", first, last), text.rfind(" ", first, last))
    return last if at < 0 else at


def _flattened(text: str) -> tuple[str, list[_Segment]]:
    """Return a flat text and the segments in which it differs from the original."""
    pieces: list[str] = []
    segments: list[_Segment] = []
    at = length = 0
    for match in special_runs(text):
        flat = flatten_special(match)
        pieces += (text[at : match.start()], flat)
        length += match.start() - at
        segments.append(_Segment(match.start(), match.end(), length, length + len(flat)))
        length += len(flat)
        at = match.end()
    pieces.append(text[at:])
    return "".join(pieces), segments


def _original(text: str, place: TextSpan, segments: Sequence[_Segment]) -> TextSpan:
    """Return the offsets in the original of a place in a flat text, including marks that follow its last character."""
    start = _original_character(text, place.start, segments).start
    end = _original_character(text, place.end - 1, segments).end
    while end < len(text) and _is_mark(text[end]) and is_dropped(text[end]):
        end += 1
    return TextSpan(start, end)


def _original_character(text: str, at: int, segments: Sequence[_Segment]) -> TextSpan:
    index = bisect_right(segments, at, key=lambda segment: segment.flat_start) - 1
    if index < 0:
        return TextSpan(at, at + 1)
    segment = segments[index]
    if at >= segment.flat_end:
        start = segment.end + at - segment.flat_end
        return TextSpan(start, start + 1)
    inner = _characters(text[segment.start : segment.end])[at - segment.flat_start]
    return TextSpan(segment.start + inner.start, segment.start + inner.end)


@lru_cache(maxsize=16)
def _characters(run: str) -> tuple[TextSpan, ...]:
    """Return where each character of the flat form of a run comes from."""
    sources: list[TextSpan] = []
    for cluster in _clusters(run):
        flat = flatten_run(run[cluster.start : cluster.end])
        if len(flat) == cluster.end - cluster.start and not any(map(is_dropped, run[cluster.start : cluster.end])):
            sources += [TextSpan(at, at + 1) for at in range(cluster.start, cluster.end)]
        else:
            sources += [cluster] * len(flat)
    n_flat = len(flatten_run(run))
    return tuple(sources) if len(sources) == n_flat else (TextSpan(0, len(run)),) * n_flat


def _clusters(run: str) -> Iterator[TextSpan]:
    """Yield the stretches of a run that can be flattened on their own: a character and what combines with it."""
    start = end = 0
    for at, char in enumerate(run):
        if at == 0:
            end = 1
        elif _combines(char) or (run[at - 1] == JOINER and _IS_EMOJI.match(char) and _IS_EMOJI.match(run[start])):
            end = at + 1
        elif not is_dropped(char) and char != JOINER:
            yield from _split(start, end, at)
            start, end = at, at + 1
    yield from _split(start, end, len(run))


def _split(start: int, end: int, following: int) -> Iterator[TextSpan]:
    """Yield a cluster, and the invisible characters between it and the next one."""
    yield TextSpan(start, end)
    if end < following:
        yield TextSpan(end, following)


def _combines(char: str) -> bool:
    return _is_mark(char) or "\u1160" <= char <= "\u11ff" or char in "\uff9e\uff9f"


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M" or "\U0001f3fb" <= char <= "\U0001f3ff"


def _best_cluster(spans: Sequence[TextSpan], width: int) -> tuple[int, int]:
    """Return the start and end of the most spans that fit into a width; the first ones if several do."""
    ordered = sorted(spans[:_MOST_SPANS])
    best, most = (0, 0), 0
    first = 0
    for last, span in enumerate(ordered):
        while span.end - ordered[first].start > width and first < last:
            first += 1
        if last - first + 1 > most:
            most, best = last - first + 1, (ordered[first].start, span.end)
    return best


def _window(text: str, first: int, last: int, width: int) -> tuple[int, int]:
    """Return where to cut a text so that a cluster is in the middle, or at the start if it is too long."""
    room = max(0, width - _n_visible(text, first, min(last, first + width)))
    start = _before(text, first, room // 2)
    end = _after(text, first, width - _n_visible(text, start, first))
    if end == len(text):
        start = _before(text, first, width - _n_visible(text, first, end))
    slack = min(_SLACK, width // 8)
    return _boundary(text, start, min(first, start + slack)), _boundary(text, end, end + slack)


def _before(text: str, end: int, n_visible: int) -> int:
    """Return the start of the stretch before a place that shows so many characters."""
    start = end
    for _ in range(_ROUNDS):
        start = max(0, start - max(0, n_visible - _n_visible(text, start, end)))
    return start


def _after(text: str, start: int, n_visible: int) -> int:
    """Return the end of the stretch after a place that shows so many characters."""
    end = start
    for _ in range(_ROUNDS):
        end = min(len(text), end + max(0, n_visible - _n_visible(text, start, end)))
    return end


def _n_visible(text: str, start: int, end: int) -> int:
    """Return the length of a stretch without terminal sequences, which a snippet leaves out."""
    if text.find("\x1b", start, end) < 0:
        return end - start
    return end - start - sum(len(match[0]) for match in ESCAPES.finditer(text, start, end))


def _boundary(text: str, at: int, latest: int) -> int:
    """Return the next place from `at` on at which no word and no character with its marks is cut, if one is near."""
    for match in ESCAPES.finditer(text, max(0, at - _SLACK), at + _SLACK):
        if match.start() < at < match.end():
            at = match.end()
    if at in {0, len(text)} or text[at - 1].isspace():
        return at
    near = min(latest, at + _SLACK, len(text))
    space = _SPACES.search(text, at, near)
    if space is not None:
        return space.start()
    for place in range(at, near):
        if _is_whole(text[place - 1], text[place]):
            return place
    return at


def _is_whole(earlier: str, later: str) -> bool:
    return not (_combines(later) or is_dropped(later) or JOINER in {earlier, later})


def _shown(text: str) -> str:
    """Return a text on one line, without colours and with a visible character for each control character."""
    line = _SPACES.sub(" ", ESCAPES.sub("", text))
    shown = escape_controls(line)
    if len(shown) <= 2 * len(line):
        return shown
    return "".join(_short_picture(char) for char in line)


def _short_picture(char: str) -> str:
    picture = escape_controls(char)
    return picture if len(picture) == 1 else "\ufffd"
