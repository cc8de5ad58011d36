"""A page that stands for itself: one file, and a policy that lets nothing in but its own style and script."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from pollux import __version__
from pollux.render.html.ansi import palette
from pollux.render.html.icons import drawings
from pollux.render.html.markup import Html, closing, element, opening

_STATIC = Path(__file__).with_name("static")
_DARK = (
    "@media screen and (prefers-color-scheme:dark){:root:not([data-theme=light])",
    "@media screen{:root[data-theme=dark]",
)
"""Where the colours of the dark theme count: where the system wants them, and where the reader does; never on paper."""


def beginning(title: str, script: str) -> Html:
    """Write a page up to its contents."""
    style, code = _style(), _script(script)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src 'sha256-{_digest(style)}'",
            f"script-src 'sha256-{_digest(code)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="robots", content="noindex"),
        element("meta", name="generator", content=f"Pollux {__version__}"),
        element("title", title),
        element("style", Html(style)),
        element("script", Html(code)),
    )
    return Html(f"<!doctype html>\n{opening('html', lang='en')}{head}\n{opening('body')}{drawings()}\n")


def end() -> Html:
    """Write the end of a page."""
    return Html(f"{closing('body')}{closing('html')}\n")


@cache
def _style() -> str:
    parts = [_file(name) for name in ("page.css", "transcript.css", "index.css")]
    dark = _file("dark.css")
    parts += (f"{where}{{{dark}}}}}" for where in _DARK)
    return "\n".join((*parts, palette()))


@cache
def _script(name: str) -> str:
    return f'"use strict";\n{_file("page.js")}\n{_file(name)}'


def _file(name: str) -> str:
    return (_STATIC / name).read_text("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
