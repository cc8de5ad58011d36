"""The frame of an HTML page: one file, whose policy allows its own style and script and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pollux import __version__
from pollux.render.html.colours import palette
from pollux.render.html.compact import compact_script
from pollux.render.html.icons import MARK
from pollux.render.html.markup import Html, closing, element, icon_sheet, joined, opening
from pollux.render.html.style_sheets import compact_sheet, style_sheet

_STATIC = Path(__file__).with_name("static")


def page_start(title: str, kind: str) -> Html:
    """Return a page of a kind, `transcript` or `index`, up to its content."""
    style, code = _style(kind), _script(kind)
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
    rows = []
    for key, meaning in keys:
        marks = Html(" ").join(element("kbd", name) for name in key.split(", "))
        rows.append(joined((element("dt", Html(marks)), element("dd", meaning))))
    close = element("button", "Close", class_="button", type="button", data_do="close")
    heading = element("h2", "Keys", id="keys-h")
    dialog = element("dialog", heading, element("dl", *rows), close, id="keys", aria_labelledby="keys-h")
    return Html(f"{dialog}{closing('body')}{closing('html')}\n")


def bar(*links: Html) -> Html:
    """Return the bar at the top: links to other pages, and buttons that are hidden until the script runs."""
    skip = element("a", "Skip to content", href="#main", class_="skip")
    brand = element("span", MARK, "Pollux", class_="brand")
    pages = element("nav", *links, class_="parts", aria_label="Pages") if links else Html()
    buttons = (button("theme", "◐", "Light or dark"), button("help", "?", "Keys"))
    tools = element("div", *buttons, class_="tools", data_script=True, hidden=True)
    return joined((skip, element("header", brand, pages, tools, class_="top")))


def button(action: str, mark: str, label: str) -> Html:
    """Return a button that shows a mark and runs an action of the script."""
    shown = joined((element("span", mark, aria_hidden="true"), element("span", label, class_="unseen")))
    return element("button", shown, class_="plain", type="button", data_do=action, title=label)


def search_field(label: str, *buttons: Html, class_: str) -> Html:
    """Return a search field with the number of its hits, hidden until the script runs."""
    return element(
        "div",
        element("input", type="search", id="search", placeholder=label, aria_label=label, autocomplete="off"),
        element("output", id="hits", aria_live="polite", class_="soft small"),
        *buttons,
        class_=class_,
        role="search",
        data_script=True,
        hidden=True,
    )


def foot(*links: Html, note: str = "") -> Html:
    """Return the end of a page: links, who wrote it, and the zone of its times, which the script replaces."""
    pages = (element("nav", *links, aria_label="More pages"),) if links else ()
    written = element("span", f"Written by Pollux {__version__}{note}.")
    return element("footer", *pages, written, element("span", "Times are UTC.", id="zone"), class_="foot")


@cache
def _style(kind: str) -> str:
    shared = ("frame.css", "session.css") if kind == "transcript" else ("frame.css",)
    own = (_STATIC / f"{kind}.css").read_text("utf-8")
    style = compact_sheet("".join((*map(style_sheet, shared), own)))
    return style + palette() if kind == "transcript" else style


@cache
def _script(kind: str) -> str:
    parts = [(_STATIC / name).read_text("utf-8") for name in ("page.js", f"{kind}.js")]
    return compact_script("\n".join(('"use strict";', *parts)))


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
