"""The application: the route tables of all page modules, below the label of the archive."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Mount, Route

from pollux.errors import PolluxError
from pollux.web import api, live, static
from pollux.web.failures import http_failure, pollux_failure, unknown_failure
from pollux.web.pages import (
    files,
    health,
    overview,
    projects,
    search,
    session,
    session_calls,
    session_files,
    sessions,
    usage,
)
from pollux.web.routing import Viewer

PAGES: tuple[tuple[Route, ...], ...] = (
    static.ROUTES,
    overview.ROUTES,
    usage.ROUTES,
    session_calls.ROUTES,
    session_files.ROUTES,
    sessions.ROUTES,
    search.ROUTES,
    projects.ROUTES,
    files.ROUTES,
    health.ROUTES,
    api.ROUTES,
    live.ROUTES,
    session.ROUTES,
)
"""The `ROUTES` of each page module; a new page adds its table here."""


def create_app(viewer: Viewer, pages: Iterable[Iterable[BaseRoute]] = PAGES) -> Starlette:
    """Return the application that serves a library."""
    routes = [route for table in pages for route in table]
    handlers = {PolluxError: pollux_failure, HTTPException: http_failure, Exception: unknown_failure}
    app = Starlette(routes=[Mount(f"/{viewer.label}", routes=routes)], exception_handlers=handlers)
    app.state.viewer = viewer
    app.state.label = viewer.label
    app.state.zone, app.state.zone_name = viewer.library.config.zone()
    return app
