"""What a search returns: hits with the text around them, grouped by session."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import msgspec

from pollux.model import Problem
from pollux.reports.freshness import Freshness
from pollux.reports.sessions import SessionRow


class Span(NamedTuple):
    """A stretch of a text, as offsets of its characters."""

    start: int
    end: int


class Snippet(msgspec.Struct, frozen=True):
    """One line of a text around its highlights, without control characters."""

    text: str
    spans: tuple[Span, ...]
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
    """`message` if one part matches the whole query; `session` if its words are in several messages."""
    score: float


class IndexCoverage(msgspec.Struct, frozen=True):
    """How much of the history the index contains."""

    n_sessions: int
    n_indexed: int
    n_cut_parts: int = 0
    """Parts that are indexed without their middle, because they are too long."""


class HitPage(msgspec.Struct, frozen=True):
    """A page of the sessions that match a query."""

    query: str
    sessions: tuple[SessionHits, ...]
    next: str | None
    """The cursor of the next page."""
    total: int | None
    """Number of matching parts; None if not all were counted."""
    suggestions: tuple[str, ...]
    """Words to search for instead of one that is in no text."""
    notes: tuple[str, ...]
    coverage: IndexCoverage
    problems: tuple[Problem, ...]
    freshness: Freshness
