"""A session as one HTML file that works offline: navigation by prompt, folds, colours, pictures, search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pollux.exports.html.page import bar, button, foot, page_end, page_start, search_field
from pollux.exports.source import ExportSource
from pollux.exports.transcript_files import TranscriptPart, header_facts, part_links, render_parts
from pollux.model import Session
from pollux.render.html.blocks import PageState, PromptLink
from pollux.render.html.guide import guide
from pollux.render.html.markup import Html, closing, element, joined, opening, time_element
from pollux.render.html.session_parts import facts_list, outline_item
from pollux.render.html.transcript import transcript
from pollux.text.escape import make_visible
from pollux.text.numbers import duration
from pollux.views import session_text

SUFFIX = ".html"
_KEYS = (
    ("j, k", "next and previous prompt"),
    ("/", "find"),
    ("n, N", "next and previous match"),
    ("e, c", "open and close all folds"),
    ("t", "light or dark"),
    ("?", "this list"),
    ("Esc", "clear the search"),
)


def render(subject: ExportSource) -> Iterator[bytes]:
    """Yield the page of a session piece by piece."""
    subject = replace(subject, export_options=replace(subject.export_options, folds=True))
    models = subject.session.models
    model = models[0] if len(models) == 1 else None  # the header names it
    state = PageState(
        subject.session, model=model, usage=lambda session: session_text.usage_by_message(session, subject.prices)
    )

    def page(part: TranscriptPart) -> Iterator[bytes]:
        state.prompts.clear()
        state.marks.clear()
        return (piece.encode("utf-8", "replace") for piece in _page(subject, part, state))

    return render_parts(subject, SUFFIX, page)


def _page(subject: ExportSource, part: TranscriptPart, state: PageState) -> Iterator[Html]:
    """Yield a page. The guide and the list of prompts come last, when all of them are known; the style moves them."""
    title = make_visible(session_text.title(subject.session, session_text.TITLE))
    yield page_start(title, "transcript")
    yield bar(*_links(part, subject))
    yield joined((opening("div", class_="desk"), opening("main", id="main", class_="paper")))
    yield joined((_header(part, subject, title), _view_bar(), opening("div", class_="thread")))
    yield from transcript(part.blocks, state, subject.options)
    has_next = part.has_next()
    yield element("p", "The session continues in the next part." if has_next else "End of session.", class_="end")
    yield closing("div")
    if state.marks:
        yield guide(state.marks, has_titles=True)
    yield closing("main")
    yield _navigation(state.prompts)
    yield closing("div")
    yield foot(*_links(part, subject, has_next=has_next), note=f", {subject.export_options.detail} detail")
    yield page_end(_KEYS)


def _view_bar() -> Html:
    """Return the bar above the conversation; without a script it has only a link to the prompts."""
    buttons = (
        element("button", "Open all", class_="button", type="button", data_do="expand"),
        element("button", "Close all", class_="button", type="button", data_do="collapse"),
    )
    steps = (button("previous", "↑", "Previous match"), button("next", "↓", "Next match"))
    return element(
        "div",
        element("a", "Prompts", class_="button list menu", href="#prompts"),
        element("span", *buttons, class_="folds", data_script=True, hidden=True),
        search_field("Find in this session", *steps, class_="within"),
        class_="view noprint",
    )


def _header(part: TranscriptPart, subject: ExportSource, title: str) -> Html:
    session = subject.session
    crumb = [element("span", make_visible(session.project.name)), element("span", _period(session))]
    start = [element("p", *crumb, class_="crumb"), element("h1", title)]
    if part.number > 1:
        return element("header", *start, element("p", f"Part {part.number}"))
    facts = [(name, make_visible(words)) for name, words in header_facts(subject) if name != "When"]
    return element("header", *start, facts_list(facts), _sources(subject))


def _period(session: Session) -> Html:
    """Return what `session_text.period` says, with times that the script can change to the reader's zone."""
    start, end = session.started, session.ended
    if start is None:
        return Html("no date")
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


def _links(part: TranscriptPart, subject: ExportSource, *, has_next: bool = False) -> list[Html]:
    links = part_links(part, subject, SUFFIX, has_next=has_next)
    return [element("a", label, href=target) for label, target in links]


def _navigation(prompts: Iterable[PromptLink]) -> Html:
    """Return the list of prompts; on a narrow screen it covers the page while it is the target of the address."""
    close = element("a", "Close", href="#main", class_="button shut")
    items = (outline_item(prompt.words, prompt.at, prompt.fate, f"#{prompt.anchor}") for prompt in prompts)
    entries = element("ol", *items)
    return element("nav", close, element("h2", "Prompts"), entries, class_="side", id="prompts", aria_label="Prompts")
