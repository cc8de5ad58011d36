"""Start the server, find one that runs already, sign a browser tab in, and stop on Ctrl-C.

Only the loopback interface is bound; from another computer, `ssh -L` leads here.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import hmac
import http.client
import os
import secrets
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote

import anyio.to_thread
import msgspec
import uvicorn
from starlette.types import ASGIApp

from pollux.errors import PolluxError
from pollux.library.config import Config
from pollux.library.library import Library
from pollux.library.viewer_files import (
    HOST,
    RunningViewer,
    remove_tab_file,
    remove_tab_files,
    remove_viewer,
    running_viewer,
    store_viewer,
    viewer_label,
    write_tab_file,
)
from pollux.web.app import create_app
from pollux.web.first_reading import FirstReading
from pollux.web.guard import ALIVE, Guard, Pass, proof
from pollux.web.routing import OpenStreams, Viewer
from pollux.web.tickets import Tickets

USUAL_PORT = 2990
"""The number of Pollux in the Bright Star Catalogue."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_GC_THRESHOLDS = (10_000, 10, 10)
"""Unlike a command, a server lives long enough to have garbage."""
_THREADS = 12
"""Requests that are handled at the same time; each thread has its own connection to the archive."""
_TIMEOUT = 5.0
"""Seconds in which a running server answers a second start."""
_MAX_ANSWER = 4096
_MALLOC_OPTIONS = {-8: 2, -3: 128 << 10, -1: 128 << 10}
"""Values for glibc's M_ARENA_MAX, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD.

They never grow then, so that memory for a long session that was opened, derived or indexed goes back to the system.
"""
_LATE = 0.05
"""Seconds after which connections are closed again that were accepted while the server stops."""
_NET = 0.9
"""Seconds after a signal at which the process is ended by force."""


class TabOpener(msgspec.Struct, frozen=True):
    """How the user gets to the first page."""

    note: Callable[[str], None]
    """Prints a sentence."""
    open_file: Callable[[Path], bool] | None = None
    """Opens a file in the browser and returns whether that worked; None if the user does not want it."""
    prints_tickets: bool = False
    """Whether only the user sees what `note` prints, so that an address may contain a ticket."""
    path: str = ""
    """The first page, below the label."""


class AliveAnswer(msgspec.Struct, frozen=True):
    """What a running server answers to a second start."""

    ticket: str
    proof: str


def serve(config: Config, opener: TabOpener, port: int | None = None) -> None:
    """Open a tab of the server that runs already, or start one and wait until Ctrl-C.

    Raises `PolluxError` if the port is taken.
    """
    if open_running(config, opener):
        return
    with listen(port) as listener, Library(config) as library:
        entry = Pass(viewer_label(config), listener.getsockname()[1])
        tickets = Tickets(partial(remove_tab_file, config))
        viewer = Viewer(library, entry.label, config.clock)
        guard = Guard(create_app(viewer), entry, tickets, partial(_note_failure, opener.note, set()))
        running = RunningViewer(os.getpid(), entry.port, entry.label, entry.secret)
        remove_tab_files(config)
        store_viewer(config, running)
        reading = FirstReading(viewer)
        try:
            _open_tab(config, running, opener, tickets.issue)
            reading.start()
            run(guard, listener, viewer.streams, partial(remove_viewer, config, running))
        finally:
            reading.stop()
            remove_viewer(config, running)


def open_running(config: Config, opener: TabOpener) -> bool:
    """Open a tab of the server that runs already, and return whether there is one."""
    running = running_viewer(config)
    if running is None or (ticket := ask_for_ticket(running)) is None:
        return False
    unused = [ticket]
    _open_tab(config, running, opener, lambda: unused.pop() if unused else ask_for_ticket(running) or "")
    return True


def ask_for_ticket(running: RunningViewer) -> str | None:
    """Return a ticket of a running server; None if it does not answer, or is another program on the same port.

    Both sides prove that they know the secret; neither sends it, nor the label.
    """
    nonce = secrets.token_urlsafe(32)
    connection = http.client.HTTPConnection(HOST, running.port, timeout=_TIMEOUT)
    try:
        connection.request(
            "GET", f"{ALIVE}?nonce={nonce}", headers={"Authorization": proof(running.secret, "ask", nonce)}
        )
        answer = msgspec.json.decode(connection.getresponse().read(_MAX_ANSWER), type=AliveAnswer)
    except (OSError, http.client.HTTPException, msgspec.DecodeError):
        return None
    finally:
        connection.close()
    is_ours = hmac.compare_digest(answer.proof.encode(), proof(running.secret, "answer", nonce).encode())
    return answer.ticket if is_ours else None


def listen(port: int | None = None) -> socket.socket:
    """Return a listening socket: on the port, or else on the usual one, or else on any that is free.

    Raises `PolluxError` if the port that the user named cannot be used.
    """
    try:
        return _bound(USUAL_PORT if port is None else port)
    except OSError as error:
        if port is None:
            return _bound(0)
        reason = "another program uses it" if error.errno == errno.EADDRINUSE else str(error.strerror or error).lower()
        raise PolluxError(
            f"Cannot listen on port {port}: {reason}. Choose another port, or leave out --port."
        ) from None


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":  # where SO_REUSEADDR would let two programs share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener


def _open_tab(config: Config, running: RunningViewer, opener: TabOpener, issue: Callable[[], str]) -> None:
    """Open the first page in the browser, and print its address."""
    root = f"http://{HOST}:{running.port}/{running.label}/"
    is_open = False
    if opener.open_file is not None:
        ticket = issue()
        is_open = opener.open_file(write_tab_file(config, ticket, _ticket_address(root, ticket, opener.path)))
        if not is_open:
            remove_tab_file(config, ticket)
    is_own = running.pid == os.getpid()
    state = "Pollux serves your sessions at" if is_own else "Pollux is running at"
    address = _ticket_address(root, issue(), opener.path) if opener.prints_tickets else root + opener.path
    lines = [f"{state} {address}"]
    if not is_open and not opener.prints_tickets:
        lines.append("Run `pollux web` in a terminal to get an address that signs a browser in.")
    if is_own:
        lines.append("Press Ctrl-C to stop.")
    opener.note("\n".join(lines))


def _ticket_address(root: str, ticket: str, path: str) -> str:
    return f"{root}in?t={ticket}" + (f"&to={quote(path, safe='/')}" if path else "")


def run(app: ASGIApp, listener: socket.socket, streams: OpenStreams, clean_up: Callable[[], None]) -> None:
    """Serve until a signal arrives; then end the streams, and wait a second for other answers.

    If the process has not ended `_NET` seconds after the signal, `clean_up` is called and the process exits.
    """
    gc.set_threshold(*_GC_THRESHOLDS)
    _return_freed_memory()
    settings = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    LocalServer(settings, streams, clean_up).run(sockets=[listener])


def _return_freed_memory() -> None:
    """Make glibc return freed memory soon; other C libraries have no such options."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        for option, value in _MALLOC_OPTIONS.items():
            set_option(option, value)


class LocalServer(uvicorn.Server):
    """A server that sleeps while nothing happens, and that open streams do not keep alive."""

    def __init__(self, config: uvicorn.Config, streams: OpenStreams, clean_up: Callable[[], None]) -> None:
        """Store the streams, which end first, and what to do if the process has to be ended by force."""
        super().__init__(config)
        self._streams, self._clean_up = streams, clean_up
        self._is_over = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `stop` is called twice, or once and all answers have ended."""
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        self._task = asyncio.current_task()
        try:
            await super().serve(sockets)
        except asyncio.CancelledError:
            if not self.force_exit:
                raise

    async def main_loop(self) -> None:
        """Wait for `stop`; uvicorn would wake up ten times a second."""
        await self._is_over.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close connections, also those that are accepted meanwhile; uvicorn would wait until their browsers do."""
        closing = asyncio.create_task(self._close_connections())
        try:
            await super().shutdown(sockets)
        finally:
            closing.cancel()

    async def _close_connections(self) -> None:
        while True:
            await asyncio.sleep(_LATE)
            for connection in [*self.server_state.connections]:
                connection.shutdown()

    def stop(self) -> None:
        """End; the second call does not wait for answers."""
        if self.should_exit:
            self.force_exit = True
            if self._task is not None:
                self._task.cancel()
        self.should_exit = True
        self._streams.end()
        self._is_over.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on Ctrl-C and SIGTERM; uvicorn would raise the signal again at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals, sender = socket.socketpair()
        sender.settimeout(0)
        threading.Thread(target=self._obey, args=(signals, asyncio.get_running_loop()), daemon=True).start()
        # Python sends the number only of signals that have a handler.
        before = [(number, signal.signal(number, lambda *_: None)) for number in _SIGNALS]
        before_sender = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before_sender)
            for number, handler in before:
                signal.signal(number, handler)
            sender.close()

    def _obey(self, signals: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        """Call `stop` at each signal, and end the process soon after it.

        Python sends the number of a signal through a socket at once. Its handlers would run in the main thread, which
        may be in a call that does not end.
        """
        with signals:
            while number := signals.recv(1):
                if number[0] in _SIGNALS:
                    net = threading.Timer(_NET, self._exit)
                    net.daemon = True
                    net.start()
                    with suppress(RuntimeError):  # the loop has ended meanwhile
                        loop.call_soon_threadsafe(self.stop)

    def _exit(self) -> None:
        """End the process, which should have ended long ago; SQLite undoes what was not committed."""
        self._clean_up()
        os._exit(0)


def _note_failure(note: Callable[[str], None], noted: set[str], error: Exception) -> None:
    """Print which line failed, once for each line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if f"{os.sep}pollux{os.sep}" in frame.filename] or list(frames)
    place = f"{'/'.join(Path(own[-1].filename).parts[-2:])}:{own[-1].lineno}" if own else "unknown place"
    sentence = f"A page could not be created ({type(error).__name__} in {place}). Please report this bug."
    if sentence not in noted:
        noted.add(sentence)
        note(sentence)
