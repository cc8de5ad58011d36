"""Reads pages as a browser does, with the standard library alone, and complains of what does not nest."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"br", "circle", "hr", "img", "input", "line", "link", "meta", "rect", "path", "use"}


class Tag(NamedTuple):
    """An element as it began."""

    name: str
    attributes: dict[str, str | None]


class Page(HTMLParser):
    """A page that was read."""

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
        assert len(attrs) == len({name for name, _ in attrs}), f"an attribute of {tag} is there twice"
        self.tags.append(Tag(tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID, f"<{tag}/> is closed only inside a drawing"
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in {"style", "script"}:
            self.raw[self._open[-1]] = data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        """All words, as they stand."""
        return "".join(self.words)

    def named(self, name: str, **attributes: str) -> list[Tag]:
        """Return all elements of a name that have these attributes."""
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [one for one in self.tags if one.name == name and wanted.items() <= one.attributes.items()]
