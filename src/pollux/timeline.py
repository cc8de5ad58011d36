"""The timeline of one file while it grows: every message once, and what became of it.

What the client records a second time under another id is folded into the original (`copies.py`). A checkpoint tells the
fate of what it no longer holds: compressed when something new took its place, rolled back when only its end is missing.
"""

from __future__ import annotations

from collections.abc import Callable

from pollux.copies import Copies, Fingerprint, Prints
from pollux.entries import Call, Entry
from pollux.formats.operations import Record
from pollux.model import Fate, Kind, Origin, Problem

_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})


class Timeline:
    """Which messages each id stands for, and which of them are alive."""

    def __init__(
        self,
        entries: list[Entry],
        calls: dict[str, Call],
        problems: list[Problem],
        fingerprint: Callable[[Record], Fingerprint],
    ) -> None:
        """Grow the lists given."""
        self.entries = entries
        self.calls = calls
        self.problems = problems
        self.prints = Prints(fingerprint)
        self.by_id: dict[str, list[Entry]] = {}
        """A copy's id leads to its originals: more than one, if the copy is fused."""
        self.by_response: dict[str, Entry] = {}
        self.alive: dict[str, list[Entry]] = {}
        self.new: list[str] = []
        """The ids that were met for the first time since the last checkpoint, in order."""
        self.repeats = False
        """Whether the last of them was a copy."""

    def put(self, record: Record, *, is_new_only: bool = False) -> None:
        """Take a message that has a line of its own."""
        entries = self.by_id.get(record.id)
        if entries is None:
            again = self._recorded_again(record)
            self.repeats = bool(again)
            entries = again or [self._add(record)]
            self.by_id[record.id] = entries
            self.new.append(record.id)
        elif is_new_only:
            self._count(record, entries[0])
            return
        elif len(entries) == 1 and entries[0].id == record.id:
            _merge(entries[0], record, is_rewrite=False)
        self._count(record, entries[0])
        self.alive.setdefault(record.id, entries)
        for entry in entries:
            entry.fate = Fate.ACTIVE

    def rewind(self, target: str, line: int) -> None:
        """Drop a message and all after it, or everything if it is not there: as the client does."""
        ids = list(self.alive)
        if target not in self.alive:
            text = f"a rewind to the unknown message {target} dropped all before it"
            self.problems.append(Problem("unknown-rewind", text, line=line))
        dropped = [self.alive.pop(one) for one in (ids[ids.index(target) :] if target in self.alive else ids)]
        still = _ids(self.alive)
        for entry in (entry for entries in dropped for entry in entries):
            if entry.id not in still:
                entry.fate = Fate.REWOUND
        self.new.clear()

    def checkpoint(self, records: tuple[Record, ...]) -> None:
        """Take over a new list of messages: recognise copies, and tell what became of those that are gone."""
        is_history = self._repeats_history([record.id for record in records])
        before = self._forget(records) if is_history else self.alive
        is_summary = not is_history and any(
            record.origin == Origin.STATE_SNAPSHOT and record.id not in self.by_id for record in records
        )
        known = {entry.id for record in records for entry in self.by_id.get(record.id, ())}
        copies: Copies | None = None
        alive: dict[str, list[Entry]] = {}
        has_new = False
        for record in records:
            entries = self.by_id.get(record.id)
            if entries is None:
                copies = copies or Copies(self._candidates(before), known, self.prints)
                is_copy = not (is_summary and record.origin in (Origin.STATE_SNAPSHOT, Origin.SYNTHETIC))
                entries = copies.originals(record, is_history=is_history) if is_copy else []
                if record.origin == Origin.HUMAN and not any(_is_typed(entry) for entry in entries):
                    entries = []  # its preamble is known, its words are not
                if not entries:
                    entries = [self._add_loaded(record)]
                    has_new = has_new or record.origin != Origin.TOOL_RESPONSE
                self.by_id[record.id] = entries
            elif entries[0].id == record.id:
                _merge(entries[0], record, is_rewrite=True)
            self._count(record, entries[0])
            alive[record.id] = entries
        _settle(before, alive, has_new=has_new)
        self.alive = alive
        self.new.clear()

    def _repeats_history(self, ids: list[str]) -> bool:
        """Tell whether these messages were all recorded just now, though others that they may repeat are alive."""
        if len(ids) < 2 or ids != self.new[-len(ids) :]:  # noqa: PLR2004  one message is no history
            return False
        own = set(ids)
        return any(entries[0].kind not in _NOTICES for one, entries in self.alive.items() if one not in own)

    def _recorded_again(self, record: Record) -> list[Entry]:
        """Recognise a copy that has a line of its own, as far as one line can tell."""
        if record.responses:
            return [self.by_response[one] for one in record.responses[:1] if one in self.by_response]
        if record.is_bare:
            return Copies(self._candidates(self.alive), set(), self.prints).originals(record, is_history=False)
        if record.origin == Origin.SESSION_CONTEXT:
            return [entry for entry in self.entries[:1] if _says_the_same(entry, record)]
        if record.origin == Origin.HUMAN and self.repeats:  # in the middle of a history that was cut short
            return [entry for entry in self.entries if _says_the_same(entry, record)][:1]
        return []

    def _candidates(self, before: dict[str, list[Entry]]) -> list[Entry]:
        """Return the messages that may be copied: those alive first, then those that are dead."""
        alive = {entry.id: entry for entries in before.values() for entry in entries}
        return [*alive.values(), *(entry for entry in self.entries if entry.id not in alive)]

    def _add(self, record: Record) -> Entry:
        entry = Entry(record.id, record.kind, record.at, record.line, record.origin, record.prompt, record)
        _merge(entry, record, is_rewrite=False)
        self.entries.append(entry)
        for one in filter(None, record.responses):
            self.by_response.setdefault(one, entry)
        return entry

    def _add_loaded(self, record: Record) -> Entry:
        """Add a message that no line of its own came before: what was typed was typed elsewhere."""
        entry = self._add(record)
        if entry.origin == Origin.HUMAN:
            entry.origin = Origin.LOADED
        return entry

    def _count(self, record: Record, entry: Entry) -> None:
        if record.tokens is not None:
            self.calls[record.id] = Call(record.id, entry, record.model, record.tokens, record.line)

    def _forget(self, records: tuple[Record, ...]) -> dict[str, list[Entry]]:
        """Forget lines that only repeat the history: the checkpoint will say which copy is whose."""
        ids = {record.id for record in records}
        self.entries[:] = [entry for entry in self.entries if entry.id not in ids]
        for one in ids:
            del self.by_id[one]
        self.by_response = {one: entry for one, entry in self.by_response.items() if entry.id not in ids}
        return {one: entries for one, entries in self.alive.items() if one not in ids}


def _merge(entry: Entry, record: Record, *, is_rewrite: bool) -> None:
    """Fold a recording into its message; what a checkpoint wrote anew is not what was first said."""
    if not is_rewrite:
        entry.content = record
    if record.calls and not (is_rewrite and entry.calls) and not (record.is_masked and entry.calls):
        entry.calls, entry.calls_from = record.calls, record
    if record.has_thoughts and not (is_rewrite and entry.thoughts_from):
        entry.thoughts_from = record
    entry.at = entry.at or record.at
    entry.model = record.model or entry.model
    entry.tokens = record.tokens or entry.tokens


def _settle(before: dict[str, list[Entry]], alive: dict[str, list[Entry]], *, has_new: bool) -> None:
    """Give a fate to what a new list no longer has; notices are never in such a list and live on.

    Something new in its place means that it was compressed. A list that only lacks its end was rolled back: the request
    failed or was cancelled. Single messages that the client loses on the way, such as a prompt fused with its preamble,
    are still what was said.
    """
    still = _ids(alive)
    heard = [entry for entries in before.values() for entry in entries if entry.kind not in _NOTICES]
    gone = [entry for entry in heard if entry.id not in still]
    first = next((index for index, entry in enumerate(heard) if entry.id not in still), len(heard))
    is_tail = all(entry.id not in still for entry in heard[first:])
    for entry in gone:
        entry.fate = Fate.COMPRESSED if has_new else Fate.ROLLED_BACK if is_tail else Fate.ACTIVE
    for entry in (entry for entries in alive.values() for entry in entries):
        entry.fate = Fate.ACTIVE


def _says_the_same(entry: Entry, record: Record) -> bool:
    return (entry.prompt, entry.content.checksum) == (record.prompt, record.checksum)


def _is_typed(entry: Entry) -> bool:
    return entry.kind == Kind.USER and entry.origin in (Origin.HUMAN, Origin.LOADED)


def _ids(entries: dict[str, list[Entry]]) -> set[str]:
    return {entry.id for one in entries.values() for entry in one}
