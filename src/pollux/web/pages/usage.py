"""Usage: tokens and money by period and model, by project, tool and session, and what the money was paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.library.library import Library
from pollux.library.usage_summary import MANY_ROWS, ROWS, SPANS, STEPS, UsageSummary, summary_query
from pollux.library.values import PeriodUsage, UsageRow
from pollux.model import Usage
from pollux.render.html.charts import MANY_BARS, FlowPart, StackedBar, bars, colour, flow, share, swatch
from pollux.render.html.icons import glyph
from pollux.render.html.markup import Html, element, joined
from pollux.text.numbers import count, dollars, plural
from pollux.web.changes import mark_of
from pollux.web.layout import QueryValue, address, document
from pollux.web.lists import chart_table, project_choice, select, visible
from pollux.web.requests import choice, parameter
from pollux.web.routing import page
from pollux.web.rows import session_address

_MEASURES = ("cost", "tokens")
_SPAN_NAMES = {"7d": "7 days", "30d": "30 days", "90d": "90 days", "1y": "Year", "all": "All"}
_SPAN_WORDS = {
    "7d": "in seven days",
    "30d": "in thirty days",
    "90d": "in ninety days",
    "1y": "in a year",
    "all": "in all",
}
_KINDS = {
    "fresh": ("Fresh input", "m1"),
    "cached": ("Cached input", "m5"),
    "output": ("Output", "m2"),
    "thoughts": ("Thoughts", "m4"),
}
_LEAST_SAVED = 10**10
"""Picodollars, a cent: savings below it are not worth a sentence."""
_LEAST_TICK = 1000
"""Nanodollars; the scale of a chart without any cost ends at one."""
_NOT_RECORDED = "Not recorded by the client, so not included: routing, titles, failed requests"
_TABLE_ROWS = 62
"""Rows of the table beside the chart; the download has all."""
_STEP_HEADS = {"day": "Day", "week": "Week", "month": "Month"}


class _Choice(msgspec.Struct, frozen=True):
    """What the reader chose: the parameters of the address."""

    last: str | None
    since: str | None
    until: str | None
    step: str | None
    """Only if the reader chose one."""
    measure: str
    project: str | None
    model: str | None
    rows: str

    @property
    def by(self) -> str:
        """The step of the chart; all time has too many days to look at."""
        return self.step or ("month" if self.last == "all" else "day")

    def address(self, request: Request, path: str = "usage", **changes: QueryValue) -> str:
        """Return the address of this choice with some changes."""
        values: dict[str, QueryValue] = {
            "last": self.last if self.last != "30d" else None,
            "since": self.since,
            "until": self.until,
            "by": self.step,
            "measure": self.measure if self.measure != "cost" else None,
            "project": self.project,
            "model": self.model,
        }
        return address(request, path, **(values | changes))


def usage(request: Request, library: Library) -> Response:
    """Return the page for the parameters of the address."""
    chosen = _choice(request)
    query = summary_query(
        last=chosen.last,
        since=chosen.since,
        until=chosen.until,
        by=chosen.by,
        project=chosen.project,
        model=chosen.model,
        config=library.config,
    )
    mark = mark_of(library)
    summary = library.usage_summary(query, n_rows=MANY_ROWS if chosen.rows == "all" else ROWS)
    return document(request, "Usage", _body(request, chosen, summary), place="Usage", footer=[_NOT_RECORDED], mark=mark)


ROUTES = (Route("/usage", page(usage)),)


def _choice(request: Request) -> _Choice:
    last, since, until, project, model = (
        parameter(request, name) or None for name in ("last", "since", "until", "project", "model")
    )
    if last is None and not since and not until:
        last = "30d"
    step, measure = choice(request, "by", ("", *STEPS)) or None, choice(request, "measure", _MEASURES)
    return _Choice(last, since, until, step, measure, project, model, choice(request, "rows", ("", "all")))


class _Measure(msgspec.Struct, frozen=True):
    """Money or tokens: the number of a usage, and its words."""

    of: Callable[[Usage], int]
    show: Callable[[int], str]
    tick: Callable[[int], str]


def _measure(name: str) -> _Measure:
    if name == "tokens":
        return _Measure(lambda usage: usage.tokens.total, count, count)
    return _Measure(lambda usage: usage.cost.nanousd, lambda nanousd: dollars(nanousd, 4), _tick)


def _tick(nanousd: int) -> str:
    """Return an amount for the scale, with as few decimals as its round number needs."""
    if not nanousd:
        return "$0"
    for digits in range(6):
        if nanousd % 10 ** (9 - digits) == 0:
            return dollars(nanousd, digits if digits != 1 else 2)
    return dollars(nanousd, 6) if nanousd >= _LEAST_TICK else ""


def _body(request: Request, chosen: _Choice, summary: UsageSummary) -> Iterator[Html]:
    measure = _measure(chosen.measure)
    yield element("section", *_lede(chosen, summary), class_="lede")
    yield _form(request, chosen, summary)
    if not summary.billed.calls:
        yield element(
            "div",
            element("p", "No model calls here."),
            element(
                "p",
                "Choose a longer period, or ",
                element("a", "show everything", href=address(request, "usage", last="all")),
                ".",
            ),
            class_="empty",
        )
        return
    yield _chart(request, chosen, summary, measure)
    yield element(
        "div",
        _table("By model", "Model", summary.models, measure, lambda row: choice_link(request, "model", row)),
        _table(
            "By project",
            "Project",
            summary.projects[:MANY_ROWS],
            measure,
            lambda row: choice_link(request, "project", row),
        ),
        class_="pair",
    )
    yield _flow(summary)
    yield element(
        "div",
        _table("By tool", "Tool", summary.tools, measure, lambda row: choice_link(request, "tool", row),
            _more(request, chosen, summary.n_tools - len(summary.tools)),
        ),
        _table("Most expensive sessions", "Session", summary.sessions, measure,
            lambda row: session_address(request, row.key or ""),
            _more(request, chosen, summary.n_sessions - len(summary.sessions)),
        ),
        class_="pair",
    )  # fmt: skip
    yield _sources(summary)


def choice_link(request: Request, name: str, row: UsageRow) -> str:
    """Return the address of the sessions of a model, project or tool."""
    return address(request, "sessions", **{name: row.key or row.name})


def _lede(chosen: _Choice, summary: UsageSummary) -> Iterator[Html]:
    first, last = _bounds(summary)
    if first and last and first <= last:
        same_year = first.year == last.year
        start = f"{first.day} {first:%B}" + ("" if same_year else f" {first.year}")
        yield element("p", f"{start} to {last.day} {last:%B} {last.year}", class_="label")
    names = summary.project_names
    where = f" in {visible(names.get(chosen.project, chosen.project))}" if chosen.project else ""
    where += f" with {visible(chosen.model)}" if chosen.model else ""
    when = _SPAN_WORDS.get(chosen.last or "", "in this time")
    amount = f"{count(summary.billed.tokens.total)} tokens"
    if chosen.measure == "cost":
        nanousd = summary.billed.cost_nanousd
        amount = f"{amount} without a price" if nanousd is None else dollars(nanousd, 2)
    yield element("h1", f"{amount} {when}{where}." if summary.billed.calls else f"Nothing {when}{where}.")
    lost = summary.billed.cost.nanousd - summary.active.cost.nanousd
    if lost:
        bold = element("b", f"{dollars(lost, 2)} went into work that was dropped")
        yield element("p", bold, ": rewound, rolled back or compressed.", class_="more")
    elif summary.billed.calls:
        yield element("p", "No part of it was dropped.", class_="more")


def _bounds(summary: UsageSummary) -> tuple[date | None, date | None]:
    """Return the first and the last day that the page is about."""
    used = [_first_day(summary.by, period.key) for period in summary.periods if period.key]
    zone = summary.zone
    first = summary.since.astimezone(zone).date() if summary.since else (used[0] if used else None)
    if summary.until:
        last = (summary.until.astimezone(zone) - timedelta(microseconds=1)).date()
    else:
        last = summary.now.astimezone(zone).date()
    return first, last


def _first_day(by: str, key: str) -> date:
    if by == "week":
        year, _, week = key.partition("-W")
        return date.fromisocalendar(int(year), int(week), 1)
    return date.fromisoformat(f"{key}-01" if by == "month" else key)


def _form(request: Request, chosen: _Choice, summary: UsageSummary) -> Html:
    periods = (
        (
            _SPAN_NAMES[span],
            chosen.address(request, last=span if span != "30d" else None, since=None, until=None),
            span == chosen.last,
        )
        for span in SPANS
    )
    steps = ((step.capitalize(), chosen.address(request, by=step), step == chosen.by) for step in STEPS)
    measures = (
        (name.capitalize(), chosen.address(request, measure=name), name == chosen.measure) for name in _MEASURES
    )
    hidden = [
        element("input", type="hidden", name=name, value=value)
        for name, value in (
            ("last", chosen.last),
            ("since", chosen.since),
            ("until", chosen.until),
            ("by", chosen.step),
            ("measure", chosen.measure),
        )
        if value
    ]
    models = dict.fromkeys(filter(None, (*summary.order, chosen.model)))
    last = chosen.last if chosen.last != "all" else None
    csv = chosen.address(request, "api/usage", measure=None, format="csv", last=last, by=chosen.by)
    return element(
        "form",
        _pick("Period", periods),
        _pick("Step", steps),
        _pick("Measure", measures),
        *hidden,
        project_choice(request, summary.project_names, everything="all projects"),
        select(
            request, "model", "Model", [("", "all models"), *((name, visible(name)) for name in models)], is_named=False
        ),
        element("noscript", element("button", "Show", class_="button")),
        element("span", element("a", glyph("export"), "CSV", class_="button", href=csv), class_="away"),
        class_="ask noprint",
        action=address(request, "usage"),
        aria_label="What to show",
        data_send=True,
    )


def _pick(label: str, links: Iterator[tuple[str, str, bool]]) -> Html:
    made = (
        element("a", words, href=href, aria_current="true" if is_current else None) for words, href, is_current in links
    )
    return element("span", *made, class_="pick", role="group", aria_label=label)


def _chart(request: Request, chosen: _Choice, summary: UsageSummary, measure: _Measure) -> Html:
    series = {row: colour(number) for number, row in enumerate(model or "no model" for model in summary.order)}
    columns = _columns(request, chosen, summary, measure)
    first, last = _bounds(summary)
    span = f", {first.day} {first:%B} to {last.day} {last:%B %Y}" if first and last else ""
    chart = bars(
        columns,
        series,
        label=f"{'Billed' if chosen.measure == 'cost' else 'Tokens'} by {chosen.by} and model{span}",
        show=measure.tick,
    )
    roll = element("div", chart, class_="roll", tabindex=0, role="group", aria_label="Chart")
    keys = []
    digits = 3
    for row in summary.models:
        amount = dollars(row.billed.cost_nanousd, digits) if chosen.measure == "cost" else count(measure.of(row.billed))
        keys.append(
            element("li", swatch(series[row.name]), visible(row.name), " ", element("span", amount, class_="num"))
        )
    lost = measure.of(summary.billed) - measure.of(summary.active)
    if lost:
        amount = dollars(lost, digits) if chosen.measure == "cost" else count(lost)
        keys.append(element("li", swatch("gone"), "dropped ", element("span", amount, class_="num")))
    return element("figure", roll, element("ul", *keys, class_="legend"), _period_table(chosen, summary), class_="big")


def _columns(request: Request, chosen: _Choice, summary: UsageSummary, measure: _Measure) -> list[StackedBar]:
    by_day = {_first_day(chosen.by, period.key): period for period in summary.periods if period.key}
    days = list(_all_periods(chosen.by, summary, by_day))
    is_many = len(days) > MANY_BARS
    months = _month_labels(by_day, measure) if is_many else {}
    columns = []
    for number, day in enumerate(days):
        period = by_day.get(day)
        values = {row.name: measure.of(row.active) for row in period.models} if period else {}
        dropped = measure.of(period.billed) - measure.of(period.active) if period else 0
        group = f"{day:%Y-%m}" if is_many else ""
        label = months.get(group, f"{day:%B %Y}") if is_many else _label(chosen.by, day, period, measure)
        href = _sessions_of(request, chosen, day, group)
        columns.append(StackedBar(values, dropped, href, label, _tick_of(chosen.by, day, number, len(days)), group))
    return columns


def _all_periods(by: str, summary: UsageSummary, used: Mapping[date, PeriodUsage]) -> Iterator[date]:
    """Yield the first day of every period from the first to the last, also of those without calls."""
    first, last = _bounds(summary)
    starts = [day for day in (first, *used) if day]
    if not starts or last is None:
        return
    day = _period_start(by, min(starts))
    end = max((last, *used))
    while day <= end:
        yield day
        day = _next_period(by, day)


def _period_start(by: str, day: date) -> date:
    if by == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if by == "month" else day


def _next_period(by: str, day: date) -> date:
    if by == "month":
        return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    return day + timedelta(days=7 if by == "week" else 1)


def _label(by: str, day: date, period: PeriodUsage | None, measure: _Measure) -> str:
    name = {"day": f"{day:%A} {day.day} {day:%B}", "week": f"Week of {day.day} {day:%B %Y}", "month": f"{day:%B %Y}"}[
        by
    ]
    if period is None:
        return name
    parts = [f"{row.name} {measure.show(measure.of(row.active))}" for row in period.models if measure.of(row.active)]
    dropped = measure.of(period.billed) - measure.of(period.active)
    parts += [f"dropped {measure.show(dropped)}"] if dropped else []
    return "; ".join((f"{name}: {measure.show(measure.of(period.billed))}", *parts))


def _month_labels(by_day: Mapping[date, PeriodUsage], measure: _Measure) -> dict[str, str]:
    totals: dict[str, int] = {}
    for day, period in by_day.items():
        key = f"{day:%Y-%m}"
        totals[key] = totals.get(key, 0) + measure.of(period.billed)
    return {key: f"{date.fromisoformat(f'{key}-01'):%B %Y}: {measure.show(total)}" for key, total in totals.items()}


def _sessions_of(request: Request, chosen: _Choice, day: date, month: str) -> str:
    shared: dict[str, QueryValue] = {"project": chosen.project, "model": chosen.model}
    if month:
        start = day.replace(day=1)
        return chosen.address(
            request, last=None, since=start.isoformat(), until=_next_period("month", start).isoformat()
        )
    if chosen.by == "day":
        return address(request, "sessions", on=day.isoformat(), **shared)
    until = _next_period(chosen.by, day)
    return address(request, "sessions", since=day.isoformat(), until=until.isoformat(), **shared)


def _tick_of(by: str, day: date, number: int, n_all: int) -> str:
    """Return the text below a bar: Mondays, or first days of a month, or years, so that they do not touch."""
    if by == "month":
        if n_all > 36:  # noqa: PLR2004  years
            return f"{day.year}" if day.month == 1 else ""
        return f"{day:%b %Y}" if day.month == 1 or not number else f"{day:%b}"
    is_dense = n_all > (45 if by == "day" else 16)
    if is_dense:
        is_first = day.day <= (1 if by == "day" else 7)
        if n_all > (400 if by == "day" else 110):
            return f"{day.year}" if is_first and day.month == 1 else ""
        return (f"{day:%b %Y}" if day.month == 1 else f"{day:%b}") if is_first else ""
    return f"{day.day} {day:%b}" if by == "week" or day.weekday() == 0 or n_all <= 10 else ""  # noqa: PLR2004


def _period_table(chosen: _Choice, summary: UsageSummary) -> Html:
    heads = (_STEP_HEADS[chosen.by], "Calls", "Tokens", "Billed", "Active")
    head = element(
        "tr",
        *(element("th", name, scope="col", class_="right" if number else None) for number, name in enumerate(heads)),
    )
    rows = []
    for period in summary.periods[-_TABLE_ROWS:]:
        cells = (
            f"{period.billed.calls:,}",
            count(period.billed.tokens.total),
            dollars(period.billed.cost_nanousd, 4),
            dollars(period.active.cost_nanousd, 4),
        )
        rows.append(
            element(
                "tr",
                element("td", _row_name(chosen.by, period.key)),
                *(element("td", cell, class_="right") for cell in cells),
            )
        )
    table = element("table", element("thead", head), element("tbody", *rows))
    n_hidden = len(summary.periods) - len(rows)
    more = (
        element("p", f"The {len(rows)} newest; the download has all {len(summary.periods):,}.", class_="small soft")
        if n_hidden
        else Html()
    )
    return element(
        "details",
        element("summary", "As a table"),
        element("div", table, class_="scroll", tabindex=0),
        more,
        class_="asrows",
    )


def _row_name(by: str, key: str | None) -> str:
    if key is None:
        return "no time"
    day = _first_day(by, key)
    if by == "month":
        return f"{day:%B %Y}"
    return f"{day:%a} {day.day} {day:%b %Y}" if by == "day" else f"{key}, {day.day} {day:%b}"


def _table(
    caption: str,
    head: str,
    rows: Sequence[UsageRow],
    measure: _Measure,
    href: Callable[[UsageRow], str],
    more: Html | None = None,
) -> Html:
    largest = max((measure.of(row.billed) for row in rows), default=0)
    names = [element("th", element("span", head, class_="unseen"), scope="col")]
    names += [
        element("th", name, scope="col", class_=class_)
        for name, class_ in (("Calls", None), ("Tokens", "tok"), ("Billed", None))
    ]
    lines = []
    for row in rows:
        active = measure.of(row.active)
        class_ = "name t" if head == "Session" else "name"
        link = element("a", row.name or "(no prompt)", class_=class_, href=href(row))
        n_calls = row.outcomes.calls if row.outcomes else row.billed.calls
        lines.append(
            element(
                "tr",
                element("td", link, share(active, measure.of(row.billed) - active, largest)),
                element("td", f"{n_calls:,}"),
                element("td", count(row.billed.tokens.total), class_="tok"),
                element("td", dollars(row.billed.cost_nanousd, 4)),
            )
        )
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *names)),
        element("tbody", *lines),
        class_="sums",
    )
    return element("section", table, more or Html())


def _more(request: Request, chosen: _Choice, number: int) -> Html | None:
    if number <= 0:
        return None
    if chosen.rows == "all":
        return element("p", f"{number:,} more in the download", class_="small soft")
    return element("p", element("a", f"{number:,} more", href=chosen.address(request, rows="all")), class_="small soft")


def _flow(summary: UsageSummary) -> Html:
    split = summary.breakdown
    if not split.picousd or not split.tokens:
        return Html()
    parts = []
    for kind in split.kinds:
        name, class_ = _KINDS[kind.name]
        if kind.tokens or kind.picousd:
            money = kind.picousd // 1000
            parts.append(FlowPart(name, class_, kind.tokens, count(kind.tokens), money, dollars(money, 3)))
    cached = next(kind for kind in split.kinds if kind.name == "cached")
    words = "Tokens above, dollars below."
    if cached.tokens and split.saved_picousd >= _LEAST_SAVED:
        of_tokens, of_bill = round(100 * cached.tokens / split.tokens), round(100 * cached.picousd / split.picousd)
        saved = dollars(split.saved_picousd // 1000, 2)
        words = (
            f"Cached input is {of_tokens}% of the tokens and {of_bill}% of the bill; "
            f"without the cache it would have cost {saved} more. {words}"
        )
    rows = [(part.name, part.amount_text, part.money_text) for part in parts]
    return element(
        "section",
        element("h2", "Where the money goes"),
        element("p", words, class_="soft"),
        flow(parts),
        chart_table(("Kind", "Tokens", "Billed"), rows),
        class_="flow",
    )


def _sources(summary: UsageSummary) -> Html:
    checked = date.fromisoformat(summary.date)
    notes = [f"Prices: {summary.table} of {checked.day} {checked:%B %Y}"]
    if summary.unpriced:
        names = [
            f"{visible(model or 'no model')} ({plural(usage.calls, 'call')})"
            for model, usage in summary.unpriced.items()
        ]
        notes.append(f"No price: {', '.join(names[:8])}" + (f" and {len(names) - 8} more" if len(names) > 8 else ""))  # noqa: PLR2004
    else:
        notes.append("Every model has a price")
    notes.append(f"{plural(summary.billed.calls, 'call')}, each counted once")
    notes.append(f"Days in {summary.timezone}")
    return element("p", joined(element("span", note) for note in notes), class_="src")
