"""HTML made of Python calls: whatever is not known to be HTML is text, and escaped.

A text can only get into a page through `element` or `text`, so nothing of a session ever becomes a tag.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator

from pollux.text.escape import safe

PIECE = 10_000
"""Characters of a long text that are laid out together."""
VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "rect", "path", "use"})


class Html(str):
    """A piece of HTML; a plain `str` is text that is still to be escaped."""

    __slots__ = ()


Attribute = str | int | bool | None


def text(words: str) -> Html:
    """Escape a text; what is invisible in it, or would turn its surroundings around, is made visible."""
    if isinstance(words, Html):
        return words
    is_plain = words.isascii() and words.isprintable()  # most of a page is, and need not be searched
    return Html(html.escape(words if is_plain else safe(words)))


def long_text(words: str) -> Html:
    """Escape a text of any length; of a very long one, a browser need only lay out the pieces that are seen."""
    if len(words) <= PIECE:
        return text(words)
    return joined(element("span", piece, class_="piece") for piece in _pieces(words))


def _pieces(words: str) -> Iterator[str]:
    """Cut a text after a line, or anywhere if there is no end of one."""
    at = 0
    while at < len(words):
        end = words.find("\n", at + PIECE, at + 2 * PIECE) + 1 or at + PIECE
        yield words[at:end]
        at = end


def joined(pieces: Iterable[str]) -> Html:
    """Put pieces together."""
    return Html("".join(map(text, pieces)))


def opening(name: str, /, **attributes: Attribute) -> Html:
    """Open an element; `class_` stands for `class`, and `_` for `-`; what is None or False is left out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{written}>")


def closing(name: str) -> Html:
    """Close an element."""
    return Html(f"</{name}>")


def element(name: str, /, *inside: str, **attributes: Attribute) -> Html:
    """Write an element with all that is in it."""
    begin = opening(name, **attributes)
    return begin if name in VOID else Html(f"{begin}{joined(inside)}</{name}>")
