"""Find the original of a message that the client recorded again under a new ID.

After a resume, a compression, a declined tool call or masking of tool output, the client writes its history again under
new IDs, without tokens, and sometimes with neighbouring turns merged into one (`docs/formats.md`). A copy still has the
IDs of its function calls and responses, and its text.

The index grows with the timeline and is never rebuilt, and the work for one checkpoint is bounded by the number of
messages in the conversation before and after it. A replay therefore takes time proportional to the size of the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from hashlib import blake2b
from typing import NamedTuple, TypeAlias
from zlib import crc32

from pollux.formats.operations import PROMPT_LENGTH, CallHead, Record
from pollux.formats.origins import user_origin
from pollux.model import Fate, Kind
from pollux.sessions.replay import TimelineEntry

Fingerprint: TypeAlias = tuple[str, frozenset[str], tuple[str, ...]]
"""The kind of a message, the IDs of its function calls and responses, and the text of each part."""
Key: TypeAlias = tuple[str, str]
"""A kind of message or of table, and a text or the ID of a call."""

_TEXT, _CALL = "text", "call"
_NO_IDS: frozenset[str] = frozenset()
_LONG = 200
"""Texts with more characters are indexed by a digest, so that the index does not hold the whole file."""
_MOST_MERGED = 64
"""Originals that one copy can have. The client merges a few; a forged list of thousands would be walked each time."""
_MOST_COMPARED = 16
"""Messages with the same text among which to search for one that is still in the conversation."""


class _Marks(NamedTuple):
    text: str
    """Its text, or a digest; may be empty."""
    sent: str
    """What was sent to the model instead of its text; a copy has only this."""
    ids: frozenset[str]
    """IDs of the calls and responses among its parts."""
    calls: frozenset[str]
    """IDs of the calls that are recorded next to its text."""
    first: str | None
    """The smallest of all these IDs."""

    def among(self, ids: frozenset[str]) -> frozenset[str]:
        """Return those of `ids` that the message has."""
        return (ids & self.ids) | (ids & self.calls)


class Index:
    """The messages of a timeline, by text and by the IDs of their calls."""

    def __init__(self, fingerprint: Callable[[Record], Fingerprint]) -> None:
        """Create an empty index; `fingerprint` reads the bytes of a record."""
        self._fingerprint = fingerprint
        self.changed: list[TimelineEntry] = []
        """Messages that are new or were recorded again, to be indexed before the next search."""
        self._waiting: dict[bool, dict[str, TimelineEntry]] = {True: {}, False: {}}
        """The same, split into those of users and all others, for which the file has to be read."""
        self._marks: dict[str, _Marks] = {}
        self._entered: dict[str, set[Key]] = {}
        """All keys under which a message was ever indexed, if it changed since it was first indexed."""
        self._calls: dict[str, tuple[tuple[CallHead, ...], frozenset[str]]] = {}
        """The IDs in each list of calls, computed once."""
        self._by_text: dict[Key, list[TimelineEntry]] = {}
        self._by_call: dict[Key, list[TimelineEntry]] = {}

    def _take_changed(self) -> None:
        for entry in self.changed:
            self._waiting[entry.kind == Kind.USER][entry.id] = entry
        self.changed.clear()

    def discard(self, entry: TimelineEntry) -> None:
        """Remove a message that was added recently."""
        self._take_changed()
        self._waiting[entry.kind == Kind.USER].pop(entry.id, None)
        self._calls.pop(entry.id, None)
        marks = self._marks.pop(entry.id, None)
        entered = self._entered.pop(entry.id, set())
        if marks:
            for table, key in {*_keys(marks), *entered}:
                _take_out(self._table(table).get((entry.kind, key), []), entry)

    def index_waiting(self, kind: str) -> None:
        """Index the changed messages of users, or those of all other kinds."""
        self._take_changed()
        waiting = self._waiting[kind == Kind.USER]
        for entry in waiting.values():
            before, marks = self._marks.get(entry.id), self._marks_of(entry)
            if before != marks:
                self._marks[entry.id] = marks
                self._enter(entry, marks, before)
        waiting.clear()

    def _enter(self, entry: TimelineEntry, marks: _Marks, before: _Marks | None) -> None:
        """Index a message under its new keys; it stays indexed under its earlier text and calls."""
        keys: Iterable[Key] = _keys(marks)
        if before:
            entered = self._entered.setdefault(entry.id, {*_keys(before)})
            keys = [key for key in _keys(marks, besides=before) if key not in entered]
            entered.update(keys)
        for table, key in keys:
            self._table(table).setdefault((entry.kind, key), []).append(entry)

    def _table(self, name: str) -> dict[Key, list[TimelineEntry]]:
        return self._by_text if name == _TEXT else self._by_call

    def marks(self, entry: TimelineEntry) -> _Marks:
        """Return the marks of an indexed message."""
        return self._marks[entry.id]

    def with_call(self, key: Key) -> list[TimelineEntry]:
        """Return the messages with a call or response of this ID, oldest first."""
        return self._by_call.get(key, [])

    def with_text(self, key: Key) -> list[TimelineEntry]:
        """Return the messages with this text, oldest first."""
        return self._by_text.get(key, [])

    def fingerprint(self, record: Record) -> Fingerprint:
        """Return the fingerprint of a recording; for a user's message its head is enough."""
        if record.kind != Kind.USER:
            return self._fingerprint(record)
        texts = () if record.responses else (_prompt_text(record.prompt, record.checksum),)
        return (record.kind, frozenset(filter(None, record.responses)), texts)

    def fused_texts(self, record: Record, n_least: int = 2) -> list[str]:
        """Return the text of each part of a user's message as if it were a prompt; [] for fewer than `n_least`."""
        _, _, texts = self._fingerprint(record)
        return [_typed_text(text) for text in texts] if len(texts) >= n_least else []

    def latest_originals(self, record: Record, is_alive: Callable[[TimelineEntry], bool]) -> list[TimelineEntry]:
        """Return the messages that a line may repeat: the latest matches, preferably from the conversation."""
        self.index_waiting(record.kind)

        def latest(same: list[TimelineEntry]) -> TimelineEntry | None:
            last = same[-_MOST_COMPARED:]
            return next((entry for entry in reversed(last) if is_alive(entry)), last[-1] if last else None)

        kind, ids, texts = self.fingerprint(record)
        return _originals(
            self,
            kind,
            ids,
            _whole_or_parts(texts),
            lambda key: latest(self.with_call(key)),
            lambda key, _found: latest(self.with_text(key)),
        )

    def _marks_of(self, entry: TimelineEntry) -> _Marks:
        _, ids, texts = self.fingerprint(entry.content)
        stored_calls, calls = self._calls.get(entry.id, ((), _NO_IDS))
        if stored_calls is not entry.calls:
            calls = frozenset(call.id for call in entry.calls if call.id)
            self._calls[entry.id] = entry.calls, calls
        before = self._marks.get(entry.id)
        if before and before.ids == ids and before.calls is calls:
            first = before.first
        else:
            first = min((*ids, *calls), default=None)
        return _Marks(_digest("".join(texts).strip()), _digest(entry.content.sent), ids, calls, first)


class CopyFinder:
    """Finds the originals of the recordings in one checkpoint; each original is matched by its text only once."""

    def __init__(
        self, index: Index, before: Iterable[TimelineEntry], known: Collection[str], *, from_end: bool = False
    ) -> None:
        """Prepare for one checkpoint.

        Messages of the conversation are preferred to dropped ones; among equals the first, or the last if `from_end`.

        Args:
            index: of the timeline.
            before: the conversation before the checkpoint.
            known: IDs of messages that the checkpoint names itself.
            from_end: whether the checkpoint keeps the end of the conversation.

        """
        self._index = index
        self._before = {entry.id: entry for entry in before}
        self._known = known
        self._from_end = from_end
        self._taken: set[str] = set()
        self._texts: dict[Key, deque[TimelineEntry]] = {}
        self._calls: dict[Key, deque[TimelineEntry]] = {}
        self._passed: dict[Key, int] = {}
        """Number of dropped messages with the same text that were already compared."""
        self._ready: set[bool] = set()

    def originals(self, record: Record) -> list[TimelineEntry]:
        """Return the messages of which a recording is a copy."""
        self._prepare(record.kind)
        kind, ids, texts = self._index.fingerprint(record)
        choices = _whole_or_parts(texts)
        if kind == Kind.USER and not record.responses:
            choices = [self._index.fused_texts(record), *choices, [record.prompt]]
        elif kind == Kind.USER and record.n_chars:  # an unanswered response merged with the next prompt
            choices = [self._index.fused_texts(record, n_least=1)]
        return _originals(self._index, kind, ids, choices, self._with_call, self._with_text)

    def _prepare(self, kind: str) -> None:
        """Index the conversation by text and calls: the messages of users, or all others."""
        is_user = kind == Kind.USER
        if is_user in self._ready:
            return
        self._ready.add(is_user)
        self._index.index_waiting(kind)
        for entry in self._before.values():
            if (entry.kind == Kind.USER) is not is_user:
                continue
            marks = self._index.marks(entry)
            for text in (marks.text, marks.sent) if entry.id not in self._known else ():
                if text:
                    self._texts.setdefault((entry.kind, text), deque()).append(entry)
            if marks.first:  # one ID is enough: those of a copy are searched for in the same order
                self._calls.setdefault((entry.kind, marks.first), deque()).append(entry)

    def _with_call(self, key: Key) -> TimelineEntry | None:
        waiting = self._calls.get(key)
        if waiting:
            entry = waiting.pop() if self._from_end else waiting.popleft()
            self._taken.add(entry.id)  # the next copy with the same text repeats another message
            return entry
        same = self._index.with_call(key)[-_MOST_COMPARED:]
        return next((entry for entry in reversed(same) if entry.fate == Fate.ACTIVE), same[-1] if same else None)

    def _with_text(self, key: Key, found: Collection[str]) -> TimelineEntry | None:
        waiting = self._texts.get(key)
        while waiting:
            entry = waiting.pop() if self._from_end else waiting.popleft()
            if entry.id not in self._taken and entry.id not in found:
                self._taken.add(entry.id)
                return entry
        return self._dropped_with_text(key, found)

    def _dropped_with_text(self, key: Key, found: Collection[str]) -> TimelineEntry | None:
        same = self._index.with_text(key)
        passed = self._passed.get(key, 0)
        while passed < len(same):
            entry = same[-1 - passed] if self._from_end else same[passed]
            passed += 1
            if not any(entry.id in ids for ids in (self._before, self._known, self._taken, found)):
                self._taken.add(entry.id)
                self._passed[key] = passed
                return entry
        self._passed[key] = passed
        return None


def _originals(
    index: Index,
    kind: str,
    ids: frozenset[str],
    choices: Iterable[Iterable[str]],
    by_call: Callable[[Key], TimelineEntry | None],
    by_text: Callable[[Key, Collection[str]], TimelineEntry | None],
) -> list[TimelineEntry]:
    """Return the messages with these calls and texts; a text next to unknown calls is not enough."""
    originals: dict[str, TimelineEntry] = {}
    covered: set[str] = set()
    for id_ in sorted(ids):
        entry = None if id_ in covered or len(originals) == _MOST_MERGED else by_call((kind, id_))
        if entry:
            originals[entry.id] = entry
            covered |= index.marks(entry).among(ids)
    if ids and not originals:
        return []
    texts_covered = {text for entry in originals.values() for text in index.marks(entry)[:2]}
    for texts in choices:
        has_match = False
        for key in filter(None, map(_digest, texts)):
            is_covered = key in texts_covered
            is_full = len(originals) == _MOST_MERGED
            entry = None if is_covered or is_full else by_text((kind, key), originals.keys())
            if entry:
                originals[entry.id] = entry
            has_match = has_match or is_covered or entry is not None
        if has_match:
            break
    return list(originals.values())


def _keys(marks: _Marks, besides: _Marks | None = None) -> list[Key]:
    """Return the keys under which to index a message; without its calls if they are those of `besides`."""
    keys = [(_TEXT, text) for text in (marks.text, marks.sent) if text]
    keys += [(_CALL, id_) for id_ in marks.ids]
    if besides is None or besides.calls is not marks.calls:
        keys += [(_CALL, id_) for id_ in marks.calls]
    return list(dict.fromkeys(keys))


def _whole_or_parts(texts: tuple[str, ...]) -> list[Iterable[str]]:
    """Return the texts to search for: that of all parts together, else that of each part."""
    return [["".join(texts).strip()], texts]


def _take_out(entries: list[TimelineEntry], entry: TimelineEntry) -> None:
    """Remove a message from a list in which it is mostly among the last."""
    for position in range(len(entries) - 1, -1, -1):
        if entries[position] is entry:
            del entries[position]
            return


def _typed_text(text: str) -> str:
    prompt = user_origin(text)[1]
    return _prompt_text(prompt[:PROMPT_LENGTH], _checksum(prompt))


def _prompt_text(prompt: str, checksum: int) -> str:
    return f"{prompt}#{checksum}" if checksum else prompt


def _checksum(prompt: str) -> int:
    return crc32(prompt.encode("utf-8", "replace")) if len(prompt) > PROMPT_LENGTH else 0


def _digest(text: str) -> str:
    if len(text) <= _LONG:
        return text
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
