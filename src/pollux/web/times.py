"""Times on the pages of the viewer: all in the zone of `--timezone`, which the footer names."""

from __future__ import annotations

from datetime import datetime, tzinfo

from starlette.requests import Request

from pollux.render.html.markup import Html, element
from pollux.views.session_text import day

_WEEK = 7


def zone_of(request: Request) -> tzinfo | None:
    """Return the zone of all times; None for the system's own."""
    zone: tzinfo | None = getattr(request.app.state, "zone", None)
    return zone


def zone_name(request: Request) -> str:
    """Return the name of the zone of all times, for the footer; empty if it is unknown."""
    return str(getattr(request.app.state, "zone_name", ""))


def stamp(request: Request, at: datetime | None) -> Html:
    """Return a `time` element with day and clock for a table, or nothing: `Sat 14 Nov 2026, 08:42`."""
    if at is None:
        return Html()
    local = at.astimezone(zone_of(request))
    return element("time", f"{day(local)}, {local:%H:%M}", datetime=local.isoformat(timespec="seconds"))


def time_words(at: datetime, now: datetime) -> Html:
    """Return a `time` element with words that depend on how long ago it was; `now` is in the zone of the page."""
    local = at.astimezone(now.tzinfo)
    return element("time", day_and_clock(at, now), datetime=local.isoformat(timespec="minutes"))


def day_and_clock(at: datetime, now: datetime) -> str:
    """Return day and clock: `Today, 08:42`, `Saturday, 08:42`, `9 November, 06:05`, `18 September 2025, 20:14`."""
    at = at.astimezone(now.tzinfo)
    days = (now.date() - at.date()).days
    if days in (0, 1):
        name = "Today" if not days else "Yesterday"
    elif 0 < days < _WEEK:
        name = f"{at:%A}"
    else:
        year = "" if at.year == now.year else f" {at.year}"
        name = f"{at.day} {at:%B}{year}"
    return f"{name}, {at:%H:%M}"


def short_day(at: datetime, now: datetime) -> str:
    """Return a day for a column: `14 Nov`, with the year if it was another."""
    at = at.astimezone(now.tzinfo)
    return f"{at.day} {at:%b}" if at.year == now.year else f"{at.day} {at:%b} {at.year}"
