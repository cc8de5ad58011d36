"""Our values as lines of CSV that a spreadsheet takes for what they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def row(fields: Sequence[object]) -> str:
    """Write one line."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(fields)
    return stream.getvalue()


def harmless(text: str) -> str:
    """Keep a spreadsheet from taking a text for a formula."""
    return f"'{text}" if text.startswith(_FORMULAS) else text
