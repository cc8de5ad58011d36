"""Small drawings inside a page: each is complete in itself, unlike those of `markup.icon_sheet`."""

from __future__ import annotations

from pollux.render.html.markup import Html, element

STAR = "M0-6C.7-1.6 1.6-.7 6 0 1.6.7.7 1.6 0 6-.7 1.6-1.6.7-6 0-1.6-.7-.7-1.6 0-6z"
"""A star with four points around 0, 0; twelve units wide."""
_DOT = "a1.5 1.5 0 1 0 3 0 1.5 1.5 0 1 0-3 0"
_GLYPHS = {
    "branch": f"M4.5 4.6v6.8M4.5 9.6c0-3 7-1.4 7-4.5M3 3{_DOT}M3 13{_DOT}M10 3.6{_DOT}",
    "problem": "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2zM8 5.2v3.4M8 10.9v.1",
    "export": "M8 10V2.5M5 5l3-3 3 3M3 9v4.5h10V9",
    "copy": "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
    "raw": "M6 3.5C3.5 3.5 5.5 8 3 8c2.5 0 .5 4.5 3 4.5M10 3.5c2.5 0 .5 4.5 3 4.5-2.5 0-.5 4.5-3 4.5",
    "up": "M3.5 10.5L8 6l4.5 4.5",
    "down": "M3.5 6l4.5 4.5L12.5 6",
    "agent": "M3 6h10v7H3zM8 3v3M6 9v1M10 9v1",
}


def glyph(name: str) -> Html:
    """Return an icon; screen readers skip it and read the words next to it."""
    return element("svg", element("path", d=_GLYPHS[name]), class_="i", viewBox="0 0 16 16", aria_hidden="true")


def star(class_: str = "star") -> Html:
    """Return a star: filled for what is kept, with the class `star off` an outline for what is not."""
    return element("svg", element("path", class_=class_, d=STAR), viewBox="-7 -7 14 14", aria_hidden="true")


MARK = element(
    "svg",
    element("path", class_="tie", d="M8 6.5L20 13"),
    element("circle", class_="twin", cx="6", cy="5.5", r="2.6"),
    element("path", class_="star", transform="translate(21.5 13.5) scale(1.25)", d=STAR),
    viewBox="0 0 30 22",
    aria_hidden="true",
)
"""The sign in the bar: Pollux as a star, Castor as a ring."""
