"""Marks of changes in addresses and pages, by which a stream knows what a page does not show yet."""

from __future__ import annotations

import re

from pollux.library.library import Library
from pollux.library.values import ChangeMark

_MARK = re.compile(r"(\d{1,18})-((?:[0-9a-f]{2}){0,32})", re.ASCII)


def mark_of(library: Library) -> str:
    """Return a mark for what a page is about to show; its stream starts with what has changed since."""
    number_, token = library.last_change()
    return f"{number_}-{token.hex()}"


def change_mark(text: str) -> ChangeMark | None:
    """Return the mark that a page sent back; None if it is none."""
    match = _MARK.fullmatch(text)
    return (int(match[1]), bytes.fromhex(match[2])) if match else None
