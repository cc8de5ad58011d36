"""The files that tool calls read or changed, and the history of one file with the diff of each change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.library.file_history import FileHistory, RecordedTouch, UsedFile, UsedFiles
from pollux.library.library import Library
from pollux.library.values import FilePage
from pollux.model import Fate
from pollux.render.html.bodies import body_html
from pollux.render.html.icons import glyph
from pollux.render.html.markup import Html, element, joined
from pollux.web.layout import address, document
from pollux.web.lists import extent, field, formats, nothing, project_choice, table, turn, visible
from pollux.web.requests import page_of, parameter, wanted
from pollux.web.routing import page
from pollux.web.session_links import message_address
from pollux.web.times import stamp, time_words

SIZE = 50
HISTORY_SIZE = 20
"""Touches of one file on a page; each may have a diff."""
_OPEN = 1
"""Diffs that are unfolded from the start."""
_WORDS = {"read": "read", "edit": "changed", "create": "created", "delete": "deleted"}


def file_page(request: Request, library: Library) -> FilePage:
    """Return the touches that a request asks for: `path=` is one file, `q=` a query of `pollux search --files`."""
    chosen = wanted(request, library)
    path, words, part = parameter(request, "path"), parameter(request, "q"), page_of(request, SIZE)
    return (
        library.touches_of_file(path, part, wanted=chosen)
        if path
        else library.touched_files(words, part, wanted=chosen)
    )


def files(request: Request, library: Library) -> Response:
    """Return the page of all files, or with `path=` that of one file."""
    path = parameter(request, "path")
    if path:
        history = library.file_history(path, page_of(request, HISTORY_SIZE), wanted=wanted(request, library))
        body = _history(request, history)
        return document(request, f"{visible(path)} · Files", body, place="files", styles=("session.css",))
    return document(request, "Files", _list(request, library, used_files(request, library)), place="files")


def used_files(request: Request, library: Library) -> UsedFiles:
    """Return the files that a request asks for: `q=` are words of their paths."""
    return library.used_files(parameter(request, "q"), page_of(request, SIZE), wanted=wanted(request, library))


def _list(request: Request, library: Library, found: UsedFiles) -> Iterator[Html]:
    yield element("h1", "Files")
    yield element(
        "form",
        field(request, "q", "Path contains", placeholder="alerts *.py", type_="search"),
        project_choice(request, library.project_names()),
        field(request, "since", "Since", placeholder="2026-11-01, 7d"),
        field(request, "until", "Until"),
        element("button", "Show", class_="button", type="submit"),
        class_="filters noprint",
        role="search",
        aria_label="Files",
        action=address(request, "files"),
    )
    if not found.rows:
        yield nothing(request, "files", "No tool call read or changed a file that matches.", found.total, "files")
        return
    head = ("File", "Project", "Read", "Changed", "Lines", "Sessions", "Last touched")
    now = library.config.clock().astimezone(library.config.zone()[0])
    yield table(head, [_file(request, row, now) for row in found.rows], frozenset({2, 3, 4, 5}))
    yield turn(request, "files", found.next, extent(request, len(found.rows), found.total), size=SIZE)
    yield formats(request, "api/files/used", csv=False)


def _file(request: Request, row: UsedFile, now: datetime) -> tuple[str, ...]:
    use, project = row.use, row.project
    target = address(request, "files", path=use.path, project=project.key or None)
    full_path = f"{project.path}/{use.path}" if project.path and not use.path.startswith(("/", "\\")) else use.path
    link = element("a", visible(use.path, 500), href=target, title=visible(full_path, 500), data_stop="nearest")
    sessions = address(request, "files", project=project.key or None)
    name = element("a", visible(project.name), href=sessions) if project.key else visible(project.name)
    lines = _lines(use.lines_added, use.lines_removed)
    numbers = (f"{use.n_reads:,}" if use.n_reads else "", f"{use.n_changes:,}" if use.n_changes else "", lines)
    return element("code", link), name, *numbers, f"{use.n_sessions:,}", time_words(use.last, now) if use.last else ""


def _history(request: Request, history: FileHistory) -> Iterator[Html]:
    yield element("p", element("a", "Files", href=address(request, "files")), class_="crumb")
    yield element("h1", element("code", visible(history.path, 500)))
    if not history.rows:
        yield nothing(request, "files", "No tool call read or changed this file.", history.total, "reads or changes")
        return
    total = "One read or change." if history.total == 1 else f"{history.total:,} reads and changes, newest first."
    yield element("p", total, class_="soft")
    n_diffs = 0
    items = []
    for row in history.rows:
        items.append(_touch(request, row, history.path, is_open=bool(row.diffs) and n_diffs < _OPEN))
        n_diffs += bool(row.diffs)
    yield element("ol", *items, class_="touches")
    yield turn(request, "files", history.next, extent(request, len(history.rows), history.total), size=HISTORY_SIZE)
    yield formats(request, "api/files", csv=False)


def _touch(request: Request, row: RecordedTouch, path: str, *, is_open: bool) -> Html:
    file = row.file
    target = message_address(request, file.session_id, file.number + 1)
    facts = [
        element("b", _WORDS.get(file.op, visible(file.op))),
        _lines(file.lines_added, file.lines_removed),
        stamp(request, file.at),
        element("a", visible(file.title or "(no prompt)", 100), href=target, data_stop="nearest"),
        element("span", visible(file.project.name), class_="soft"),
    ]
    if not file.path.endswith(path):
        facts.append(element("code", visible(file.path, 500), class_="soft"))
    if file.fate != Fate.ACTIVE:
        facts.append(element("span", glyph("branch"), " ", Fate(file.fate).label, class_="flag c"))
    parts = [element("p", *(fact for fact in facts if fact), class_="where")]
    if row.diffs:
        summary = element("summary", "Diff")
        parts.append(element("details", summary, *map(body_html, row.diffs), class_="fold", open=is_open))
    elif file.op != "read":
        parts.append(element("p", "The record of this change has no lines to compare.", class_="soft small"))
    return element("li", *parts)


def _lines(added: int | None, removed: int | None) -> Html:
    plus = element("span", f"+{added:,}", class_="plus") if added is not None else Html()
    minus = element("span", f"−{removed:,}", class_="minus") if removed is not None else Html()
    return joined((plus, " ", minus)) if plus or minus else Html()


ROUTES = (Route("/files", page(files)),)
