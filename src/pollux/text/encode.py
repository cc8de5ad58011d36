"""Encode values as JSON and CSV that every program reads in the same way."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

import msgspec

HALF = "half a character (replaced by U+FFFD)"
_HALVES = re.compile("[\ud800-\udfff]")
_BREAKS = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")  # next line, line and paragraph separator
_ESCAPES = {b"\xc2\x85": b"\\u0085", b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029"}
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of a formula, including wide ones that some spreadsheets treat alike."""
_NEEDS_QUOTES = re.compile('[",]|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|^[ =+@-]| $')
"""Separators, everything that some program reads as a line end, outer spaces, and the first characters of a formula.

Python's own writer does not quote a carriage return if lines end in a line feed.
"""


def encode(value: object, losses: Counter[str] | None = None) -> bytes:
    """Return a value as one line of JSON, with escapes for lone surrogates.

    With `losses` the line is for other programs: lone surrogates, which strict ones reject, are replaced and counted
    there, and characters that only some programs read as a line end are escaped.
    """
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
        if losses is None:
            return text.encode("utf-8", "backslashreplace")
        losses[HALF] += 1
        data = _HALVES.sub("\ufffd", text).encode()
    return data if losses is None else _BREAKS.sub(lambda match: _ESCAPES[match[0]], data)


def text(value: object, losses: Counter[str]) -> str:
    """Return a value as JSON text, to be used as a string inside another value."""
    return encode(value, losses).decode()


def csv_row(fields: Sequence[object]) -> str:
    """Return one line of CSV, including its line end."""
    return ",".join(map(_cell, fields)) + "\n"


def escape_formula(text: str) -> str:
    """Return a text that no spreadsheet interprets as a formula."""
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    if not isinstance(value, str) or not _NEEDS_QUOTES.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
