"""Hits of a search: grouped by session on a terminal, a line per hit in a pipe, and the mark below a mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.text import Text

from pollux.model import Fate
from pollux.render.terminal.layout import PageFormat
from pollux.render.terminal.screen import Renderable, cut, cut_start, encodable, line
from pollux.render.terminal.sessions import marked_title
from pollux.render.terminal.snippets import excerpts
from pollux.render.terminal.tables import distinct_names, dollars, tab_lines
from pollux.reports.periods import local
from pollux.search.values import SESSION_SCOPE, TITLE_SCOPE, Hit, HitPage, SessionHits
from pollux.text.escape import make_visible
from pollux.text.numbers import plural
from pollux.text.shell import quoted
from pollux.views.contracts import rfc3339
from pollux.views.session_text import cost_text

MessageLink = Callable[[str, int | None], str]
"""Returns the address of a session, or of its message with a number from 1."""
_LINES = 2
"""Lines of text per hit beside its label, about as many as a reader takes in at a glance."""
_STACKED_LINES = 3
"""Lines of text per hit below its label, on a narrow terminal."""
_STACKED_BELOW = 60
"""Columns of a terminal below which a snippet is on a line of its own."""
_PROJECT = 24
_TITLE, _TITLE_LEAST = 300, 24
_SHORT_ID = 8
_PIPE_SNIPPET = 1_000
_PATTERN = re.compile(r"re:/(?:[^/\\]|\\.)+/([A-Za-z]*)")
"""A regular expression in a query, and its flags."""
_FIELD = re.compile(r"-?[A-Za-z]+:(?!:|//)\S")
_INDENT = 2


def render_hits(
    sessions: Sequence[SessionHits],
    *,
    zone: tzinfo | None = None,
    encoding: str = "utf-8",
    link: MessageLink | None = None,
) -> Iterator[Renderable]:
    """Yield sessions with the hits in them, each leading to its `link`; times are local unless a zone is passed."""
    page = PageFormat(zone, encoding)
    projects = [session.row.project for session in sessions]
    names = distinct_names((project.key, project.name) for project in projects)
    for number, session in enumerate(sessions):
        if number and not (_is_one_line(session) and _is_one_line(sessions[number - 1])):
            yield Text()
        yield _SessionLines(session, page.line(line(names[session.row.project.key], _PROJECT)), page, link)


def _is_one_line(session: SessionHits) -> bool:
    return not session.hits and not list(_about(session))


@dataclass(frozen=True, slots=True)
class _SessionLines:
    """A session's header, its hits, and the number of the others."""

    session: SessionHits
    project: str
    page: PageFormat
    link: MessageLink | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        yield self._linked(_whole(_header(self.session, self.project, width, self.page)))
        for fact in _about(self.session):
            yield _whole(Text(" " * _INDENT + cut(fact, width - _INDENT), "dim"))
        hits = self.session.hits
        day = _day(self.session.row.last_used, self.page.zone)
        labels = _labels(hits, day, self.page.zone)
        for hit, label in zip(hits, labels, strict=True):
            linked = self._linked(label, hit.number + 1)
            for text in _hit_lines(hit, linked, console, width, self.page):
                yield _whole(text)
        n_others = self.session.n_hits - len(hits)
        if hits and n_others > 0:
            yield _whole(Text(" " * _INDENT + cut(f"… and {n_others:,} more in this session", width - _INDENT), "dim"))

    def _linked(self, text: Text, number: int | None = None) -> Text:
        """Return a text that leads to the session, or to its message with a number, in the viewer."""
        if self.link is not None:
            text.stylize(Style(link=self.link(self.session.row.id, number)))
        return text


def _whole(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "crop"
    return text


def _header(session: SessionHits, project: str, width: int, page: PageFormat) -> Text:
    """Return date, ID, project, title and cost; on a narrow terminal without cost, then project, then date."""
    row = session.row
    day = _day(row.last_used, page.zone)
    session_id = (line(row.short_id, _SHORT_ID, ellipsis=""), "bold bright_blue")
    columns = {"date": (f"{day}" if day else "", "dim"), "id": session_id, "project": (project, "green")}
    cost = cost_text(row.usage) if row.usage.calls else ""
    for dropped in ("", "cost", "project", "date"):
        columns.pop(dropped, None)
        cost = "" if dropped == "cost" else cost
        shown = [column for column in columns.values() if column[0]]
        room = width - sum(cell_len(text) + 2 for text, _ in shown) - (cell_len(cost) + 2 if cost else 0)
        if room >= _TITLE_LEAST:
            break
    header = Text()
    for text, style in shown:
        header.append(text, style).append("  ")
    title = marked_title(row, None)
    title.plain = encodable(title.plain, page.encoding)
    title.stylize("bold")
    title.truncate(max(room, 1), overflow="ellipsis")
    header.append_text(title)
    if cost:
        header.append(" " * (width - cell_len(header.plain) - cell_len(cost))).append(cost, "dim")
    return header


def _about(session: SessionHits) -> Iterator[str]:
    """Yield what a reader must know about a session's hits: whose subagent it is, and where the words are."""
    row = session.row
    if row.kind == "subagent" and row.parent_id:
        yield f"subagent of {line(row.parent_id, _SHORT_ID, ellipsis='')}"
    if session.scope == SESSION_SCOPE and session.hits:
        yield "words in different messages"
    elif session.scope == TITLE_SCOPE:
        yield "words in the title"


def _labels(hits: Sequence[Hit], day: date | None, zone: tzinfo | None) -> list[Text]:
    """Return number, part and time of each hit, below each other."""
    numbers = [f"#{hit.number + 1}" for hit in hits]
    times = [_time(hit.at, day, zone) for hit in hits]
    widths = [max(map(len, column), default=0) for column in (numbers, [hit.part for hit in hits], times)]
    labels = []
    for hit, number, time in zip(hits, numbers, times, strict=True):
        label = Text(" " * _INDENT)
        label.append(number.rjust(widths[0]), "bright_blue").append("  ")
        label.append(hit.part.ljust(widths[1]), "bright_magenta")
        if widths[2]:
            label.append("  ").append(time.rjust(widths[2]), "dim")
        labels.append(label)
    return labels


def _hit_lines(hit: Hit, label: Text, console: Console, width: int, page: PageFormat) -> Iterator[Text]:
    """Yield a hit's label with its snippets beside it, or below it on a narrow terminal."""
    is_stacked = width < _STACKED_BELOW
    indent = _INDENT * 2 if is_stacked else cell_len(label.plain) + 2
    room = max(width - indent, 8)
    text = Text()
    if hit.fate != Fate.ACTIVE:
        text.append(Fate(hit.fate).label, "bright_magenta").append(" · ")
    text.append_text(excerpts(hit.snippets, room * (_STACKED_LINES if is_stacked else _LINES), page))
    pieces = [piece for piece in text.wrap(console, room) if piece.plain.strip()]
    for piece in pieces:
        piece.rstrip()
    if pieces and not is_stacked:
        label.append("  ").append_text(pieces.pop(0))
    yield label
    for piece in pieces:
        yield Text(" " * indent).append_text(piece)


def _shown(text: str) -> str:
    return make_visible(text).replace("\n", " ")


def _day(at: datetime | None, zone: tzinfo | None) -> date | None:
    return local(at, zone).date() if at else None


def _time(at: datetime | None, day: date | None, zone: tzinfo | None) -> str:
    """Return the time of day, after the day if that is not the day in the header."""
    if at is None:
        return ""
    moment = local(at, zone)
    return f"{moment:%H:%M}" if moment.date() == day else f"{moment:%m-%d %H:%M}"


def hit_lines(
    sessions: Iterable[SessionHits], *, header: bool = True, link: MessageLink | None = None
) -> Iterator[str]:
    """Yield a tab-separated line per hit, ending with its `link`; sessions that match as a whole have no message."""
    names = ["session", "message", "number", "part", "at", "fate", "project", "title", "cost_usd", "snippet"]
    names += ["link"] if link else []
    return tab_lines(names, _hit_rows(sessions, link), header=header)


def _hit_rows(sessions: Iterable[SessionHits], link: MessageLink | None) -> Iterator[Sequence[object]]:
    for session in sessions:
        row = session.row
        folder = row.project.path or row.project.name
        about = (folder, row.title or row.first_prompt, dollars(row.usage.cost_nanousd))
        if not session.hits:
            part = "title" if session.scope == TITLE_SCOPE else ""
            address = [link(row.id, None)] if link else []
            yield (row.id, "", "", part, rfc3339(row.last_used), "", *about, "", *address)
        for hit in session.hits:
            snippet = " … ".join(snippet.text for snippet in hit.snippets)[:_PIPE_SNIPPET]
            place = (row.id, hit.message_id, hit.number + 1, hit.part, rfc3339(hit.at), hit.fate)
            address = [link(row.id, hit.number + 1)] if link else []
            yield (*place, *about, snippet, *address)


def count_text(page: HitPage) -> str:
    """Return how much matches a query: `57 hits in 5 sessions`, or only sessions if it describes sessions."""
    n_hits, n_sessions = page.total or 0, page.n_sessions or 0
    sessions = plural(n_sessions, "session")
    return sessions if n_sessions and not n_hits else f"{plural(n_hits, 'hit')} in {sessions}"


def pointed_query(query: str, position: int, width: int) -> str:
    """Return a query and, in a second line, a caret below the character at a position."""
    room = max(width - _INDENT - 1, 8)
    after = _shown(query[position:])
    before = cut_start(_shown(query[:position]), max(room - cell_len(after), room // 2))
    shown = before + cut(after, room - cell_len(before))
    return f"{' ' * _INDENT}{shown}\n{' ' * (_INDENT + cell_len(before))}^"


def count_lines(page: HitPage, *, header: bool = True) -> Iterator[str]:
    """Yield the number of hits and of sessions with hits, for other programs."""
    return tab_lines(("hits", "sessions"), [(page.total, page.n_sessions)], header=header)


def foot_notes(page: HitPage, *, is_found: bool, is_terminal: bool, is_scan: bool, has_filter: bool) -> Iterator[str]:
    """Yield the sentences below the hits: what was not searched, what is not shown, and what to try instead."""
    yield from page.notes
    if not is_found and page.suggestions:
        queries = [f"`pollux search {quoted(query)}`" for query in page.suggestions]
        yield f"Nothing matches {_named(page.query)}. Did you mean {' or '.join(queries)}?"
    elif not is_found and page.next is not None:
        yield f"No match for {_named(page.query)} so far."  # a note says where the search stopped
    elif not is_found:
        yield nothing_found(page.query, _next_steps(page, is_scan=is_scan, has_filter=has_filter))
    if page.next is not None and page.sessions:
        yield next_page(len(page.sessions), page.n_sessions, "sessions")
    if is_terminal and page.sessions and page.sessions[0].hits:
        session = page.sessions[0]
        yield f"`pollux show {session.row.short_id}#{session.hits[0].number + 1}` opens the first hit."


def nothing_found(query: str, steps: Sequence[str]) -> str:
    """Return the sentence for a query without hits, with what to try instead."""
    sentence = f"Nothing matches {_named(query)}."
    if not steps:
        return sentence
    *others, last = steps
    return f"{sentence} Try {', '.join(others)} or {last}." if others else f"{sentence} Try {last}."


def _named(query: str) -> str:
    return f"'{line(query, 200)}'" if query.strip() else "these options"


def next_page(n_shown: int, n_all: int | None, nouns: str) -> str:
    """Return how many rows of a list are shown, and how to see more."""
    shown = f"More {nouns} match" if n_all is None else f"{n_shown:,} of {n_all:,} {nouns} are shown"
    return f"{shown}: add -n {n_shown * 5} to print more."


def _next_steps(page: HitPage, *, is_scan: bool, has_filter: bool) -> list[str]:
    flags = _PATTERN.findall(page.query)
    terms = _PATTERN.sub("", page.query).split()
    steps = ["fewer words"] if len(terms) + len(flags) > 1 else []
    if any("i" not in letters.lower() for letters in flags):
        steps.append("an i after the last slash, which ignores upper and lower case")
    if not all(map(_FIELD.match, terms)):
        steps.append("the beginning of a word with a star, such as time*")
    if has_filter:
        steps.append("fewer options")
    if not is_scan and page.coverage.n_cut_parts:
        steps.append("--scan, which also reads the middle of very long outputs")
    return steps
