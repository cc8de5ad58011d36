"""The pages of the guard: sign-in, and refusals. They need no file of the server, which a stranger may not read."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping

from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from pollux.render.html.markup import Html, element, joined, opening
from pollux.text.encode import encode

_STYLE = Html(
    ":root{color-scheme:light dark}"
    "body{font:1rem/1.6 system-ui,sans-serif;max-width:44rem;margin:18vh auto;padding:0 1.5rem}"
    "h1{font-family:Palatino,Georgia,serif;font-weight:400}"
)
_STYLE_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_CODE = re.compile(r"`([^`\n]+)`")
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_DIGEST}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def door_page(
    status: int,
    title: str,
    *sentences: str,
    link: str | None = None,
    refresh: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a page that stands alone.

    Args:
        status: of the answer.
        title: and heading of the page.
        sentences: paragraphs of text.
        link: address of a link below them.
        refresh: address that the browser opens at once; also the link.
        headers: further headers.

    """
    address = refresh or link
    paragraphs = [element("p", with_commands(sentence)) for sentence in sentences]
    if address:
        paragraphs.append(element("p", element("a", "Open the page", href=address)))
    page = joined(
        [
            Html("<!doctype html>"),
            opening("html", lang="en"),
            opening("meta", charset="utf-8"),
            opening("meta", name="viewport", content="width=device-width"),
            opening("meta", http_equiv="refresh", content=f"0; url={refresh}") if refresh else Html(),
            element("title", f"{title} · Pollux"),
            element("style", _STYLE),
            element("main", element("h1", title), *paragraphs),
            Html("</html>\n"),
        ]
    )
    return HTMLResponse(page, status, {"content-security-policy": _POLICY, **(headers or {})})


def json_error(
    status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """Return the JSON document of an error."""
    document = {"schema": "pollux.error/1", "code": code, "message": message, "hint": hint}
    return Response(encode(document), status, dict(headers or {}), "application/json")


def refused(scope: Scope, status: int, code: str, title: str, *sentences: str, **headers: str) -> Response:
    """Return a refusal: as JSON for a path of the API, else as a page."""
    if scope["path"].split("/")[2:3] == ["api"]:
        return json_error(status, code, f"{title}.", " ".join(sentences), headers)
    return door_page(status, title, *sentences, headers=headers)


def server_failure(scope: Scope) -> Response:
    """Return the answer to a request that Pollux failed to handle."""
    return refused(
        scope,
        500,
        "internal-error",
        "Pollux could not create this page",
        "This is a bug in Pollux. Please report what `pollux web` has printed in its terminal.",
    )


def with_commands(sentence: str) -> Html:
    """Return a sentence in which commands between backticks look like code."""
    pieces = [element("code", piece) if number % 2 else piece for number, piece in enumerate(_CODE.split(sentence))]
    return joined(pieces)
