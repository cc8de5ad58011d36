"""The files that tool calls read or changed: every touch, newest first, with a link to its message."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.library.library import Library
from pollux.library.values import FilePage, TouchedFile
from pollux.model import Fate
from pollux.render.html.icons import glyph
from pollux.render.html.markup import Html, element, joined
from pollux.web.layout import address, document
from pollux.web.lists import field, formats, table, turn, visible, when
from pollux.web.requests import page_of, parameter, wanted
from pollux.web.routing import page
from pollux.web.session_links import message_address

SIZE = 50


def file_page(request: Request, library: Library) -> FilePage:
    """Return the touched files that a request asks for: `path=` is one file, `q=` words of paths."""
    path, words = parameter(request, "path"), parameter(request, "q")
    if path:
        escaped = path.replace('"', " ")
        words = f'{words} "{escaped}"'.strip()
    return library.touched_files(words, page_of(request, SIZE), wanted=wanted(request, library))


def files(request: Request, library: Library) -> Response:
    """Return the page of touched files."""
    return document(request, "Files", _body(request, file_page(request, library)), place="files")


def _body(request: Request, found: FilePage) -> Iterator[Html]:
    yield element("h1", "Files")
    yield element(
        "form",
        field(request, "q", "Path contains"),
        field(request, "path", "Exact path"),
        field(request, "project", "Project"),
        field(request, "since", "Since", placeholder="2026-11-01, 7d"),
        field(request, "until", "Until"),
        element("button", "Show", class_="button", type="submit"),
        class_="filters",
        role="search",
        aria_label="Files",
        action=address(request, "files"),
    )
    for note in found.notes:
        yield element("p", visible(note, 500), class_="soft small")
    if not found.rows:
        yield element("p", "No tool call read or changed a file that matches.", class_="empty")
        return
    yield table(("File", "Action", "Lines", "Session", "When"), [_row(request, row) for row in found.rows])
    yield turn(request, "files", found.next, _total(found.total))
    yield formats(request, "api/files", csv=False)


def _total(number: int) -> str:
    return "1 read or change" if number == 1 else f"{number:,} reads and changes"


def _row(request: Request, row: TouchedFile) -> tuple[str, ...]:
    path = element("a", visible(row.path, 500), href=address(request, "files", path=row.path))
    target = message_address(request, row.session_id, row.number + 1)
    session = [element("a", visible(row.title or "(no prompt)"), href=target, data_stop="nearest")]
    session.append(element("span", " ", visible(row.project.name), class_="soft small"))
    if row.fate != Fate.ACTIVE:
        session.append(element("span", " ", glyph("branch"), " ", Fate(row.fate).label, class_="flag c"))
    return element("code", path), visible(row.op), _lines(row), joined(session), when(row.at)


def _lines(row: TouchedFile) -> Html:
    added = element("span", f"+{row.lines_added:,}", class_="plus") if row.lines_added is not None else Html()
    removed = element("span", f"−{row.lines_removed:,}", class_="minus") if row.lines_removed is not None else Html()
    return joined((added, " ", removed)) if added or removed else Html()


ROUTES = (Route("/files", page(files)),)
