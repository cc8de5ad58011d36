"""Read conversations that `/chat share` wrote as Markdown.

Each entry of the history is a section under its role, with plain text, and calls and responses as JSON. The client
omits everything else (images, code that ran on the API's side) and joins the texts and thoughts of an entry without a
mark. A text that itself looks like a section or a call is read as one.
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
    """Return whether a file that starts with these bytes is a shared conversation."""
    return _START.match(head_text(head)) is not None


def convert(data: bytes, *, name: str, modified: datetime) -> Converted:
    """Convert one file to the history that it was written from, and that to a session."""
    text = utf8(data).decode().lstrip()
    if text.partition("\n")[0].endswith("\r"):  # an editor or a check-out converted the line ends
        text = text.replace("\r\n", "\n")
    entries: list[Json] = [{"role": role.lower(), "parts": [*_parts(body)]} for role, body in _sections(text)]
    converted = history.convert(lenient.encode(entries), name=name, modified=modified)
    return msgspec.structs.replace(converted, problems=(*converted.problems, *_torn(text)))


def _sections(text: str) -> Iterator[tuple[str, str]]:
    for heading, end in _with_ends(_SECTION, text):
        yield heading[1] or heading[2], text[heading.end() : end]


def _parts(text: str) -> Iterator[Json]:
    at = 0
    for opening, limit in _with_ends(_OPENING, text):
        end = text.find(_CLOSING, opening.end(), limit)
        fields = _fields(text[opening.end() : end]) if end >= 0 else None
        if fields is not None:
            if before := text[at : opening.start()]:
                yield {"text": before}
            yield {_PARTS[opening[1]]: fields}
            at = end + len(_CLOSING)
    if after := text[at:]:
        yield {"text": after}


def _with_ends(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield each match with the start of the next match, or the end of the text."""
    for match, following in pairwise((*pattern.finditer(text), None)):
        assert match is not None
        yield match, following.start() if following else len(text)


def _fields(text: str) -> Wire | None:
    try:
        value = lenient.decode(text.encode())
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("name"), str) else None


def _torn(text: str) -> Iterator[Problem]:
    openings = [*_OPENING.finditer(text)]
    if openings and text.find(_CLOSING, openings[-1].end()) < 0:
        line = 1 + text.count("\n", 0, openings[-1].start())
        yield Problem("torn-json", "the file ends within a tool call, which is read as text", line=line)
