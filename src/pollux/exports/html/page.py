"""The frame of an HTML page: one file, whose policy allows its own style and script and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pollux import __version__
from pollux.render.html.colours import palette
from pollux.render.html.markup import Html, closing, element, icon_sheet, joined, opening

_STATIC = Path(__file__).with_name("static")
_DARK = (
    "@media screen and (prefers-color-scheme:dark){:root:not([data-theme=light])",
    "@media screen{:root[data-theme=dark]",
)
"""Selectors of the dark theme: by the system's setting and by the reader's choice, but never in print."""


def page_start(title: str, script: str) -> Html:
    """Return a page up to its content."""
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
    return Html(f"<!doctype html>\n{opening('html', lang='en')}{head}\n{opening('body')}{icon_sheet()}\n")


def page_end(keys: Sequence[tuple[str, str]]) -> Html:
    """Return the list of keys, which the script shows on request, and the end of the page."""
    rows = (joined((element("dt", element("kbd", key)), element("dd", meaning))) for key, meaning in keys)
    close = element("button", "Close", type="button", data_do="close")
    dialog = element("dialog", element("h2", "Keys"), element("dl", *rows), close, id="keys", aria_label="Keys")
    return Html(f"{dialog}{closing('body')}{closing('html')}\n")


def tools(search: str, *buttons: Html) -> Html:
    """Return search field and buttons, hidden until the script runs."""
    return element(
        "div",
        element("input", type="search", id="search", placeholder=search, aria_label=search, autocomplete="off"),
        element("output", id="hits", aria_live="polite"),
        *buttons,
        button("theme", "◐", "Theme", "Light or dark"),
        button("help", "?", "Keys", "List of keys"),
        class_="tools",
        role="search",
        hidden=True,
    )


def button(action: str, mark: str, label: str, hint: str) -> Html:
    """Return a button that runs an action of the script; a narrow screen shows only its mark."""
    shown = element("span", label, class_="label")
    mark_html = element("span", mark, aria_hidden="true") if mark else Html()
    return element("button", mark_html, shown, type="button", data_do=action, title=hint)


def made_by(note: str = "") -> Html:
    """Return who wrote the page, and the zone of its times, which the script replaces."""
    zone = element("span", "Times are UTC.", id="zone")
    return element("p", f"Written by Pollux {__version__}{note}. ", zone)


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
