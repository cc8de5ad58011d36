"""Build the timeline of one file: every message once, with its fate.

Copies that the client records under new IDs are merged into the original (`copies.py`). A checkpoint determines the
fate of messages that it lacks: `compressed` if a summary replaced them, `replaced` if another conversation did,
`rolled_back` if only the end of an unfinished request is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import takewhile

from pollux.formats.operations import CallHead, Record, drop_from
from pollux.model import Fate, Kind, Origin, Problem
from pollux.sessions.replay import IMPORTED, RecordedCall, TimelineEntry
from pollux.sessions.replay.copies import CopyFinder, Fingerprint, Index

_OF_THE_CLIENT = frozenset({Origin.TOOL_RESPONSE, Origin.SYNTHETIC, Origin.SESSION_CONTEXT, Origin.CONTINUE})
"""Messages that the client adds to a conversation by itself."""
_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})
_REBUILT = "_response"
"""Suffix of the ID of a response that the client rebuilt from an answer's calls; the answer's ID precedes it."""


class Timeline:
    """The messages of a file, the IDs that refer to each, and the current conversation."""

    def __init__(
        self,
        entries: list[TimelineEntry],
        calls: dict[str, RecordedCall],
        problems: list[Problem],
        fingerprint: Callable[[Record], Fingerprint],
    ) -> None:
        """Create a timeline that appends to these lists; messages that they already contain are indexed."""
        self.entries = entries
        self.calls = calls
        self.problems = problems
        self.index = Index(fingerprint)
        self.index.changed += entries
        backwards = entries[::-1]
        self._last_answer = next((entry for entry in backwards if entry.kind == Kind.GEMINI), None)
        self._last_prompt = next((entry for entry in backwards if entry.origin == Origin.HUMAN), None)
        self._responses: set[str] = set()
        """IDs of the responses since the last answer; a repeated one is a copy."""
        for entry in takewhile(lambda entry: entry is not self._last_answer, backwards):
            self._responses.update(entry.content.responses)
        self.by_id: dict[str, list[TimelineEntry]] = {}
        """The message of each ID; for the ID of a copy its originals, several if the client merged them."""
        self._answered: dict[str, TimelineEntry] = {}
        """The first response to the calls of each answer, by the answer's ID."""
        self._silent: dict[str, TimelineEntry] = {}
        """The empty answer that made the calls of a message with nothing but calls, by the message's ID."""
        self._note_answered(entries)
        self.alive: dict[str, list[TimelineEntry]] = {}
        """The conversation: its IDs in order, and their messages. Use `put_in_conversation` to replace it."""
        self._n_alive: Counter[str] | None = None
        """Number of IDs in the conversation that refer to each message; counted on first use."""
        self.new: list[str] = []
        """IDs that first appeared since the last checkpoint, in order."""
        self.repeats = False
        """Whether the last of them was a copy: the client is recording its history again."""

    def _note_answered(self, entries: Iterable[TimelineEntry]) -> None:
        answer: TimelineEntry | None = None
        for entry in entries:
            self._note(entry, answer)
            if entry.kind == Kind.GEMINI:
                answer = entry

    def _note(self, entry: TimelineEntry, answer: TimelineEntry | None) -> None:
        """Record to which preceding answer a response or a message with calls belongs."""
        if answer and entry.origin == Origin.TOOL_RESPONSE:
            self._answered.setdefault(answer.id, entry)
        elif answer and answer.id not in self._answered and _is_empty(answer) and _has_only_calls(entry):
            self._silent[entry.id] = answer

    def put(self, record: Record, *, is_new_only: bool = False) -> None:
        """Add a message recorded on its own line; `is_new_only` leaves a message that is already there unchanged."""
        entries = self.by_id.get(record.id)
        again: list[TimelineEntry] = []
        if entries is None:
            is_in_a_row = bool(record.responses) and record.responses[0] in self._responses
            again = self._recorded_again(record, is_in_a_row=is_in_a_row)
            self.repeats = self.repeats if is_in_a_row else bool(again)
            entries = again or [self._add(record)]
            self.by_id[record.id] = entries
            self.new.append(record.id)
        elif is_new_only:
            self._count(record, entries[0])
            return
        elif len(entries) == 1 and entries[0].id == record.id:
            self._record_again(entries[0], record)
        self._count(record, entries[0])
        if record.id not in self.alive:
            self.alive[record.id] = entries
            if self._n_alive is not None:
                self._n_alive.update(entry.id for entry in entries)
        for entry in entries if not again else ():  # the originals of a copy keep their fate until a checkpoint
            entry.fate = Fate.ACTIVE

    def _record_again(self, entry: TimelineEntry, record: Record) -> None:
        others: tuple[CallHead, ...] = ()
        if entry.calls and record.calls and not entry.tokens:
            own, others = self._split_calls(entry, record)
        _merge(entry, record, is_rewrite=False)
        if others and entry.calls_from is record:
            self._move_calls(entry, record, own, others)
        self.index.changed.append(entry)

    def _split_calls(self, entry: TimelineEntry, record: Record) -> tuple[tuple[CallHead, ...], tuple[CallHead, ...]]:
        """Return the calls of a new recording that the message itself made, and those that other messages made.

        Over ACP the client records all calls of a session in the first message that it created for calls. Calls that
        appear after another answer belong to that answer.
        """
        last = self._last_answer
        if not last or last is entry or entry.content.n_chars:
            return record.calls, ()
        before = {call.id for call in entry.calls}
        new = tuple(call for call in record.calls if call.id not in before)
        return tuple(call for call in record.calls if call.id in before), new

    def _move_calls(
        self, entry: TimelineEntry, record: Record, own: tuple[CallHead, ...], others: tuple[CallHead, ...]
    ) -> None:
        """Move calls to the answer that made them, except those that were moved before."""
        new = tuple(call for call in others if call.id not in entry.moved)
        answer = self._last_answer
        if answer and (not answer.calls_from or answer.calls_from.id == record.id) and all(call.id for call in new):
            answer.calls, answer.calls_from = (*answer.calls, *new), record
            self.index.changed.append(answer)
            entry.calls, entry.moved = own, (*entry.moved, *(str(call.id) for call in new))
        else:  # the answer already has recorded calls
            entry.calls = (*own, *new)

    def put_in_conversation(self, alive: dict[str, list[TimelineEntry]]) -> None:
        """Replace the conversation."""
        self.alive = alive
        self._n_alive = None

    def _counted(self) -> Counter[str]:
        if self._n_alive is None:
            self._n_alive = Counter(entry.id for entry in _entries(self.alive))
        return self._n_alive

    def rewind(self, target: str, line: int) -> None:
        """Drop a message and all after it; like the client, drop everything if the message does not exist."""
        if target not in self.alive:
            text = f"a rewind to the unknown message {target} dropped all messages before it"
            self.problems.append(Problem("unknown-rewind", text, line=line))
        n_alive = self._counted()
        for entries in drop_from(self.alive, target):
            for entry in entries:
                n_alive[entry.id] -= 1
                if not n_alive[entry.id]:
                    del n_alive[entry.id]
                    entry.fate = Fate.REWOUND
        self._end_of_copies()

    def checkpoint(self, records: tuple[Record, ...]) -> None:
        """Replace the conversation by a new list of messages: merge copies, and set the fate of missing messages."""
        is_history = self._repeats_history(records)
        if is_history:
            self._forget(records)
        before = self.alive
        is_summary = not is_history and any(
            record.origin == Origin.STATE_SNAPSHOT and record.id not in self.by_id for record in records
        )
        originals = self._originals(records, is_summary=is_summary)
        alive: dict[str, list[TimelineEntry]] = {}
        is_replaced = False
        for record in records:
            entries = self.by_id.get(record.id)
            if entries is None:
                entries = originals.get(record.id)
                if not entries:
                    entries = [self._add_loaded(record)]
                    is_replaced = is_replaced or record.origin not in _OF_THE_CLIENT
                self.by_id[record.id] = entries
            elif entries[0].id == record.id:
                self._rewrite(entries[0], record)
            self._count(record, entries[0])
            alive[record.id] = entries
        if is_summary or is_replaced:
            _settle(before, alive, Fate.COMPRESSED if is_summary else Fate.REPLACED)
        elif is_history:
            _settle_history(before, alive)
        else:
            _settle_end(before, alive, is_fresh=all(record.origin == Origin.SESSION_CONTEXT for record in records))
        self.put_in_conversation(alive)
        self._end_of_copies()

    def _end_of_copies(self) -> None:
        self.new.clear()
        self.repeats = False

    def _originals(self, records: tuple[Record, ...], *, is_summary: bool) -> dict[str, list[TimelineEntry]]:
        """Return the originals of a checkpoint's unknown messages, by the ID of the copy."""
        unknown = {record.id: record for record in records if record.id not in self.by_id}
        if is_summary:
            written = (Origin.STATE_SNAPSHOT, Origin.SYNTHETIC)
            unknown = {id_: record for id_, record in unknown.items() if record.origin not in written}
        if not unknown:
            return {}
        recorded_ids = {entry.id for record in records for entry in self.by_id.get(record.id, ())}
        copies = CopyFinder(self.index, _entries(self.alive), recorded_ids, from_end=is_summary)
        originals = {}
        responses: tuple[str | None, ...] = ()
        entries: list[TimelineEntry] = []
        # A compression keeps the end of the conversation, everything else keeps its start.
        for id_, record in reversed(unknown.items()) if is_summary else unknown.items():
            rebuilt = self._rebuilt(id_)
            if rebuilt:
                entries = rebuilt
            elif not record.responses or record.responses != responses:  # else it repeats the one before
                entries = copies.originals(record)
            responses = record.responses
            is_preamble = record.origin == Origin.SESSION_CONTEXT
            if is_preamble or any(entry.origin != Origin.SESSION_CONTEXT for entry in entries):
                silent = [self._silent[entry.id] for entry in entries if entry.id in self._silent]
                originals[id_] = [*entries, *silent]  # else only its preamble has an original
        return originals

    def _rebuilt(self, id_: str) -> list[TimelineEntry]:
        """Return the original of a response that the client rebuilt from an answer's calls: its ID names the answer.

        The calls' IDs are no help: they may be the same in every answer.
        """
        if not id_.endswith(_REBUILT):
            return []
        response = self._answered.get(id_.removesuffix(_REBUILT))
        return [response] if response and self.by_id.get(response.id) == [response] else []

    def _repeats_history(self, records: tuple[Record, ...]) -> bool:
        """Return whether a checkpoint contains only messages that were recorded just before it, as copies of others.

        The originals are still in the conversation, or, after a rewind to its start, the answers look like copies.
        """
        ids = [record.id for record in records]
        if not ids or ids != self.new[-len(ids) :]:
            return False
        answers = [record for record in records if record.kind == Kind.GEMINI]
        if answers and all(record.is_bare for record in answers):
            return True
        own = set(ids)
        return any(entries[0].kind not in _NOTICES for id_, entries in self.alive.items() if id_ not in own)

    def _recorded_again(self, record: Record, *, is_in_a_row: bool) -> list[TimelineEntry]:
        """Return the originals of a message that its own line shows to be a copy; [] for any other message."""
        is_repeated = self.repeats and (record.origin == Origin.HUMAN or bool(record.responses))
        if is_in_a_row or (
            (record.is_bare or is_repeated) and not self._is_import()
        ):  # in a history that was cut short
            n_alive = self._counted()
            return self.index.latest_originals(record, lambda entry: entry.id in n_alive)
        if record.origin == Origin.SESSION_CONTEXT:
            return [entry for entry in self.entries[:1] if _says_the_same(entry, record)]
        return []

    def _is_import(self) -> bool:
        """Return whether all lines so far are an import by `--session-file`, with each message once."""
        return bool(self.entries) and self.entries[0].id.startswith(IMPORTED) and len(self.new) == len(self.by_id)

    def _add(self, record: Record) -> TimelineEntry:
        entry = TimelineEntry(record.id, record.kind, record.at, record.line, record.origin, record.prompt, record)
        _merge(entry, record, is_rewrite=False)
        if record.sent and self._is_from_hook(record):
            entry.origin, entry.prompt = Origin.HOOK_CONTEXT, record.sent
        self._note(entry, self._last_answer)
        if entry.kind == Kind.GEMINI:
            self._last_answer = entry
            self._responses.clear()
        elif entry.origin == Origin.HUMAN:
            self._last_prompt = entry
        self.entries.append(entry)
        self.index.changed.append(entry)
        if record.responses:
            self._responses.update(filter(None, record.responses))
        return entry

    def _is_from_hook(self, record: Record) -> bool:
        """Return whether a hook continued the turn: the client displays the last prompt instead of the hook's text."""
        last = self._last_prompt
        if record.origin != Origin.HUMAN or not last or last.prompt != record.prompt:
            return False
        return record.sent not in (last.prompt, last.content.sent) and not record.sent.startswith(record.prompt)

    def _add_loaded(self, record: Record) -> TimelineEntry:
        """Add a message that first appears in a checkpoint: it was typed in another session."""
        entry = self._add(record)
        entry.is_own = not (record.origin == Origin.HUMAN or (record.origin == Origin.MODEL and record.is_bare))
        if entry.origin == Origin.HUMAN:
            entry.origin = Origin.LOADED
        return entry

    def _count(self, record: Record, entry: TimelineEntry) -> None:
        if record.tokens is not None:
            self.calls[record.id] = RecordedCall(record.id, entry, record.model, record.tokens, record.line)

    def _rewrite(self, entry: TimelineEntry, record: Record) -> None:
        calls = entry.calls
        _merge(entry, record, is_rewrite=True)
        if entry.calls is not calls:
            self.index.changed.append(entry)

    def _forget(self, records: tuple[Record, ...]) -> None:
        """Remove the latest lines, which only repeat the history; the checkpoint assigns the copies to originals."""
        ids = {record.id for record in records}
        tail = self.entries[-len(ids) :]  # each line added one message at most, and nothing was added since
        del self.entries[-len(ids) :]
        for entry in tail:
            if entry.id not in ids:
                self.entries.append(entry)
                continue
            self.index.discard(entry)
        for id_ in ids:
            del self.by_id[id_]
        self.put_in_conversation({id_: entries for id_, entries in self.alive.items() if id_ not in ids})


def _merge(entry: TimelineEntry, record: Record, *, is_rewrite: bool) -> None:
    """Merge a recording into its message; the text of a checkpoint (`is_rewrite`) never replaces the original text."""
    if not is_rewrite:
        entry.content = record
    if record.calls and not (is_rewrite and entry.calls) and not (record.is_masked and entry.calls):
        entry.calls, entry.calls_from = record.calls, record
    if record.has_thoughts and not (is_rewrite and entry.thoughts_from):
        entry.thoughts_from = record
    entry.at = entry.at or record.at
    entry.model = record.model or entry.model
    entry.tokens = record.tokens or entry.tokens


def _settle(before: dict[str, list[TimelineEntry]], alive: dict[str, list[TimelineEntry]], fate: Fate) -> None:
    still = {entry.id for entry in _entries(alive)}
    for entry in _entries(before):
        if _is_droppable(entry) and entry.id not in still:
            entry.fate = fate
    for entry in _entries(alive):
        entry.fate = Fate.ACTIVE


def _settle_history(before: dict[str, list[TimelineEntry]], alive: dict[str, list[TimelineEntry]]) -> None:
    """Set the fate of messages that a history lacks which the client recorded again.

    The client does so when it masks tool output, which drops nothing, and when the user declined the calls of the last
    answer, which rolls back the last request. Otherwise the history is one that `/chat save` stored.
    """
    still = {entry.id for entry in _entries(alive)}
    droppable = [entry for entry in _entries(before) if _is_droppable(entry)]
    dropped = [entry for entry in droppable if entry.id not in still and not _is_empty(entry)]
    is_declined = bool(dropped) and dropped[-1] is droppable[-1] and bool(dropped[-1].calls)
    for entry in _entries(alive):
        entry.fate = Fate.ACTIVE
    for entry in dropped:
        entry.fate = Fate.ROLLED_BACK if is_declined else Fate.REPLACED


def _settle_end(
    before: dict[str, list[TimelineEntry]], alive: dict[str, list[TimelineEntry]], *, is_fresh: bool
) -> None:
    """Set the fate of the last messages if a new list lacks them.

    Mostly the request failed or was cancelled, and the client rolled it back. After a complete answer, the list may be
    another conversation: an empty one, with which `session/load` starts (`is_fresh`). Single messages that the client
    loses elsewhere, such as a separate message with calls or an empty answer, stay active.
    """
    still = {entry.id for entry in _entries(alive)}
    end: list[TimelineEntry] = []
    for entry in reversed([entry for entry in _entries(before) if _is_droppable(entry)]):
        if entry.id in still:
            break
        end.append(entry)
    is_replaced = is_fresh and bool(end) and _is_complete(end[0])
    for entry in (*_entries(before), *_entries(alive)):
        entry.fate = Fate.ACTIVE
    for entry in end:
        if not _is_empty(entry):
            entry.fate = Fate.REPLACED if is_replaced else Fate.ROLLED_BACK


def _is_droppable(entry: TimelineEntry) -> bool:
    """Return whether a checkpoint can drop a message: it never contains notices and always contains the preamble."""
    return entry.kind not in _NOTICES and entry.origin != Origin.SESSION_CONTEXT


def _is_empty(entry: TimelineEntry) -> bool:
    return entry.kind == Kind.GEMINI and not entry.content.n_chars and not entry.calls


def _has_only_calls(entry: TimelineEntry) -> bool:
    return entry.kind == Kind.GEMINI and bool(entry.calls) and not entry.tokens and not entry.content.n_chars


def _is_complete(entry: TimelineEntry) -> bool:
    return entry.kind == Kind.GEMINI and not entry.calls and not _is_empty(entry)


def _says_the_same(entry: TimelineEntry, record: Record) -> bool:
    return (entry.prompt, entry.content.checksum) == (record.prompt, record.checksum)


def _entries(conversation: dict[str, list[TimelineEntry]]) -> Iterable[TimelineEntry]:
    return (entry for entries in conversation.values() for entry in entries)
