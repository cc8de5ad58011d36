"""The record that the translation document of the draft describes: its fields and no others.

A full record holds much that the document does not mention. This profile is for programs that were written against the
document: it removes every member and every entry that the document has no name for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pollux.exports.vac.values import Entry, Many, Open

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


def seed_record(record: Open, losses: Counter[str]) -> Open:
    """Return a record reduced to the fields of the document; entries that it does not know are counted as losses."""
    session: Mapping[str, Any] = record["session"]
    entries: Many = session["entries"]

    def known_entries() -> Iterator[Entry]:
        return (_entry(entry) for entry in entries.each() if entry["type"] in _ENTRIES)

    count = sum(1 for _ in known_entries())
    if entries.count > count:
        losses["entry that the document has no name for, left out"] += entries.count - count
    reduced = Open(_chosen(session, _SESSION), entries=Many(count, known_entries))
    reduced["agent-meta"] = _chosen(session["agent-meta"], _AGENT)
    made = Open(_chosen(record, _RECORD), session=reduced)
    if "session-start" in session:
        made["created"] = session["session-start"]
    return made


def _entry(entry: Entry) -> Entry:
    reduced = _chosen(entry, _ENTRIES[entry["type"]])
    known = [child for child in entry.get("children", ()) if child["type"] in _ENTRIES]
    children = [_chosen(child, _ENTRIES[child["type"]]) for child in known]
    if children:
        reduced["children"] = children
    return reduced


def _chosen(members: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: members[name] for name in names if name in members}
