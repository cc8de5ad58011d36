"""The timeline of one file while it grows: every message once, and what became of it.

What the client records a second time under another id is folded into the original (`copies.py`). A checkpoint tells the
fate of what it no longer holds: compressed when a summary took its place, replaced when another conversation did,
rolled back when only the end of an unfinished request is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import takewhile

from pollux.formats.operations import CallHead, Record, drop_from
from pollux.model import Fate, Kind, Origin, Problem
from pollux.sessions.replay.copies import Copies, Fingerprint, Index
from pollux.sessions.replay.entries import IMPORTED, Call, Entry

_OF_THE_CLIENT = frozenset({Origin.TOOL_RESPONSE, Origin.SYNTHETIC, Origin.SESSION_CONTEXT, Origin.CONTINUE})
"""What the client adds to a conversation that goes on."""
_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})
_REBUILT = "_response"
"""What follows the ID of an answer in that of a response which the client rebuilt from the answer's calls."""


class Timeline:
    """Which messages each id stands for, and which of them are alive."""

    def __init__(
        self,
        entries: list[Entry],
        calls: dict[str, Call],
        problems: list[Problem],
        fingerprint: Callable[[Record], Fingerprint],
    ) -> None:
        """Take the lists to extend; messages that are in them already are indexed."""
        self.entries = entries
        self.calls = calls
        self.problems = problems
        self.index = Index(fingerprint)
        self.index.changed += entries
        backwards = entries[::-1]
        self._last_answer = next((entry for entry in backwards if entry.kind == Kind.GEMINI), None)
        self._last_prompt = next((entry for entry in backwards if entry.origin == Origin.HUMAN), None)
        self._responses: set[str] = set()
        """The IDs of the responses since the last answer; more of them in a row are copies."""
        for entry in takewhile(lambda entry: entry is not self._last_answer, backwards):
            self._responses.update(entry.content.responses)
        self.by_id: dict[str, list[Entry]] = {}
        """A copy's id leads to its originals: more than one, if the copy is fused."""
        self._answered: dict[str, Entry] = {}
        """By the ID of an answer: the first response to its calls."""
        self._silent: dict[str, Entry] = {}
        """By the ID of a message that holds nothing but calls: the answer without words that made them."""
        self._note_answered(entries)
        self.alive: dict[str, list[Entry]] = {}
        """The conversation: what each of its IDs stands for, in order. `put_in_conversation` changes it."""
        self._n_alive: Counter[str] | None = None
        """How many IDs of the conversation stand for a message; counted when somebody first asks."""
        self.new: list[str] = []
        """The ids that were met for the first time since the last checkpoint, in order."""
        self.repeats = False
        """Whether the last of them was a copy: a history is being recorded again."""

    def _note_answered(self, entries: Iterable[Entry]) -> None:
        answer: Entry | None = None
        for entry in entries:
            self._note(entry, answer)
            if entry.kind == Kind.GEMINI:
                answer = entry

    def _note(self, entry: Entry, answer: Entry | None) -> None:
        """Note which answer a response or a message with calls belongs to, given the answer before."""
        if answer and entry.origin == Origin.TOOL_RESPONSE:
            self._answered.setdefault(answer.id, entry)
        elif answer and answer.id not in self._answered and _is_empty(answer) and _has_only_calls(entry):
            self._silent[entry.id] = answer

    def put(self, record: Record, *, is_new_only: bool = False) -> None:
        """Take a message that has a line of its own."""
        entries = self.by_id.get(record.id)
        again: list[Entry] = []
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
        for entry in entries if not again else ():  # what a copy repeats lives on, or the next checkpoint revives it
            entry.fate = Fate.ACTIVE

    def _record_again(self, entry: Entry, record: Record) -> None:
        others: tuple[CallHead, ...] = ()
        if entry.calls and record.calls and not entry.tokens:
            own, others = self._whose(entry, record)
        _merge(entry, record, is_rewrite=False)
        if others and entry.calls_from is record:
            self._give_calls(entry, record, own, others)
        self.index.changed.append(entry)

    def _whose(self, entry: Entry, record: Record) -> tuple[tuple[CallHead, ...], tuple[CallHead, ...]]:
        """Return which calls of a new recording a message made itself, and which others made.

        Over ACP the client records all calls of a session in the first message that it made for calls; those that came
        after another answer are that answer's.
        """
        last = self._last_answer
        if not last or last is entry or entry.content.n_chars:
            return record.calls, ()
        before = {call.id for call in entry.calls}
        new = tuple(call for call in record.calls if call.id not in before)
        return tuple(call for call in record.calls if call.id in before), new

    def _give_calls(
        self, entry: Entry, record: Record, own: tuple[CallHead, ...], others: tuple[CallHead, ...]
    ) -> None:
        """Give calls to the answer that made them, apart from those that were given away before."""
        new = tuple(call for call in others if call.id not in entry.moved)
        answer = self._last_answer
        if answer and (not answer.calls_from or answer.calls_from.id == record.id) and all(call.id for call in new):
            answer.calls, answer.calls_from = (*answer.calls, *new), record
            self.index.changed.append(answer)
            entry.calls, entry.moved = own, (*entry.moved, *(str(call.id) for call in new))
        else:  # the answer has calls of its own
            entry.calls = (*own, *new)

    def put_in_conversation(self, alive: dict[str, list[Entry]]) -> None:
        """Replace the conversation."""
        self.alive = alive
        self._n_alive = None

    def _counted(self) -> Counter[str]:
        if self._n_alive is None:
            self._n_alive = Counter(entry.id for entry in _entries(self.alive))
        return self._n_alive

    def rewind(self, target: str, line: int) -> None:
        """Drop a message and all after it, or everything if it is not there: as the client does."""
        if target not in self.alive:
            text = f"a rewind to the unknown message {target} dropped all before it"
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
        """Take over a new list of messages: recognise copies, and tell what became of those that are gone."""
        is_history = self._repeats_history(records)
        if is_history:
            self._forget(records)
        before = self.alive
        is_summary = not is_history and any(
            record.origin == Origin.STATE_SNAPSHOT and record.id not in self.by_id for record in records
        )
        originals = self._originals(records, is_summary=is_summary)
        alive: dict[str, list[Entry]] = {}
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

    def _originals(self, records: tuple[Record, ...], *, is_summary: bool) -> dict[str, list[Entry]]:
        """Return what the unknown messages of a checkpoint repeat, by their IDs."""
        unknown = {record.id: record for record in records if record.id not in self.by_id}
        if is_summary:
            written = (Origin.STATE_SNAPSHOT, Origin.SYNTHETIC)
            unknown = {id_: record for id_, record in unknown.items() if record.origin not in written}
        if not unknown:
            return {}
        known = {entry.id for record in records for entry in self.by_id.get(record.id, ())}
        copies = Copies(self.index, _entries(self.alive), known, from_end=is_summary)
        found = {}
        responses: tuple[str | None, ...] = ()
        entries: list[Entry] = []
        # A compression keeps the end of the conversation, everything else its beginning.
        for id_, record in reversed(unknown.items()) if is_summary else unknown.items():
            rebuilt = self._rebuilt(id_)
            if rebuilt:
                entries = rebuilt
            elif not record.responses or record.responses != responses:  # else it is there twice in a row
                entries = copies.originals(record)
            responses = record.responses
            is_preamble = record.origin == Origin.SESSION_CONTEXT
            if is_preamble or any(entry.origin != Origin.SESSION_CONTEXT for entry in entries):
                silent = [self._silent[entry.id] for entry in entries if entry.id in self._silent]
                found[id_] = [*entries, *silent]  # else its preamble is known, and its words are not
        return found

    def _rebuilt(self, id_: str) -> list[Entry]:
        """Return the response that the client rebuilt from the calls of an answer: its ID names the answer.

        The IDs of the calls may begin anew in every answer, and so tell nothing.
        """
        if not id_.endswith(_REBUILT):
            return []
        response = self._answered.get(id_.removesuffix(_REBUILT))
        return [response] if response and self.by_id.get(response.id) == [response] else []

    def _repeats_history(self, records: tuple[Record, ...]) -> bool:
        """Return whether these messages were all recorded just now, though they may repeat others.

        The others are still in the conversation, or, after a rewind to its beginning, the answers look like copies.
        """
        ids = [record.id for record in records]
        if not ids or ids != self.new[-len(ids) :]:
            return False
        answers = [record for record in records if record.kind == Kind.GEMINI]
        if answers and all(record.is_bare for record in answers):
            return True
        own = set(ids)
        return any(entries[0].kind not in _NOTICES for one, entries in self.alive.items() if one not in own)

    def _recorded_again(self, record: Record, *, is_in_a_row: bool) -> list[Entry]:
        """Recognise a copy that has a line of its own, as far as one line can tell."""
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
        """Return whether all so far are the lines that `--session-file` writes, each message once."""
        return bool(self.entries) and self.entries[0].id.startswith(IMPORTED) and len(self.new) == len(self.by_id)

    def _add(self, record: Record) -> Entry:
        entry = Entry(record.id, record.kind, record.at, record.line, record.origin, record.prompt, record)
        _merge(entry, record, is_rewrite=False)
        if record.sent and self._is_of_hook(record):
            entry.origin, entry.prompt = Origin.HOOK_CONTEXT, record.sent
        self._note(entry, self._last_answer)
        if entry.kind == Kind.GEMINI:
            self._last_answer = entry
            self._responses.clear()
        elif entry.origin == Origin.HUMAN:
            self._last_prompt = entry
        self.entries.append(entry)
        self.index.changed.append(entry)
        for one in record.responses:
            if one:
                self._responses.add(one)
        return entry

    def _is_of_hook(self, record: Record) -> bool:
        """Return whether a hook sent the agent on: the client shows the prompt before in place of the hook's words."""
        last = self._last_prompt
        if record.origin != Origin.HUMAN or not last or last.prompt != record.prompt:
            return False
        return record.sent not in (last.prompt, last.content.sent) and not record.sent.startswith(record.prompt)

    def _add_loaded(self, record: Record) -> Entry:
        """Add a message that no line of its own came before: what was typed was typed elsewhere."""
        entry = self._add(record)
        entry.is_own = not (record.origin == Origin.HUMAN or (record.origin == Origin.MODEL and record.is_bare))
        if entry.origin == Origin.HUMAN:
            entry.origin = Origin.LOADED
        return entry

    def _count(self, record: Record, entry: Entry) -> None:
        if record.tokens is not None:
            self.calls[record.id] = Call(record.id, entry, record.model, record.tokens, record.line)

    def _rewrite(self, entry: Entry, record: Record) -> None:
        """Take what a checkpoint adds to a message."""
        calls = entry.calls
        _merge(entry, record, is_rewrite=True)
        if entry.calls is not calls:
            self.index.changed.append(entry)

    def _forget(self, records: tuple[Record, ...]) -> None:
        """Forget the latest lines, which only repeat the history: the checkpoint tells which copy is whose."""
        ids = {record.id for record in records}
        tail = self.entries[-len(ids) :]  # each of these lines has added one message at most, and nothing came after
        del self.entries[-len(ids) :]
        for entry in tail:
            if entry.id not in ids:
                self.entries.append(entry)
                continue
            self.index.discard(entry)
        for one in ids:
            del self.by_id[one]
        self.put_in_conversation({one: entries for one, entries in self.alive.items() if one not in ids})


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


def _settle(before: dict[str, list[Entry]], alive: dict[str, list[Entry]], fate: Fate) -> None:
    """Give a fate to all that a new list no longer has."""
    still = {entry.id for entry in _entries(alive)}
    for entry in _entries(before):
        if _is_droppable(entry) and entry.id not in still:
            entry.fate = fate
    for entry in _entries(alive):
        entry.fate = Fate.ACTIVE


def _settle_history(before: dict[str, list[Entry]], alive: dict[str, list[Entry]]) -> None:
    """Give a fate to what a history that was recorded anew does not have.

    The client records its history anew when it masks tool output, which drops nothing, and when the calls of the last
    answer were declined, which rolls back what was sent last. Otherwise the history is one that `/chat save` saved.
    """
    still = {entry.id for entry in _entries(alive)}
    heard = [entry for entry in _entries(before) if _is_droppable(entry)]
    gone = [entry for entry in heard if entry.id not in still and not _is_empty(entry)]
    is_declined = bool(gone) and gone[-1] is heard[-1] and bool(gone[-1].calls)
    for entry in _entries(alive):
        entry.fate = Fate.ACTIVE
    for entry in gone:
        entry.fate = Fate.ROLLED_BACK if is_declined else Fate.REPLACED


def _settle_end(before: dict[str, list[Entry]], alive: dict[str, list[Entry]], *, is_fresh: bool) -> None:
    """Give a fate to the end that a new list lacks.

    Mostly the request failed or was cancelled, and the client rolled it back. If the last answer was complete, the list
    may be another conversation: an empty one, with which `session/load` begins (`is_fresh`). Single messages that the
    client loses on the way, such as a call in a message of its own or an empty answer, are still what was said.
    """
    still = {entry.id for entry in _entries(alive)}
    end: list[Entry] = []
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


def _is_droppable(entry: Entry) -> bool:
    """Return whether a checkpoint can drop a message; it never has notices, and always has the preamble."""
    return entry.kind not in _NOTICES and entry.origin != Origin.SESSION_CONTEXT


def _is_empty(entry: Entry) -> bool:
    return entry.kind == Kind.GEMINI and not entry.content.n_chars and not entry.calls


def _has_only_calls(entry: Entry) -> bool:
    return entry.kind == Kind.GEMINI and bool(entry.calls) and not entry.tokens and not entry.content.n_chars


def _is_complete(entry: Entry) -> bool:
    """Return whether a message is an answer that leaves nothing to do."""
    return entry.kind == Kind.GEMINI and not entry.calls and not _is_empty(entry)


def _says_the_same(entry: Entry, record: Record) -> bool:
    return (entry.prompt, entry.content.checksum) == (record.prompt, record.checksum)


def _entries(conversation: dict[str, list[Entry]]) -> Iterable[Entry]:
    return (entry for entries in conversation.values() for entry in entries)
