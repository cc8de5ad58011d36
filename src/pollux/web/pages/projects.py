"""The projects that have sessions, and the page of one of them."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from pollux.errors import ProjectNotFoundError
from pollux.library.library import Library
from pollux.library.values import ProjectList
from pollux.model import Project
from pollux.render.html.markup import Html, element, joined
from pollux.text.numbers import count, dollars, plural
from pollux.web.changes import mark_of
from pollux.web.layout import address, document
from pollux.web.lists import formats, table, visible
from pollux.web.requests import wanted
from pollux.web.routing import page
from pollux.web.times import stamp

_KNOWN_BY = {
    "project_root": "named by the client in .project_root",
    "projects.json": "listed in the client's projects.json",
    "trustedFolders.json": "a trusted folder of the client",
    "directories": "named by a session",
    "session_context": "named in the context of a session",
    "arguments": "from a path in a tool call",
    "scan": "found by pollux projects --scan",
    "memory": "proven before",
}
"""Words for each source of a path; docs/formats.md explains them."""


def projects(request: Request, library: Library) -> Response:
    """Return the page of all projects."""
    mark = mark_of(library)
    listed = library.projects(wanted(request, library))
    return document(request, "Projects", _body(request, listed), place="projects", mark=mark)


def _body(request: Request, listed: ProjectList) -> Iterator[Html]:
    yield element("h1", "Projects")
    if not listed.rows:
        yield element("p", "No project has sessions.", class_="empty")
        return
    if listed.n_unknown:
        words = f"The folder of {plural(listed.n_unknown, 'project')} is unknown. "
        command = element("code", "pollux projects --scan")
        yield element("p", words, command, " searches for it.", class_="soft")
    rows = []
    for row in listed.rows:
        project = row.project
        name = element("a", visible(project.name), href=project_address(request, project), data_stop="nearest")
        where = element("div", _path(project, listed), class_="small")  # below the name, for narrow screens
        cells = (joined((name, where)), f"{row.n_sessions:,}", f"{row.n_prompts:,}", count(row.n_tokens))
        billed = dollars(row.nanousd, 3)
        rows.append((*cells, billed, stamp(request, row.last)))
    head = ("Project", "Sessions", "Prompts", "Tokens", "Billed", "Last used")
    yield table(head, rows, frozenset({1, 2, 3, 4}))
    yield formats(request, "api/projects", csv=False)


def _path(project: Project, listed: ProjectList) -> Html:
    if project.path is None:
        return element("span", "unknown", class_="soft")
    path = element("code", visible(project.path, 500))
    notes = [_KNOWN_BY.get(project.source or "", "")]
    if not project.proven:
        notes.append("not proven by its hash")
    if moved := listed.moved.get(project.path):
        notes.append(f"missing; perhaps moved to {visible(moved, 500)}")
    words = ", ".join(filter(None, notes))
    return joined((path, " ", element("span", words, class_="soft"))) if words else path


def project_address(request: Request, project: Project) -> str:
    """Return the address of the sessions of a project."""
    return address(request, "sessions", project=project.key or None)


def project(request: Request, library: Library) -> Response:
    """Redirect from the hash of a project, or the beginning of one, to its sessions."""
    prefix = request.path_params["hash"].lower()
    for row in library.projects().rows:
        if row.project.hash and prefix and row.project.hash.startswith(prefix):
            return RedirectResponse(project_address(request, row.project), 303)
    raise ProjectNotFoundError(request.path_params["hash"])


ROUTES = (Route("/projects", page(projects)), Route("/projects/{hash}", page(project)))
