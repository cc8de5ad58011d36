"""Read a session of any length in windows: stretches of whole turns that a page shows one at a time."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pollux.library.references import load_families, load_session
from pollux.model import Attachment, Fate, Kind, Message, Origin, Session, Usage
from pollux.sessions.family import children
from pollux.sessions.replay.reading import build_message
from pollux.text.times import parse_time
from pollux.views.conversation import PlacedBlock, placed_blocks
from pollux.views.excerpts import line
from pollux.views.session_text import usage_by_message
from pollux.views.transcript import Branches, Detail, TranscriptOptions

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices
    from pollux.reports.sessions import SessionRow
    from pollux.sessions.grouping import OpenSession
    from pollux.sessions.replay import TimelineEntry

SIZE = 100
"""Messages of a window, unless that gives more than `MOST_WINDOWS`."""
MOST_WINDOWS = 400
_ENTRY = 100
"""Characters of a prompt in an outline."""
_PROMPTS = frozenset({Origin.HUMAN, Origin.LOADED})


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
    group: OpenSession
    open_session: Callable[[Session], OpenSession]
    window: Window | None = None

    def shown_messages(self) -> Iterator[Message]:
        """Yield the messages of the window, with very long texts cut."""
        start, stop = self.window or (0, None)
        for placed, entry in self.group.timeline[start:stop]:
            yield build_message(placed.reading, entry, shortened=True)

    def children(self) -> Iterator[Conversation]:
        """Yield the subagents."""
        for session in children(self.session, self.by_id):
            options = msgspec.structs.replace(self.options, root=session.project.path)
            yield replace(self, session=session, group=self.open_session(session), window=None, options=options)


@dataclass(slots=True)
class OpenConversation:
    """An open session with a connection of its own, so that it outlives a request; one thread reads it at a time."""

    row: SessionRow
    session: Session
    family: Mapping[str, Session]
    prices: Prices
    group: OpenSession
    open_session: Callable[[Session], OpenSession]
    resources: ExitStack
    lock: threading.RLock = field(default_factory=threading.RLock)
    _windows: tuple[Window, ...] | None = None
    _usages: dict[str, dict[str, Usage]] = field(default_factory=dict)

    def close(self) -> None:
        """Close the connection."""
        with self.lock:
            self.resources.close()

    @property
    def n_messages(self) -> int:
        """Number of messages in the timeline."""
        return len(self.group.timeline)

    def windows(self) -> tuple[Window, ...]:
        """Return the windows of the session."""
        if self._windows is None:
            self._windows = cut_windows([_cut_quality(entry) for _, entry in self.group.timeline])
        return self._windows

    def window_of(self, number: int) -> Window:
        """Return the window that contains a message; numbers begin at 1. The session must have messages."""
        windows = self.windows()
        return windows[max(0, bisect_right(windows, (max(number, 1) - 1, self.n_messages)) - 1)]

    def outline(self, start: int = 0, limit: int | None = None) -> list[OutlineEntry]:
        """Return up to `limit` prompts from the `start`th on."""
        places = self._prompt_places
        stop = None if limit is None else start + limit
        return [self._outline_entry(place) for place in places[start:stop]]

    @property
    def n_prompts(self) -> int:
        """Number of prompts, dropped ones included."""
        return len(self._prompt_places)

    @property
    def _prompt_places(self) -> list[int]:
        return [place for place, (_, entry) in enumerate(self.group.timeline) if _is_prompt(entry)]

    def _outline_entry(self, place: int) -> OutlineEntry:
        entry = self.group.timeline[place][1]
        return OutlineEntry(place + 1, line(entry.prompt, _ENTRY) or "(no text)", parse_time(entry.at), entry.fate)

    def moments(self) -> Iterator[Moment]:
        """Yield the prompts, model calls and errors in the order of the timeline."""
        usages = self.usage_by_message(self.session)
        for number, (_, entry) in enumerate(self.group.timeline, 1):
            at, usage = parse_time(entry.at), usages.get(entry.id)
            if _is_prompt(entry):
                yield Moment(number, "prompt", at, entry.fate, line(entry.prompt, _ENTRY))
            elif entry.kind == Kind.ERROR:
                yield Moment(number, "error", at, entry.fate)
            if usage is not None:
                yield Moment(number, "call", at, entry.fate, usage=usage)

    def fates(self) -> list[Fate]:
        """Return the fate of each message."""
        return [entry.fate for _, entry in self.group.timeline]

    def last_turn(self, place: int) -> int:
        """Return where the turn begins that contains a place: at an active prompt, or at the window's first message."""
        start = self.window_of(place + 1).start if self.n_messages else 0
        for index in range(min(place, self.n_messages - 1), start, -1):
            if _cut_quality(self.group.timeline[index][1]) == 2:  # noqa: PLR2004  an active prompt
                return index
        return start

    def numbers_by_id(self) -> dict[str, int]:
        """Return the number of each message, by its ID."""
        return {entry.id: number for number, (_, entry) in enumerate(self.group.timeline, 1)}

    def usage_by_message(self, session: Session) -> Mapping[str, Usage]:
        """Return tokens and cost of the messages of this session or one of its subagents, by their IDs."""
        if session.id not in self._usages:
            self._usages[session.id] = usage_by_message(session, self.prices)
        return self._usages[session.id]

    def blocks(self, options: TranscriptOptions, window: Window | None = None) -> Iterator[PlacedBlock[Conversation]]:
        """Yield the blocks of the session, or of a window of it, with the numbers that they have in the session."""
        options = msgspec.structs.replace(options, root=self.session.project.path)
        source = Conversation(self.session, self.family, options, self.group, self.open_session, window)
        if window is None:
            return placed_blocks(source)
        entries = (entry for _, entry in self.group.timeline[: window.start])
        n_prompts = sum(_is_numbered(entry, options) for entry in entries)
        is_last = window.stop >= self.n_messages
        return placed_blocks(source, n_before=window.start, prompts_before=n_prompts, is_last=is_last)

    def message(self, number: int) -> Message:
        """Return a message in full; numbers begin at 1. Raises `IndexError`."""
        if not 1 <= number <= self.n_messages:
            raise IndexError(number)
        placed, entry = self.group.timeline[number - 1]
        return build_message(placed.reading, entry)

    def messages(self, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        """Yield messages of the timeline in full; the first is 0."""
        for placed, entry in self.group.timeline[start:stop]:
            yield build_message(placed.reading, entry)

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
        if not 1 <= number <= self.n_messages:
            raise IndexError(number)
        placed, entry = self.group.timeline[number - 1]
        return placed.reading.source.slice(entry.content.span)


def open_conversation(snapshot: Snapshot, row: SessionRow, prices: Prices, resources: ExitStack) -> OpenConversation:
    """Open the session of a row; `resources` are closed with it."""
    session = load_session(snapshot, row.id)
    family = load_families(snapshot, [session.id], [session])
    opener = snapshot.sessions.open
    return OpenConversation(row, session, family, prices, opener(session), opener, resources)


def _is_prompt(entry: TimelineEntry) -> bool:
    return entry.origin in _PROMPTS and entry.kind != Kind.UNKNOWN


def _cut_quality(entry: TimelineEntry) -> int:
    """Return how well a window begins at a message: best at an active prompt, else at a dropped one."""
    if not _is_prompt(entry):
        return 0
    return 2 if entry.fate is Fate.ACTIVE else 1


def _is_numbered(entry: TimelineEntry, options: TranscriptOptions) -> bool:
    """Return whether a message is a prompt that the options show."""
    if not _is_prompt(entry) or (options.detail is Detail.PROMPTS and entry.origin is not Origin.HUMAN):
        return False
    return entry.fate is Fate.ACTIVE or options.branches is Branches.ALL or options.folds_dropped
