"""Reduce a record to the fields that the translation document of the draft describes.

This profile is for programs that were written against the document: it removes every member and every entry that the
document does not define.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pollux.exports.vac.values import LazyEntries, LazyMap, RecordEntry

_RECORD = ("version", "id", "session")
_SESSION = ("session-id", "session-start", "agent-meta")
_AGENT = ("model-id", "model-provider", "cli-name")
_MESSAGE = ("type", "id", "timestamp", "content")
_ENTRIES: Mapping[str, tuple[str, ...]] = {
    "user": _MESSAGE,
    "assistant": (*_MESSAGE, "model-id"),
    "tool-call": ("type", "name", "input", "call-id", "timestamp", "status"),
    "tool-result": ("type", "output", "call-id", "timestamp", "status"),
    "reasoning": ("type", "content", "subject"),
}
"""The members of each type of entry; messages have `children` as well."""


def seed_record(record: LazyMap, losses: Counter[str]) -> LazyMap:
    """Return a record reduced to the fields of the document; other entries are counted as losses."""
    session: Mapping[str, Any] = record["session"]
    entries: LazyEntries = session["entries"]

    def known_entries() -> Iterator[RecordEntry]:
        return (_entry(entry) for entry in entries.each() if entry["type"] in _ENTRIES)

    count = sum(1 for _ in known_entries())
    if entries.count > count:
        losses["entry that the document does not define, left out"] += entries.count - count
    reduced = LazyMap(_members(session, _SESSION), entries=LazyEntries(count, known_entries))
    reduced["agent-meta"] = _members(session["agent-meta"], _AGENT)
    seed = LazyMap(_members(record, _RECORD), session=reduced)
    if "session-start" in session:
        seed["created"] = session["session-start"]
    return seed


def _entry(entry: RecordEntry) -> RecordEntry:
    reduced = _members(entry, _ENTRIES[entry["type"]])
    children = [
        _members(child, _ENTRIES[child["type"]]) for child in entry.get("children", ()) if child["type"] in _ENTRIES
    ]
    if children:
        reduced["children"] = children
    return reduced


def _members(members: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: members[name] for name in names if name in members}
