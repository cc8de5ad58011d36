"""What lies below a session: find, raw files and records, attachments, exports and the tree of subagents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from tempfile import SpooledTemporaryFile

from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from pollux.errors import MessageNotFoundError, PolluxError
from pollux.library.config import UsageError
from pollux.library.export_options import FORMATS, RedactionOptions, format_options
from pollux.library.find_in_session import FoundMessages, excerpt, find_in_session
from pollux.library.library import Library
from pollux.library.outputs import StreamSink
from pollux.library.values import SessionRow
from pollux.model import Message
from pollux.render.html.markup import Html, closing, element, joined, opening, time_element
from pollux.text.encode import encode
from pollux.text.escape import make_visible
from pollux.text.numbers import parse_integer, plural, size
from pollux.views import attachments, session_text
from pollux.views.session_text import TITLE, describe_messages
from pollux.web.layout import document
from pollux.web.lists import extent, turn
from pollux.web.open_sessions import open_sessions
from pollux.web.pages.search import snippet_html
from pollux.web.requests import choice, number, page_start, parameter
from pollux.web.routing import page
from pollux.web.session_links import file_header, message_address, session_address, session_path

FOUND = "pollux.found/1"
_SPOOLED = 8 << 20
"""Bytes of an export that are held in memory."""
_BLOCK = 1 << 16
_FOUND_ROWS = 50
"""Messages on a page of the ones that contain some words."""
_SANDBOX = {"Content-Security-Policy": "sandbox; default-src 'none'"}
_MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_SHOWN_RECORD = 200_000
"""Bytes of a raw record that a page shows; a download has all."""
_EXPORTS = tuple(name for name, exporter in FORMATS.items() if not exporter.reads_archive)
_REDACTIONS = {
    "yes": RedactionOptions(redact=True),
    "share": RedactionOptions(share=True),
    "none": RedactionOptions(redact=False),
}
"""Values of `redact`. The first is the default, so that only an address that says so leads to a file with secrets."""


def found_json(found: FoundMessages) -> bytes:
    """Return the document of the messages that a search in a session found."""
    value = {"schema": FOUND, "messages": found.n_messages, "at": found.at, "more": found.has_more}
    return encode(value)


def find(request: Request, library: Library) -> Response:
    """Return the messages that contain some words: JSON for the script, a page with excerpts without one."""
    row = library.session(request.path_params["session"])
    words = parameter(request, "q")
    start = page_start(request)
    with open_sessions(request).reading(row) as conversation:
        matches = find_in_session(conversation, words)
        if "application/json" in request.headers.get("accept", ""):
            return Response(found_json(matches), media_type="application/json")
        shown = [(place, conversation.message(place)) for place in matches.at[start : start + _FOUND_ROWS]]
    items = [element("li", _found(request, row, place, message, words), class_="hit") for place, message in shown]
    return document(
        request, f"{make_visible(words)} in a session", _found_page(request, row, matches, items), place="sessions"
    )


def _found_page(request: Request, row: SessionRow, matches: FoundMessages, items: Sequence[Html]) -> Iterator[Html]:
    yield from _heading(request, row, "Find")
    words, n_found = parameter(request, "q"), len(matches.at)
    yield _find_form(request, row, words)
    if not words:
        return
    total = f"{n_found:,}{'+' if matches.has_more else ''} of {plural(matches.n_messages, 'message')}"
    yield element("p", f"{total} contain “{make_visible(words)}”.")
    yield element("ol", *items)
    end = page_start(request) + len(items)
    path = session_path(request, row.id, "find")
    if n_found > _FOUND_ROWS:
        next_ = str(end) if items and end < n_found else None
        yield turn(request, path, next_, extent(request, len(items), n_found), size=_FOUND_ROWS)


def _find_form(request: Request, row: SessionRow, words: str) -> Html:
    field = element("input", type="search", name="q", value=words or None, aria_label="Find in this session")
    button = element("button", "Find", class_="button", type="submit")
    target = session_address(request, row.id, "find")
    return element("form", field, button, class_="filters noprint", role="search", action=target)


def _found(request: Request, row: SessionRow, place: int, message: Message, words: str) -> Html:
    at = time_element(message.at, "full") if message.at else Html()
    about = element("p", element("span", f"Message {place:,}"), at, class_="where")
    text = element("p", snippet_html(excerpt(message, words)))
    return element("a", about, text, class_="snip", href=message_address(request, row.id, place), data_stop="nearest")


def _heading(request: Request, row: SessionRow, name: str) -> tuple[Html, Html]:
    link = element("a", make_visible(session_text.title(row, TITLE)), href=session_address(request, row.id))
    return element("p", link, class_="crumb"), element("h1", name)


# Raw files


def raw_files(request: Request, library: Library) -> Response:
    """Return the list of a session's files, or with `file=` one of them as a download."""
    row = library.session(request.path_params["session"])
    if parameter(request, "file"):
        return _raw_download(library, row, number(request, "file", 1, least=1))
    rows = []
    for place, file in enumerate(library.files(row.id), 1):
        name = element("code", make_visible(str(file.path)))
        link = element("a", "Download", href=session_address(request, row.id, "raw", file=place))
        rows.append(element("tr", *(element("td", cell) for cell in (name, file.role, file.format, link))))
    head = element("tr", *(element("th", word, scope="col") for word in ("File", "Role", "Format", "")))
    table = element("table", element("thead", head), element("tbody", *rows), class_="rows")
    commands = element("p", "Byte for byte: ", element("code", f"pollux raw {row.short_id}"), class_="soft small note")
    return document(request, "Raw files", (*_heading(request, row, "Raw files"), table, commands), place="sessions")


def _raw_download(library: Library, row: SessionRow, place: int) -> Response:
    with library.raw(row.id, place) as source:
        name = source.path.name
        file = _spooled(source.blocks())
    return _download(file, name, "application/octet-stream")


def raw_record(request: Request, library: Library) -> Response:
    """Return the recorded bytes of a message, as text."""
    row = library.session(request.path_params["session"])
    text = request.path_params["number"]
    value = parse_integer(text) if text.isdecimal() else None
    with open_sessions(request).reading(row) as conversation:
        try:
            record = conversation.record(value or 0)
            message = conversation.message(value or 0)
        except IndexError:
            raise MessageNotFoundError(row.short_id, text, conversation.n_messages) from None
    shown = make_visible(record[:_SHOWN_RECORD].decode("utf-8", "replace"))
    more = f"… {size(len(record) - _SHOWN_RECORD)} more" if len(record) > _SHOWN_RECORD else ""
    place = " · ".join(filter(None, (message.file or "", f"line {message.line}" if message.line else "")))
    body = (
        *_heading(request, row, f"Record of message {value}"),
        element("p", make_visible(place), class_="soft"),
        element("p", element("a", "Back to the message", href=message_address(request, row.id, value or 1))),
        element("pre", shown, class_="scroll", tabindex="0"),
        element("p", more, class_="soft") if more else Html(),
    )
    return document(request, f"Record of message {value}", body, place="sessions", styles=("session.css",))


def attachment(request: Request, library: Library) -> Response:
    """Return an attachment as a download; only pictures keep their type, after a look at their bytes."""
    row = library.session(request.path_params["session"])
    message, _, index = request.path_params["file"].partition(".")
    places = [parse_integer(text) if text.isdecimal() else None for text in (message, index or "0")]
    with open_sessions(request).reading(row) as conversation:
        try:
            file = conversation.attachment(places[0] or 0, -1 if places[1] is None else places[1])
        except IndexError:
            raise _no_such_file(row) from None
    data = attachments.decode(file)
    if data is None:
        raise _no_such_file(row)
    headers = {"Content-Disposition": file_header(attachments.file_name(file, places[0] or 0)), **_SANDBOX}
    return Response(data, media_type=picture_type(data) or "application/octet-stream", headers=headers)


def _no_such_file(row: SessionRow) -> PolluxError:
    error = MessageNotFoundError(row.short_id, "", 0)
    error.args = (f"Session {row.short_id} has no such attachment.",)
    return error


def picture_type(data: bytes) -> str | None:
    """Return the media type of a PNG, JPEG, GIF or WebP picture, by its first bytes; None for anything else."""
    for magic, media_type in _MAGIC:
        if data.startswith(magic):
            return media_type
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


# Exports


def export(request: Request, library: Library) -> Response:
    """Return the form for an export, or with `format=` the export as a download."""
    row = library.session(request.path_params["session"])
    if not parameter(request, "format"):
        return document(request, "Export", _export_form(request, row), place="sessions")
    name = choice(request, "format", ("html", *(other for other in _EXPORTS if other != "html")))
    exporter = FORMATS[name]
    given = {
        "detail": choice(request, "detail", ("normal", "prompts", "dialogue", "full")),
        "branches": choice(request, "branches", ("active", "all")),
    }
    options = format_options(name, {key: value for key, value in given.items() if key in exporter.options})
    level = choice(request, "redact", tuple(_REDACTIONS))
    if level == "none" and exporter.is_public:
        raise UsageError(f"The format {name} is meant for other people and is always redacted: leave redact=none out.")
    written: list[SpooledTemporaryFile[bytes]] = []
    result = library.export(
        [row.id], name, StreamSink(lambda pieces: written.append(_spooled(pieces))), options, _REDACTIONS[level]
    )
    if result.failed or not written:
        raise PolluxError(result.failed[0].message if result.failed else "The session has nothing for this format.")
    stem = f"session-{row.short_id}"
    return _download(written[0], f"{stem}{exporter.suffix}", "application/octet-stream")


def _export_form(request: Request, row: SessionRow) -> Iterator[Html]:
    yield from _heading(request, row, "Export")
    names = [element("option", name, value=name, selected=name == "html") for name in _EXPORTS]
    details = [
        element("option", word, value=word, selected=word == "normal")
        for word in ("prompts", "dialogue", "normal", "full")
    ]
    branches = (
        element("option", "active messages", value="active"),
        element("option", "active and dropped messages", value="all"),
    )
    redaction = (
        element("option", "secrets replaced", value="yes"),
        element("option", "for other people", value="share"),
        element("option", "none", value="none"),
    )
    yield element(
        "form",
        _select("format", "Format", names),
        _select("detail", "Detail", details),
        _select("branches", "Messages", branches),
        _select("redact", "Redaction", redaction),
        element("button", "Download", class_="button main", type="submit"),
        class_="filters",
        action=session_address(request, row.id, "export"),
    )
    explained = (
        ("Secrets replaced", "passwords, keys, e-mail addresses and names that the rules find"),
        ("For other people", "the same, and no pictures and files, as with --share"),
        ("None", "as recorded, including secrets"),
    )
    for name, words in explained:
        yield element("p", element("b", name), f": {words}.")
    yield element("p", "Rules do not find everything: look through the file before you share it.", class_="soft")


def _select(name: str, label: str, options: Iterable[Html]) -> Html:
    return element("label", element("span", label), element("select", *options, name=name))


def _spooled(pieces: Iterable[bytes]) -> SpooledTemporaryFile[bytes]:
    """Return a temporary file with some bytes, at its beginning."""
    file = SpooledTemporaryFile(_SPOOLED)  # noqa: SIM115  closed when it was sent
    for piece in pieces:
        file.write(piece)
    file.seek(0)
    return file


def _download(file: SpooledTemporaryFile[bytes], name: str, media_type: str) -> Response:
    def blocks() -> Iterator[bytes]:
        with file:
            while block := file.read(_BLOCK):
                yield block

    headers = {"Content-Disposition": file_header(name), **_SANDBOX}
    return StreamingResponse(iterate_in_threadpool(blocks()), media_type=media_type, headers=headers)


# The tree


def tree(request: Request, library: Library) -> Response:
    """Return the page of a session's family: the main session and all its subagents."""
    row = library.session(request.path_params["session"])
    family = library.tree(row.id)
    by_id = family.by_id()
    waiting = [(family, 0)]
    items = []
    while waiting:
        branch, depth = waiting.pop()
        session = branch.session
        title = make_visible(session_text.title(session, TITLE))
        current = "true" if session.id == row.id else None
        link = element("a", title, href=session_address(request, session.id), aria_current=current)
        at = joined((" · ", time_element(session.started, "full"))) if session.started else Html()
        facts = element("span", describe_messages(session, by_id), at, class_="soft small")
        items.append((depth, joined((link, " ", facts))))
        waiting += [(child, depth + 1) for child in reversed(branch.children)]
    body = (*_heading(request, row, "Session and subagents"), nested_list(items))
    return document(request, "Session and subagents", body, place="sessions")


def nested_list(items: Iterable[tuple[int, Html]]) -> Html:
    """Return items with their depths, in the order of a walk through a tree, as lists within lists."""
    pieces = [opening("ol", class_="tree")]
    before = -1
    for depth, item in items:
        if depth > before:
            pieces += [opening("ol")] if before >= 0 else []
        else:
            pieces += [closing("li"), *[closing("ol"), closing("li")] * (before - depth)]
        pieces += [opening("li"), item]
        before = depth
    if before >= 0:
        pieces += [closing("li"), *[closing("ol"), closing("li")] * before]
    return joined((*pieces, closing("ol")))


ROUTES = (
    Route("/s/{session}/find", page(find)),
    Route("/s/{session}/raw", page(raw_files)),
    Route("/s/{session}/raw/{number}", page(raw_record)),
    Route("/s/{session}/file/{file}", page(attachment)),
    Route("/s/{session}/export", page(export)),
    Route("/s/{session}/tree", page(tree)),
)
