"""Keep the sessions that readers have open, and the windows that were rendered of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.requests import Request

from pollux.library.library import Library
from pollux.library.values import SessionRow
from pollux.library.windows import OpenConversation, Window
from pollux.render.html.blocks import PageState
from pollux.render.html.markup import Html
from pollux.views.transcript import TranscriptOptions
from pollux.web.routing import viewer_of

MOST_MESSAGES = 60_000
"""Messages of all sessions that stay open; the one in use is kept even if it has more."""
MOST_WINDOWS = 400
MOST_GUIDES = 50
Rendered = tuple[Html, tuple[int, ...]]
"""A window as HTML, and the numbers of the messages that have an article in it."""
_WindowKey = tuple[str, int, TranscriptOptions, Window, int]


class OpenSessions:
    """The sessions and windows that were read last."""

    def __init__(self, library: Library, most_messages: int = MOST_MESSAGES, most_windows: int = MOST_WINDOWS) -> None:
        """Open nothing yet."""
        self._library = library
        self._most_messages, self._most_windows = most_messages, most_windows
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._open: OrderedDict[str, OpenConversation] = OrderedDict()
        self._serials: dict[str, int] = {}
        self._windows: OrderedDict[_WindowKey, Rendered] = OrderedDict()
        self._guides: OrderedDict[tuple[str, int], Html] = OrderedDict()
        self.n_opened = self.n_rendered = 0
        """How often a session was opened, and how many messages were rendered, for tests."""

    @contextmanager
    def reading(self, row: SessionRow) -> Iterator[OpenConversation]:
        """Yield the session of a row, which no other thread reads meanwhile."""
        while True:
            conversation = self._conversation(row)
            with conversation.lock:
                if not conversation.is_closed:
                    yield conversation
                    return

    def _conversation(self, row: SessionRow) -> OpenConversation:
        with self._lock:
            opening = self._opening.setdefault(row.id, threading.Lock())
        with opening:  # two tabs open a session once
            with self._lock:
                conversation = self._open.get(row.id)
                if conversation is not None and conversation.row == row and not conversation.is_closed:
                    self._open.move_to_end(row.id)
                    return conversation
                before = self._open.pop(row.id, None)
            if before is not None:
                before.close()
            conversation = before = None  # its memory is needed to open the session again
            conversation = self._library.conversation(row)
            with self._lock:
                self.n_opened += 1
                self._serials[row.id] = self.n_opened
                self._open[row.id] = conversation
                surplus = [*self._surplus()]
            for old in surplus:
                old.close()
            return conversation

    def _surplus(self) -> Iterator[OpenConversation]:
        """Remove and yield the sessions that were read longest ago, as long as there are too many messages."""
        n_messages = sum(conversation.n_messages for conversation in self._open.values())
        while n_messages > self._most_messages and len(self._open) > 1:
            _, oldest = self._open.popitem(last=False)
            n_messages -= oldest.n_messages
            yield oldest

    def window(
        self,
        conversation: OpenConversation,
        options: TranscriptOptions,
        window: Window,
        render: Callable[[], tuple[Html, PageState]],
        target: int = 0,
    ) -> Rendered:
        """Return a window as HTML, rendered now or before; `target` is the message that the reader asked for."""
        session_id = conversation.row.id
        with self._lock:
            key = (session_id, self._serials[session_id], options, window, target)
            rendered = self._windows.get(key)
            if rendered is not None:
                self._windows.move_to_end(key)
                return rendered
        markup, page = render()
        rendered = (markup, tuple(page.shown))
        with self._lock:
            self.n_rendered += window.stop - window.start
            self._windows[key] = rendered
            while len(self._windows) > self._most_windows:
                self._windows.popitem(last=False)
        return rendered

    def guide(self, conversation: OpenConversation, draw: Callable[[], Html]) -> Html:
        """Return the drawing of a whole session, drawn now or before."""
        session_id = conversation.row.id
        with self._lock:
            key = (session_id, self._serials[session_id])
            drawing = self._guides.get(key)
        if drawing is None:
            drawing = draw()
            with self._lock:
                self._guides[key] = drawing
                while len(self._guides) > MOST_GUIDES:
                    self._guides.popitem(last=False)
        return drawing

    def close(self) -> None:
        """Close all sessions."""
        with self._lock:
            conversations = [*self._open.values()]
            self._open.clear()
            self._windows.clear()
            self._guides.clear()
        for conversation in conversations:
            conversation.close()


_creating = threading.Lock()


def open_sessions(request: Request) -> OpenSessions:
    """Return the open sessions of the server that got a request."""
    state = request.app.state
    with _creating:
        if not hasattr(state, "open_sessions"):
            state.open_sessions = OpenSessions(viewer_of(request).library)
    sessions = state.open_sessions
    assert isinstance(sessions, OpenSessions)
    return sessions
