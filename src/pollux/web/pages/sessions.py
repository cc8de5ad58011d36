"""The list of sessions: filters as a form, pages by cursor, and the same list for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from pollux.web.door import with_commands
from pollux.web.layout import address, document
from pollux.web.lists import extent, field, formats, hidden, nothing, orders, project_choice, select, turn, visible
from pollux.web.requests import choice, flag, page_of, parameter, wanted
from pollux.web.routing import page
from pollux.web.skies import sky_figure

SIZE = 50
_MOST_STRIPS = 100
"""Rows that show their model calls; a longer page has no room for them."""
HAS = {
    "error": "errors",
    "dropped": "dropped messages",
    "image": "pictures",
    "diff": "diffs",
    "subagent": "subagents",
    "problem": "problems in their files",
    "gone": "been deleted by Gemini CLI",
}
"""Values of `has:` in a query, with their words in the form."""
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
        words.append(f"has:{has}")
    return " ".join(filter(None, words))


def sessions(request: Request, library: Library) -> Response:
    """Return the page of sessions."""
    mark = mark_of(library)
    listed = session_list(request, library)
    return document(request, "Sessions", _body(request, library, listed), place="sessions", mark=mark)


def _body(request: Request, library: Library, found: SessionPage) -> Iterator[Html]:
    names = library.project_names()
    project = parameter(request, "project")
    yield from _heading(names, project)
    if project and not parameter(request, "after"):
        yield sky_figure(request, library.activity(project), project)
    yield _form(request, names)
    if not found.rows:
        yield _nothing(request, found)
        return
    yield orders(request, "sessions", SORTS, plural(found.total, "session"))
    calls = library.newest_calls([row.id for row in found.rows[:_MOST_STRIPS]])
    now = library.config.clock().astimezone(library.config.zone()[0])
    yield rows.session_list(request, found.rows, calls, now=now)
    yield turn(request, "sessions", found.next, extent(request, len(found.rows), found.total), size=SIZE)
    yield formats(request, "api/sessions")


def _heading(names: Mapping[str, str], project: str) -> Iterator[Html]:
    """Yield what the page shows: all sessions, or those of a project with its path."""
    matching = [(key, name) for key, name in names.items() if project and project in (key, name)]
    if len(matching) != 1:
        yield element("h1", "Sessions")
        return
    key, name = matching[0]
    yield element("h1", visible(name))
    if key != name:
        yield element("p", element("code", visible(key, 500)), class_="soft small")


def _nothing(request: Request, found: SessionPage) -> Html:
    """Return what a page without sessions says, and what to do next."""
    if not found.listed:
        return element(
            "div",
            element("p", "No sessions yet."),
            element("p", with_commands(visible(found.hint, 500))),
            class_="empty",
        )
    return nothing(request, "sessions", "No session matches these filters.", found.total, "sessions", found.notes)


def _form(request: Request, names: Mapping[str, str]) -> Html:
    return element(
        "form",
        field(request, "q", "Words or query", placeholder="timeout in:prompt", type_="search"),
        project_choice(request, names),
        field(request, "model", "Model"),
        field(request, "tool", "Tool"),
        field(request, "since", "Since", placeholder="2026-11-01, 7d"),
        field(request, "until", "Until"),
        select(request, "has", "Has", [("", "anything"), *HAS.items()]),
        select(request, "all", "Include", [("", "sessions only"), ("1", "subagents and empty ones")]),
        hidden(request, "sort"),
        element("button", "Show", class_="button", type="submit"),
        class_="filters noprint",
        role="search",
        aria_label="Sessions",
        action=address(request, "sessions"),
    )


ROUTES = (Route("/sessions", page(sessions)),)
