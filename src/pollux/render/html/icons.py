"""The pictures of a page, drawn once and used by name."""

from __future__ import annotations

from pollux.render.html.markup import Html, element, joined
from pollux.views.presentations import Icon

_ROUND = "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z"
_PAPER = "M4 2h5l3 3v9H4z"
_PATHS = {
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
}


def icon(which: Icon) -> Html:
    """Show a picture of the sheet."""
    return element("svg", element("use", href=f"#i-{which}"), class_="icon", aria_hidden="true")


def drawings() -> Html:
    """Write the sheet that all pictures of a page come from."""
    symbols = (
        element("symbol", element("path", d=path), id=f"i-{name}", viewBox="0 0 16 16") for name, path in _PATHS.items()
    )
    return element("svg", joined(symbols), class_="drawings", aria_hidden="true")
