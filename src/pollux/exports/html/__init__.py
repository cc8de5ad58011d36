"""A session as one HTML file that opens anywhere: prompts to navigate by, folds, colours, pictures, search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pollux import __version__
from pollux.exports.header import facts
from pollux.exports.html.controls import bar, help_box
from pollux.exports.html.page import beginning, end
from pollux.exports.parts import Part, in_parts, links
from pollux.exports.source import Subject
from pollux.render.html.markup import Html, closing, element, joined, opening
from pollux.render.html.state import Entry, Sheet
from pollux.render.html.transcript import transcript
from pollux.text.escape import clean
from pollux.views import session_text

SUFFIX = ".html"


def render(subject: Subject) -> Iterator[bytes]:
    """Write one session, piece by piece."""
    sheet = Sheet()

    def page(part: Part) -> Iterator[bytes]:
        sheet.prompts.clear()
        return (piece.encode("utf-8", "replace") for piece in _page(subject, part, sheet))

    return in_parts(subject, SUFFIX, page)


def _page(subject: Subject, part: Part, sheet: Sheet) -> Iterator[Html]:
    """Write a page; its navigation comes last, when all prompts are known, and is put to the left by the style."""
    title = clean(session_text.title(subject.session, session_text.TITLE))
    yield beginning(title, "transcript.js")
    yield bar("Prompts", "#prompts", "Search this session")
    yield opening("main", id="main")
    yield _header(part, subject, title)
    yield from transcript(part.blocks, sheet)
    made_by = f"Written by Pollux {__version__}, {subject.wanted.detail} detail. Times are UTC."
    yield element("footer", _links(part, subject, has_next=part.has_next()), element("p", made_by))
    yield closing("main")
    yield _navigation(sheet.prompts, title)
    yield help_box()
    yield end()


def _header(part: Part, subject: Subject, title: str) -> Html:
    start = (_links(part, subject), element("h1", title))
    if part.number > 1:
        return element("header", *start, element("p", f"Part {part.number}"))
    rows = (joined((element("dt", name), element("dd", clean(words)))) for name, words in facts(subject))
    return element("header", *start, element("dl", *rows, class_="facts"), _sources(subject))


def _sources(subject: Subject) -> Html:
    rows = (
        element(
            "li", element("code", str(one["path"])), f" {one['role']}, sha256 ", element("code", str(one["sha256"]))
        )
        for one in subject.sources()
    )
    return element("details", element("summary", "Sources"), element("ul", *rows), class_="sources")


def _links(part: Part, subject: Subject, *, has_next: bool = False) -> Html:
    found = links(part, subject, SUFFIX, has_next=has_next)
    made = [element("a", words, href=place) for words, place in found]
    return element("p", *made, class_="parts") if made else Html()


def _navigation(prompts: Iterable[Entry], title: str) -> Html:
    """List the prompts; on a narrow screen the list covers the page until something is chosen."""
    close = element("a", "Close", href="#main", class_="close")
    heading = element("p", title, class_="title")
    return element("nav", close, heading, element("ol", *map(_entry, prompts)), id="prompts", aria_label="Prompts")


def _entry(one: Entry) -> Html:
    gone = element("span", f" ({one.fate})", class_="gone") if one.fate else Html()
    words = element("span", one.words, gone, class_="q")
    number = element("span", str(one.number), class_="n")
    return element("li", element("a", number, words, element("time", one.clock), href=f"#{one.anchor}"))
