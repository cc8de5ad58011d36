"""The page of a session: facts, guide, prompts and the conversation, whole or in windows."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from itertools import count
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from pollux.errors import MessageNotFoundError, PolluxError
from pollux.library.library import Library
from pollux.library.values import SessionRow
from pollux.library.windows import OpenConversation, OutlineEntry, Window
from pollux.model import Fate
from pollux.render.html.blocks import PageState
from pollux.render.html.charts import CallMark, ErrorMark, GuideMark, PromptMark, guide
from pollux.render.html.icons import glyph, star
from pollux.render.html.markup import Html, closing, element, icon_sheet, joined, opening, time_element
from pollux.render.html.transcript import transcript
from pollux.text.escape import make_visible
from pollux.text.numbers import Currency, parse_integer, plural
from pollux.text.numbers import count as short_count
from pollux.text.shell import quoted
from pollux.views import session_text
from pollux.views.session_text import TITLE, describe_messages
from pollux.views.transcript import Detail, TranscriptOptions
from pollux.web.layout import address, asset, document
from pollux.web.open_sessions import OpenSessions, Rendered, open_sessions
from pollux.web.requests import flag, number, parameter, path_id, transcript_options
from pollux.web.routing import StreamedResponse, page
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
    request.state.names = _short_names(library, row)
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
            _header(request, library, row, conversation),
            _view_bar(request, row, options, conversation.n_prompts),
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
            numbers=count(1 + 1000 * window.start),  # so that no two windows have the same anchor
            usage=conversation.usage_by_message,
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


def session_address(request: Request, session_id: str, path: str = "", **query: str | int | bool | None) -> str:
    """Return the address of a session, or of a page below it."""
    names: Mapping[str, str] = getattr(request.state, "names", {})
    name = names.get(session_id) or path_id(session_id, session_id[:8])
    return address(request, f"s/{name}/{path}" if path else f"s/{name}", **query)


def row_version(row: SessionRow) -> str:
    """Return a text that changes whenever a session does: how many messages were dropped, and a digest of its facts."""
    n_dropped = sum(n_messages for fate, n_messages in row.fates.items() if fate != Fate.ACTIVE)
    facts = (row.id, row.ended, row.updated, row.counts, row.fates, row.tool_calls, row.usage, row.title, row.files)
    return f"{n_dropped}-{hashlib.blake2b(repr(facts).encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def _short_names(library: Library, row: SessionRow) -> dict[str, str]:
    """Return the short ID of a session, for its hundreds of links to itself, unless it names another one, too."""
    short_id = row.short_id
    if short_id != row.id and path_id(short_id, "") and row.id.startswith(short_id):
        with suppress(PolluxError):
            if library.session(short_id).id == row.id:
                return {row.id: short_id}
    return {}


def message_address(request: Request, session_id: str, number: int) -> str:
    """Return the address of a message: the page at its window, and the message on it."""
    return f"{session_address(request, session_id, str(number))}#m{number}"


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
    request.state.names = _short_names(library, row)
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
    numbers = [entry.number for entry in conversation.outline()] if target else []
    start = max(0, bisect_left(numbers, target) - PROMPTS // 2) if len(numbers) > PROMPTS else 0
    entries = conversation.outline(start, PROMPTS)
    inside = [element("a", "Close", class_="button shut", href="#main"), element("h2", "Prompts")]
    if start:
        before = conversation.outline(max(0, start - PROMPTS), 1)[0]
        inside.append(_more_prompts(request, row, "Earlier prompts", before))
    inside.append(element("ol", *(_outline_item(request, row, entry) for entry in entries)))
    after = conversation.outline(start + PROMPTS, 1)
    if after:
        inside.append(_more_prompts(request, row, "Later prompts", after[0]))
    inside += _neighbours(request, library, row)
    return element("nav", *inside, class_="side", id="prompts", aria_label="Prompts")


def outline_items(request: Request, row: SessionRow, conversation: OpenConversation, start: int) -> Html:
    """Return the prompts from a place of the timeline on, as list items."""
    entries = [entry for entry in conversation.outline() if entry.number > start]
    return joined(_outline_item(request, row, entry) for entry in entries)


def grown_facts(row: SessionRow, conversation: OpenConversation) -> Html:
    """Return the facts of a session, for a page that shows older ones."""
    return _facts(row, conversation)


def _more_prompts(request: Request, row: SessionRow, words: str, entry: OutlineEntry) -> Html:
    return element("p", element("a", words, href=message_address(request, row.id, entry.number)), class_="more-prompts")


def _outline_item(request: Request, row: SessionRow, entry: OutlineEntry) -> Html:
    is_dropped = entry.fate is not Fate.ACTIVE
    words = joined((glyph("branch"), make_visible(entry.words))) if is_dropped else make_visible(entry.words)
    unseen = element("span", f" ({entry.fate.label})", class_="unseen") if is_dropped else Html()
    time = time_element(entry.at) if entry.at else Html()
    link = element(
        "a", element("span", words, unseen, class_="q"), time, href=message_address(request, row.id, entry.number)
    )
    return element("li", link, class_="off" if is_dropped else None)


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


# The header


def _header(request: Request, library: Library, row: SessionRow, conversation: OpenConversation) -> Html:
    project = make_visible(row.project.name)
    crumb = [element("a", project, href=address(request, "sessions", project=row.project.key or None))]
    if row.kind != "main" and row.parent_id:
        crumb.append(element("a", "started by another session", href=session_address(request, row.parent_id)))
    crumb.append(_period(row))
    return element(
        "header",
        element("p", *crumb, class_="crumb"),
        element("h1", make_visible(session_text.title(row, TITLE))),
        _facts(row, conversation),
        _actions(request, library, row),
        *_problems(request, row),
        _guide(request, row, conversation),
    )


def _guide(request: Request, row: SessionRow, conversation: OpenConversation) -> Html:
    """Return the drawing of all model calls, prompts and errors; each is a link to its message."""
    marks: list[GuideMark] = []
    peak = 0
    for moment in conversation.moments():
        href = message_address(request, row.id, moment.number)
        clock = f"{moment.at.astimezone(UTC):%H:%M:%S}" if moment.at else "no time"
        is_dropped = moment.fate is not Fate.ACTIVE
        if moment.kind == "prompt":
            marks.append(PromptMark(href, f"Prompt at {clock}; {make_visible(moment.words)}", is_dropped))
        elif moment.kind == "error":
            marks.append(ErrorMark(href, f"Error at {clock}"))
        else:
            tokens = moment.usage.tokens
            peak = max(peak, tokens.input)
            amounts = f"{tokens.input:,} in, {tokens.cached:,} cached"
            label = f"{clock}, {session_text.cost_text(moment.usage)}; {amounts}"
            marks.append(CallMark(max(0, tokens.input - tokens.cached), tokens.cached, is_dropped, href, label))
    return guide(marks, f"peak {short_count(peak)} tokens" if peak else "") if marks else Html()


def _period(row: SessionRow) -> Html:
    start, end = row.started, row.ended
    if start is None:
        return element("span", "no date")
    if end is None or end <= start:
        return element("span", time_element(start, "full"))
    until = time_element(end, "until" if start.date() == end.date() else "full")
    return element("span", time_element(start, "full"), " to ", until)


def _facts(row: SessionRow, conversation: OpenConversation) -> Html:
    facts = []
    if row.models:
        facts.append(("Model" if len(row.models) == 1 else "Models", make_visible(", ".join(row.models))))
    facts.append(("Messages", describe_messages(conversation.session, conversation.family)))
    tokens, usage = row.usage.tokens, row.usage
    if usage.calls:
        share = f"{tokens.cached / tokens.input:.0%} cached" if tokens.input and tokens.cached else ""
        facts.append(("Tokens in", joined((f"{tokens.input:,} ", element("span", share, class_="soft")))))
        dropped = usage.cost.nanousd - row.active.cost.nanousd
        lost = element("span", f"{Currency().show(dropped)} dropped", class_="c") if dropped else Html()
        facts.append(("Billed", joined((session_text.cost_text(usage), " ", lost))))
    rows = (element("div", element("dt", name), element("dd", value, class_="num")) for name, value in facts)
    return element("dl", *rows, class_="facts")


def _actions(request: Request, library: Library, row: SessionRow) -> Html:
    inside: list[Html] = []
    notes: list[str] = []
    try:
        plan = library.resume(row.id)
    except PolluxError as error:
        notes.append(str(error))
    else:
        inside.append(_copy_button("Copy resume command", plan.command, "button main", key="resume"))
        if plan.problems:
            command = f"pollux restore {quoted(row.id)}"
            inside.append(_copy_button("Copy restore command", command, "button", key="restore"))
            notes += plan.problems
    export = session_address(request, row.id, "export")
    raw = session_address(request, row.id, "raw")
    inside.append(element("a", glyph("export"), "Export", class_="button", href=export, data_key="export"))
    inside.append(element("a", glyph("raw"), "Raw files", class_="button", href=raw, data_key="raw"))
    if len(row.files) and row.kind == "main":
        inside.append(_state(library, row))
    if notes:
        inside.append(element("span", make_visible(" ".join(notes)), class_="soft small"))
    return element("p", *inside, class_="acts")


def _copy_button(words: str, command: str, class_: str, *, key: str) -> Html:
    return element(
        "button", glyph("copy"), words, class_=class_, type="button", data_do="copy", data_text=command, data_key=key
    )


def _state(library: Library, row: SessionRow) -> Html:
    """Return whether the archive has the session, and when the client deletes its own copy."""
    if library.config.archive is None:
        return element("span", "Not archived: this viewer reads the session files.", class_="state")
    if row.deleted:
        return element("span", star(), "Archived. Gemini CLI has deleted its copy.", class_="state")
    label = library.deletions().get(row.id, "")
    words = "Archived."
    if label == "due":
        words += " Gemini CLI deletes its copy at its next start in this project."
    elif label:
        words += f" Gemini CLI deletes its copy soon: {label}."
    return element("span", star(), words, class_="state")


def _problems(request: Request, row: SessionRow) -> Iterator[Html]:
    if row.problems:
        words = f"{plural(len(row.problems), 'problem')} while reading its files"
        yield element("p", glyph("problem"), " ", element("a", words, href=address(request, "health")), class_="flag b")


def _view_bar(request: Request, row: SessionRow, options: TranscriptOptions, n_prompts: int) -> Html:
    """Return the links that change the view; they work without a script."""

    def view(**changes: str | int) -> str:
        shown: dict[str, str | int | bool | None] = {
            "detail": None if options.detail is Detail.NORMAL else str(options.detail),
            "thoughts": None if options.thoughts else 0,
            "branches": None if options.folds_dropped else 0,
            **changes,
        }
        return session_address(request, row.id, request.path_params.get("number", ""), **shown)

    details = []
    for detail in Detail:
        current = "true" if detail is options.detail else None
        details.append(element("a", detail.capitalize(), href=view(detail=str(detail)), aria_current=current))
    thoughts = _check("Thoughts", view(thoughts=int(not options.thoughts)), is_on=bool(options.thoughts), key="h")
    dropped = _check("Dropped", view(branches=int(not options.folds_dropped)), is_on=options.folds_dropped, key="b")
    field = element(
        "input",
        id="w",
        data_find=True,
        type="search",
        name="q",
        placeholder="Find in this session",
        autocomplete="off",
        value=parameter(request, "find") or None,
    )
    within = element(
        "form",
        element("label", "Find in this session", class_="unseen", for_="w"),
        field,
        element("output", id="hits", class_="soft small"),
        _step("back", "up", "Previous"),
        _step("next", "down", "Next"),
        class_="within",
        role="search",
        action=session_address(request, row.id, "find"),
    )
    return element(
        "div",
        element("a", plural(n_prompts, "prompt"), class_="button list", href="#prompts"),
        element("span", *details, class_="pick", role="group", aria_label="Detail"),
        thoughts,
        dropped,
        within,
        class_="view noprint",
    )


def _check(words: str, target: str, *, is_on: bool, key: str) -> Html:
    pressed = "true" if is_on else "false"
    return element("a", words, class_="check", role="button", aria_pressed=pressed, href=target, data_key=key)


def _step(action: str, drawing: str, label: str) -> Html:
    return element("button", glyph(drawing), class_="plain", type="button", data_hit=action, aria_label=label)


def by_message_id(request: Request, library: Library) -> Response:
    """Redirect from the ID of a message, as `--link` writes it, to its number."""
    row = library.session(request.path_params["session"])
    with open_sessions(request).reading(row) as conversation:
        place = conversation.numbers_by_id().get(request.path_params["message"])
    if place is None:
        raise MessageNotFoundError(row.short_id, request.path_params["message"], sum(row.counts.values()))
    return RedirectResponse(message_address(request, row.id, place), 303)


def file_header(name: str) -> str:
    """Return the Content-Disposition of a download."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"


ROUTES = (
    Route("/s/{session}", page(session_page)),
    Route("/s/{session}/part", page(part)),
    Route("/s/{session}/outline", page(outline)),
    Route("/s/{session}/id/{message}", page(by_message_id)),
    Route("/s/{session}/{number:str}", page(session_page)),
)
