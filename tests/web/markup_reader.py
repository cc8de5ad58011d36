"""Read a page as a browser does: elements with attributes, and the cells of its tables."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "rect", "path", "circle", "line", "use"})


class MarkupReader(HTMLParser):
    """Collects elements, the text of each table cell, and tags that were not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: list[list[list[str]]] = []
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.texts.setdefault(tag, [])
        if tag in _VOID:
            return
        self.open.append(tag)
        self.texts[tag].append("")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in {"td", "th"} and self.tables:
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def all(self, tag: str, class_: str | None = None) -> list[dict[str, str]]:
        """Return the attributes of all elements with a name, and a class."""
        found = []
        for name, attributes in self.elements:
            if name == tag and (class_ is None or class_ in attributes.get("class", "").split()):
                found.append(attributes)
        return found


def check_policy(text: str) -> None:
    """Check that a page obeys the content security policy: no style, handler or script of its own."""
    page = MarkupReader(text)
    for tag, attributes in page.elements:
        assert "style" not in attributes, (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert tag != "style"
        assert tag != "script" or attributes.get("src", "").startswith("/")
        for name in ("href", "src", "action"):
            assert attributes.get(name, "/").startswith(("/", "#", "?")), (tag, attributes)
    assert not page.open
