"""Redact decoded JSON: texts, keys, and texts that only make sense together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Protocol

import msgspec

from pollux.model import Json
from pollux.redaction.encoded import redact_data
from pollux.redaction.joined_text import JoinedText, join_screen

_SECRET_KEY = re.compile(
    r"pass|pwd?|psk|_pat$|secret|token|key|auth|cookie|credential|signature|\bsig\b|heroku|cloudflare|codecov|twilio|mailgun"
    r"|postmark|datadog|^d$|^dd|snowflake|mnemonic|phrase|(?:recovery|backup)[ _-]?codes",
    re.IGNORECASE,
)
_CONTACT_KEY = re.compile(r"phone|telefon|^tel|mobil|cell|fax|whatsapp|sms", re.IGNORECASE)
_JWK_PARTS = frozenset("d p q dp dq qi k".split())
"""The private parts of a JSON Web Key."""


class Cleaner(Protocol):
    """Redacts texts, and records what it replaced."""

    drop_binary: bool
    has_custom_rules: bool
    """Whether it replaces more than the default rules do, such as numbers, and words in the names of tools."""

    def redact_text(self, text: str, where: str) -> str:
        """Redact a text on its own."""

    def redact_joined(self, joined: JoinedText, where: str) -> Sequence[str]:
        """Redact texts that belong together."""

    def note_unscanned(self, media_type: str, size: int) -> None:
        """Record data that is not text."""


def redact_value(value: Json, cleaner: Cleaner, where: str) -> Json:
    """Redact all texts of a value."""
    try:
        return _walk(value, cleaner, where)
    except RecursionError:
        return _redact_encoded(value, cleaner, where)


def _walk(value: Json, cleaner: Cleaner, where: str) -> Json:
    match value:
        case str():
            return cleaner.redact_text(value, where)
        case None | int() | float():
            return value if type(value) is not int or not cleaner.has_custom_rules else _number(value, cleaner, where)
        case dict() | Mapping():
            return _object(value, cleaner, where) if value else value
        case _:
            return _array(value, cleaner, where) if value else value


def _number(value: int, cleaner: Cleaner, where: str) -> int | str:
    text = str(value)
    redacted = cleaner.redact_text(text, where)
    return value if redacted == text else redacted


def _redact_encoded(value: Json, cleaner: Cleaner, where: str) -> Json:
    """Redact a value that is nested too deeply to be walked, encoded as JSON."""
    try:
        redacted: Json = msgspec.json.decode(cleaner.redact_text(msgspec.json.encode(value).decode(), where))
    except (RecursionError, msgspec.MsgspecError, UnicodeError):
        cleaner.note_unscanned("application/json", 0)
        return "[nested too deep to be redacted]"
    return redacted


@lru_cache(4096)
def is_secret_key(key: str) -> bool:
    """Return whether a key says that its value is secret."""
    return bool(_SECRET_KEY.search(key))


def _needs_key(key: str, cleaner: Cleaner) -> bool:
    """Return whether a value must be searched together with its key, which says what it is."""
    return is_secret_key(key) or (cleaner.has_custom_rules and _CONTACT_KEY.search(key) is not None)


def _object(value: Mapping[str, Json], cleaner: Cleaner, where: str) -> dict[str, Json]:
    redacted: dict[str, str] = {}
    match value if "data" in value or "value" in value or "kty" in value else None:
        case {"mimeType": str(media_type), "data": str(data)}:  # pictures and files of the API
            redacted["data"] = redact_data(media_type, data, cleaner, where)
        case {"name": str(name), "value": str(text)} | {"key": str(name), "value": str(text)} if _needs_key(
            name, cleaner
        ):
            redacted["value"] = _member(name, (text,), cleaner, where)[1]
        case {"kty": str()}:
            for name, part in value.items():
                if name in _JWK_PARTS and isinstance(part, str):
                    redacted[name] = _member(name, (part,), cleaner, where, '"kty", ')[1]
    return _members(value, redacted, cleaner, where)


def _members(value: Mapping[str, Json], redacted: Mapping[str, str], cleaner: Cleaner, where: str) -> dict[str, Json]:
    """Redact an object of which some values are redacted already; keys that become equal are numbered."""
    members: dict[str, Json] = {}
    for name, inner in value.items():
        key, new = (name, redacted[name]) if name in redacted else _pair(name, inner, cleaner, where)
        members[key if key not in members else f"{key} ({len(members) + 1})"] = new
    return members


def _pair(key: str, value: Json, cleaner: Cleaner, where: str) -> tuple[str, Json]:
    if isinstance(value, str) and _needs_key(key, cleaner):
        key, text = _member(key, (value,), cleaner, where)
        return key, text
    walked = _walk(value, cleaner, where)
    if isinstance(walked, list) and _needs_key(key, cleaner):
        texts = [item for item in walked if isinstance(item, str)]
        if texts and len(texts) == len(walked):
            key, *redacted = _member(key, texts, cleaner, where)
            return key, [*redacted]
    return cleaner.redact_text(key, where), walked


def _member(key: str, values: Sequence[str], cleaner: Cleaner, where: str, before: str = "") -> list[str]:
    """Redact a key with its value, or with the texts of the array that is its value, joined as in JSON."""
    gaps = ('"', '": "', *('", "' for _ in values[1:]))
    return [*cleaner.redact_joined(JoinedText((before, key, *values), gaps), where)[1:]]


def _array(items: Sequence[Json], cleaner: Cleaner, where: str) -> list[Json]:
    strings = [item for item in items if isinstance(item, str)]
    if len(strings) == len(items) > 1:  # the arguments of a command, or else lines
        is_command = any(string.startswith("-") for string in strings)
        return [*cleaner.redact_joined(JoinedText(strings, " " if is_command else "\n"), where)]
    if any(items) and all(isinstance(row, list) and all(_text_key(cell) for cell in row) for row in items):
        return _screen(items, cleaner, where)
    keys = [_text_key(item) for item in items]
    texts = [_text(item, key) for item, key in zip(items, keys, strict=True) if key is not None]
    if len(texts) < 2:
        return [_walk(item, cleaner, where) for item in items]
    redacted = iter(cleaner.redact_joined(JoinedText(texts), where))
    done: list[Json] = []
    for item, key in zip(items, keys, strict=True):
        if key is None:
            done.append(_walk(item, cleaner, where))
        else:
            done.append(_with_text(item, key, next(redacted), cleaner, where))
    return done


def _screen(rows: Sequence[Json], cleaner: Cleaner, where: str) -> list[Json]:
    """Redact lines of cells, in which the client records a terminal's screen."""
    lines = [row for row in rows if isinstance(row, list)]
    texts = [[_text(cell, "text") for cell in line] for line in lines]
    redacted = iter(cleaner.redact_joined(join_screen(texts), where))
    screen: list[Json] = []
    for line in lines:
        cells = zip(line, islice(redacted, len(line)), strict=True)
        screen.append([_with_text(cell, "text", text, cleaner, where) for cell, text in cells])
    return screen


def _text_key(value: Json) -> str | None:
    """Return the key of the text in a part of a longer text; "" for a string, None for anything else."""
    match value:
        case str():
            return ""
        case {"text": str()}:
            return "text"
        case {"description": str()}:
            return "description"
        case _:
            return None


def _text(value: Json, key: str) -> str:
    text = value[key] if isinstance(value, Mapping) else value
    assert isinstance(text, str)
    return text


def _with_text(value: Json, key: str, text: str, cleaner: Cleaner, where: str) -> Json:
    return _members(value, {key: text}, cleaner, where) if isinstance(value, Mapping) else text
