"""The JSON API: the documents of `--json`, and where a list goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.errors import MessageNotFoundError
from pollux.library.config import UsageError
from pollux.library.file_history import UsedFile
from pollux.library.find_in_session import find_in_session
from pollux.library.library import Library
from pollux.library.usage import GROUPS, SORTS, UsageQuery
from pollux.library.values import Facets, SessionPage
from pollux.model import Json
from pollux.render.terminal.usage import usage_csv
from pollux.text.encode import csv_row, encode, escape_formula
from pollux.text.numbers import parse_integer
from pollux.views.contracts import SESSION, listed_row, message_row, project_row, rfc3339, to_json
from pollux.views.contracts.archive import ResumeDocument
from pollux.views.contracts.sessions import MessageDocument
from pollux.web.open_sessions import open_sessions
from pollux.web.openapi import openapi_document
from pollux.web.pages import files as files_page
from pollux.web.pages.search import hit_page, is_asked
from pollux.web.pages.session_files import found_json
from pollux.web.pages.sessions import session_list
from pollux.web.requests import choice, number, parameter, wanted
from pollux.web.routing import page, viewer_of

MOST_MESSAGES = 500
"""Messages that one answer contains."""
USED_FILES = "pollux.used_files/1"
_CSV = "text/csv"
_BY = ("day", *(name for name in GROUPS if name != "day"))
_COLUMNS = ("session", "used", "project", "title", "prompts", "tool_calls", "tokens", "cost_nanousd")


def sessions(request: Request, library: Library) -> Response:
    """Return a page of sessions, as JSON or CSV."""
    as_csv = choice(request, "format", ("json", "csv")) == "csv"
    page = session_list(request, library)
    if as_csv:
        return _csv(_session_lines(page), "sessions.csv")
    return _json({**to_json(page), "next": page.next, "total": page.total})


def _session_lines(found: SessionPage) -> Iterator[str]:
    yield csv_row(_COLUMNS)
    for row in found.rows:
        place = escape_formula(row.project.path or row.project.name)
        numbers = (row.prompts, row.tool_calls, row.usage.tokens.total, row.usage.cost_nanousd)
        yield csv_row((escape_formula(row.id), rfc3339(row.last_used), place, escape_formula(row.title), *numbers))


def session(request: Request, library: Library) -> Response:
    """Return a session with messages `from` to `to` of its timeline."""
    row = library.session(request.path_params["session"])
    with open_sessions(request).reading(row) as conversation:
        total = conversation.n_messages
        start = number(request, "from", 1, least=1)
        stop = number(request, "to", min(total, start + MOST_MESSAGES - 1), least=0)
        if stop - start >= MOST_MESSAGES:
            raise UsageError(f"An answer has at most {MOST_MESSAGES} messages: ask for fewer from {start} on.")
        stop = min(stop, total)
        timeline = [message_row(message) for message in conversation.messages(start - 1, max(start - 1, stop))]
        children = conversation.session.children
    head: dict[str, Json] = {"schema": SESSION, "session": listed_row(row)}
    return _json({**head, "timeline": timeline, "children": children, "from": start, "to": stop, "total": total})


def message(request: Request, library: Library) -> Response:
    """Return one message."""
    row = library.session(request.path_params["session"])
    text = request.path_params["number"]
    value = parse_integer(text) if text.isascii() and text.isdecimal() else None
    with open_sessions(request).reading(row) as conversation:
        try:
            message = conversation.message(value or 0)
        except IndexError:
            raise MessageNotFoundError(row.short_id, text, conversation.n_messages) from None
    return _json({**to_json(MessageDocument(row.id, message)), "number": value})


def resume(request: Request, library: Library) -> Response:
    """Return the command that continues a session in the client."""
    plan = library.resume(request.path_params["session"])
    return _json(to_json(ResumeDocument(plan.id, plan.folder, not plan.problems, plan.command)))


def find(request: Request, library: Library) -> Response:
    """Return the numbers of the messages of a session that contain some words."""
    row = library.session(request.path_params["session"])
    with open_sessions(request).reading(row) as conversation:
        matches = find_in_session(conversation, parameter(request, "q"))
    return Response(found_json(matches), media_type="application/json")


def search(request: Request, library: Library) -> Response:
    """Return a page of the sessions that match a query, with their best hits."""
    if not is_asked(request):
        raise UsageError("The parameter q is missing: it is a query of `pollux search`.")
    hits = hit_page(request, library)
    return _json({**to_json(hits), "next": hits.next, "facets": _facets(hits.facets)})


def _facets(facets: Facets | None) -> Json:
    """Return the facets of a search; null if the sessions could not be counted."""
    if facets is None:
        return None
    groups = {
        "in": facets.parts,
        "project": facets.projects,
        "model": facets.models,
        "tool": facets.tools,
        "fate": facets.fates,
        "month": facets.months,
    }
    lists: dict[str, Json] = {"sessions": facets.n_counted, "complete": facets.is_complete}
    for name, values in groups.items():
        lists[name] = [{"key": value.key, "name": value.name, "count": value.n_sessions} for value in values]
    return lists


def files(request: Request, library: Library) -> Response:
    """Return a page of the files that tool calls read or changed."""
    page = files_page.file_page(request, library)
    return _json({**to_json(page), "next": page.next})


def used_files(request: Request, library: Library) -> Response:
    """Return a page of files, each once, with how often sessions read and changed it."""
    page = files_page.used_files(request, library)
    rows = [_used_file(file) for file in page.rows]
    return _json({"schema": USED_FILES, "files": rows, "total": page.total, "next": page.next})


def _used_file(file: UsedFile) -> dict[str, Json]:
    use = file.use
    return {
        "path": use.path,
        "project": project_row(file.project),
        "reads": use.n_reads,
        "changes": use.n_changes,
        "lines_added": use.lines_added,
        "lines_removed": use.lines_removed,
        "sessions": use.n_sessions,
        "last": rfc3339(use.last),
    }


def usage(request: Request, library: Library) -> Response:
    """Return tokens and cost, as JSON or CSV."""
    sort = choice(request, "sort", ("", *SORTS)) or None
    top = number(request, "top", 0, most=10_000) or None
    query = UsageQuery(choice(request, "by", _BY), wanted(request, library), sort=sort, top=top)
    as_csv = choice(request, "format", ("json", "csv")) == "csv"
    report = library.usage(query)
    return _csv(usage_csv(report), "usage.csv") if as_csv else _json(to_json(report))


def status(request: Request, library: Library) -> Response:
    """Return when and why the client will delete each session."""
    report = library.status(wanted(request, library))
    limit = number(request, "limit", 0, most=100_000)
    return _json(to_json(msgspec.structs.replace(report, rows=report.rows[: limit or None])))


def projects(request: Request, library: Library) -> Response:
    """Return the projects that have sessions."""
    return _json(to_json(library.projects(wanted(request, library))))


def doctor(_request: Request, library: Library) -> Response:
    """Return which homes were read, and everything in them that is unreadable or unknown."""
    return _json(to_json(library.doctor()))


def openapi(request: Request, _library: Library) -> Response:
    """Return the description of this API."""
    return _json(openapi_document(viewer_of(request).label, request.scope["server"][1]))


def _json(value: Mapping[str, Json]) -> Response:
    return Response(encode(value) + b"\n", media_type="application/json")


def _csv(lines: Iterable[str], name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response("".join(lines).encode("utf-8", "replace"), media_type=_CSV, headers=headers)


ROUTES = (
    Route("/api/openapi.json", page(openapi)),
    Route("/api/sessions", page(sessions)),
    Route("/api/sessions/{session}", page(session)),
    Route("/api/sessions/{session}/messages/{number}", page(message)),
    Route("/api/sessions/{session}/resume", page(resume)),
    Route("/api/sessions/{session}/find", page(find)),
    Route("/api/search", page(search)),
    Route("/api/files", page(files)),
    Route("/api/files/used", page(used_files)),
    Route("/api/usage", page(usage)),
    Route("/api/status", page(status)),
    Route("/api/projects", page(projects)),
    Route("/api/doctor", page(doctor)),
)
