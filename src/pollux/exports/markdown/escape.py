"""Text of a session within a Markdown document: it shows itself, and neither runs, loads nor rearranges anything.

What models write is Markdown and stays so: it is parsed to know what is code, and outside of code a few characters get
a backslash or become entities. Tags are shown, pictures are not fetched, links lead to pages only, headings are of
lower rank than ours, and what was opened is closed. What is too long or too deep to be parsed is fenced.
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

from pollux.text.escape import clean
from pollux.views.excerpts import line

LONG = 50_000
"""Characters above which text is not parsed: it would take seconds."""
DEEP = 20
"""Levels above which the parser gives up."""
_LOWER = 2
"""Ranks that a heading loses: above are the session and its prompts."""
_LOWEST = 6

_ACTIVE = re.compile(
    r"<[A-Za-z/!?]|!\[|\]\(|\]:|```|~~~|(?:^|[ \t>.)*+-])#{1,6}(?:[ \t]|$)|^[ \t>]*(?:=+|-+)[ \t]*$", re.MULTILINE
)
"""What may have to be changed; where there is nothing of it, nothing is parsed."""
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
    """Make Markdown of a session harmless; with `keeps_lines`, lines of prose stay apart when it is rendered."""
    text = clean(text).rstrip()
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
        lines[start:end] = _harmless("\n".join(lines[start:end])).split("\n")
        if keeps_lines:
            lines[start : end - 1] = [f"{one.rstrip()}  " for one in lines[start : end - 1]]
    _lower_headings(tokens, lines)
    return "\n".join([*lines, *_closing(tokens, lines)])


def fence(text: str, language: str = "text") -> str:
    """Put text into a fence that is longer than any in it."""
    text = clean(text)
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text}\n{marks}"


def plain(text: str, limit: int | None = None) -> str:
    """Write any text on one line of Markdown, as it is."""
    text = _PLAIN.sub(lambda found: f"\\{found[0]}" if found[0] != "<" else "&lt;", clean(line(text, limit)))
    return text.replace("$", "\\$") if text.count("$") > 1 else text  # a pair of them may mean a formula


def code(text: str, limit: int | None = None) -> str:
    """Write any text on one line, as code."""
    text = clean(line(text, limit))
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    marks = "`" * (longest + 1)
    space = " " if text[:1] in {"", "`", " "} or text[-1:] in {"`", " "} else ""
    return f"{marks}{space}{text}{space}{marks}"


def quoted(text: str) -> str:
    """Put text into a quotation, out of which it cannot get."""
    return "\n".join(f"> {one}".rstrip(" ") if not one else f"> {one}" for one in text.split("\n"))


@cache
def _parser() -> MarkdownIt:
    # Tags and definitions are made harmless, so the text is parsed as if there were none; only blocks are of interest.
    options = {"html": False, "maxNesting": DEEP}
    return MarkdownIt("commonmark", options).enable("table").disable(["reference", "inline"])


def _prose(tokens: Sequence[Token], is_code: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the lines that are no code, those of one paragraph together: code within it may go over several."""
    starts = {token.map[0]: token.map[1] for token in tokens if token.type == "inline" and token.map}
    at = 0
    while at < len(is_code):
        end = starts.get(at, at + 1)
        if not is_code[at]:
            yield at, end
        at = end


def _harmless(text: str) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in _code_spans(text):
        pieces += (_INLINE.sub(_disarmed, text[at:start]), text[start:end])
        at = end
    return "".join((*pieces, _INLINE.sub(_disarmed, text[at:])))


def _disarmed(found: re.Match[str]) -> str:
    if found["tag"]:
        return "&lt;"
    if image := found["image"]:
        return image if len(image) % 2 == 0 else f"\\{image}"  # if even, one of its backslashes is for the mark
    if found["definition"]:
        return "]\\"
    is_fine = _WEB.match(found["place"]) or _RELATIVE.fullmatch(found["place"])
    return found["link"] if is_fine else "]\\("


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find code within prose: from a run of backticks to the next one of the same length."""
    runs = [(*found.span(2), len(found[1]) % 2) for found in _RUNS.finditer(text)]
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
            lines[end - 1] = _UNDERLINE.sub(lambda found: f"\\{found[0]}", lines[end - 1])


def _closing(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[str]:
    """Close a fence that the text has left open; one within a list or a quotation ends with that."""
    last = next((token for token in reversed(tokens) if token.type == "fence" and token.level == 0), None)
    if last is None or last.map is None or any(lines[last.map[1] :]):
        return
    start, end = last.map
    closes = re.compile(rf" {{0,3}}{re.escape(last.markup[0])}{{{len(last.markup)},}}[ \t]*")
    if end - start < 2 or not closes.fullmatch(lines[end - 1]):  # noqa: PLR2004  it is its own first line
        yield last.markup
