"""Put text of a session into a Markdown document so that it runs, loads and rearranges nothing.

Models write Markdown, and it stays Markdown: it is parsed to find code, and outside of code a few characters get a
backslash or become entities. Tags are shown as text, pictures are not fetched, links lead to web pages only, headings
rank below those of the document, and open fences are closed. Text that is too long or too deep to parse is fenced.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pollux.text.escape import make_visible
from pollux.views.excerpts import line

LONG = 50_000
"""Characters above which text is not parsed, because that would take seconds."""
DEEP = 20
"""Nesting above which the parser stops."""
_LOWER = 2
"""Levels that a heading is lowered by: the session and its prompts are above."""
_LOWEST = 6

_ACTIVE = re.compile(
    r"<[A-Za-z/!?]|!\[|\]\(|\]:|```|~~~|(?:^|[ \t>.)*+-])#{1,6}(?:[ \t]|$)|^[ \t>]*(?:=+|-+)[ \t]*$", re.MULTILINE
)
"""Text without a match needs no change and is not parsed."""
_TICKS = re.compile(r"`+")
_RUNS = re.compile(r"(?<!\\)(\\*)(`+)")
_HASHES = re.compile(r"#{1,6}(?=[ \t]|$)")
_UNDERLINE = re.compile(r"(?:=+|-+)(?=[ \t]*$)")
_PLAIN = re.compile(r"([\\`*\[\]<~|])|(?<![^\W_])(_)|(_)(?![^\W_])|(&)(?=#?\w+;)")
_INLINE = re.compile(
    r"(?P<tag><(?=[A-Za-z/!?]))"
    r"|(?<!\\)(?P<image>\\*!)(?=\[)"
    r"|(?P<definition>\](?=:))"
    r"|(?P<link>\]\()(?=(?P<place>[ \t\n]*[^ \t\n)]{0,64}))"
)
_WEB = re.compile(r"[ \t\n]*(?:https?://|mailto:)", re.IGNORECASE)
_RELATIVE = re.compile(r"[ \t\n]*(?![<&\\])[^:&\\<]*(?:[/?#][^&\\<]*)?")


def inert(text: str, *, keeps_lines: bool = False) -> str:
    """Return Markdown of a session in a safe form; with `keeps_lines`, line breaks in prose survive rendering."""
    text = make_visible(text).rstrip()
    if not (keeps_lines and "\n" in text) and not _ACTIVE.search(text):
        return text
    if len(text) > LONG:
        return fence(text)
    tokens = _parser().parse(text)
    if any(token.level >= DEEP - 1 for token in tokens):
        return fence(text)
    lines = text.split("\n")
    is_code = [False] * len(lines)
    for token in tokens:
        if token.map and token.type in {"fence", "code_block"}:
            is_code[token.map[0] : token.map[1]] = [True] * (token.map[1] - token.map[0])
    for start, end in _prose(tokens, is_code):
        lines[start:end] = _disarm("\n".join(lines[start:end])).split("\n")
        if keeps_lines:
            lines[start : end - 1] = [f"{line.rstrip()}  " for line in lines[start : end - 1]]
    _lower_headings(tokens, lines)
    return "\n".join([*lines, *_closing(tokens, lines)])


def fence(text: str, language: str = "text") -> str:
    """Return text in a fence that is longer than any in it."""
    text = make_visible(text)
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text}\n{marks}"


def plain(text: str, limit: int | None = None) -> str:
    """Return text as one line of Markdown that shows it literally."""
    text = _PLAIN.sub(lambda match: f"\\{match[0]}" if match[0] != "<" else "&lt;", make_visible(line(text, limit)))
    return text.replace("$", "\\$") if text.count("$") > 1 else text  # a pair of them may delimit a formula


def code(text: str, limit: int | None = None) -> str:
    """Return text as one line of inline code."""
    text = make_visible(line(text, limit))
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    marks = "`" * (longest + 1)
    space = " " if text[:1] in {"", "`", " "} or text[-1:] in {"`", " "} else ""
    return f"{marks}{space}{text}{space}{marks}"


def quoted(text: str) -> str:
    """Return text in a block quote that it cannot leave."""
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


@cache
def _parser() -> MarkdownIt:
    # Tags and definitions are disarmed, so they are not parsed; only the blocks matter.
    options = {"html": False, "maxNesting": DEEP}
    return MarkdownIt("commonmark", options).enable("table").disable(["reference", "inline"])


def _prose(tokens: Sequence[Token], is_code: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the line ranges outside code, one per paragraph because inline code may span several lines."""
    starts = {token.map[0]: token.map[1] for token in tokens if token.type == "inline" and token.map}
    at = 0
    while at < len(is_code):
        end = starts.get(at, at + 1)
        if not is_code[at]:
            yield at, end
        at = end


def _disarm(text: str) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in _code_spans(text):
        pieces += (_INLINE.sub(_replacement, text[at:start]), text[start:end])
        at = end
    return "".join((*pieces, _INLINE.sub(_replacement, text[at:])))


def _replacement(match: re.Match[str]) -> str:
    if match["tag"]:
        return "&lt;"
    if image := match["image"]:
        is_escaped = len(image) % 2 == 0  # by an odd number of backslashes
        return image if is_escaped else f"\\{image}"
    if match["definition"]:
        return "]\\"
    is_safe = _WEB.match(match["place"]) or _RELATIVE.fullmatch(match["place"])
    return match["link"] if is_safe else "]\\("


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of inline code: from a run of backticks to the next one of the same length."""
    runs = [(*match.span(2), len(match[1]) % 2) for match in _RUNS.finditer(text)]
    by_length: dict[int, list[int]] = defaultdict(list)
    for start, end, _ in runs:
        by_length[end - start].append(start)
    done = 0
    for start, end, escaped in runs:
        closers = by_length.get(end - start - escaped, [])
        place = bisect_right(closers, start)
        if start >= done and start + escaped < end and place < len(closers):
            done = closers[place] + end - start - escaped
            yield start + escaped, done


def _lower_headings(tokens: Sequence[Token], lines: list[str]) -> None:
    for token, inside in pairwise(tokens):
        if token.type != "heading_open" or token.map is None:
            continue
        first, end = token.map
        hashes = "#" * min(int(token.tag[1:]) + _LOWER, _LOWEST)
        if token.markup.startswith("#"):
            lines[first] = _HASHES.sub(hashes, lines[first], count=1)
        elif end - first == 2 and inside.content:  # noqa: PLR2004  a line and its underline
            before = len(lines[first]) - len(lines[first].lstrip(" \t>")) if lines[first][:1] in " \t>" else 0
            lines[first] = f"{lines[first][:before]}{hashes} {lines[first][before:]}"
            lines[end - 1] = _UNDERLINE.sub("", lines[end - 1]).rstrip()
        else:
            lines[end - 1] = _UNDERLINE.sub(lambda match: f"\\{match[0]}", lines[end - 1])


def _closing(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[str]:
    """Yield the end of a fence that the text leaves open; one in a list or block quote ends with that."""
    last = next((token for token in reversed(tokens) if token.type == "fence" and token.level == 0), None)
    if last is None or last.map is None or any(lines[last.map[1] :]):
        return
    start, end = last.map
    closes = re.compile(rf" {{0,3}}{re.escape(last.markup[0])}{{{len(last.markup)},}}[ \t]*")
    if end - start < 2 or not closes.fullmatch(lines[end - 1]):  # noqa: PLR2004  only the opening line
        yield last.markup
