"""Which message a recording under a new id is a copy of.

Resume, compression and the masking of tool output make the client write its history again under new ids, without
tokens, sometimes with neighbouring turns fused into one (`docs/formats.md`). What a copy keeps are the ids of
function calls and responses, and the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pollux.entries import Entry
from pollux.formats.operations import Record
from pollux.model import Kind, Origin

Fingerprint = tuple[str, frozenset[str], tuple[str, ...]]
"""Who said it, the ids of its function calls and responses, and its words, part by part."""

_ENOUGH = 300
"""Characters by which a prompt is known again inside a fused message."""


class Prints:
    """Fingerprints, each taken once; for the texts of users the head of a record is enough."""

    def __init__(self, fingerprint: Callable[[Record], Fingerprint]) -> None:
        """Take the function that reads a record's bytes."""
        self.of_bytes = fingerprint
        self._of_entry: dict[str, Fingerprint] = {}

    def of_record(self, record: Record) -> Fingerprint:
        """Take the fingerprint of a recording."""
        if record.kind != Kind.USER:
            return self.of_bytes(record)
        texts = (
            () if record.responses else (f"{record.prompt}#{record.checksum}" if record.checksum else record.prompt,)
        )
        return (record.kind, frozenset(filter(None, record.responses)), texts)

    def of_entry(self, entry: Entry) -> Fingerprint:
        """Take the fingerprint of a message: its calls may stand beside its words."""
        found = self._of_entry.get(entry.id)
        if found is None:
            kind, ids, texts = self.of_record(entry.content)
            found = (kind, ids | {call.id for call in entry.calls if call.id}, texts)
            self._of_entry[entry.id] = found
        return found


class Copies:
    """Finds the originals of recordings under new ids, among the messages of a timeline."""

    def __init__(self, candidates: Iterable[Entry], known: set[str], prints: Prints) -> None:
        """Take the candidates, likeliest first; those known under their own id are not copied as well."""
        self._prints = prints
        self._candidates = list(candidates)
        self._known = known
        self._by_call: dict[tuple[str, str], Entry] = {}
        self._by_text: dict[tuple[str, str], list[Entry]] = {}
        self._indexed: set[bool] = set()
        self._typed = [entry for entry in self._candidates if _is_plain(entry)]

    def originals(self, record: Record, *, is_history: bool) -> list[Entry]:
        """Return the messages that a recording repeats; `is_history` says that all of it was written before."""
        kind, ids, texts = self._prints.of_record(record)
        is_plain = _is_plain(record)
        self._index(is_plain=is_plain)
        found = {entry.id: entry for one in sorted(ids) if (entry := self._by_call.get((kind, one)))}
        if is_plain and is_history:
            found |= {entry.id: entry for entry in self._fused(record)}
        joined = "".join(texts).strip()
        for text in dict.fromkeys((joined, *texts)) if not found or ids else ():
            if text and (same := self._by_text.get((kind, text))) and not (ids and not found):
                entry = same.pop(0)
                found[entry.id] = entry
                if text == joined:
                    break
        return list(found.values())

    def _fused(self, record: Record) -> Iterable[Entry]:
        """Take the next typed messages as long as their words stand in this one: a history keeps their order."""
        _, _, texts = self._prints.of_bytes(record)
        text = "".join(texts)
        while self._typed and (words := self._typed[0].prompt[:_ENOUGH]) and words in text:
            yield self._typed.pop(0)

    def _index(self, *, is_plain: bool) -> None:
        """Index the texts of users, or all the rest; the rest means reading the file again."""
        if is_plain in self._indexed:
            return
        self._indexed.add(is_plain)
        for entry in self._candidates:
            if _is_plain(entry) is not is_plain:
                continue
            kind, ids, texts = self._prints.of_entry(entry)
            for one in ids:
                self._by_call.setdefault((kind, one), entry)
            text = "".join(texts).strip()
            if text and entry.id not in self._known:
                self._by_text.setdefault((kind, text), []).append(entry)


def _is_plain(one: Record | Entry) -> bool:
    return one.kind == Kind.USER and one.origin != Origin.TOOL_RESPONSE
