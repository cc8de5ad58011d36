"""The page that leads to all HTML transcripts of a folder: by project or by day, with what was used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date
from urllib.parse import quote

from pollux import __version__
from pollux.exports import Written
from pollux.exports.html.controls import button, help_box
from pollux.exports.html.page import beginning, end
from pollux.exports.site import Row, Shelf, Site, site_of
from pollux.model import Usage
from pollux.prices import Prices
from pollux.render.html.markup import Html, element
from pollux.text.escape import clean
from pollux.text.numbers import Currency, count
from pollux.views.excerpts import counted
from pollux.views.session_text import TITLE, cost_text, title

NAME = "index.html"
_TITLE = "Gemini CLI sessions"
_WIDE, _HIGH = 1000, 100
"""Units of the chart."""
_COLUMNS = (("When", ""), ("Project", "project"), ("Session", ""))
_NUMBERS = ("Prompts", "Calls", "Tokens", "Cost")
_KEYS = (
    ("/", "filter"),
    ("g", "by project or by day"),
    ("t", "light or dark"),
    ("?", "this list"),
    ("Esc", "all again"),
)


def pages(written: Sequence[Written], prices: Prices) -> Iterator[tuple[str, bytes]]:
    """Write one page."""
    yield NAME, "".join(_page(site_of(written, prices))).encode("utf-8", "replace")


def _page(site: Site) -> Iterator[Html]:
    yield beginning(_TITLE, "index.js")
    yield element(
        "main",
        element("header", element("h1", _TITLE), _totals(site), *_chart(site.days)),
        _tools(),
        element("div", *map(_shelf, site.shelves), id="shelves"),
        element("p", "No session fits.", id="none", hidden=True),
        element("footer", element("p", f"Written by Pollux {__version__}. Days and times are UTC.")),
        id="index",
    )
    yield help_box(_KEYS)
    yield end()


def _tools() -> Html:
    words = "Filter by title, project or day"
    return element(
        "div",
        element("input", type="search", id="search", placeholder=words, aria_label=words, autocomplete="off"),
        element("output", id="hits", aria_live="polite"),
        button("group", "By day", "By project or by day"),
        button("theme", "◐", "Light or dark"),
        button("help", "?", "Keys"),
        class_="tools",
        role="search",
        hidden=True,
    )


def _totals(site: Site) -> Html:
    usage, n_unpriced = site.usage, site.usage.cost.unpriced_calls
    numbers = [
        (f"{site.n_sessions:,}", "session" if site.n_sessions == 1 else "sessions"),
        (f"{len(site.shelves):,}", "project" if len(site.shelves) == 1 else "projects"),
        (f"{usage.calls:,}", "model call" if usage.calls == 1 else "model calls"),
        (count(usage.tokens.total), "tokens"),
        (cost_text(usage), f"and {counted(n_unpriced, 'call')} without a price" if n_unpriced else "in all"),
    ]
    return element("ul", *(element("li", element("b", one), " ", what) for one, what in numbers), class_="totals")


def _chart(days: Sequence[tuple[date, Usage]]) -> Iterator[Html]:
    """Draw a bar for each day: money where there is some, else tokens."""
    if not days:
        return
    by_money = any(usage.cost.nanousd for _, usage in days)
    amounts = [usage.cost.nanousd if by_money else usage.tokens.total for _, usage in days]
    most = max(amounts) or 1
    bars = (
        _bar(number, len(days), amount / most, *one)
        for number, (one, amount) in enumerate(zip(days, amounts, strict=True))
    )
    words = f"{'Cost' if by_money else 'Tokens'} by day, at most {Currency().show(most) if by_money else count(most)}"
    drawing = element(
        "svg", *bars, viewBox=f"0 0 {_WIDE} {_HIGH}", preserveAspectRatio="none", role="img", aria_label=words
    )
    ends = (days[0][0].isoformat(), words, days[-1][0].isoformat())
    yield element("figure", drawing, element("figcaption", *(element("span", one) for one in ends)), class_="days")


def _bar(number: int, of: int, share: float, day: date, usage: Usage) -> Html:
    if not usage.calls:
        return Html()
    words = f"{day.isoformat()}: {counted(usage.calls, 'call')}, {count(usage.tokens.total)} tokens, {cost_text(usage)}"
    step, high = _WIDE / of, max(1.0, share * _HIGH)
    place = {"x": f"{(number + 0.1) * step:.1f}", "y": f"{_HIGH - high:.1f}"}
    bar = element("rect", **place, width=f"{0.8 * step:.1f}", height=f"{high:.1f}")
    return element("g", element("title", words), bar, data_day=day.isoformat())


def _shelf(shelf: Shelf) -> Html:
    usage = shelf.usage
    words = [shelf.project.path or "", counted(len(shelf.rows), "session")]
    if usage.calls:
        words += [counted(usage.calls, "call"), f"{count(usage.tokens.total)} tokens", cost_text(usage)]
    head = element(
        "tr",
        *(element("th", name, scope="col", class_=kind or None) for name, kind in _COLUMNS),
        *(element("th", name, scope="col", class_="right") for name in _NUMBERS),
    )
    return element(
        "section",
        element("h2", clean(shelf.project.name)),
        element("p", clean(" · ".join(filter(None, words))), class_="about"),
        element("table", element("thead", head), element("tbody", *map(_row, shelf.rows))),
        class_="shelf",
    )


def _row(row: Row) -> Html:
    session, usage = row.session, row.usage
    began = session.started.astimezone(UTC) if session.started else None
    when = element("time", f"{began:%Y-%m-%d %H:%M}", datetime=began.isoformat()) if began else Html()
    link = element("a", clean(title(session, TITLE)), href=quote(row.name))
    numbers = (
        f"{session.counts.get('user', 0):,}",
        f"{usage.calls:,}",
        count(usage.tokens.total),
        cost_text(usage) if usage.calls else "",
    )
    return element(
        "tr",
        element("td", when),
        element("td", clean(session.project.name), class_="project"),
        element("td", link, class_="title"),
        *(element("td", number, class_="right") for number in numbers),
        data_day=f"{began:%Y-%m-%d}" if began else "no day",
    )
