"""What page modules share: the viewer's state, and handlers that run in a thread.

The event loop never reads a file: a handler registered with `page` runs in a worker thread. `StreamedResponse` produces
a long answer in one worker thread as well, because the archive's connection belongs to the thread that opened it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime

import anyio.from_thread
import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from pollux.errors import MissingArchiveError, PolluxError
from pollux.library.library import Library
from pollux.render.html.markup import Html, element
from pollux.text.escape import make_visible

Handler = Callable[[Request, Library], Response]
_PIECE = 16_000
"""Characters that are sent together."""


class OpenStreams:
    """The event streams that browsers hold open; all of them end when the server stops."""

    def __init__(self) -> None:
        """Start without streams."""
        self.number = 0
        self._events: set[asyncio.Event] = set()
        self._are_over = False

    @contextmanager
    def opened(self) -> Iterator[asyncio.Event]:
        """Yield an event that is set when the server stops; the stream must end then."""
        event = asyncio.Event()
        if self._are_over:
            event.set()
        self._events.add(event)
        self.number += 1
        try:
            yield event
        finally:
            self._events.discard(event)
            self.number -= 1

    def end(self) -> None:
        """End all streams, and those that are opened from now on."""
        self._are_over = True
        for event in self._events:
            event.set()


class StillReadingError(PolluxError):
    """There is nothing to show yet: the first reading of all session files has only begun."""

    def __init__(self) -> None:
        """Build the message."""
        super().__init__("Pollux is reading your session files for the first time. The page appears by itself.")


class Reading(msgspec.Struct, frozen=True):
    """How far the first reading of all session files is, in bytes."""

    done: int
    all: int

    @property
    def percent(self) -> int:
        """The share that is done."""
        return 100 * self.done // self.all if self.all else 0


def _set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


class Viewer(msgspec.Struct):
    """What handlers know about the running server; `viewer_of` returns it."""

    library: Library
    label: str
    """First part of every path: ten random letters and digits, the same at every start."""
    clock: Callable[[], datetime]
    streams: OpenStreams = msgspec.field(default_factory=OpenStreams)
    reading: Reading | None = None
    """The first reading, while it lasts; pages then show what has been read so far."""
    settled: threading.Event = msgspec.field(default_factory=_set_event)
    """Set when the archive is up to date, or when that takes so long that pages do not wait for it."""

    def wait(self) -> None:
        """Wait until pages can be made. Raises `StillReadingError` if nothing has been read yet."""
        self.settled.wait()
        if self.reading is not None and not self.library.has_state:
            raise StillReadingError


def viewer_of(request: Request) -> Viewer:
    """Return the state of the server that got a request."""
    viewer = request.app.state.viewer
    assert isinstance(viewer, Viewer)
    return viewer


def page(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint for a route that calls a handler with the request and the library, in a worker thread."""

    def answer(request: Request) -> Response:
        viewer = viewer_of(request)
        viewer.wait()
        try:
            return handler(request, viewer.library)
        except MissingArchiveError:  # somebody has removed it: archive the sessions again
            with viewer.library.stale():
                pass
            return handler(request, viewer.library)

    async def endpoint(request: Request) -> Response:
        return await anyio.to_thread.run_sync(answer, request, abandon_on_cancel=True)

    return endpoint


class StreamedResponse(Response):
    """An answer whose pieces are produced in one worker thread while they are sent.

    Exceptions of the first piece become an error page. Once the status has been sent, a page ends with a sentence about
    the exception; another answer breaks the connection, so that half of it does not look whole.
    """

    def __init__(
        self,
        pieces: Iterable[str],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str = "text/html",
    ) -> None:
        """Store the pieces; none is produced yet."""
        self._pieces = pieces
        self._is_started = False
        super().__init__(None, status, headers, media_type)
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        is_gone = asyncio.Event()

        async def listen() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            is_gone.set()

        async def emit(message: Message) -> None:
            await send(message)

        def transmit() -> None:
            start: Message = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            with closing(_collected(self._pieces)) as pieces:  # a generator must end in the thread it runs in
                for number, piece in enumerate(pieces):
                    if not number:
                        anyio.from_thread.run(emit, start)
                        self._is_started = True
                    if is_gone.is_set() or scope["method"] == "HEAD":
                        return
                    body = piece.encode("utf-8", "replace")
                    anyio.from_thread.run(emit, {"type": "http.response.body", "body": body, "more_body": True})

        listener = asyncio.create_task(listen())
        try:
            await anyio.to_thread.run_sync(transmit, abandon_on_cancel=True)
        except Exception as error:
            if not self._is_started or self.media_type != "text/html":
                raise
            await send({"type": "http.response.body", "body": _last_words(error).encode("utf-8", "replace")})
            if not isinstance(error, PolluxError):
                raise  # the guard reports the bug
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            listener.cancel()


def _last_words(error: Exception) -> Html:
    """Return the end of a page that cannot be completed; browsers close the elements that are still open."""
    why = "This is a bug in Pollux. Please report what its terminal has printed."
    if isinstance(error, PolluxError):
        why = make_visible(str(error))
    sentences = (element("p", "The rest of this page is missing."), element("p", why))
    return element("div", *sentences, class_="empty", role="alert")


def _collected(pieces: Iterable[str]) -> Generator[str, None, None]:
    """Yield the first piece at once, and the others in larger ones; an empty text if there is none."""
    waiting: list[str] = []
    n_waiting, is_first = 0, True
    try:
        for piece in pieces:
            waiting.append(piece)
            n_waiting += len(piece)
            if is_first or n_waiting >= _PIECE:
                yield "".join(waiting)
                waiting, n_waiting, is_first = [], 0, False
        if waiting or is_first:
            yield "".join(waiting)
    finally:
        if isinstance(pieces, Generator):
            pieces.close()
