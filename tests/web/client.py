"""Call the viewer without a socket, with exactly the headers that a test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message

from pollux.library.config import DEMO_HOME, configure
from pollux.library.library import Library
from pollux.web.app import PAGES, create_app
from pollux.web.guard import Guard, Pass
from pollux.web.routing import Viewer
from pollux.web.tickets import Tickets

LABEL, PORT = "k3x9demo00", 2990
HOST = ("host", f"127.0.0.1:{PORT}")
Headers = Sequence[tuple[str, str]]


class Answer(NamedTuple):
    """What a browser gets."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(app: ASGIApp, target: str, headers: Headers = (HOST,), method: str = "GET") -> Answer:
    """Return the answer to one request; `headers` are all that it has."""
    messages: list[Message] = []

    async def receive() -> Message:
        if any(message["type"] == "http.response.body" and not message.get("more_body") for message in messages):
            return {"type": "http.disconnect"}
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "server": ("127.0.0.1", PORT),
        "client": ("127.0.0.1", 50000),
    }
    asyncio.run(_call(app, scope, receive, send))
    [start] = [message for message in messages if message["type"] == "http.response.start"]
    body = b"".join(message.get("body", b"") for message in messages if message["type"] == "http.response.body")
    return Answer(start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, body)


async def _call(app: ASGIApp, *arguments: object) -> None:
    await app(*arguments)  # type: ignore[arg-type]


class Site(NamedTuple):
    """A viewer of the demo, behind its guard."""

    app: Guard
    entry: Pass
    tickets: Tickets
    viewer: Viewer
    failures: list[Exception]

    @property
    def root(self) -> str:
        return self.entry.root

    @property
    def cookie(self) -> tuple[str, str]:
        return ("cookie", f"{self.entry.cookie_name}={self.entry.cookie}")

    def get(self, path: str = "", headers: Headers = ()) -> Answer:
        """Return a page below the label, as a browser that is signed in gets it."""
        return ask(self.app, self.root + path, (HOST, self.cookie, *headers))


@contextmanager
def demo_site(archive: Path, pages: Iterable[Iterable[BaseRoute]] = PAGES, *, home: Path = DEMO_HOME) -> Iterator[Site]:
    """Open a viewer of the demo's sessions, or of another home, with an archive of its own."""
    with Library(configure(named_homes=[home], archive=archive)) as library:
        viewer = Viewer(library, LABEL, library.config.clock)
        entry, tickets, failures = Pass(LABEL, PORT), Tickets(), list[Exception]()
        yield Site(Guard(create_app(viewer, pages), entry, tickets, failures.append), entry, tickets, viewer, failures)
