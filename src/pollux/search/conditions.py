"""SQL conditions that a column contains a text, regardless of case.

A value with `*` has to match the whole name; any other value may be a part of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TypeAlias

from pollux.text.escape import escape_surrogates

Condition: TypeAlias = tuple[str, list[object]]
"""SQL, with `{row}` for the name of the row, and its parameters."""
_NO_LETTER = "[^a-z0-9]"


def contains(column: str, value: str) -> Condition:
    """Return the condition that a column contains a text; `*` is an ordinary character."""
    return _fits(column, ["", value, ""])


def path_contains(column: str, value: str) -> Condition:
    """Return the condition that a path contains a part of a path, with either kind of slash."""
    if "/" not in value and "\\" not in value:
        return contains(column, value)
    return _with_longest_name(column, value, contains(_with_slashes(column), value.replace("\\", "/")))


def matches(column: str, value: str) -> Condition:
    """Return the condition that a column contains a text, or that a pattern with `*` matches all of it."""
    return _fits(column, value.split("*")) if "*" in value else contains(column, value)


def _fits(column: str, pieces: Sequence[str]) -> Condition:
    """Return the condition that a column consists of some pieces with anything between them."""
    escaped = [escape_surrogates(piece) for piece in pieces]
    if all(piece.isascii() for piece in escaped):
        return f"{column} LIKE ? ESCAPE '!'", ["%".join(map(_like, escaped))]
    # LIKE ignores the case of ASCII letters only. A Mac decomposes the letters in the names of files.
    forms = [[unicodedata.normalize(form, piece) for piece in escaped] for form in ("NFC", "NFD")]
    patterns = dict.fromkeys("*".join(map(_glob, form)) for form in (escaped, *forms))
    return f"({' OR '.join([f'lower({column}) GLOB ?'] * len(patterns))})", [*patterns]


def path_matches(value: str) -> Condition:
    """Return the condition on the path of a row; a pattern begins with the path or with one of its names."""
    column = "{row}.path"
    if "*" not in value:
        return path_contains(column, value)
    pattern = "*/" + value.replace("\\", "/").lstrip("/")
    return _with_longest_name(column, value, matches(f"'/' || {_with_slashes(column)}", pattern))


def _with_longest_name(column: str, value: str, condition: Condition) -> Condition:
    """Return a condition that compares the longest part of a value first, which is faster than changing slashes."""
    longest = max(re.split(r"[*/\\]", value), key=len)
    first, values = contains(column, longest)
    text, own_values = condition
    return f"({first} AND {text})", [*values, *own_values]


def command_matches(value: str) -> Condition:
    """Return the condition on the command of a row: it contains these words, or a pattern matches all of it."""
    part, values = matches("{row}.command", value)
    if "*" in value:
        return part, values
    first, last = (_NO_LETTER if char.isascii() and char.isalnum() else "" for char in (value[0], value[-1]))
    words = "lower(' ' || {row}.command || ' ') GLOB ?"
    return f"({part} AND {words})", [*values, f"*{first}{_glob(escape_surrogates(value))}{last}*"]


def has_text(text: str, value: str) -> bool:
    """Return whether a text contains a value, or a pattern with `*` matches all of it, regardless of case."""
    folded = unicodedata.normalize("NFC", text).casefold().replace("\\", "/")
    pattern = unicodedata.normalize("NFC", value).casefold().replace("\\", "/")
    if "*" not in pattern:
        return pattern in folded
    first, *middle, last = pattern.split("*")
    if len(folded) < len(first) + len(last) or not folded.startswith(first) or not folded.endswith(last):
        return False
    at, end = len(first), len(folded) - len(last)
    for piece in middle:
        at = folded.find(piece, at, end) + len(piece)
        if at < len(piece):
            return False
    return True


def _with_slashes(column: str) -> str:
    return f"replace({column}, '\\', '/')"


def _like(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _glob(text: str) -> str:
    """Return a pattern of GLOB for a text: in lower case as SQLite's `lower`, which changes only ASCII letters."""
    return "".join(map(_any_case, text))


def _any_case(char: str) -> str:
    if char in "*?[":
        return f"[{char}]"
    if char.isascii():
        return char.lower()
    cases = {char, *char.lower(), *char.upper()}
    return f"[{''.join(sorted(cases))}]" if len(char.lower()) == len(char.upper()) == 1 and len(cases) > 1 else char
