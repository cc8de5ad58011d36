"""Events for open tabs: one watcher brings the archive up to date, and each tab hears what has changed.

The watcher runs only while a tab listens. A tab on a session gets the turns that have grown as HTML; one on another
page gets the IDs of the sessions that have changed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from pollux import __version__
from pollux.errors import PolluxError
from pollux.library.library import Library
from pollux.library.values import SessionRow
from pollux.library.windows import Window
from pollux.model import Fate, Json
from pollux.text.encode import encode
from pollux.web.changes import change_mark
from pollux.web.open_sessions import open_sessions
from pollux.web.pages.session import outline_items, rendered_window, row_version
from pollux.web.requests import number, parameter, transcript_options
from pollux.web.routing import Viewer, viewer_of
from pollux.web.session_header import session_actions, session_facts

KEEP_ALIVE = 15.0
"""Seconds without an event after which a comment is sent, so that a dead connection is noticed."""
MOST_WAIT = 5.0
"""Seconds that the index waits for tabs at most."""
_MOST_IDS = 100
Changed = frozenset[str]
"""IDs of sessions that have changed; empty if the client has deleted files, which changes no session."""


class Watcher:
    """Syncs the archive while tabs listen, and tells them which sessions have changed."""

    def __init__(self, viewer: Viewer) -> None:
        """Watch nothing yet."""
        self._viewer, self._library = viewer, viewer.library
        self._lock = threading.Lock()
        self._listeners: dict[asyncio.Queue[Changed], asyncio.AbstractEventLoop] = {}
        self._unrendered: dict[asyncio.Queue[Changed], int] = {}
        """For each listener, the changes that it has not rendered yet."""
        self._is_rendered = threading.Condition(self._lock)
        self._stop: threading.Event | None = None
        self._has_begun = threading.Event()

    @contextmanager
    def listening(self) -> Iterator[asyncio.Queue[Changed]]:
        """Yield a queue that gets the sessions of each sync; the first listener starts the thread, the last ends it."""
        queue: asyncio.Queue[Changed] = asyncio.Queue()
        with self._lock:
            self._listeners[queue] = asyncio.get_running_loop()
            self._unrendered[queue] = 0
            if self._stop is None and self._library.config.archive is not None:
                self._stop, self._has_begun = threading.Event(), threading.Event()
                threading.Thread(target=self._run, args=(self._stop, self._has_begun), daemon=True).start()
        try:
            yield queue
        finally:
            with self._lock:
                del self._listeners[queue], self._unrendered[queue]
                self._is_rendered.notify_all()
                if not self._listeners and self._stop is not None:
                    self._stop.set()
                    self._stop = None

    @property
    def is_running(self) -> bool:
        """Whether a thread watches the homes."""
        return self._stop is not None

    def wait(self) -> None:
        """Return when every later change will be announced."""
        if self.is_running:
            self._has_begun.wait()

    def _run(self, stop: threading.Event, has_begun: threading.Event) -> None:
        self._viewer.wait()  # the first reading of the homes comes first
        with suppress(PolluxError):  # pages report what is wrong with the archive
            try:
                mark, _ = self._library.changes()
                n_deleted = self._library.count_deleted()
            finally:
                has_begun.set()

            def announce() -> None:
                nonlocal mark, n_deleted
                mark, changed = self._library.changes(mark)  # a page may have archived them before this sync
                before, n_deleted = n_deleted, self._library.count_deleted()  # or noticed that they are gone
                if n_deleted != before:
                    self.announce(frozenset())
                if changed:
                    self.announce(changed)
                if changed or n_deleted != before:
                    self.wait_for_tabs()  # they would share the processor and the memory with the index

            for report in self._library.watch(stop=stop, archived=announce):
                if report.n_deleted:  # some of a session's files
                    self.announce(frozenset())

    def announce(self, changed: Changed) -> None:
        """Send the sessions that have changed to all listeners."""
        with self._lock:
            listeners = [*self._listeners.items()]
            for queue in self._listeners:
                self._unrendered[queue] += 1
        for queue, loop in listeners:
            with suppress(RuntimeError):  # the loop is closed: the server stops
                loop.call_soon_threadsafe(queue.put_nowait, changed)

    def note_rendered(self, queue: asyncio.Queue[Changed]) -> None:
        """Note that a listener has rendered a change."""
        with self._lock:
            self._unrendered[queue] -= 1
            self._is_rendered.notify_all()

    def wait_for_tabs(self, seconds: float = MOST_WAIT) -> bool:
        """Wait until all listeners have rendered what was announced, or some time has passed; return which."""
        with self._is_rendered:
            return self._is_rendered.wait_for(lambda: not any(self._unrendered.values()), seconds)


_creating = threading.Lock()


def watcher_of(request: Request) -> Watcher:
    """Return the watcher of the server that got a request."""
    state = request.app.state
    with _creating:
        if not hasattr(state, "watcher"):
            state.watcher = Watcher(viewer_of(request))
    watcher = state.watcher
    assert isinstance(watcher, Watcher)
    return watcher


def event(name: str, value: Json, id_: int) -> bytes:
    """Return a server-sent event; JSON in one line, since a line feed in a text would end the event."""
    return f"event: {name}\nid: {id_}\ndata: ".encode() + encode(value) + b"\n\n"


async def all_events(request: Request) -> Response:
    """Return the stream of all changes: the IDs of sessions that have changed, first those since the page was made."""
    library, mark = viewer_of(request).library, change_mark(parameter(request, "mark"))

    def first() -> tuple[str, Json] | None:
        changed = library.changes(mark)[1] if mark is not None else frozenset()
        return sessions(changed) if changed else None

    def sessions(changed: Changed) -> tuple[str, Json] | None:
        if not changed:
            return None
        return "sessions", {"ids": sorted(changed)[:_MOST_IDS], "more": len(changed) > _MOST_IDS}

    await anyio.to_thread.run_sync(viewer_of(request).wait)
    return _stream(request, first, sessions)


async def session_events(request: Request) -> Response:
    """Return the stream of changes of one session."""
    await anyio.to_thread.run_sync(viewer_of(request).wait)
    library = viewer_of(request).library
    row = await anyio.to_thread.run_sync(library.session, request.path_params["session"])
    reader = TabUpdates(request, library, row)
    return _stream(request, reader.first, reader.next)


class TabUpdates:
    """Renders what is new in a session since a tab last heard of it."""

    def __init__(self, request: Request, library: Library, row: SessionRow) -> None:
        """Store how many messages the tab has, and the version of the session that it shows."""
        self._request, self._library, self._row = request, library, row
        self._options = transcript_options(request)
        self._total = number(request, "total", 0)
        self._version = parameter(request, "version")
        self._fates: list[Fate] | None = None

    def first(self) -> tuple[str, Json] | None:
        """Return what the tab has missed, if anything."""
        return self._news()

    def next(self, changed: Changed) -> tuple[str, Json] | None:
        """Return what is new after a sync, if the session or one of its subagents may have changed."""
        family = {self._row.id}
        with open_sessions(self._request).reading(self._row) as conversation:
            family |= set(conversation.family)
        return self._news() if not changed or changed & family else None

    def _news(self) -> tuple[str, Json] | None:
        row = self._row = self._library.session(self._row.id)
        version = row_version(row)
        if version == self._version and self._fates is not None:
            return None
        sessions = open_sessions(self._request)
        with sessions.reading(row) as conversation:
            fates, total = conversation.fates(), conversation.n_messages
            before, self._fates = self._fates, fates
            if version == self._version:
                return None
            had, self._total = self._total, total
            old_version, self._version = self._version, version
            start = _first_change(before, fates, had)
            is_lost = before is None and version.partition("-")[0] != old_version.partition("-")[0]
            if is_lost or had > total or start < conversation.window_of(max(1, had)).start:
                return "again", {"total": total}
            start = conversation.last_turn(start)
            window = Window(start, total)
            html, _ = rendered_window(self._request, sessions, conversation, self._options, window)
            value: dict[str, Json] = {"from": start + 1, "total": total, "version": version, "html": str(html)}
            value["prompts"] = str(outline_items(self._request, row, conversation, start))
            value["facts"] = str(session_facts(row, conversation))
            value["acts"] = str(session_actions(self._request, self._library, row, conversation))
            return "grown", value


def _first_change(before: list[Fate] | None, after: list[Fate], n_before: int) -> int:
    """Return the first place whose message may look different: a new fate, or the last one of before."""
    for place, (old, new) in enumerate(zip(before or (), after, strict=False)):
        if old is not new:
            return place
    return max(0, min(n_before, len(after)) - 1)


def _stream(
    request: Request,
    first: Callable[[], tuple[str, Json] | None],
    next_: Callable[[Changed], tuple[str, Json] | None],
) -> Response:
    """Return a stream that says hello, what was missed, and then what is new, until the tab or the server ends it."""
    viewer, watcher = viewer_of(request), watcher_of(request)

    async def events() -> AsyncIterator[bytes]:
        ids = count(1)
        with viewer.streams.opened() as stop, watcher.listening() as queue:
            await anyio.to_thread.run_sync(watcher.wait)
            missed = await anyio.to_thread.run_sync(first)
            yield event("hello", {"version": __version__}, next(ids))
            if missed:
                yield event(*missed, next(ids))
            stopping = asyncio.create_task(stop.wait())
            try:
                while True:
                    changed = await _next_change(queue, stopping)
                    if stopping.done():
                        yield event("bye", {}, next(ids))
                        return
                    news = await anyio.to_thread.run_sync(next_, changed) if changed is not None else None
                    if changed is not None:
                        watcher.note_rendered(queue)
                    yield event(*news, next(ids)) if news else b": \n\n"
            finally:
                stopping.cancel()

    return StreamingResponse(events(), media_type="text/event-stream")


async def _next_change(queue: asyncio.Queue[Changed], stopping: asyncio.Task[bool]) -> Changed | None:
    """Return the sessions that have changed; None when the server stops, and after a while without a change."""
    waiting = asyncio.create_task(queue.get())
    try:
        await asyncio.wait({waiting, stopping}, timeout=KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() else None
    finally:
        waiting.cancel()  # also when the tab has been closed, which cancels this coroutine


ROUTES = (Route("/events", all_events), Route("/s/{session}/events", session_events))
