"""A session as one HTML file that works offline: navigation by prompt, folds, colours, pictures, search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pollux.exports.html.page import button, made_by, page_end, page_start, tools
from pollux.exports.source import ExportSource
from pollux.exports.transcript_files import TranscriptPart, header_facts, part_links, render_parts
from pollux.model import Session
from pollux.render.html.blocks import PageState, PromptLink
from pollux.render.html.markup import Html, closing, element, joined, opening, time_element
from pollux.render.html.transcript import transcript
from pollux.text.escape import make_visible
from pollux.text.numbers import duration
from pollux.views import session_text

SUFFIX = ".html"
_KEYS = (
    ("j, k", "next and previous prompt"),
    ("/", "search"),
    ("n, N", "next and previous match"),
    ("e, c", "open and close all folds"),
    ("t", "light or dark"),
    ("?", "this list"),
    ("Esc", "close, or clear the search"),
)


def render(subject: ExportSource) -> Iterator[bytes]:
    """Yield the page of a session piece by piece."""
    subject = replace(subject, export_options=replace(subject.export_options, folds=True))
    state = PageState(subject.session, usage=lambda session: session_text.usage_by_message(session, subject.prices))

    def page(part: TranscriptPart) -> Iterator[bytes]:
        state.prompts.clear()
        return (piece.encode("utf-8", "replace") for piece in _page(subject, part, state))

    return render_parts(subject, SUFFIX, page)


def _page(subject: ExportSource, part: TranscriptPart, state: PageState) -> Iterator[Html]:
    """Yield a page; its navigation comes last, when all prompts are known, and the style moves it to the left."""
    title = make_visible(session_text.title(subject.session, session_text.TITLE))
    yield page_start(title, "transcript.js")
    yield _bar()
    yield opening("main", id="main")
    yield _header(part, subject, title)
    yield from transcript(part.blocks, state, subject.options)
    footer = made_by(f", {subject.export_options.detail} detail")
    yield element("footer", _links(part, subject, has_next=part.has_next()), footer)
    yield closing("main")
    yield _navigation(state.prompts, title)
    yield page_end(_KEYS)


def _bar() -> Html:
    skip = element("a", "Skip to the conversation", href="#main", class_="skip")
    menu = element("a", "Prompts", href="#prompts", class_="menu")
    controls = tools(
        "Search this session",
        button("previous", "↑", "Previous", "Previous match"),
        button("next", "↓", "Next", "Next match"),
        button("expand", "⊞", "Open all", "Open all folds"),
        button("collapse", "⊟", "Close all", "Close all folds"),
    )
    return joined((skip, element("div", menu, controls, class_="bar")))


def _header(part: TranscriptPart, subject: ExportSource, title: str) -> Html:
    start = (_links(part, subject), element("h1", title))
    if part.number > 1:
        return element("header", *start, element("p", f"Part {part.number}"))
    rows = []
    for name, words in header_facts(subject):
        value = _period(subject.session) if name == "When" else make_visible(words)
        rows.append(element("div", element("dt", name), element("dd", value)))
    return element("header", *start, element("dl", *rows, class_="facts"), _sources(subject))


def _period(session: Session) -> Html:
    """Return what `session_text.period` says, with times that the script can change to the reader's zone."""
    start, end = session.started, session.ended
    if start is None:
        return Html()
    zone = element("span", "UTC", class_="zone")
    if end is None or end <= start:
        return joined((time_element(start, "full"), " ", zone))
    until = time_element(end, "until" if start.date() == end.date() else "full")
    return joined((time_element(start, "full"), " to ", until, " ", zone, f" ({duration(end - start)})"))


def _sources(subject: ExportSource) -> Html:
    rows = []
    for source in subject.sources():
        path, digest = element("code", str(source["path"])), element("code", str(source["sha256"]))
        rows.append(element("li", path, f" {source['role']}, SHA-256 ", digest))
    return element("details", element("summary", "Sources"), element("ul", *rows), class_="sources")


def _links(part: TranscriptPart, subject: ExportSource, *, has_next: bool = False) -> Html:
    anchors = [
        element("a", label, href=target) for label, target in part_links(part, subject, SUFFIX, has_next=has_next)
    ]
    return element("p", *anchors, class_="parts") if anchors else Html()


def _navigation(prompts: Iterable[PromptLink], title: str) -> Html:
    """Return the list of prompts; on a narrow screen it covers the page while it is the target of the address."""
    close = element("a", "Close", href="#main", class_="close")
    heading = element("p", title, class_="title")
    entries = element("ol", *map(_prompt_link, prompts))
    return element("nav", close, heading, entries, id="prompts", aria_label="Prompts")


def _prompt_link(prompt: PromptLink) -> Html:
    dropped = element("span", f" ({prompt.fate})") if prompt.fate else Html()
    words = element("span", prompt.words, dropped, class_="q dropped" if prompt.fate else "q")
    number = element("span", str(prompt.number), class_="n")
    time = time_element(prompt.at) if prompt.at else Html()
    return element("li", element("a", number, words, time, href=f"#{prompt.anchor}"))
