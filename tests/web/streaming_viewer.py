"""A viewer with two more pages, run as a process of its own: an endless stream, and a page that takes for ever.

python -m tests.web.streaming_viewer ARCHIVE
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from pollux.library.config import DEMO_HOME, configure
from pollux.library.library import Library
from pollux.web import app, server
from pollux.web.routing import page, viewer_of


async def stream(request: Request) -> Response:
    async def events() -> AsyncIterator[str]:
        with viewer_of(request).streams.opened() as is_over:
            yield "event: hello\ndata: {}\n\n"
            await is_over.wait()
            yield "event: bye\ndata: {}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


async def deaf_stream(_request: Request) -> Response:
    async def events() -> AsyncIterator[str]:
        yield "event: hello\ndata: {}\n\n"
        await asyncio.Event().wait()

    return StreamingResponse(events(), media_type="text/event-stream")


def wait(_request: Request, _library: Library) -> Response:
    threading.Event().wait()
    raise AssertionError


async def stuck(_request: Request) -> Response:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # as if a signal came just before the call
    sys.stdout.write("stuck\n")
    sys.stdout.flush()
    threading.Event().wait()  # in the thread of the event loop
    raise AssertionError


ROUTES = (
    Route("/stuck", stuck),
    Route("/stream", stream),
    Route("/deaf", deaf_stream),
    Route("/wait", page(wait)),
)

if __name__ == "__main__":
    server.create_app = partial(app.create_app, pages=[*app.PAGES, ROUTES])  # type: ignore[attr-defined]
    server.serve(
        configure(named_homes=[DEMO_HOME], archive=Path(sys.argv[1])),
        server.TabOpener(partial(print, flush=True), prints_tickets=True),
    )
    os._exit(0)  # as `pollux.__main__` does
