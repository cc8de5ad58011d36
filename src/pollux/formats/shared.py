"""Conversations shared as Markdown: what `/chat share` writes into a file whose name ends with `.md`.

Each entry of the history is a section below its role: words as they are, calls and responses as JSON. The client leaves
all else out (pictures, code that ran at the API), glues the texts of an entry together and puts thoughts among them;
nothing in the file tells. A text that itself looks like a section or a call is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

import msgspec

from pollux.formats import history, lenient
from pollux.formats.converted import Converted, Wire, head_text, utf8
from pollux.model import Json, Problem

_ICON = "(?:\N{ADULT}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}|\N{SPARKLES})"
_HEADING = rf"(?:## ([A-Z]+) {_ICON}|{_ICON} ## ([A-Z]+))"  # to 0.16 the icon came first
_START = re.compile(rf"{_HEADING}\r?\n\r?\n")
_SECTION = re.compile(rf"(?:\A|\n\n---\n\n){_HEADING}(?:\n\n|\s*\Z)")
_OPENING = re.compile(r"\*\*Tool (Command|Response)\*\*:\n```json\n")
_CLOSING = "\n```"
_PARTS = {"Command": "functionCall", "Response": "functionResponse"}


def sniff(head: bytes) -> bool:
    """Tell from the first bytes of a file whether it is a shared conversation."""
    return _START.match(head_text(head)) is not None


def convert(data: bytes, *, name: str, modified: datetime) -> Converted:
    """Convert one file into the history that it was written from, as far as it tells, and that into a session."""
    text = utf8(data).decode().lstrip()
    if text.partition("\n")[0].endswith("\r"):  # an editor or a check-out has changed the ends of lines
        text = text.replace("\r\n", "\n")
    entries: list[Json] = [{"role": role.lower(), "parts": [*_parts(words)]} for role, words in _sections(text)]
    found = history.convert(lenient.encode(entries), name=name, modified=modified)
    return msgspec.structs.replace(found, problems=(*found.problems, *_torn(text)))


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield the role and the words of each entry."""
    for heading, end in _with_ends(_SECTION, text):
        yield heading[1] or heading[2], text[heading.end() : end]


def _parts(words: str) -> Iterator[Json]:
    """Yield texts, calls and responses in their order."""
    at = 0
    for opening, limit in _with_ends(_OPENING, words):
        end = words.find(_CLOSING, opening.end(), limit)
        fields = _fields(words[opening.end() : end]) if end >= 0 else None
        if fields is not None:
            if before := words[at : opening.start()]:
                yield {"text": before}
            yield {_PARTS[opening[1]]: fields}
            at = end + len(_CLOSING)
    if rest := words[at:]:
        yield {"text": rest}


def _with_ends(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield what fits, each with the place where the next begins."""
    for one, following in pairwise((*pattern.finditer(text), None)):
        assert one is not None
        yield one, following.start() if following else len(text)


def _fields(text: str) -> Wire | None:
    """Decode a call or a response; what is none stays what it is, a text."""
    try:
        value = lenient.decode(text.encode())
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("name"), str) else None


def _torn(text: str) -> Iterator[Problem]:
    """Tell of a call at the end that was cut."""
    openings = [*_OPENING.finditer(text)]
    if openings and text.find(_CLOSING, openings[-1].end()) < 0:
        line = 1 + text.count("\n", 0, openings[-1].start())
        yield Problem("torn-json", "the file ends within a tool call, which is kept as text", line=line)
