"""Write our values as lines of CSV that every reader and every spreadsheet takes for what they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings of a formula, also as the wide characters that some spreadsheets take for the same."""
_NEEDS_QUOTES = re.compile('[",]|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|^[ =+@-]| $')
"""Separators, whatever some reader takes for the end of a line, blanks at the ends, and what looks like a formula.

Python's own writer leaves a carriage return without quotation marks where lines end in a line feed.
"""


def row(fields: Sequence[object]) -> str:
    """Return one line, with its end."""
    return ",".join(map(_cell, fields)) + "\n"


def harmless(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    if not isinstance(value, str) or not _NEEDS_QUOTES.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
