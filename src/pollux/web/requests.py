"""Read the parameters of a request; a value that cannot be used gets a sentence that says what can."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.requests import Request

from pollux.library.config import UsageError
from pollux.library.filters import Filter, parse_filter
from pollux.library.library import Library
from pollux.library.values import Page
from pollux.text.numbers import parse_integer
from pollux.views.transcript import Branches, Detail, TranscriptOptions

_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:~-]*")
"""An ID that a path can contain as it is."""
_YES, _NO = ("1", "yes", "true", "on"), ("0", "no", "false", "off")
FILTERS = ("project", "model", "since", "until", "last")
"""Parameters with the names and values of the options of the command line."""


def parameter(request: Request, name: str) -> str:
    """Return the value of a parameter without spaces around it; the last one counts, and an absent one is empty."""
    return request.query_params.get(name, "").strip()


def choice(request: Request, name: str, choices: Sequence[str]) -> str:
    """Return a parameter that must be one of some words; the first is the default. Raises `UsageError`."""
    value = parameter(request, name) or choices[0]
    if value not in choices:
        names = ", ".join(filter(None, choices))
        raise UsageError(f"The parameter {name} is '{value}', but only {names} are known.")
    return value


def flag(request: Request, name: str, *, default: bool) -> bool:
    """Return a parameter that is on or off. Raises `UsageError`."""
    value = parameter(request, name).lower()
    if not value:
        return default
    if value not in (*_YES, *_NO):
        raise UsageError(f"The parameter {name} is '{value}', but only 0 and 1 are known.")
    return value in _YES


def number(request: Request, name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
    """Return a parameter that is a whole number. Raises `UsageError`."""
    text = parameter(request, name)
    if not text:
        return default
    value = parse_integer(text) if text.isascii() and text.isdecimal() else None
    if value is None or value < least or (most is not None and value > most):
        limits = f"from {least} to {most}" if most is not None else f"of at least {least}"
        raise UsageError(f"The parameter {name} is '{text}', but it must be a number {limits}.")
    return value


def wanted(request: Request, library: Library) -> Filter:
    """Return the filter that the parameters describe. Raises `UsageError` and `InvalidFilterError`."""
    values = {name: parameter(request, name) or None for name in FILTERS}
    config = library.config
    day = parameter(request, "on")
    chosen = parse_filter(**values, now=config.clock(), zone=config.zone()[0])
    if not day:
        return chosen
    if chosen.since or chosen.until:
        raise UsageError("on names one day, so leave since, until and last out.")
    return parse_filter(**{**values, "since": day, "until": _day_after(day)}, now=config.clock(), zone=config.zone()[0])


def _day_after(day: str) -> str:
    from datetime import date, timedelta  # noqa: PLC0415  only for this filter

    try:
        return (date.fromisoformat(day) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        raise UsageError(f"The parameter on is '{day}', but it must be a day such as 2026-11-01.") from None


def page_of(request: Request, size: int) -> Page:
    """Return the page of a list that a request asks for."""
    return Page(page_size(request, size), parameter(request, "after") or None)


def page_size(request: Request, size: int) -> int:
    """Return how many rows a page has. Raises `UsageError`."""
    return number(request, "limit", size, least=1, most=500)


def page_start(request: Request) -> int:
    """Return how many rows come before the page, for lists whose pages are numbered; 0 for another kind of place."""
    after = parameter(request, "after")
    return (parse_integer(after) or 0) if after.isascii() and after.isdecimal() else 0


def transcript_options(request: Request) -> TranscriptOptions:
    """Return how much of a session the parameters show. Raises `UsageError`."""
    return TranscriptOptions(
        Detail(choice(request, "detail", ("normal", "prompts", "dialogue", "full"))),
        Branches.ACTIVE,
        flag(request, "thoughts", default=True),
        folds=True,
        folds_dropped=flag(request, "branches", default=True),
    )


def path_id(session_id: str, short_id: str) -> str:
    """Return how a path names a session: by its ID, or by its beginning if a path cannot contain the ID."""
    return session_id if _PLAIN_ID.fullmatch(session_id) else short_id
