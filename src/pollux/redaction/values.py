"""Decoded JSON, walked through: texts, keys, and texts that only together say something."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Protocol

import msgspec

from pollux.model import Json
from pollux.redaction import attachments
from pollux.redaction.joined_text import Pieces, screen

_TELLING = re.compile(
    r"pass|pwd?|psk|_pat$|secret|token|key|auth|cookie|credential|signature|\bsig\b|heroku|cloudflare|codecov|twilio|mailgun"
    r"|postmark|datadog|^d$|^dd|snowflake|mnemonic|phrase|(?:recovery|backup)[ _-]?codes",
    re.IGNORECASE,
)
_JWK_PARTS = frozenset("d p q dp dq qi k".split())
"""The private parts of a JSON Web Key."""


class Cleaner(Protocol):
    """Redacts texts that belong together, and keeps account."""

    drop_binary: bool

    def one(self, text: str, where: str) -> str:
        """Redact a text that stands alone."""

    def pieces(self, pieces: Pieces, where: str) -> Sequence[str]:
        """Redact texts that belong together."""

    def note_unscanned(self, media_type: str, size: int) -> None:
        """Note data that is no text."""


def redacted(value: Json, cleaner: Cleaner, where: str) -> Json:
    """Redact all texts of a value."""
    try:
        return _walked(value, cleaner, where)
    except RecursionError:
        return _flat(value, cleaner, where)


def _walked(value: Json, cleaner: Cleaner, where: str) -> Json:
    match value:
        case str():
            return cleaner.one(value, where)
        case None | int() | float():
            return value
        case dict() | Mapping():
            return _object(value, cleaner, where) if value else value
        case _:
            return _array(value, cleaner, where) if value else value


def _flat(value: Json, cleaner: Cleaner, where: str) -> Json:
    """Redact a value that is nested too deep to be walked through, as the text that it is written as."""
    try:
        done: Json = msgspec.json.decode(cleaner.one(msgspec.json.encode(value).decode(), where))
    except (RecursionError, msgspec.MsgspecError, UnicodeError):
        cleaner.note_unscanned("application/json", 0)
        return "[nested too deep to be redacted]"
    return done


@lru_cache(4096)
def is_telling(key: str) -> bool:
    """Tell whether a key says that its value is secret."""
    return bool(_TELLING.search(key))


def _object(value: Mapping[str, Json], cleaner: Cleaner, where: str) -> dict[str, Json]:
    match value if "data" in value or "value" in value or "kty" in value else None:
        case {"mimeType": str(media_type), "data": str(data)}:  # as the API has pictures and files
            instead = {"data": attachments.redacted_data(media_type, data, cleaner, where)}
        case {"name": str(name), "value": str(inner)} | {"key": str(name), "value": str(inner)} if is_telling(name):
            instead = {"value": _member(name, (inner,), cleaner, where)[1]}
        case {"kty": str()}:
            parts = {name: inner for name, inner in value.items() if name in _JWK_PARTS and isinstance(inner, str)}
            instead = {name: _member(name, (inner,), cleaner, where, '"kty", ')[1] for name, inner in parts.items()}
        case _:
            instead = {}
    return _with(value, instead, cleaner, where)


def _with(value: Mapping[str, Json], instead: Mapping[str, str], cleaner: Cleaner, where: str) -> dict[str, Json]:
    """Redact an object of which some values are redacted already; keys that have become the same are told apart."""
    done: dict[str, Json] = {}
    for name, inner in value.items():
        key, new = (name, instead[name]) if name in instead else _pair(name, inner, cleaner, where)
        done[key if key not in done else f"{key} ({len(done) + 1})"] = new
    return done


def _pair(key: str, value: Json, cleaner: Cleaner, where: str) -> tuple[str, Json]:
    """Redact a key and its value; what the value is may only be told by the key."""
    if isinstance(value, str) and is_telling(key):
        done = _member(key, (value,), cleaner, where)
        return done[0], done[1]
    walked = _walked(value, cleaner, where)
    if isinstance(walked, list) and is_telling(key):
        texts = [one for one in walked if isinstance(one, str)]
        if texts and len(texts) == len(walked):
            done = _member(key, texts, cleaner, where)
            return done[0], [*done[1:]]
    return cleaner.one(key, where), walked


def _member(key: str, values: Sequence[str], cleaner: Cleaner, where: str, before: str = "") -> list[str]:
    """Redact a key and its value, or the texts of the array that is its value, as JSON writes them."""
    gaps = ('"', '": "', *('", "' for _ in values[1:]))
    return [*cleaner.pieces(Pieces((before, key, *values), gaps), where)[1:]]


def _array(value: Sequence[Json], cleaner: Cleaner, where: str) -> list[Json]:
    strings = [one for one in value if isinstance(one, str)]
    if len(strings) == len(value) > 1:  # the words of a command, or else lines
        is_command = any(one.startswith("-") for one in strings)
        return [*cleaner.pieces(Pieces(strings, " " if is_command else "\n"), where)]
    if all(isinstance(row, list) and all(_word(cell) for cell in row) for row in value) and any(value):
        return _screen(value, cleaner, where)
    words = [_word(one) for one in value]
    texts = [_text(one, word) for one, word in zip(value, words, strict=True) if word is not None]
    if len(texts) < 2:
        return [_walked(one, cleaner, where) for one in value]
    done = iter(cleaner.pieces(Pieces(texts), where))
    return [
        _walked(one, cleaner, where) if word is None else _put(one, word, next(done), cleaner, where)
        for one, word in zip(value, words, strict=True)
    ]


def _screen(rows: Sequence[Json], cleaner: Cleaner, where: str) -> list[Json]:
    """Redact lines of cells, as the client records what a terminal shows."""
    lines = [row for row in rows if isinstance(row, list)]
    done = iter(cleaner.pieces(screen([[_text(cell, "text") for cell in line] for line in lines]), where))
    return [
        [_put(cell, "text", text, cleaner, where) for cell, text in zip(line, islice(done, len(line)), strict=True)]
        for line in lines
    ]


def _word(value: Json) -> str | None:
    """Name the key under which a part of a longer text stands; a text stands for itself."""
    match value:
        case str():
            return ""
        case {"text": str()}:
            return "text"
        case {"description": str()}:
            return "description"
        case _:
            return None


def _text(value: Json, word: str) -> str:
    found = value[word] if isinstance(value, Mapping) else value
    assert isinstance(found, str)
    return found


def _put(value: Json, word: str, text: str, cleaner: Cleaner, where: str) -> Json:
    return _with(value, {word: text}, cleaner, where) if isinstance(value, Mapping) else text
