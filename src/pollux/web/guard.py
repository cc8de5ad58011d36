"""The layer in front of all routes: it decides who gets an answer, and adds the headers that every answer has.

Other programs on this computer, other users of it, and web sites that are open in the same browser can all send
requests to a port of 127.0.0.1. The guard answers only requests that a page of this server or the user made, from a
browser that was let in: with a cookie, which a one-time ticket sets.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from urllib.parse import parse_qs, quote

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pollux.text.encode import encode
from pollux.web.door import door_page, refused, server_failure
from pollux.web.tickets import Tickets

ALIVE = "/alive"
"""The only path that is not below the label: a second start may not tell the label to another program."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_HOST = re.compile(rb"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?", re.IGNORECASE)
_BELOW = re.compile(r"[A-Za-z0-9@_-][A-Za-z0-9@_./-]*")
_MAX_TARGET = 8192
"""Longest path, and longest query, in bytes."""
_TYPE_THIS = "Run `pollux web` in a terminal: it opens a tab that is signed in."


class Pass(msgspec.Struct, frozen=True):
    """What lets a browser, or a second start of Pollux, in; new at every start of the server."""

    label: str
    port: int
    cookie: str = msgspec.field(default_factory=lambda: secrets.token_urlsafe(32))
    secret: str = msgspec.field(default_factory=lambda: secrets.token_urlsafe(32))
    """Known to processes of the same user, from the runtime file."""

    @property
    def cookie_name(self) -> str:
        """The name of the cookie; cookies know no ports, so the name has to."""
        return f"pollux-{self.port}"

    @property
    def root(self) -> str:
        """The path of the first page."""
        return f"/{self.label}/"


def proof(secret: str, word: str, nonce: str) -> str:
    """Return what proves that one side of `/alive` knows the secret, without sending it."""
    return hmac.digest(secret.encode(), f"{word} {nonce}".encode("utf-8", "replace"), "sha256").hex()


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, entry: Pass, tickets: Tickets, note_failure: Callable[[Exception], None]) -> None:
        """Store the application, and what lets callers in.

        Args:
            app: gets the requests that pass.
            entry: the cookie and the label.
            tickets: for `/in` and `/alive`.
            note_failure: called with an exception that no handler has turned into an answer.

        """
        self._app, self._entry, self._tickets, self._note_failure = app, entry, tickets, note_failure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return
        is_started = is_complete = False

        async def protected(message: Message) -> None:
            nonlocal is_started, is_complete
            is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                is_started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = refusal(scope, self._entry) or self._own_answer(scope) or without_cookie(scope, self._entry)
        if answer is not None:
            await answer(scope, receive, protected)
            return
        try:
            await self._app(scope, receive, protected)
        except Exception as error:
            self._note_failure(error)
            if is_started and not is_complete:
                raise  # the server breaks the connection, so that half an answer does not look whole
            if not is_started:
                await server_failure(scope)(scope, receive, protected)

    def _own_answer(self, scope: Scope) -> Response | None:
        """Return the answer of the two addresses that need no cookie."""
        if scope["path"] == ALIVE:
            return self._alive(scope)
        if scope["path"] == f"{self._entry.root}in":
            return self._let_in(scope)
        return None

    def _let_in(self, scope: Scope) -> Response:
        query = _query(scope)
        target = query.get("to", [""])[0]
        if not _BELOW.fullmatch(target) or ".." in target:
            target = ""
        ticket = query.get("t", [""])[0]
        if scope["method"] == "GET" and self._tickets.redeem(ticket):
            cookie = (
                f"{self._entry.cookie_name}={self._entry.cookie}; HttpOnly; SameSite=Strict; Path={self._entry.root}"
            )
            headers = {"set-cookie": cookie}
        elif _has_cookie(scope, self._entry):  # a reloaded tab
            headers = {}
        else:
            return refused(
                scope,
                403,
                "bad-ticket",
                "This link no longer works",
                "It was used before, or is older than five minutes.",
                _TYPE_THIS,
            )
        # A redirect would count as part of the request that led here, which may come from a file: without the cookie.
        return door_page(200, "Signed in", refresh=self._entry.root + target, headers=headers)

    def _alive(self, scope: Scope) -> Response:
        nonce = _query(scope).get("nonce", [""])[0]
        expected = proof(self._entry.secret, "ask", nonce).encode()
        if not hmac.compare_digest(_header(scope, b"authorization") or b"", expected):
            return _signed_out(scope)
        document = {"ticket": self._tickets.issue(), "proof": proof(self._entry.secret, "answer", nonce)}
        return Response(encode(document), media_type="application/json")


def refusal(scope: Scope, entry: Pass) -> Response | None:
    """Return the answer to a request that no page of this server and no user can have made; None if one can."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]) or not scope["path"].startswith("/"):
        return refused(
            scope, 421, "wrong-host", "This address is not Pollux", "Pollux answers at 127.0.0.1 and localhost only."
        )
    if scope["method"] not in ("GET", "HEAD"):
        return refused(
            scope,
            405,
            "read-only",
            "The viewer only reads",
            "It answers GET and HEAD requests. Change sessions with the commands that its pages show.",
            allow="GET, HEAD",
        )
    origins = [value for name, value in scope["headers"] if name == b"origin"]
    if any(origin.lower() != b"http://" + hosts[0].lower() for origin in origins):
        return _foreign(scope)
    if len(scope["query_string"]) > _MAX_TARGET or len(scope.get("raw_path") or b"") > _MAX_TARGET:
        return refused(
            scope, 414, "long-address", "This address is too long", f"Pollux reads up to {_MAX_TARGET} characters."
        )
    return _check_fetch(scope, entry)


def _check_fetch(scope: Scope, entry: Pass) -> Response | None:
    """Return the answer to a request that another site made, as the browser says."""
    if (_header(scope, b"sec-fetch-site") or b"none") in (b"none", b"same-origin"):
        return None
    is_navigation = _header(scope, b"sec-fetch-mode") == b"navigate"
    is_page = _header(scope, b"sec-fetch-dest") in (None, b"document")
    if not is_navigation or not is_page or not _is_below(scope["path"], entry):
        return _foreign(scope)
    if scope["path"] == f"{entry.root}in":
        return None
    query = scope["query_string"].decode("ascii", "replace")
    address = quote(scope["path"], errors="replace") + (f"?{query}" if query else "")
    sentence = "A link on another site or in another program led here. Open the page from here to be signed in."
    return door_page(403, "One more click", sentence, link=address)


def without_cookie(scope: Scope, entry: Pass) -> Response | None:
    """Return the answer to a request without the cookie, or for a path that is not below the label."""
    if _is_below(scope["path"], entry) and _has_cookie(scope, entry):
        return None
    return _signed_out(scope)


def _is_below(path: str, entry: Pass) -> bool:
    root = entry.root.encode()
    return hmac.compare_digest(path[: len(entry.root)].encode("utf-8", "replace"), root)


def _has_cookie(scope: Scope, entry: Pass) -> bool:
    """Return whether a cookie of the request is ours; another server on this host may have set one of the same name."""
    expected = f"{entry.cookie_name}={entry.cookie}".encode()
    headers = [value for name, value in scope["headers"] if name == b"cookie"]
    cookies = [cookie.strip() for header in headers for cookie in header.split(b";")]
    return any([hmac.compare_digest(cookie, expected) for cookie in cookies])  # noqa: C419  each takes the same time


def _header(scope: Scope, wanted: bytes) -> bytes | None:
    values = [value for name, value in scope["headers"] if name == wanted]
    return b", ".join(values) if values else None


def _query(scope: Scope) -> dict[str, list[str]]:
    try:
        return parse_qs(scope["query_string"].decode("ascii", "replace"), errors="replace", max_num_fields=20)
    except ValueError:  # more fields
        return {}


def _signed_out(scope: Scope) -> Response:
    return refused(scope, 401, "signed-out", "This browser is not signed in", _TYPE_THIS)


def _foreign(scope: Scope) -> Response:
    return refused(
        scope,
        403,
        "foreign-request",
        "Another site sent this request",
        "Pollux answers only requests from its own pages.",
    )
