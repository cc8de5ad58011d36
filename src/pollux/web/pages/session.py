"""The page of a session: facts, guide, prompts and the conversation, whole or in windows."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import count

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from pollux.errors import MessageNotFoundError, PolluxError
from pollux.library.library import Library
from pollux.library.values import SessionRow
from pollux.library.windows import OpenConversation, OutlineEntry, Window
from pollux.model import Fate
from pollux.render.html.blocks import PageState
from pollux.render.html.markup import Html, closing, element, icon_sheet, joined, opening
from pollux.render.html.session_parts import outline_item
from pollux.render.html.transcript import transcript
from pollux.text.escape import make_visible
from pollux.text.numbers import parse_integer
from pollux.views import session_text
from pollux.views.session_text import TITLE
from pollux.views.transcript import TranscriptOptions
from pollux.web.layout import asset, document
from pollux.web.open_sessions import OpenSessions, Rendered, open_sessions
from pollux.web.requests import flag, number, transcript_options
from pollux.web.routing import StreamedResponse, page
from pollux.web.session_header import session_header, view_bar
from pollux.web.session_links import message_address, session_address, short_names
from pollux.web.static_names import PALETTE

WHOLE = 400
"""Messages up to which a page shows a session at once."""
MOST_WHOLE = 5_000
"""Messages up to which `all=1` does."""
PROMPTS = 150
"""Prompts that the column beside a session lists."""
_TERMINAL_COLOUR = re.compile(r'<span class="(?:[^"]* )?[fb]\d')
_LINKED_WINDOWS = 3
"""Windows before and after the one that is shown that have a link, for browsers without a script."""


def session_page(request: Request, library: Library) -> Response:
    """Return the page of a session, at a message if the path names one."""
    row = library.session(request.path_params["session"])
    request.state.names = short_names(library, row)
    options = transcript_options(request)
    shows_all = flag(request, "all", default=False)
    target = _target(request, row)
    title = make_visible(session_text.title(row, TITLE))
    body = _body(request, library, row, options, target, shows_all=shows_all)
    styles, scripts = ("session.css",), ("session.js",)
    return document(request, title, body, place="sessions", main=None, styles=styles, scripts=scripts)


def _target(request: Request, row: SessionRow) -> int:
    """Return the number of the message that the path names; 0 if it names none. Raises `MessageNotFoundError`."""
    text = request.path_params.get("number")
    if text is None:
        return 0
    value = parse_integer(text.removeprefix("m")) if text.removeprefix("m").isdecimal() else None
    if not value:
        raise MessageNotFoundError(row.short_id, text, sum(row.counts.values()))
    return value


def _body(
    request: Request,
    library: Library,
    row: SessionRow,
    options: TranscriptOptions,
    target: int,
    *,
    shows_all: bool,
) -> Iterator[Html]:
    sessions = open_sessions(request)
    if not target:
        yield icon_sheet()  # the browser can load the style while the session is opened
    with sessions.reading(row) as conversation:
        n_messages = conversation.n_messages
        if target > n_messages:
            raise MessageNotFoundError(row.short_id, str(target), n_messages)
        pieces = [
            icon_sheet() if target else Html(),
            opening("div", class_="desk"),
            _side(request, library, row, conversation, target),
            opening("main", id="main", class_="paper"),
            session_header(request, library, row, conversation),
            view_bar(request, row, options, conversation.n_prompts),
        ]
        is_whole = n_messages <= (MOST_WHOLE if shows_all else WHOLE)
        windows = (Window(0, n_messages),) if is_whole else conversation.windows()
        shown = windows[0] if is_whole else conversation.window_of(target)
        rendered = rendered_window(request, sessions, conversation, options, shown, target)
    yield from pieces
    yield from _thread(request, row, windows, shown, rendered, target)
    yield joined((closing("main"), closing("div")))


def rendered_window(
    request: Request,
    sessions: OpenSessions,
    conversation: OpenConversation,
    options: TranscriptOptions,
    window: Window,
    target: int = 0,
) -> Rendered:
    """Return a window of a session as HTML."""

    def render() -> tuple[Html, PageState]:
        state = PageState(
            conversation.session,
            model=conversation.row.models[0] if len(conversation.row.models) == 1 else None,  # the header names it
            numbers=count(1 + 1000 * window.start),  # so that no two windows have the same anchor
            usage=lambda session: conversation.usage_by_message(session, window),
            message_address=lambda session_id, number: message_address(request, session_id, number),
            file_address=lambda session_id, number, index: session_address(
                request, session_id, f"file/{number}.{index}"
            ),
            target=target,
            hidden="which this view hides",
        )
        markup = joined(transcript(conversation.blocks(options, window), state, options))
        return _with_palette(request, markup), state

    return sessions.window(conversation, options, window, render, target)


def _with_palette(request: Request, markup: Html) -> Html:
    """Return a window with the style sheet of terminal colours, if it has any; most sessions have none."""
    if _TERMINAL_COLOUR.search(markup) is None:
        return markup
    return joined((element("link", rel="stylesheet", href=asset(request, PALETTE)), markup))


def row_version(row: SessionRow) -> str:
    """Return a text that changes whenever a session does: how many messages were dropped, and a digest of its facts."""
    n_dropped = sum(n_messages for fate, n_messages in row.fates.items() if fate != Fate.ACTIVE)
    times = (row.ended, row.updated, row.deleted)
    facts = (row.id, times, row.counts, row.fates, row.tool_calls, row.usage, row.title, row.files)
    return f"{n_dropped}-{hashlib.blake2b(repr(facts).encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


# The conversation


def _thread(
    request: Request, row: SessionRow, windows: Sequence[Window], shown: Window, rendered: Rendered, target: int
) -> Iterator[Html]:
    """Yield the thread: the window that is shown, and a link in the place of each other one."""
    markup, numbers = rendered
    anchor = nearest(numbers, target) if target else 0
    part = session_address(request, row.id, "part")
    yield opening(
        "div",
        class_="thread",
        data_part=part,
        data_target=f"m{anchor}" if anchor else None,
        data_total=windows[-1].stop if windows else 0,
        data_version=row_version(row),
    )
    place = windows.index(shown) if windows else 0
    for index, window in enumerate(windows):
        if index == place:
            yield _part(window, with_alias(markup, target, anchor))
        else:
            yield _placeholder(request, row, window, is_linked=abs(index - place) <= _LINKED_WINDOWS)
    if not row.counts:
        yield element("p", "No message of this session can be read.", class_="empty")
    yield element("p", "End of session. New messages appear here if you resume it in Gemini CLI.", class_="end")
    yield closing("div")


def _part(window: Window, markup: Html) -> Html:
    return element("section", markup, class_="part", data_from=window.start + 1, data_to=window.stop)


def _placeholder(request: Request, row: SessionRow, window: Window, *, is_linked: bool) -> Html:
    first, last = window.start + 1, window.stop
    words = f"Messages {first:,} to {last:,}"
    link = element("a", words, href=message_address(request, row.id, first)) if is_linked else Html()
    return element("section", link, class_="part wait", data_from=first, data_to=last)


def nearest(numbers: Sequence[int], target: int) -> int:
    """Return the message with an article that is nearest before a message, else the first; 0 if there is none."""
    if not numbers:
        return 0
    ordered = sorted(numbers)
    return ordered[max(0, bisect_right(ordered, target) - 1)]


def with_alias(markup: Html, target: int, anchor: int) -> Html:
    """Return a window in which a link to a message without an article leads to the nearest one before."""
    if not target or not anchor or target == anchor:
        return markup
    article = f'<article id="m{anchor}"'
    return Html(markup.replace(article, f"{element('span', id=f'm{target}')}{article}", 1))


def part(request: Request, library: Library) -> Response:
    """Return one window of a session as a fragment for the script."""
    row = library.session(request.path_params["session"])
    request.state.names = short_names(library, row)
    options = transcript_options(request)
    sessions = open_sessions(request)
    with sessions.reading(row) as conversation:
        first = number(request, "from", 1, least=1)
        window = conversation.window_of(first) if conversation.n_messages else Window(0, 0)
        if first > conversation.n_messages or window.start != first - 1:
            raise PolluxError("The session has changed since this page was loaded: load it again.")
        markup, _ = rendered_window(request, sessions, conversation, options, window)
    return StreamedResponse([_part(window, markup)])


# The column of prompts


def _side(request: Request, library: Library, row: SessionRow, conversation: OpenConversation, target: int) -> Html:
    before = conversation.prompts_before(target) if target else 0
    start = max(0, before - PROMPTS // 2) if conversation.n_prompts > PROMPTS else 0
    entries = conversation.outline(start, PROMPTS)
    inside = [element("a", "Close", class_="button shut", href="#main"), element("h2", "Prompts")]
    if start:
        earlier = conversation.outline(max(0, start - PROMPTS), 1)[0]
        inside.append(_more_prompts(request, row, "Earlier prompts", earlier))
    inside.append(element("ol", *(_outline_item(request, row, entry) for entry in entries)))
    after = conversation.outline(start + PROMPTS, 1)
    if after:
        inside.append(_more_prompts(request, row, "Later prompts", after[0]))
    inside += _neighbours(request, library, row)
    return element("nav", *inside, class_="side", id="prompts", aria_label="Prompts")


def outline_items(request: Request, row: SessionRow, conversation: OpenConversation, start: int) -> Html:
    """Return the prompts from a place of the timeline on, as list items."""
    entries = conversation.outline(conversation.prompts_before(start + 1))
    return joined(_outline_item(request, row, entry) for entry in entries)


def _more_prompts(request: Request, row: SessionRow, words: str, entry: OutlineEntry) -> Html:
    return element("p", element("a", words, href=message_address(request, row.id, entry.number)), class_="more-prompts")


def _outline_item(request: Request, row: SessionRow, entry: OutlineEntry) -> Html:
    fate = "" if entry.fate is Fate.ACTIVE else entry.fate.label
    href = message_address(request, row.id, entry.number)
    return outline_item(make_visible(entry.words), entry.at, fate, href)


def outline(request: Request, library: Library) -> Response:
    """Return prompts of a session as list items for the script."""
    row = library.session(request.path_params["session"])
    start = number(request, "from", 0)
    stop = number(request, "to", start + PROMPTS, least=start, most=start + 1000)
    with open_sessions(request).reading(row) as conversation:
        entries = conversation.outline(start, stop - start)
    return StreamedResponse([_outline_item(request, row, entry) for entry in entries])


def _neighbours(request: Request, library: Library, row: SessionRow) -> list[Html]:
    before, after = library.neighbours(row.id)
    items = []
    for label, session, rel in ((f"Previous in {row.project.name}", before, "prev"), ("Next", after, "next")):
        if session is not None:
            link = element(
                "a",
                make_visible(session_text.title(session, TITLE)),
                href=session_address(request, session.id),
                rel=rel,
            )
            items += [element("p", make_visible(label), class_="label"), element("p", link)]
    return [element("div", *items, class_="near")] if items else []


def by_message_id(request: Request, library: Library) -> Response:
    """Redirect from the ID of a message, as `--link` writes it, to its number."""
    row = library.session(request.path_params["session"])
    with open_sessions(request).reading(row) as conversation:
        place = conversation.place_of(request.path_params["message"])
    if place is None:
        raise MessageNotFoundError(row.short_id, request.path_params["message"], sum(row.counts.values()))
    return RedirectResponse(message_address(request, row.id, place + 1), 303)


ROUTES = (
    Route("/s/{session}", page(session_page)),
    Route("/s/{session}/part", page(part)),
    Route("/s/{session}/outline", page(outline)),
    Route("/s/{session}/id/{message}", page(by_message_id)),
    Route("/s/{session}/{number:str}", page(session_page)),
)
