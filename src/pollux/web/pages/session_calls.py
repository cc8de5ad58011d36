"""The guide of a session as a table: every prompt, model call and error, with tokens and cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.library.library import Library
from pollux.library.values import SessionRow
from pollux.library.windows import Moment
from pollux.model import Fate
from pollux.render.html.markup import Html, element, joined, time_element
from pollux.text.escape import make_visible
from pollux.views import session_text
from pollux.views.session_text import TITLE, amount_text
from pollux.web.layout import document
from pollux.web.open_sessions import open_sessions
from pollux.web.requests import number
from pollux.web.routing import page
from pollux.web.session_links import message_address, session_address, short_names

ROWS = 200
"""Rows on a page."""
_COLUMNS = ("Time", "What", "Fresh input", "Cached", "Output", "Thoughts", "Cost", "Record")
_WIDE_COLUMNS = range(2, 6)
"""The tokens."""
_NAMES = {"call": "model call", "error": "error"}


def calls(request: Request, library: Library) -> Response:
    """Return the page of a session's model calls, in the order of the session."""
    row = library.session(request.path_params["session"])
    request.state.names = short_names(library, row)
    start = number(request, "from", 0)
    with open_sessions(request).reading(row) as conversation:
        moments = [*islice(conversation.moments(), start, start + ROWS + 1)]
    return document(request, "Model calls", _body(request, row, moments, start), place="sessions")


def _body(request: Request, row: SessionRow, moments: Sequence[Moment], start: int) -> Iterator[Html]:
    link = element("a", make_visible(session_text.title(row, TITLE)), href=session_address(request, row.id))
    yield element("p", link, class_="crumb")
    yield element("h1", "Model calls")
    if not moments:
        yield element("p", "The session has no prompt and no model call here.", class_="empty")
        return
    head = []
    for place, name in enumerate(_COLUMNS):
        head.append(element("th", name, scope="col", class_=_class(place)))
    rows = [_row(request, row, moment) for moment in moments[:ROWS]]
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    yield element("div", table, class_="scroll", tabindex=0, role="region", aria_label="Model calls")
    turns = []
    if start:
        before = session_address(request, row.id, "calls", **{"from": max(0, start - ROWS) or None})
        turns.append(element("a", "Earlier", href=before, rel="prev"))
    if len(moments) > ROWS:
        after = session_address(request, row.id, "calls", **{"from": start + ROWS})
        turns.append(element("a", "Later", href=after, rel="next"))
    if turns:
        yield element("nav", *turns, class_="turn", aria_label="Parts of the table")


def _row(request: Request, row: SessionRow, moment: Moment) -> Html:
    time = time_element(moment.at, "second") if moment.at else "no time"
    link = element("a", time, href=message_address(request, row.id, moment.number))
    words = _NAMES.get(moment.kind) or make_visible(moment.words)
    if moment.fate is not Fate.ACTIVE:
        words = joined((words, " ", element("span", moment.fate.label, class_="flag c")))
    cells = [element("td", link), element("td", words, class_="t" if moment.kind == "prompt" else None)]
    amounts: tuple[str, ...] = ("",) * 5
    if moment.kind == "call":
        tokens = moment.usage.tokens
        counts = (max(0, tokens.input - tokens.cached), tokens.cached, tokens.output, tokens.thoughts)
        amounts = (*(f"{count:,}" for count in counts), amount_text(moment.usage.cost_nanousd))
    cells += [element("td", amount, class_=_class(place)) for place, amount in enumerate(amounts, len(cells))]
    record = element("a", "raw", href=session_address(request, row.id, f"raw/{moment.number}"))
    return element("tr", *cells, element("td", record, class_="right"))


def _class(place: int) -> str | None:
    """Return the class of a column: numbers stand at the right, and a phone has no room for all of them."""
    if place in _WIDE_COLUMNS:
        return "right w"
    return "right" if place > 1 else None


ROUTES = (Route("/s/{session}/calls", page(calls)),)
