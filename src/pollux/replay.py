"""Operations → the three readings of one file: state, timeline and usage.

The state follows the client's own reader to the letter. The timeline keeps every message the file ever held, once: what
the client recorded a second time under another id (resume, compression, masking of tool output) is folded into the
original, and each message gets the fate that befell it in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pollux.formats.operations import CallHead, Document, Header, Operation, Put, Record, Rewind, Update
from pollux.formats.source import Span
from pollux.model import Fate, Json, Kind, Origin, Problem, Tokens

Fingerprint = tuple[str, frozenset[str], str]
"""Who said it, the ids of its function calls and responses, and its words: what a copy under another id keeps."""

_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})


@dataclass(slots=True, eq=False)
class Entry:
    """One original message, with all its recordings folded together."""

    id: str
    kind: str
    at: str | None
    line: int
    origin: Origin
    prompt: str
    content: Record
    """The recording with the words as first written; the next ones are those with the calls and the thoughts."""
    fate: Fate = Fate.ACTIVE
    model: str | None = None
    tokens: Tokens | None = None
    calls: tuple[CallHead, ...] = ()
    calls_from: Record | None = None
    thoughts_from: Record | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """The counts of one model call, as recorded under one message id."""

    id: str
    entry: Entry
    model: str | None
    tokens: Tokens
    line: int


@dataclass(slots=True)
class Replay:
    """What the operations of one file come to."""

    metadata: dict[str, Json] = field(default_factory=dict)
    """Of the state: what the client would load."""
    seen: dict[str, Json] = field(default_factory=dict)
    """All metadata that could be read, also from lines that the client cannot read."""
    state: dict[str, Record] = field(default_factory=dict)
    document: Document | None = None
    timeline: list[Entry] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    first_words: str | None = None
    """What the client would show as the title: the first words of a user that are any."""
    scratchpad_is_stale: bool | None = None
    n_headers: int = 0
    has_checkpoints: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether the client's own reader accepts this file."""
        if self.document:
            return not self.document.salvaged
        return bool(self.metadata.get("sessionId")) and bool(self.metadata.get("projectHash"))

    @property
    def spans(self) -> Iterable[Span]:
        """Where the messages of the state stand in the file, in order."""
        return self.document.spans if self.document else (record.span for record in self.state.values())


def replay(
    operations: Iterable[Operation],
    fingerprint: Callable[[Record], Fingerprint],
    words: Callable[[Record], str | None],
) -> Replay:
    """Run the operations of one file; the callables look at the bytes of a record where its head is not enough."""
    result = Replay()
    timeline = _Timeline(result, fingerprint)
    for operation in operations:
        match operation:
            case Problem():
                result.problems.append(operation)
            case Put(record, salvaged):
                if not salvaged:
                    result.state[record.id] = record
                    _note_first_words(result, record, words)
                    _note_stale(result)
                timeline.put(record, is_new_only=salvaged)
            case Rewind(line, target, salvaged):
                if not salvaged:
                    _drop_from(result.state, target)
                    _note_stale(result)
                timeline.rewind(target, line)
            case Update(_, fields, records, salvaged):
                result.seen |= fields
                if not salvaged:
                    _update_state(result, fields, records, words)
                if records is not None and not salvaged:
                    result.has_checkpoints = True
                    timeline.checkpoint(records)
                for record in records or () if salvaged else ():
                    timeline.put(record, is_new_only=True)
            case Header(_, fields, records, salvaged):
                result.seen |= fields
                if not salvaged:
                    result.n_headers += 1
                    result.metadata |= fields
                for record in records:
                    if not salvaged:
                        result.state[record.id] = record
                        _note_first_words(result, record, words)
                    timeline.put(record)
            case Document(fields, records):
                result.document = operation
                result.seen |= fields
                result.metadata |= fields
                for record in records:
                    timeline.put(record)
    return result


def _update_state(
    result: Replay,
    fields: Mapping[str, Json],
    records: tuple[Record, ...] | None,
    words: Callable[[Record], str | None],
) -> None:
    if "memoryScratchpad" in fields:
        result.scratchpad_is_stale = False if fields["memoryScratchpad"] else None
    if records is not None:
        result.state = {record.id: record for record in records}
        for record in records:
            _note_first_words(result, record, words)
    result.metadata |= fields


def _note_first_words(result: Replay, record: Record, words: Callable[[Record], str | None]) -> None:
    if not result.first_words and record.kind == Kind.USER and (found := words(record)) is not None:
        result.first_words = found


def _note_stale(result: Replay) -> None:
    if result.scratchpad_is_stale is not None:
        result.scratchpad_is_stale = True


def _drop_from(state: dict[str, Record], target: str) -> list[str]:
    """Drop a message and all after it, or everything if it is not there: as the client does."""
    ids = list(state)
    dropped = ids[ids.index(target) :] if target in state else ids
    for one in dropped:
        del state[one]
    return dropped


class _Timeline:
    """The timeline while it grows: which entry each id stands for, and which of them are alive."""

    def __init__(self, result: Replay, fingerprint: Callable[[Record], Fingerprint]) -> None:
        self.result = result
        self.prints = _Prints(fingerprint)
        self.entries: dict[str, Entry] = {}
        """By id; a copy's id leads to its original."""
        self.alive: dict[str, Entry] = {}
        self.burst: list[str] = []
        """The newest messages that were recorded for the first time, one after another."""

    def put(self, record: Record, *, is_new_only: bool = False) -> None:
        entry = self.entries.get(record.id)
        if entry is None:
            entry = self._add(record)
            self.burst.append(record.id)
        elif not is_new_only:
            _merge(entry, record, is_rewrite=False)
        self._count(record, entry)
        if entry.content is record or not is_new_only:
            entry.fate = Fate.ACTIVE
            self.alive.setdefault(record.id, entry)

    def rewind(self, target: str, line: int) -> None:
        ids = list(self.alive)
        if target not in self.alive:
            text = f"a rewind to the unknown message {target} dropped all before it"
            self.result.problems.append(Problem("unknown-rewind", text, line=line))
        dropped = [self.alive.pop(one) for one in (ids[ids.index(target) :] if target in self.alive else ids)]
        still = {entry.id for entry in self.alive.values()}
        for entry in dropped:
            if entry.id not in still:
                entry.fate = Fate.REWOUND
        self.burst.clear()

    def checkpoint(self, records: tuple[Record, ...]) -> None:
        """Take over a new list of messages: recognise copies, and tell what became of those that are gone."""
        is_burst = len(records) > 1 and [record.id for record in records] == self.burst[-len(records) :]
        before = self._undo(records) if is_burst else self.alive
        known = {self.entries[record.id].id for record in records if record.id in self.entries}
        copies: _Copies | None = None
        alive: dict[str, Entry] = {}
        n_new = 0
        for record in records:
            entry = self.entries.get(record.id)
            if entry is None:
                copies = copies or _Copies(before, self.result.timeline, known, self.prints)
                entry = copies.original(record)
                if entry is None:
                    entry = self._add(record)
                    n_new += 1
                    if entry.origin == Origin.HUMAN:  # what is typed here has a line of its own first
                        entry.origin = Origin.LOADED
                self.entries[record.id] = entry
            else:
                _merge(entry, record, is_rewrite=True)
            self._count(record, entry)
            entry.fate = Fate.ACTIVE
            alive[record.id] = entry
        _settle(before, alive, has_new=bool(n_new))
        self.alive = alive
        self.burst.clear()

    def _add(self, record: Record) -> Entry:
        entry = Entry(record.id, record.kind, record.at, record.line, record.origin, record.prompt, record)
        _merge(entry, record, is_rewrite=False)
        self.entries[record.id] = entry
        self.result.timeline.append(entry)
        return entry

    def _count(self, record: Record, entry: Entry) -> None:
        if record.tokens is not None:
            self.result.calls[record.id] = Call(record.id, entry, record.model, record.tokens, record.line)

    def _undo(self, records: tuple[Record, ...]) -> dict[str, Entry]:
        """Forget that the whole history was just recorded again: the checkpoint will say which copy is whose."""
        ids = {record.id for record in records}
        self.result.timeline = [entry for entry in self.result.timeline if entry.id not in ids]
        for one in ids:
            del self.entries[one]
        return {one: entry for one, entry in self.alive.items() if one not in ids}


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


def _settle(before: dict[str, Entry], alive: dict[str, Entry], *, has_new: bool) -> None:
    """Give a fate to what a new list no longer has; notices are never in such a list and live on.

    A list that only lacks its end was rolled back: the request failed or was cancelled. Any other was compressed.
    """
    still = {entry.id for entry in alive.values()}
    heard = [entry for entry in before.values() if entry.kind not in _NOTICES]
    gone = [entry for entry in heard if entry.id not in still]
    n_kept = next((index for index, entry in enumerate(heard) if entry.id not in still), len(heard))
    is_cut = not has_new and n_kept + len(gone) == len(heard)
    for entry in gone:
        entry.fate = Fate.ROLLED_BACK if is_cut else Fate.COMPRESSED


class _Prints:
    """Fingerprints, each taken once."""

    def __init__(self, fingerprint: Callable[[Record], Fingerprint]) -> None:
        self._of_record = fingerprint
        self._of_entry: dict[str, Fingerprint] = {}

    def of_record(self, record: Record) -> Fingerprint:
        if record.kind == Kind.USER and record.origin != Origin.TOOL_RESPONSE:
            return (record.kind, frozenset(), record.prompt)  # the head is enough
        return self._of_record(record)

    def of_entry(self, entry: Entry) -> Fingerprint:
        found = self._of_entry.get(entry.id)
        if found is None:
            kind, ids, text = self.of_record(entry.content)
            found = (kind, ids | {call.id for call in entry.calls if call.id}, text)
            self._of_entry[entry.id] = found
        return found


class _Copies:
    """Finds the original of a message that a checkpoint holds under a new id."""

    def __init__(self, before: dict[str, Entry], timeline: list[Entry], known: set[str], prints: _Prints) -> None:
        self._prints = prints
        alive = {entry.id for entry in before.values()}
        self._candidates = [*before.values(), *(entry for entry in timeline if entry.id not in alive)]
        self._known = known
        self._by_call: dict[tuple[str, str], Entry] = {}
        self._by_text: dict[tuple[str, str], list[Entry]] = {}
        self._indexed: set[bool] = set()

    def original(self, record: Record) -> Entry | None:
        kind, ids, text = self._prints.of_record(record)
        self._index(is_plain=_is_plain(record.kind, record.origin))
        for one in ids:
            if found := self._by_call.get((kind, one)):
                return found
        if not ids and text and (same := self._by_text.get((kind, text))):
            return same.pop(0)
        return None

    def _index(self, *, is_plain: bool) -> None:
        """Index the texts of users, or all the rest; the rest means reading the file again."""
        if is_plain in self._indexed:
            return
        self._indexed.add(is_plain)
        for entry in self._candidates:
            if _is_plain(entry.kind, entry.origin) is not is_plain:
                continue
            kind, ids, text = self._prints.of_entry(entry)
            for one in ids:
                self._by_call.setdefault((kind, one), entry)
            if text and not ids and entry.id not in self._known:
                self._by_text.setdefault((kind, text), []).append(entry)


def _is_plain(kind: str, origin: Origin) -> bool:
    return kind == Kind.USER and origin != Origin.TOOL_RESPONSE
