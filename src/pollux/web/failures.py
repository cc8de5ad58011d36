"""Turn exceptions into answers: a page for people, `pollux.error/1` for programs, each with its HTTP status."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pollux.errors import (
    AmbiguousMessageError,
    AmbiguousProjectError,
    AmbiguousSessionError,
    ArchiveError,
    DamagedArchiveError,
    InvalidCursorError,
    InvalidFilterError,
    InvalidQueryError,
    MessageNotFoundError,
    PolluxError,
    ProjectNotFoundError,
    SessionNotFoundError,
)
from pollux.library.config import UsageError
from pollux.library.values import SessionRow
from pollux.render.html.markup import Html, element, joined, time_element
from pollux.text.escape import make_visible
from pollux.views import session_text
from pollux.web.door import json_error, server_failure, with_commands
from pollux.web.layout import address, document
from pollux.web.routing import StillReadingError, viewer_of
from pollux.web.session_links import session_address

_STATUS: tuple[tuple[type[PolluxError], HTTPStatus], ...] = (
    (AmbiguousSessionError, HTTPStatus.MULTIPLE_CHOICES),
    (AmbiguousMessageError, HTTPStatus.MULTIPLE_CHOICES),
    (AmbiguousProjectError, HTTPStatus.MULTIPLE_CHOICES),
    (SessionNotFoundError, HTTPStatus.NOT_FOUND),
    (MessageNotFoundError, HTTPStatus.NOT_FOUND),
    (ProjectNotFoundError, HTTPStatus.NOT_FOUND),
    (InvalidFilterError, HTTPStatus.BAD_REQUEST),
    (InvalidQueryError, HTTPStatus.BAD_REQUEST),
    (InvalidCursorError, HTTPStatus.BAD_REQUEST),
    (UsageError, HTTPStatus.BAD_REQUEST),
    (DamagedArchiveError, HTTPStatus.SERVICE_UNAVAILABLE),
    (ArchiveError, HTTPStatus.SERVICE_UNAVAILABLE),
)
"""From the most specific class to the most general."""
_OPTION = re.compile(r"--(?=(?:since|until|last|project|model)\b)")
"""What an option of the command line has before the name of the same parameter."""
_WAYS_ON = {
    "sessions": "Show all sessions",
    "search": "Start a new search",
    "usage": "Show the last 30 days",
    "projects": "Show all projects",
    "files": "Show all files",
}
"""Words of the link from an error to the page itself, without the parameters of the address."""
_MOST_LINKS = 20
_TITLES = {
    HTTPStatus.MULTIPLE_CHOICES: "More than one match",
    HTTPStatus.BAD_REQUEST: "This address cannot be used",
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.UNPROCESSABLE_ENTITY: "This cannot be read",
    HTTPStatus.SERVICE_UNAVAILABLE: "The archive cannot be read",
}


def pollux_failure(request: Request, error: Exception) -> Response:
    """Return the answer for an exception of the library, with its sentence."""
    assert isinstance(error, PolluxError)
    if isinstance(error, StillReadingError):
        return _still_reading(request, error)
    if isinstance(error, ArchiveError):
        with viewer_of(request).library.stale():  # the next page refreshes, in case the archive can be used again
            pass
    message, hint = split_sentence(_OPTION.sub("", str(error)))
    if is_for_programs(request):
        return json_error(status_of(error), code_of(error), message, hint)
    library = viewer_of(request).library
    if isinstance(error, AmbiguousSessionError):
        candidates = [library.session(session_id) for session_id in error.ids[:_MOST_LINKS]]
        return _failure_page(request, status_of(error), [message, "Choose one:"], _links(request, candidates))
    if isinstance(error, SessionNotFoundError):
        reference = str(request.path_params.get("session", ""))
        links = _links(request, library.sessions_like(reference, _MOST_LINKS))
        return _failure_page(request, status_of(error), [message, "Did you mean:" if links else hint], links)
    return _failure_page(request, status_of(error), [message, hint])


def _links(request: Request, rows: Iterable[SessionRow]) -> list[Html]:
    """Return a list item with a link for each session."""
    items = []
    for row in rows:
        title = make_visible(session_text.title(row, session_text.TITLE))
        at = joined((" · ", time_element(row.started, "full"))) if row.started else Html()
        facts = element("span", make_visible(row.short_id), at, class_="soft small")
        link = element("a", title, href=session_address(request, row.id))
        items.append(element("li", link, " ", facts))
    return items


def _still_reading(request: Request, error: StillReadingError) -> Response:
    """Return a page that loads again until there is something to show."""
    reading = viewer_of(request).reading
    done = f" {reading.percent} % done." if reading else ""
    if is_for_programs(request):
        answer = json_error(HTTPStatus.SERVICE_UNAVAILABLE, code_of(error), f"{error}{done}")
    else:
        answer = _failure_page(
            request, HTTPStatus.SERVICE_UNAVAILABLE, [f"{error}{done}"], title="Reading your sessions"
        )
        answer.headers["refresh"] = "1"
    answer.headers["retry-after"] = "1"
    return answer


def http_failure(request: Request, error: Exception) -> Response:
    """Return the answer for an address without a route, and for an exception of Starlette."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    if status is HTTPStatus.NOT_FOUND:
        message, hint = "There is no page at this address.", "The words at the top lead to all pages."
    else:
        message, hint = f"{status.phrase}.", ""
    if is_for_programs(request):
        return json_error(status, status.phrase.lower().replace(" ", "-"), message, hint)
    return _failure_page(request, status, [message, hint])


def unknown_failure(request: Request, _error: Exception) -> Response:
    """Return the answer for any other exception, which says nothing about it; the terminal does."""
    return server_failure(request.scope)


def status_of(error: PolluxError) -> HTTPStatus:
    """Return the HTTP status of an exception of the library."""
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return HTTPStatus.UNPROCESSABLE_ENTITY


def code_of(error: PolluxError) -> str:
    """Return the code of an exception: `session-not-found` for `SessionNotFoundError`."""
    name = type(error).__name__.removesuffix("Error")
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def split_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence of an error, which says what happened, and the others, which say what to do."""
    message, separator, hint = text.partition(". ")
    return message + separator.rstrip(), hint


def is_for_programs(request: Request) -> bool:
    """Return whether a request is for the API."""
    return request.url.path.startswith(f"/{viewer_of(request).label}/api/")


def _failure_page(
    request: Request, status: HTTPStatus, sentences: Sequence[str], links: Sequence[Html] = (), title: str = ""
) -> Response:
    title = title or _TITLES.get(status, status.phrase)
    lines = [line for sentence in sentences for line in sentence.split("\n") if line]
    body = [element("h1", title), *(element("p", with_commands(line)) for line in lines)]
    body += [element("ul", *links)] if links else []
    place = request.url.path.removeprefix(f"/{viewer_of(request).label}/").partition("/")[0]
    place = "sessions" if place == "s" else place
    if place in _WAYS_ON and status < HTTPStatus.INTERNAL_SERVER_ERROR:
        body.append(element("p", element("a", _WAYS_ON[place], href=address(request, place))))
    return document(request, title, body, status=status)
