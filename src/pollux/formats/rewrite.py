"""Change IDs, header and time of last update in a recorded session file; all other bytes stay the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from pollux.formats import lenient
from pollux.model import Json
from pollux.text.times import client_timestamp, parse_time

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UPDATED = re.compile(rb'^(  "lastUpdated": )"[^"\\\n]*"', re.MULTILINE)
_ID_KEYS = r'(?<="sessionId":")|(?<="sessionId": ")|(?<="agentId":")|(?<="agentId": ")|(?<=tool-outputs/session-)'


def last_updated(metadata: Mapping[str, Json]) -> datetime | None:
    """Return the time of the last update according to the header of a session."""
    return parse_time(metadata.get("lastUpdated"))


def id_replacer(ids: Mapping[str, str]) -> Callable[[bytes], bytes]:
    """Return a function that replaces IDs in recorded bytes.

    UUIDs are replaced wherever they occur; other IDs, which may be ordinary words, only as the value of a key for IDs.
    """
    if not ids:
        return lambda data: data
    unique = "|".join(re.escape(old) for old in ids if _UUID.fullmatch(old)) or "(?!)"
    others = "|".join(re.escape(old) for old in ids if not _UUID.fullmatch(old)) or "(?!)"
    pattern = re.compile(rf'(?:{unique})|(?:{_ID_KEYS})(?:{others})(?=["/])'.encode())
    table = {old.encode(): new.encode() for old, new in ids.items()}
    return lambda data: pattern.sub(lambda match: table[match[0]], data)


def header(
    metadata: Mapping[str, Json], session_id: str, new_id: str, project_hash: str, started: datetime, updated: datetime
) -> dict[str, Json]:
    """Return the complete header of a session, with a new ID and time of last update."""
    required: dict[str, Json] = {
        "sessionId": session_id,
        "projectHash": project_hash,
        "startTime": client_timestamp(started),
    }
    recorded = {key: value for key, value in metadata.items() if key != "messages" and value not in (None, "")}
    return {**required, **recorded, "sessionId": new_id, "lastUpdated": client_timestamp(updated)}


def has_update_time(data: bytes) -> bool:
    """Return whether lines of a document contain its time of last update."""
    return _UPDATED.search(data) is not None


def with_update_time(data: bytes, updated: datetime) -> bytes:
    """Return lines of a document with another time of last update."""
    return _UPDATED.sub(rb'\1"' + client_timestamp(updated).encode() + b'"', data)


def update_record(updated: datetime) -> bytes:
    """Return the line of a log that sets the time of last update."""
    return line({"$set": {"lastUpdated": client_timestamp(updated)}})


def line(value: Mapping[str, Json]) -> bytes:
    """Return a line of a log."""
    return lenient.encode(value) + b"\n"
