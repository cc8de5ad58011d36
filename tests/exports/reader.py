"""A parser of HTML pages with the standard library alone, which fails on elements that do not nest."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"br", "circle", "hr", "img", "input", "line", "link", "meta", "rect", "path", "use"}


class Tag(NamedTuple):
    """The start tag of an element."""

    name: str
    attributes: dict[str, str | None]


class Page(HTMLParser):
    """A parsed page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[Tag] = []
        self.words: list[str] = []
        self.raw: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len({name for name, _ in attrs}), f"{tag} has an attribute twice"
        self.tags.append(Tag(tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID, f"<{tag}/> is allowed only inside an SVG"
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes no element"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in {"style", "script"}:
            self.raw[self._open[-1]] = data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        """The text of the page."""
        return "".join(self.words)

    def named(self, name: str, **attributes: str) -> list[Tag]:
        """Return all elements with a name and these attributes."""
        expected = {key.rstrip("_"): value for key, value in attributes.items()}
        return [tag for tag in self.tags if tag.name == name and expected.items() <= tag.attributes.items()]
