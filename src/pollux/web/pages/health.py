"""The health page: what the client will delete, what is gone and kept, and every problem of the files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.library.library import Library
from pollux.library.values import StatusReport, StatusRow
from pollux.model import Problem
from pollux.render.html.markup import Html, element
from pollux.render.terminal.status import age_limits, deletion_reason
from pollux.text.numbers import plural, size
from pollux.views import session_text
from pollux.web.layout import document
from pollux.web.lists import formats, table, visible, when
from pollux.web.routing import page
from pollux.web.session_links import session_address

MOST_ROWS = 100
"""Sessions, or problems of a kind, that the page lists; the command line has all."""
_ORDER = ("next", "soon", "later", "deleted")
_HEADINGS = {
    "next": "Deleted at the client's next start",
    "soon": "Deleted within a week",
    "later": "Deleted later",
    "deleted": "Deleted by the client, stored in the archive",
}


def health(request: Request, library: Library) -> Response:
    """Return the health page."""
    status = library.status()
    problems = library.problems()
    return document(request, "Health", _body(request, library, status, problems), place="health")


def _body(request: Request, library: Library, status: StatusReport, problems: Sequence[Problem]) -> Iterator[Html]:
    yield element("h1", "Health")
    yield element("p", _verdict(status, problems))
    yield _archive(library)
    by_time: dict[str, list[StatusRow]] = defaultdict(list)
    for row in status.rows:
        by_time[str(row.deletion_time)].append(row)
    limits = age_limits(status.policies)
    for name in _ORDER:
        rows = by_time.get(name, [])
        if rows:
            yield element("h2", f"{_HEADINGS[name]}: {plural(len(rows), 'session')}", id=name)
            head = ("Session", "Project", "Deletion", "Reason", "Archived")
            yield table(head, [_row(request, row, limits) for row in rows[:MOST_ROWS]])
            yield _rest(len(rows), "pollux status")
    yield from _problems(problems)
    yield formats(request, "api/status", csv=False)


def _verdict(status: StatusReport, problems: Sequence[Problem]) -> str:
    n_risk = sum(row.is_at_risk for row in status.rows)
    if n_risk:
        risk = f"{plural(n_risk, 'session')} will soon be deleted and {'is' if n_risk == 1 else 'are'} not archived. "
    else:
        risk = "Nothing will be lost: every session that the client will soon delete is archived. "
    return risk + (f"{plural(len(problems), 'problem')} while reading files." if problems else "No problem was found.")


def _archive(library: Library) -> Html:
    path = library.config.archive
    if path is None:
        words = "There is no archive: Pollux reads the session files, and sessions that the client deletes are lost."
        return element("p", words, class_="soft")
    facts = [("Archive", element("code", visible(str(path), 500)))]
    if path.exists():
        facts.append(("Size", Html(size(path.stat().st_size))))
    state = library.freshness()
    facts.append(("State", Html()) if not state.note else ("State", element("span", visible(state.note, 500))))
    rows = (element("div", element("dt", name), element("dd", value)) for name, value in facts if value)
    return element("dl", *rows, class_="facts")


def _row(request: Request, row: StatusRow, limits: dict[Path, str]) -> tuple[str, ...]:
    session = row.session
    title = visible(session_text.title(session))
    link = element("a", title, href=session_address(request, session.id), data_stop="nearest")
    due = when(row.deletion.due) if row.deletion else Html()
    reason = deletion_reason(row, limits) if row.deletion else ""
    return link, visible(session.project.name), due, visible(reason), "yes" if row.is_archived else "no"


def _rest(number: int, command: str) -> Html:
    if number <= MOST_ROWS:
        return Html()
    return element("p", f"{number - MOST_ROWS:,} more: ", element("code", command), class_="soft small")


def _problems(problems: Sequence[Problem]) -> Iterator[Html]:
    if not problems:
        return
    by_code: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        by_code[problem.code].append(problem)
    yield element("h2", f"Problems: {len(problems):,}", id="problems")
    for code, of_kind in sorted(by_code.items()):
        rows = []
        for problem in of_kind[:MOST_ROWS]:
            place = visible(problem.file or "", 500) + (f", line {problem.line:,}" if problem.line else "")
            rows.append((visible(problem.message, 500), element("code", place)))
        summary = element("summary", element("b", visible(code)), f" {plural(len(of_kind), 'problem')}")
        inside = (summary, table(("Problem", "File"), rows), _rest(len(of_kind), "pollux doctor"))
        yield element("details", *inside, class_="fold", open=len(of_kind) <= 5)  # noqa: PLR2004


ROUTES = (Route("/health", page(health)),)
