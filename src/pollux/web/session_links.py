"""Addresses of sessions, of their messages, and of what lies below them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import quote

from starlette.requests import Request

from pollux.errors import PolluxError
from pollux.library.library import Library
from pollux.library.values import SessionRow
from pollux.web.layout import address
from pollux.web.requests import path_id


def session_address(request: Request, session_id: str, path: str = "", **query: str | int | bool | None) -> str:
    """Return the address of a session, or of a page below it."""
    return address(request, session_path(request, session_id, path), **query)


def session_path(request: Request, session_id: str, path: str = "") -> str:
    """Return the path of a session, or of a page below it, without the label."""
    names: Mapping[str, str] = getattr(request.state, "names", {})
    name = names.get(session_id) or path_id(session_id, session_id[:8])
    return f"s/{name}/{path}" if path else f"s/{name}"


def message_address(request: Request, session_id: str, number: int) -> str:
    """Return the address of a message: the page at its window, and the message on it."""
    return f"{session_address(request, session_id, str(number))}#m{number}"


def short_names(library: Library, row: SessionRow) -> dict[str, str]:
    """Return the short ID of a session, for its hundreds of links to itself, unless it names another one, too."""
    short_id = row.short_id
    if short_id != row.id and path_id(short_id, "") and row.id.startswith(short_id):
        with suppress(PolluxError):
            if library.session(short_id).id == row.id:
                return {row.id: short_id}
    return {}


def file_header(name: str) -> str:
    """Return the Content-Disposition of a download."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
