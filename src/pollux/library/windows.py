"""Read a session of any length in windows: stretches of whole turns that a page shows one at a time."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pollux.library.packed_timeline import PackedTimeline, UsageById
from pollux.library.references import load_families, load_session
from pollux.model import Attachment, Fate, Message, Session, Usage
from pollux.sessions.family import children
from pollux.sessions.replay.reading import build_message
from pollux.views.conversation import PlacedBlock, placed_blocks
from pollux.views.session_text import usage_by_message
from pollux.views.transcript import Branches, Detail, TranscriptOptions

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices
    from pollux.reports.sessions import SessionRow
    from pollux.sessions.grouping import OpenSession
    from pollux.sessions.replay import TimelineEntry
    from pollux.sessions.replay.reading import FileReading

SIZE = 100
"""Messages of a window, unless that gives more than `MOST_WINDOWS`."""
MOST_WINDOWS = 400


class Window(NamedTuple):
    """A stretch of a timeline: places from 0, the last one excluded."""

    start: int
    stop: int


class OutlineEntry(NamedTuple):
    """A prompt in the outline of a session."""

    number: int
    """The message's number, from 1."""
    words: str
    at: datetime | None
    fate: Fate


class Moment(NamedTuple):
    """A prompt, a model call or an error, for a drawing of the whole session."""

    number: int
    kind: str
    """`prompt`, `call` or `error`."""
    at: datetime | None
    fate: Fate
    words: str = ""
    usage: Usage = Usage()


def cut_windows(is_cut: Sequence[int]) -> tuple[Window, ...]:
    """Cut a timeline into windows that begin at prompts.

    Args:
        is_cut: for each message 2 if a window should begin there, 1 if it may, and 0 if it should not.

    """
    n_messages = len(is_cut)
    size = max(SIZE, -(-n_messages // MOST_WINDOWS))
    windows, start = [], 0
    while start < n_messages:
        stop = _window_end(is_cut, start, size)
        windows.append(Window(start, stop))
        start = stop
    return tuple(windows)


def _window_end(is_cut: Sequence[int], start: int, size: int) -> int:
    """Return the place of the best cut that makes a window of nearly `size` messages."""
    limit = start + size * 6 // 5
    if limit >= len(is_cut):
        return len(is_cut)
    best = limit
    for place in range(start + size * 2 // 5, limit + 1):
        distance, best_distance = abs(place - start - size), abs(best - start - size)
        if is_cut[place] > is_cut[best] or (is_cut[place] == is_cut[best] > 0 and distance < best_distance):
            best = place
    return best


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session, or a window of one, whose blocks can be placed."""

    session: Session
    by_id: Mapping[str, Session]
    options: TranscriptOptions
    entries: Callable[[], Iterable[tuple[FileReading, TimelineEntry]]]
    open_session: Callable[[Session], OpenSession]

    def shown_messages(self) -> Iterator[Message]:
        """Yield the messages, with very long texts cut."""
        for reading, entry in self.entries():
            yield build_message(reading, entry, shortened=True)

    def children(self) -> Iterator[Conversation]:
        """Yield the subagents."""
        for session in children(self.session, self.by_id):
            options = msgspec.structs.replace(self.options, root=session.project.path)
            entries = partial(_entries, self.open_session(session))
            yield replace(self, session=session, entries=entries, options=options)


def _entries(group: OpenSession) -> Iterator[tuple[FileReading, TimelineEntry]]:
    for located, entry in group.timeline:
        yield located.reading, entry


@dataclass(slots=True)
class OpenConversation:
    """An open session with a connection of its own, so that it outlives a request; one thread reads it at a time."""

    row: SessionRow
    session: Session
    """Without its model calls, whose tokens and cost are in the timeline."""
    family: Mapping[str, Session]
    prices: Prices
    timeline: PackedTimeline
    open_session: Callable[[Session], OpenSession]
    resources: ExitStack
    lock: threading.RLock = field(default_factory=threading.RLock)
    is_closed: bool = False
    _windows: tuple[Window, ...] | None = None
    _usages: dict[str, dict[str, Usage]] = field(default_factory=dict)

    def close(self) -> None:
        """Close the connection."""
        with self.lock:
            self.is_closed = True
            self.resources.close()

    @property
    def n_messages(self) -> int:
        """Number of messages in the timeline."""
        return len(self.timeline)

    def windows(self) -> tuple[Window, ...]:
        """Return the windows of the session."""
        if self._windows is None:
            self._windows = cut_windows([self._cut_quality(place) for place in range(self.n_messages)])
        return self._windows

    def _cut_quality(self, place: int) -> int:
        """Return how well a window begins at a message: best at an active prompt, else at a dropped one."""
        if not self.timeline.is_prompt(place):
            return 0
        return 2 if self.timeline.fate(place) is Fate.ACTIVE else 1

    def window_of(self, number: int) -> Window:
        """Return the window that contains a message; numbers begin at 1. The session must have messages."""
        windows = self.windows()
        return windows[max(0, bisect_right(windows, (max(number, 1) - 1, self.n_messages)) - 1)]

    def outline(self, start: int = 0, limit: int | None = None) -> list[OutlineEntry]:
        """Return up to `limit` prompts from the `start`th on."""
        stop = None if limit is None else start + limit
        return [self._outline_entry(number) for number in range(*slice(start, stop).indices(self.n_prompts))]

    @property
    def n_prompts(self) -> int:
        """Number of prompts, dropped ones included."""
        return len(self.timeline.prompts)

    def prompts_before(self, number: int) -> int:
        """Return how many prompts precede a message; numbers begin at 1."""
        return bisect_left(self.timeline.prompts, number - 1)

    def _outline_entry(self, number: int) -> OutlineEntry:
        timeline = self.timeline
        place = timeline.prompts[number]
        words = timeline.prompt_words(number) or "(no text)"
        return OutlineEntry(place + 1, words, timeline.at(place), timeline.fate(place))

    def moments(self) -> Iterator[Moment]:
        """Yield the prompts, model calls and errors in the order of the timeline."""
        timeline, usages, n_prompts = self.timeline, dict(self.timeline.usages()), 0
        for place in range(self.n_messages):
            at, fate = timeline.at(place), timeline.fate(place)
            if timeline.is_prompt(place):
                yield Moment(place + 1, "prompt", at, fate, timeline.prompt_words(n_prompts))
                n_prompts += 1
            elif timeline.is_error(place):
                yield Moment(place + 1, "error", at, fate)
            if place in usages:
                yield Moment(place + 1, "call", at, fate, usage=usages[place])

    def fates(self) -> list[Fate]:
        """Return the fate of each message."""
        return self.timeline.fates()

    def last_turn(self, place: int) -> int:
        """Return where the turn begins that contains a place: at an active prompt, or at the window's first message."""
        start = self.window_of(place + 1).start if self.n_messages else 0
        for index in range(min(place, self.n_messages - 1), start, -1):
            if self._cut_quality(index) == 2:  # noqa: PLR2004  an active prompt
                return index
        return start

    def place_of(self, message_id: str) -> int | None:
        """Return the place of the message with an ID; None if there is none."""
        for place, (_, entry) in enumerate(self.timeline.entries()):
            if entry.id == message_id:
                return place
        return None

    def usage_by_message(self, session: Session, window: Window) -> Mapping[str, Usage]:
        """Return tokens and cost of the messages in a window of this session, or of a subagent, by their IDs."""
        if session.id == self.session.id:
            return self._usage_in(window)
        if session.id not in self._usages:
            self._usages[session.id] = usage_by_message(session, self.prices)
        return self._usages[session.id]

    def _usage_in(self, window: Window) -> dict[str, Usage]:
        usages = {}
        for place, (_, entry) in enumerate(self.timeline.entries(*window), window.start):
            usage = self.timeline.usage(place)
            if usage is not None:
                usages[entry.id] = usage
        return usages

    def blocks(self, options: TranscriptOptions, window: Window) -> Iterator[PlacedBlock[Conversation]]:
        """Yield the blocks of a window of the session, with the numbers that they have in the session."""
        options = msgspec.structs.replace(options, root=self.session.project.path)
        entries = partial(self.timeline.entries, *window)
        source = Conversation(self.session, self.family, options, entries, self.open_session)
        prompts = self.timeline.prompts[: self.prompts_before(window.start + 1)]
        n_prompts = sum(self._is_numbered(place, options) for place in prompts)
        is_last = window.stop >= self.n_messages
        return placed_blocks(source, n_before=window.start, prompts_before=n_prompts, is_last=is_last)

    def _is_numbered(self, place: int, options: TranscriptOptions) -> bool:
        """Return whether the options show a prompt."""
        if options.detail is Detail.PROMPTS and not self.timeline.is_typed(place):
            return False
        return self.timeline.fate(place) is Fate.ACTIVE or options.branches is Branches.ALL or options.folds_dropped

    def message(self, number: int) -> Message:
        """Return a message in full; numbers begin at 1. Raises `IndexError`."""
        return build_message(*self._numbered(number))

    def _numbered(self, number: int) -> tuple[FileReading, TimelineEntry]:
        if not 1 <= number <= self.n_messages:
            raise IndexError(number)
        return self.timeline.entry(number - 1)

    def messages(self, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        """Yield messages of the timeline in full; the first is 0."""
        for reading, entry in self.timeline.entries(start, stop):
            yield build_message(reading, entry)

    def attachment(self, number: int, index: int) -> Attachment:
        """Return an attachment of a message: its parts and then its calls count from 0. Raises `IndexError`."""
        message = self.message(number)
        files = [*message.attachments]
        for call in message.tool_calls:
            files += call.attachments
        if not 0 <= index < len(files):
            raise IndexError(index)
        return files[index]

    def record(self, number: int) -> bytes:
        """Return the bytes that a file records for a message; numbers begin at 1. Raises `IndexError`."""
        reading, entry = self._numbered(number)
        return reading.source.slice(entry.content.span)


def open_conversation(snapshot: Snapshot, row: SessionRow, prices: Prices, resources: ExitStack) -> OpenConversation:
    """Open the session of a row; `resources` are closed with it."""
    session = load_session(snapshot, row.id)
    usages = UsageById(usage_by_message(session, prices))
    session = msgspec.structs.replace(session, calls=())  # frees them before the messages are opened
    family = load_families(snapshot, [session.id], [session])
    opener = snapshot.sessions.open
    timeline = PackedTimeline(opener(session), usages)
    return OpenConversation(row, session, family, prices, timeline, opener, resources)
