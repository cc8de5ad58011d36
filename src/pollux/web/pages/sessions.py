"""The list of sessions: filters as a form, pages by cursor, and the same list for programs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.library.library import Library
from pollux.library.values import SessionPage
from pollux.render.html.markup import Html, element
from pollux.text.numbers import plural
from pollux.web import rows
from pollux.web.changes import mark_of
from pollux.web.layout import address, document
from pollux.web.lists import field, formats, hidden, kept, orders, project_choice, select, turn, visible
from pollux.web.requests import choice, flag, page_of, page_start, parameter, wanted
from pollux.web.routing import page

SIZE = 50
HAS = {
    "error": "errors",
    "dropped": "dropped messages",
    "image": "pictures",
    "diff": "diffs",
    "subagent": "subagents",
    "gone": "been deleted by Gemini CLI",
}
"""Values of the parameter `has`, with their words in the form."""
_DROPPED = "fate:dropped"
SORTS = {
    "newest": "Last used",
    "oldest": "Oldest",
    "begun": "Begun",
    "prompts": "Prompts",
    "tokens": "Tokens",
    "cost": "Cost",
}
"""Values of the parameter `sort`, the default first, with their words above the list."""


def session_list(request: Request, library: Library) -> SessionPage:
    """Return the page of sessions that a request asks for."""
    everything = flag(request, "all", default=False)
    chosen = msgspec.structs.replace(wanted(request, library), subagents=everything, empty=everything)
    return library.sessions(
        chosen, page_of(request, SIZE), query_of(request), sort=choice(request, "sort", tuple(SORTS))
    )


def query_of(request: Request) -> str:
    """Return the query in the language of `pollux search` for the words, the tool and what sessions have."""
    words = [parameter(request, "q")]
    if tool := parameter(request, "tool"):
        escaped = tool.replace('"', "")
        words.append(f'tool:"{escaped}"')
    if has := choice(request, "has", ("", *HAS)):
        words.append(_DROPPED if has == "dropped" else f"has:{has}")
    return " ".join(filter(None, words))


def sessions(request: Request, library: Library) -> Response:
    """Return the page of sessions."""
    mark = mark_of(library)
    found = session_list(request, library)
    return document(request, "Sessions", _body(request, library, found), place="sessions", mark=mark)


def _body(request: Request, library: Library, found: SessionPage) -> Iterator[Html]:
    yield element("h1", "Sessions")
    yield _form(request, library)
    if not found.rows:
        yield _nothing(request, found)
        return
    yield orders(request, "sessions", SORTS, plural(found.total, "session"))
    yield rows.session_list(request, found.rows, now=library.config.clock().astimezone(library.config.zone()[0]))
    yield turn(request, "sessions", found.next, _extent(request, found), size=SIZE)
    yield formats(request, "api/sessions")


def _extent(request: Request, found: SessionPage) -> str:
    """Return which part of the list a page shows: `51–100 of 240`."""
    first = page_start(request) + 1
    last = first + len(found.rows) - 1
    return f"{first:,}–{last:,} of {found.total:,}"


def _nothing(request: Request, found: SessionPage) -> Html:
    """Return what a page without sessions says, and what to do next."""
    if found.total:
        words, link_words, target = "There are no sessions this far down the list.", "Go to its start", kept(request)
    elif found.listed:
        words, link_words, target = "No session matches these filters.", "Show all sessions", {}
    else:
        return element("div", element("p", "No sessions yet."), element("p", visible(found.hint, 500)), class_="empty")
    link = element("a", link_words, href=address(request, "sessions", **target))
    notes = [element("p", visible(note, 500)) for note in found.notes]
    return element("div", element("p", words), *notes, element("p", link), class_="empty")


def _form(request: Request, library: Library) -> Html:
    return element(
        "form",
        field(request, "q", "Words or query", placeholder="timeout in:prompt", type_="search"),
        project_choice(request, library.project_names()),
        field(request, "model", "Model"),
        field(request, "tool", "Tool"),
        field(request, "since", "Since", placeholder="2026-11-01, 7d"),
        field(request, "until", "Until"),
        select(request, "has", "Has", [("", "anything"), *HAS.items()]),
        select(request, "all", "Include", [("", "sessions only"), ("1", "subagents and empty ones")]),
        hidden(request, "sort"),
        element("button", "Show", class_="button", type="submit"),
        class_="filters",
        role="search",
        aria_label="Sessions",
        action=address(request, "sessions"),
    )


ROUTES = (Route("/sessions", page(sessions)),)
