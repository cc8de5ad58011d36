"""The sky of a page: a year with a point for each day, and the same numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from starlette.requests import Request

from pollux.render.html.charts import SkyDay, sky, sky_legend
from pollux.render.html.markup import Html, element
from pollux.text.numbers import count, dollars
from pollux.web.layout import address
from pollux.web.lists import chart_table

if TYPE_CHECKING:
    from pollux.library.values import ActiveDay, DailyUse

_MANY_DAYS = 250
"""With more days, their labels are short, so that the page stays light."""
_MOST_ROWS = 31
"""Days of a table; with more, its rows are months."""
_MOST_LINKS = 6000
"""Bytes of links to days beside a list; with more, there is a link for each week."""
_MOST_BYTES = 38_000
"""Bytes of a chart with a link for each day; a larger one has a link for each week."""


def sky_figure(request: Request, activity: DailyUse, project: str = "") -> Html:
    """Return a year as a chart whose days lead to their sessions; of one project, it stands above a list."""
    days = [_linked_day(request, day, project, is_short=len(activity.days) > _MANY_DAYS) for day in activity.days]
    bonds = sorted(activity.continued)
    chart = Html()
    is_long = bool(project) and sum(len(day.href) for day in days) > _MOST_LINKS
    if not is_long:
        chart = sky(days, bonds, activity.today)
    if is_long or len(chart) > _MOST_BYTES:
        weeks = groupby(activity.days, lambda day: _monday(day.day))
        links = [_linked_week(request, monday, list(members), project) for monday, members in weeks]
        chart = sky(days, bonds, activity.today, links)
    caption = element("figcaption", sky_legend(), id="sky-c")
    return element("figure", chart, caption, _table(activity.days), class_="sky", aria_labelledby="sky-c")


def _linked_day(request: Request, day: ActiveDay, project: str, *, is_short: bool) -> SkyDay:
    label = f"{_words(day.day)}; {count(day.n_tokens)} tokens, {dollars(day.nanousd, 3)}"
    if is_short:
        label = f"{day.day.day} {day.day:%b}; {count(day.n_tokens)}"  # the caption says of what
    target = address(request, "sessions", project=project, on=day.day.isoformat())
    return SkyDay(day.day, day.n_tokens, target, label)


def _linked_week(request: Request, first: date, days: Sequence[ActiveDay], project: str) -> SkyDay:
    end = first + timedelta(weeks=1)
    n_tokens, nanousd = _sums(days)
    target = address(request, "sessions", project=project or None, since=first.isoformat(), until=end.isoformat())
    label = f"Week from {first.day} {first:%b}; {count(n_tokens)} tokens, {dollars(nanousd, 3)}"
    return SkyDay(first, n_tokens, target, label)


def _table(days: Sequence[ActiveDay]) -> Html:
    """Return the numbers of the days as a table in a fold, the newest first."""
    if not days:
        return Html()
    name, form = ("Day", "%a {} %b %Y") if len(days) <= _MOST_ROWS else ("Month", "%b %Y")
    rows = []
    for words, members in groupby(reversed(days), lambda day: day.day.strftime(form.format(day.day.day))):
        n_tokens, nanousd = _sums(list(members))
        rows.append((words, count(n_tokens), dollars(nanousd, 3)))
    return chart_table((name, "Tokens", "Billed"), rows)


def _sums(days: Sequence[ActiveDay]) -> tuple[int, int | None]:
    costs = [day.nanousd for day in days if day.nanousd is not None]
    return sum(day.n_tokens for day in days), sum(costs) if costs else None


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _words(day: date) -> str:
    return f"{day.day} {day:%b %Y}"
