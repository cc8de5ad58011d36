"""Write values as JSON and CSV that every reader takes for what they are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

import msgspec

HALF = "half a character (U+FFFD stands in its place)"
_HALVES = re.compile("[\ud800-\udfff]")
_BREAKS = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")  # next line, line and paragraph separator
_ESCAPES = {b"\xc2\x85": b"\\u0085", b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029"}
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings of a formula, also as the wide characters that some spreadsheets take for the same."""
_NEEDS_QUOTES = re.compile('[",]|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|^[ =+@-]| $')
"""Separators, whatever some reader takes for the end of a line, blanks at the ends, and what looks like a formula.

Python's own writer leaves a carriage return without quotation marks where lines end in a line feed.
"""


def encode(value: object, losses: Counter[str] | None = None) -> bytes:
    """Return a value as one line of JSON; half a surrogate pair becomes an escape.

    With `losses` the line is for readers of other programs: half a pair, which strict ones refuse, is replaced and
    counted there, and what only some of them take for the end of a line becomes an escape.
    """
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
        if losses is None:
            return text.encode("utf-8", "backslashreplace")
        losses[HALF] += 1
        data = _HALVES.sub("\ufffd", text).encode()
    return data if losses is None else _BREAKS.sub(lambda found: _ESCAPES[found[0]], data)


def text(value: object, losses: Counter[str]) -> str:
    """Return a value as JSON that stands as a text inside another value."""
    return encode(value, losses).decode()


def csv_row(fields: Sequence[object]) -> str:
    """Return one line of CSV, with its end."""
    return ",".join(map(_cell, fields)) + "\n"


def escape_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    if not isinstance(value, str) or not _NEEDS_QUOTES.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
