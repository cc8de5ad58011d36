"""The health page: what the client will delete and has deleted, the archive, its seals, and every problem of files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.library.dashboard import ExpiringSession
from pollux.library.health import HealthReport, LostSession
from pollux.library.library import Library
from pollux.library.values import SessionRow
from pollux.model import Problem
from pollux.render.html.markup import Html, element, joined
from pollux.text.numbers import plural, size
from pollux.views import session_text
from pollux.views.problem_codes import SAVED
from pollux.web.door import with_commands
from pollux.web.layout import address, document
from pollux.web.lists import formats, table, visible
from pollux.web.routing import page
from pollux.web.session_links import session_address
from pollux.web.times import stamp

MOST_ROWS = 100
"""Sessions, or problems of a kind, that the page lists; the command line has all."""
_DELETED = 20
_SOON = timedelta(days=7)
_FEW = 5
"""Problems of a kind that are unfolded from the start."""
_HEADINGS = {
    "next": "Deleted at the client's next start",
    "soon": "Deleted within a week",
    "later": "Deleted later",
}
_REASONS = {
    "count": "more sessions than maxCount",
    "empty": "nothing to resume in it",
    "stub": "a stub left by `--resume`",
    "unreadable": "the client cannot read it",
    "headerless": "its header is missing",
    "subagent": "an old subagent file beside it",
}


def health(request: Request, library: Library) -> Response:
    """Return the health page."""
    report = library.health(n_expiring=MOST_ROWS, n_deleted=_DELETED)
    return document(request, "Health", _body(request, report), place="health")


def _body(request: Request, report: HealthReport) -> Iterator[Html]:
    yield element("h1", "Health")
    yield element("p", _verdict(report))
    yield _archive(request, report)
    yield from _expiring(request, report)
    yield from _deleted(request, report)
    yield from _lost(request, report.lost)
    yield from _problems(report.problems)
    yield formats(request, "api/status", csv=False)


def _verdict(report: HealthReport) -> str:
    sentences = []
    if report.archive is None:
        sentences.append("There is no archive: sessions that the client deletes are lost.")
    elif report.n_unarchived:
        sentences.append(f"{plural(report.n_unarchived, 'session file')} not archived completely.")
    else:
        sentences.append("Every session file is archived: nothing that the client deletes is lost.")
    if report.verified and report.verified.n_damaged:
        sentences.append("The last verification found damage in the archive.")
    n_problems = len(report.problems)
    sentences.append(f"{plural(n_problems, 'problem')} while reading files." if n_problems else "No problem was found.")
    return " ".join(sentences)


def _archive(request: Request, report: HealthReport) -> Html:
    if report.archive is None:
        note = report.freshness.note or "Pollux reads the session files."
        return element("p", visible(note, 500), class_="soft")
    facts = [
        ("Archive", element("code", visible(str(report.archive), 500))),
        ("Size", Html(size(report.n_bytes))),
        ("Last change", stamp(request, report.last_change)),
        ("State", element("span", visible(report.freshness.note or "up to date", 500))),
        ("Verified", _verified(request, report)),
        ("Sealed", _sealed(request, report)),
    ]
    rows = (element("div", element("dt", name), element("dd", value)) for name, value in facts if value)
    return element("dl", *rows, class_="facts")


def _verified(request: Request, report: HealthReport) -> Html:
    result = report.verified
    if result is None:
        return with_commands("never on this computer: `pollux verify` compares every archived byte with its hash")
    damage = f"{plural(result.n_damaged, 'damaged place')} found" if result.n_damaged else "no damage"
    checked = f"{size(result.n_bytes)} checked{', and all facts' if result.is_deep else ''}"
    next_step = ": `pollux verify --repair` repairs what it can" if result.n_damaged else ""
    return joined((stamp(request, result.at), f" · {damage}, {checked}", with_commands(next_step)))


def _sealed(request: Request, report: HealthReport) -> Html:
    seal = report.seal
    if seal is None:
        return with_commands("no: `pollux archive seal` signs the archive, so that later changes can be proven")
    newer = f", {plural(seal.n_newer_files, 'file')} changed since" if seal.n_newer_files else ""
    words = f"{plural(seal.n_seals, 'seal')}{newer}; `pollux verify --seal` checks the signatures"
    return joined((stamp(request, seal.at), " · ", with_commands(words))) if seal.at else with_commands(words)


def _expiring(request: Request, report: HealthReport) -> Iterator[Html]:
    by_time: dict[str, list[ExpiringSession]] = defaultdict(list)
    for entry in report.expiring:
        by_time[_time_of(entry.due, report.now)].append(entry)
    numbers = {"next": report.n_next, "soon": report.n_soon, "later": report.n_later}
    head = ("Session", "Project", "Due", "Reason", "Archived")
    for name, number in numbers.items():
        if number:
            yield element("h2", f"{_HEADINGS[name]}: {plural(number, 'session')}", id=name)
            rows = [_expiring_row(request, entry, report.now) for entry in by_time[name]]
            yield table(head, rows) if rows else Html()
            yield _rest(number - len(rows), "pollux status")
    if any(numbers.values()):
        words = f"Based on the clean-up rules of Gemini CLI {report.client}."
        yield element("p", words, class_="soft small note")


def _time_of(due: datetime, now: datetime) -> str:
    return "next" if due <= now else "soon" if due <= now + _SOON else "later"


def _expiring_row(request: Request, entry: ExpiringSession, now: datetime) -> tuple[str, ...]:
    if entry.reason == "age":
        reason = f"unused for {entry.limit}" if entry.limit else "unused for too long"
    else:
        reason = with_commands(_REASONS.get(entry.reason, visible(entry.reason)))
    archived = "yes" if entry.is_archived else element("span", "no", class_="flag b")
    is_dated = entry.reason == "age" or entry.due > now
    due = stamp(request, entry.due) if is_dated else "at once"
    return *_session(request, entry.session), due, reason, archived


def _session(request: Request, row: SessionRow) -> tuple[Html, str]:
    title = visible(session_text.title(row), 100)
    link = element("a", title, href=session_address(request, row.id), data_stop="nearest")
    return link, visible(row.project.name)


def _deleted(request: Request, report: HealthReport) -> Iterator[Html]:
    if not report.n_deleted:
        return
    yield element(
        "h2", f"Deleted by the client, still in the archive: {plural(report.n_deleted, 'session')}", id="deleted"
    )
    rows = []
    for row in report.deleted:
        command = element("code", f"pollux restore {row.short_id}")
        rows.append((*_session(request, row), stamp(request, row.last_used), command))
    yield table(("Session", "Project", "Last used", "To get it back"), rows)
    if report.n_deleted > len(rows):
        link = element("a", f"All {report.n_deleted:,}", href=address(request, "sessions", has="gone"))
        yield element("p", link, class_="small")


def _lost(request: Request, lost: Sequence[LostSession]) -> Iterator[Html]:
    if not lost:
        return
    yield element("h2", f"Lost, except for their prompts: {plural(len(lost), 'session')}", id="lost")
    words = "The client deleted these before Pollux archived them. Its log of prompts still has what was typed."
    yield element("p", words, class_="soft")
    rows = []
    for session in lost[:MOST_ROWS]:
        first = next((prompt for prompt in session.prompts if not prompt.startswith(("/", "?"))), "")
        rows.append(
            (
                visible(first),
                f"{len(session.prompts):,}",
                stamp(request, session.last),
                element("code", visible(session.id[:8])),
            )
        )
    yield table(("First prompt", "Prompts", "Last", "Session"), rows, frozenset({1}))
    yield _rest(len(lost) - len(rows), "pollux doctor")


def _rest(number: int, command: str) -> Html:
    if number <= 0:
        return Html()
    return element("p", f"{number:,} more: ", element("code", command), class_="soft small")


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
            rows.append(element("li", visible(problem.message, 500), element("code", place, class_="soft")))
        summary = element("summary", element("b", visible(code)), f" {plural(len(of_kind), 'problem')}")
        saved = element("p", "Saved: ", with_commands(SAVED[code]), class_="soft") if code in SAVED else Html()
        inside = (summary, saved, element("ul", *rows), _rest(len(of_kind) - len(rows), "pollux doctor"))
        yield element("details", *inside, class_="fold", open=len(of_kind) <= _FEW)


ROUTES = (Route("/health", page(health)),)
