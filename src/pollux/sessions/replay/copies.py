"""Which message a recording under a new ID is a copy of.

Resume, compression, a declined tool and the masking of tool output make the client write its history again under new
IDs, without tokens, sometimes with neighbouring turns fused into one (`docs/formats.md`). A copy still has the IDs of
its function calls and responses, and its words.

The index grows with the timeline and is never rebuilt, and the work for one checkpoint is bounded by the number of
messages in the conversation before and after it. A replay therefore takes time in proportion to the size of the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from hashlib import blake2b
from typing import NamedTuple, TypeAlias
from zlib import crc32

from pollux.formats.operations import PROMPT_KEPT, CallHead, Record
from pollux.formats.origins import user_origin
from pollux.model import Fate, Kind
from pollux.sessions.replay.entries import Entry

Fingerprint: TypeAlias = tuple[str, frozenset[str], tuple[str, ...]]
"""The kind of a message, the IDs of its function calls and responses, and its words, part by part."""
Key: TypeAlias = tuple[str, str]
"""A kind of message or of mark, and words or the ID of a call."""

_TEXT, _CALL = "text", "call"
_NO_IDS: frozenset[str] = frozenset()
_LONG = 200
"""Characters above which a digest stands for a text, so that the index does not hold the file."""
_MOST_FUSED = 64
"""Originals that one copy can have. The client fuses a few; a forged list of thousands would be walked each time."""
_LOOKED_AT = 16
"""Messages with the same words that are looked at for one that is still in the conversation."""


class _Marks(NamedTuple):
    """What a message is recognised by."""

    text: str
    """Its words, or their digest; empty if it has none."""
    sent: str
    """What went to the model in place of its words; a copy has nothing else."""
    ids: frozenset[str]
    """Of the calls and responses among its parts."""
    calls: frozenset[str]
    """Of the calls that stand beside its words."""
    first: str | None
    """The least of all these IDs."""

    def among(self, ids: frozenset[str]) -> frozenset[str]:
        """Return those of some IDs that the message has."""
        return (ids & self.ids) | (ids & self.calls)


class Index:
    """The messages of a timeline by their words and by the IDs of their calls."""

    def __init__(self, fingerprint: Callable[[Record], Fingerprint]) -> None:
        """Take the function that reads a record's bytes."""
        self._fingerprint = fingerprint
        self.changed: list[Entry] = []
        """Messages that are new or were recorded again. They are indexed when somebody first looks for copies."""
        self._waiting: dict[bool, dict[str, Entry]] = {True: {}, False: {}}
        """The same, those of users apart: to index the others, the file is read."""
        self._marks: dict[str, _Marks] = {}
        self._entered: dict[str, set[Key]] = {}
        """All that messages were ever found by, if they have changed since they were indexed."""
        self._calls: dict[str, tuple[tuple[CallHead, ...], frozenset[str]]] = {}
        """The IDs of the calls beside the words, read once for each list of calls."""
        self._by_text: dict[Key, list[Entry]] = {}
        self._by_call: dict[Key, list[Entry]] = {}

    def _take_changed(self) -> None:
        for entry in self.changed:
            self._waiting[entry.kind == Kind.USER][entry.id] = entry
        self.changed.clear()

    def discard(self, entry: Entry) -> None:
        """Forget a message that was added lately."""
        self._take_changed()
        self._waiting[entry.kind == Kind.USER].pop(entry.id, None)
        self._calls.pop(entry.id, None)
        marks = self._marks.pop(entry.id, None)
        entered = self._entered.pop(entry.id, set())
        if marks:
            for table, key in {*_keys(marks), *entered}:
                _take_out(self._table(table).get((entry.kind, key), []), entry)

    def index_waiting(self, kind: str) -> None:
        """Bring the index up to date for users, or for everybody else."""
        self._take_changed()
        waiting = self._waiting[kind == Kind.USER]
        for entry in waiting.values():
            before, marks = self._marks.get(entry.id), self._marks_of(entry)
            if before != marks:
                self._marks[entry.id] = marks
                self._enter(entry, marks, before)
        waiting.clear()

    def _enter(self, entry: Entry, marks: _Marks, before: _Marks | None) -> None:
        """Enter a message under all that is new about it; what it said before stays, and is found too."""
        keys: Iterable[Key] = _keys(marks)
        if before:
            entered = self._entered.setdefault(entry.id, {*_keys(before)})
            keys = [key for key in _keys(marks, besides=before) if key not in entered]
            entered.update(keys)
        for table, key in keys:
            self._table(table).setdefault((entry.kind, key), []).append(entry)

    def _table(self, name: str) -> dict[Key, list[Entry]]:
        return self._by_text if name == _TEXT else self._by_call

    def marks(self, entry: Entry) -> _Marks:
        """Return what a message that is indexed is recognised by."""
        return self._marks[entry.id]

    def with_call(self, key: Key) -> list[Entry]:
        """Return the messages that have a call or response of this ID, oldest first."""
        return self._by_call.get(key, [])

    def with_text(self, key: Key) -> list[Entry]:
        """Return the messages that say the same, oldest first."""
        return self._by_text.get(key, [])

    def fingerprint(self, record: Record) -> Fingerprint:
        """Return the fingerprint of a recording; the head of a user's message is enough."""
        if record.kind != Kind.USER:
            return self._fingerprint(record)
        texts = () if record.responses else (_prompt_text(record.prompt, record.checksum),)
        return (record.kind, frozenset(filter(None, record.responses)), texts)

    def fused_texts(self, record: Record, n_least: int = 2) -> list[str]:
        """Return what the parts of a user's message say, each taken as a prompt; nothing if there are too few."""
        _, _, texts = self._fingerprint(record)
        return [_typed_text(text) for text in texts] if len(texts) >= n_least else []

    def latest_originals(self, record: Record, is_alive: Callable[[Entry], bool]) -> list[Entry]:
        """Return the messages that a line may repeat: the latest that fit, if possible from the conversation."""
        self.index_waiting(record.kind)

        def latest(same: list[Entry]) -> Entry | None:
            last = same[-_LOOKED_AT:]
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

    def _marks_of(self, entry: Entry) -> _Marks:
        _, ids, texts = self.fingerprint(entry.content)
        known, calls = self._calls.get(entry.id, ((), _NO_IDS))
        if known is not entry.calls:
            calls = frozenset(call.id for call in entry.calls if call.id)
            self._calls[entry.id] = entry.calls, calls
        before = self._marks.get(entry.id)
        if before and before.ids == ids and before.calls is calls:
            first = before.first
        else:
            first = min((*ids, *calls), default=None)
        return _Marks(_digest("".join(texts).strip()), _digest(entry.content.sent), ids, calls, first)


class Copies:
    """Finds the originals of the recordings in one checkpoint; by its words, a message is found once."""

    def __init__(
        self, index: Index, before: Iterable[Entry], known: Collection[str], *, from_end: bool = False
    ) -> None:
        """Take the conversation before the checkpoint, and the IDs of the messages that the checkpoint names itself.

        Messages of the conversation come before dropped ones; among equals the first comes first, or, `from_end`, the
        last.
        """
        self._index = index
        self._before = {entry.id: entry for entry in before}
        self._known = known
        self._from_end = from_end
        self._taken: set[str] = set()
        self._texts: dict[Key, deque[Entry]] = {}
        self._calls: dict[Key, deque[Entry]] = {}
        self._passed: dict[Key, int] = {}
        """How many of the dropped messages with the same words were looked at."""
        self._ready: set[bool] = set()

    def originals(self, record: Record) -> list[Entry]:
        """Return the messages that a recording repeats."""
        self._prepare(record.kind)
        kind, ids, texts = self._index.fingerprint(record)
        choices = _whole_or_parts(texts)
        if kind == Kind.USER and not record.responses:
            choices = [self._index.fused_texts(record), *choices, [record.prompt]]
        elif kind == Kind.USER and record.n_chars:  # a response that nobody answered, fused with the next prompt
            choices = [self._index.fused_texts(record, n_least=1)]
        return _originals(self._index, kind, ids, choices, self._with_call, self._with_text)

    def _prepare(self, kind: str) -> None:
        """Sort the conversation by its words and calls: what users said, or all the rest."""
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
            if marks.first:  # one ID is enough: those of a copy are looked up in the same order
                self._calls.setdefault((entry.kind, marks.first), deque()).append(entry)

    def _with_call(self, key: Key) -> Entry | None:
        waiting = self._calls.get(key)
        if waiting:
            entry = waiting.pop() if self._from_end else waiting.popleft()
            self._taken.add(entry.id)  # another copy that says the same repeats another message
            return entry
        same = self._index.with_call(key)[-_LOOKED_AT:]
        return next((entry for entry in reversed(same) if entry.fate == Fate.ACTIVE), same[-1] if same else None)

    def _with_text(self, key: Key, found: Collection[str]) -> Entry | None:
        waiting = self._texts.get(key)
        while waiting:
            entry = waiting.pop() if self._from_end else waiting.popleft()
            if entry.id not in self._taken and entry.id not in found:
                self._taken.add(entry.id)
                return entry
        return self._dropped_with_text(key, found)

    def _dropped_with_text(self, key: Key, found: Collection[str]) -> Entry | None:
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
    by_call: Callable[[Key], Entry | None],
    by_text: Callable[[Key, Collection[str]], Entry | None],
) -> list[Entry]:
    """Return the messages with these calls and these words; words beside a call that nobody made are not enough."""
    found: dict[str, Entry] = {}
    covered: set[str] = set()
    for id_ in sorted(ids):
        entry = None if id_ in covered or len(found) == _MOST_FUSED else by_call((kind, id_))
        if entry:
            found[entry.id] = entry
            covered |= index.marks(entry).among(ids)
    if ids and not found:
        return []
    said = {text for entry in found.values() for text in index.marks(entry)[:2]}
    for texts in choices:
        is_found = False
        for key in filter(None, map(_digest, texts)):
            entry = None if key in said or len(found) == _MOST_FUSED else by_text((kind, key), found.keys())
            if entry:
                found[entry.id] = entry
            is_found = is_found or key in said or entry is not None
        if is_found:
            break
    return list(found.values())


def _keys(marks: _Marks, besides: _Marks | None = None) -> list[Key]:
    """Return where to enter a message: what it says and the IDs it has, without those that it had before."""
    keys = [(_TEXT, text) for text in (marks.text, marks.sent) if text]
    keys += [(_CALL, id_) for id_ in marks.ids]
    if besides is None or besides.calls is not marks.calls:
        keys += [(_CALL, id_) for id_ in marks.calls]
    return list(dict.fromkeys(keys))


def _whole_or_parts(texts: tuple[str, ...]) -> list[Iterable[str]]:
    """Return what to look for: the words of all parts together, else those of each."""
    return [["".join(texts).strip()], texts]


def _take_out(entries: list[Entry], entry: Entry) -> None:
    """Remove a message from a list in which it is mostly among the last."""
    for place in range(len(entries) - 1, -1, -1):
        if entries[place] is entry:
            del entries[place]
            return


def _typed_text(text: str) -> str:
    prompt = user_origin(text)[1]
    return _prompt_text(prompt[:PROMPT_KEPT], _checksum(prompt))


def _prompt_text(prompt: str, checksum: int) -> str:
    return f"{prompt}#{checksum}" if checksum else prompt


def _checksum(prompt: str) -> int:
    return crc32(prompt.encode("utf-8", "replace")) if len(prompt) > PROMPT_KEPT else 0


def _digest(text: str) -> str:
    if len(text) <= _LONG:
        return text
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
