"""HTML built from Python calls: a `str` is text and gets escaped, only `Html` is markup.

Text reaches a page through `element` or `text` alone, so no part of a session can become a tag.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from pollux.text.escape import escape_controls
from pollux.views.session_text import clock, day
from pollux.views.tools import Icon

PIECE = 10_000
"""Characters of a long text that the browser lays out together."""
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
SHAPES = frozenset({"rect", "path", "use", "circle", "line"})
"""Elements of SVG without content; unlike those of HTML, they must be closed, or the next one is inside them."""


class Html(str):
    """A piece of HTML."""

    __slots__ = ()


Attribute = str | int | bool | None


def text(words: str) -> Html:
    """Escape a text; invisible characters and direction marks become visible."""
    if isinstance(words, Html):
        return words
    is_plain = words.isascii() and words.isprintable()  # true for most texts, and saves the search
    return Html(html.escape(words if is_plain else escape_controls(words)))


def long_text(words: str) -> Html:
    """Escape a text of any length, in pieces that a browser lays out only when they come into view."""
    if len(words) <= PIECE:
        return text(words)
    return joined(element("span", piece, class_="piece") for piece in _pieces(words))


def _pieces(words: str) -> Iterator[str]:
    """Cut a text after a line, or anywhere in a line of more than `PIECE` characters."""
    at = 0
    while at < len(words):
        end = words.find("\n", at + PIECE, at + 2 * PIECE) + 1 or at + PIECE
        yield words[at:end]
        at = end


def joined(pieces: Iterable[str]) -> Html:
    """Concatenate texts and HTML."""
    return Html("".join(map(text, pieces)))


def opening(name: str, /, **attributes: Attribute) -> Html:
    """Return a start tag; write `class_` for `class` and `_` for `-`. None and False omit an attribute."""
    written = ""
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        written += f" {key.rstrip('_').replace('_', '-')}"
        if value is not True:
            written += f'="{text(str(value))}"'
    return Html(f"<{name}{written}>")


def closing(name: str) -> Html:
    """Return an end tag."""
    return Html(f"</{name}>")


def element(name: str, /, *inside: str, **attributes: Attribute) -> Html:
    """Return an element with its content."""
    begin = opening(name, **attributes)
    if name in VOID:
        return begin
    return Html(f"{begin[:-1]}/>") if name in SHAPES else Html(f"{begin}{joined(inside)}</{name}>")


_TIMES = {
    "clock": clock,
    "second": lambda at: f"{at:%H:%M:%S}",
    "day": day,
    "minute": lambda at: f"{at:%Y-%m-%d %H:%M}",
    "full": lambda at: f"{day(at)}, {at:%H:%M}",
    "until": clock,
}


def time_element(at: datetime, form: str = "clock") -> Html:
    """Return a time in UTC, which the page's script changes to the reader's zone; forms are those of `page.js`."""
    at = at.astimezone(UTC)
    form_name = None if form == "clock" else form
    return element("time", _TIMES[form](at), datetime=f"{at:%Y-%m-%dT%H:%M:%SZ}", data_form=form_name)


_ROUND = "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z"
_PAPER = "M4 2h5l3 3v9H4z"
_DOT = "a1.3 1.3 0 1 0 0 2.6a1.3 1.3 0 0 0 0-2.6"
_ICONS = {
    Icon.SHELL: "M3 4l4 4-4 4M9 12h4",
    Icon.READ: f"{_PAPER}M6 8h4M6 11h4",
    Icon.WRITE: f"{_PAPER}M8 6.5v5M5.5 9h5",
    Icon.EDIT: "M3 13l.8-3L11 2.8 13.2 5 6 12.2z",
    Icon.SEARCH: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.2 3.2",
    Icon.FOLDER: "M2 4h4l1.5 2H14v7H2z",
    Icon.WEB: f"{_ROUND}M2 8h12M8 2c2.4 3 2.4 9 0 12M8 2c-2.4 3-2.4 9 0 12",
    Icon.MEMORY: "M5 2h6v12l-3-3-3 3z",
    Icon.TODOS: "M2.5 4.5l1 1 2-2M2.5 11l1 1 2-2M8 4.5h6M8 11.5h6",
    Icon.QUESTION: f"{_ROUND}M6.2 6.4a1.8 1.8 0 1 1 2.5 1.7c-.5.2-.7.5-.7 1M8 11.2v.1",
    Icon.AGENT: "M3 6h10v7H3zM8 3v3M6 9v1M10 9v1",
    Icon.PLAN: "M3 3h10M3 8h7M3 13h4",
    Icon.MCP: "M6 2v4M10 2v4M4 6h8v2a4 4 0 0 1-8 0zM8 12v2",
    Icon.CODE: "M6 4L2 8l4 4M10 4l4 4-4 4",
    Icon.OTHER: "M8 2l6 6-6 6-6-6z",
    "branch": f"M5 4.6v6.8M5 8.5c4 0 6-1 6-3.9M5 2{_DOT}M5 11.4{_DOT}M11 2{_DOT}",
}


def icon(name: str) -> Html:
    """Return an icon; screen readers skip it and read the label next to it."""
    return element("svg", element("use", href=f"#i-{name}"), class_="icon", aria_hidden="true")


def icon_sheet() -> Html:
    """Return the drawings that the icons of a page refer to."""
    symbols = [
        element("symbol", element("path", d=path), id=f"i-{name}", viewBox="0 0 16 16") for name, path in _ICONS.items()
    ]
    return element("svg", *symbols, class_="drawings", aria_hidden="true")
