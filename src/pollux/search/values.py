"""What a search returns: hits with the text around them, grouped by session."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import msgspec

from pollux.model import Problem, Project
from pollux.reports.freshness import Freshness
from pollux.reports.sessions import SessionRow

MESSAGE_SCOPE, SESSION_SCOPE, TITLE_SCOPE = "message", "session", "title"
"""Whether one part of a message matches a whole query, several messages of a session together, or only its title."""


class TextSpan(NamedTuple):
    """A stretch of a text, as offsets of its characters."""

    start: int
    end: int


class Snippet(msgspec.Struct, frozen=True):
    """One line of a text around its highlights, without control characters."""

    text: str
    spans: tuple[TextSpan, ...]
    """The highlights, as offsets in `text`."""
    has_before: bool = False
    has_after: bool = False


class Hit(msgspec.Struct, frozen=True):
    """A part of a message that matches a query."""

    session_id: str
    message_id: str
    number: int
    """The message's position in the session's timeline; the first is 0."""
    part: str
    """`prompt`, `answer`, `thoughts`, `args`, `output` or `notice`."""
    at: datetime | None
    role: str
    fate: str
    snippets: tuple[Snippet, ...]
    score: float


class SessionHits(msgspec.Struct, frozen=True):
    """A session with the hits in it, best first."""

    row: SessionRow
    hits: tuple[Hit, ...]
    n_hits: int
    scope: str
    """`message` if one part matches the whole query, `session` if its words are in several messages, `title` if only
    its title matches."""
    score: float


class IndexCoverage(msgspec.Struct, frozen=True):
    """How much of the history the index contains."""

    n_sessions: int
    n_indexed: int
    n_cut_parts: int = 0
    """Parts that are indexed without their middle, because they are too long."""
    missing: tuple[str, ...] = ()
    """IDs of the sessions that are not indexed, or not to their end; newest first."""

    @property
    def is_complete(self) -> bool:
        """Whether every session is indexed to its end."""
        return self.n_indexed >= self.n_sessions and not self.missing


class FacetValue(msgspec.Struct, frozen=True):
    """A value by which a search can be narrowed."""

    key: str
    """What the filter or the field of the query takes."""
    name: str
    n_sessions: int | None
    """Sessions that a search with it finds; None if unknown."""


class Facets(msgspec.Struct, frozen=True):
    """Values by which a search can be narrowed, those with most sessions first; months newest first."""

    n_counted: int
    """Sessions that the numbers are about."""
    is_complete: bool
    """Whether these are all that match; otherwise the newest."""
    parts: tuple[FacetValue, ...]
    projects: tuple[FacetValue, ...]
    models: tuple[FacetValue, ...]
    tools: tuple[FacetValue, ...]
    fates: tuple[FacetValue, ...]
    months: tuple[FacetValue, ...]


class HitPage(msgspec.Struct, frozen=True):
    """A page of the sessions that match a query."""

    query: str
    sessions: tuple[SessionHits, ...]
    next: str | None
    """The cursor of the next page."""
    total: int | None
    """Number of matching parts; None if not all were counted."""
    n_sessions: int | None
    """Number of matching sessions; None if not all were counted."""
    suggestions: tuple[str, ...]
    """Queries to try instead, if a word of this one is in no text."""
    notes: tuple[str, ...]
    """Sentences for the user: what was left out, not searched or stopped, and what to do about it."""
    coverage: IndexCoverage
    problems: tuple[Problem, ...]
    freshness: Freshness
    facets: Facets | None = None
    """Values by which to narrow the query, if they were asked for and the matching sessions could be counted."""
    reading: str = ""
    """How the query was understood, in words."""


class TouchedFile(msgspec.Struct, frozen=True):
    """A file that a tool call read or changed."""

    path: str
    op: str
    at: datetime | None
    session_id: str
    message_id: str
    number: int
    """The message's position in the session's timeline; the first is 0."""
    project: Project
    title: str
    lines_added: int | None
    lines_removed: int | None
    fate: str


class CommandRun(msgspec.Struct, frozen=True):
    """A shell command that a tool call ran."""

    command: str
    program: str
    at: datetime | None
    session_id: str
    message_id: str
    number: int
    """The message's position in the session's timeline; the first is 0."""
    project: Project
    title: str
    exit_code: int | None
    status: str
    fate: str


class FilePage(msgspec.Struct, frozen=True):
    """A page of the files that the sessions matching a query touched, newest first."""

    rows: tuple[TouchedFile, ...]
    next: str | None
    """The cursor of the next page."""
    total: int
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]
    freshness: Freshness


class CommandPage(msgspec.Struct, frozen=True):
    """A page of the commands that the sessions matching a query ran, newest first."""

    rows: tuple[CommandRun, ...]
    next: str | None
    """The cursor of the next page."""
    total: int
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]
    freshness: Freshness
