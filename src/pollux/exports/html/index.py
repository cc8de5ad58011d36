"""The index of a folder of HTML transcripts: sessions by project or by day, in pages, with a chart of their usage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date
from urllib.parse import quote

from pollux.exports import ExportedSession
from pollux.exports.html.page import bar, foot, page_end, page_start, search_field
from pollux.exports.site import IndexRow, ProjectGroup, Site, build_site
from pollux.model import Usage
from pollux.prices import Prices
from pollux.render.html.markup import Html, element, time_element
from pollux.text.escape import make_visible
from pollux.text.numbers import Currency, count, dollars, plural
from pollux.views.session_text import TITLE, cost_text, title

NAME = "index.html"
PAGE = 100
"""Sessions on a page. All pages are in one file, so that the filter searches all of them."""
_TITLE = "Gemini CLI sessions"
_WIDTH, _HEIGHT = 1000, 100
"""Units of the chart."""
_COLUMNS = (("When", ""), ("Project", "project"), ("Session", ""))
_NUMBERS = ("Prompts", "Calls", "Tokens", "Cost")
_KEYS = (
    ("/", "filter"),
    ("g", "by project or by day"),
    ("t", "light or dark"),
    ("?", "this list"),
    ("Esc", "clear the filter"),
)


def pages(written: Sequence[ExportedSession], prices: Prices) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of the index."""
    yield NAME, "".join(_page(build_site(written, prices))).encode("utf-8", "replace")


def _page(site: Site) -> Iterator[Html]:
    yield page_start(_TITLE, "index")
    listing = [*_pages(site.groups)]
    group = element("button", "By day", class_="button", type="button", data_do="group")
    yield bar()
    yield element(
        "main",
        element("header", element("h1", _TITLE), _totals(site), *_chart(site.days)),
        search_field("Filter by title, project or day", group, class_="filter"),
        *_project_links(site.groups, len(listing)),
        element("div", *listing, id="shelves"),
        element("p", "No session matches the filter.", id="none", class_="empty", hidden=True),
        id="main",
        class_="wide",
    )
    yield foot()
    yield page_end(_KEYS)


def _totals(site: Site) -> Html:
    usage, n_unpriced = site.usage, site.usage.cost.unpriced_calls
    numbers = [
        (f"{site.n_sessions:,}", "session" if site.n_sessions == 1 else "sessions"),
        (f"{len(site.groups):,}", "project" if len(site.groups) == 1 else "projects"),
        (f"{usage.calls:,}", "model call" if usage.calls == 1 else "model calls"),
        (count(usage.tokens.total), "tokens"),
        (cost_text(usage), f"and {plural(n_unpriced, 'call')} without a price" if n_unpriced else "in total"),
    ]
    return element("ul", *(element("li", element("b", number), " ", noun) for number, noun in numbers), class_="totals")


def _chart(days: Sequence[tuple[date, Usage]]) -> Iterator[Html]:
    """Yield a chart with a bar per day: cost if any call has a price, else tokens."""
    if not days:
        return
    is_cost = any(usage.cost.nanousd for _, usage in days)
    amounts = [usage.cost.nanousd if is_cost else usage.tokens.total for _, usage in days]
    highest = max(amounts) or 1
    bars = []
    for number, ((day, usage), amount) in enumerate(zip(days, amounts, strict=True)):
        if usage.calls:
            bars.append(_bar(number, len(days), amount / highest, day, usage))
    label = f"{'Cost' if is_cost else 'Tokens'} by day (UTC), at most "
    label += Currency().show(highest) if is_cost else count(highest)
    drawing = element(
        "svg", *bars, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", preserveAspectRatio="none", role="img", aria_label=label
    )
    first, last = (element("time", day.isoformat()) for day in (days[0][0], days[-1][0]))
    yield element("figure", drawing, element("figcaption", first, element("span", label), last), class_="days")


def _bar(number: int, n_days: int, share: float, day: date, usage: Usage) -> Html:
    words = f"{day.isoformat()}: {plural(usage.calls, 'call')}, {count(usage.tokens.total)} tokens, {cost_text(usage)}"
    step, height = _WIDTH / n_days, max(1.0, share * _HEIGHT)
    bar = element(
        "rect",
        x=f"{(number + 0.1) * step:.1f}",
        y=f"{_HEIGHT - height:.1f}",
        width=f"{0.8 * step:.1f}",
        height=f"{height:.1f}",
    )
    return element("g", element("title", words), bar, data_day=day.isoformat())


def _project_links(groups: Sequence[ProjectGroup], n_pages: int) -> Iterator[Html]:
    """Yield links to the projects, if they are on several pages."""
    if n_pages > 1:
        items = []
        for number, group in enumerate(groups, 1):
            link = element("a", make_visible(group.project.name), href=f"#project-{number}")
            items.append(element("li", link, f" {len(group.rows):,}"))
        yield element("nav", element("ul", *items), aria_label="Projects", class_="projects")


def _pages(groups: Sequence[ProjectGroup]) -> Iterator[Html]:
    """Yield pages of at most `PAGE` sessions; style alone shows one of them, by the target of the address."""
    sections: list[list[Html]] = [[]]
    room = PAGE
    for number, group in enumerate(groups, 1):
        start = 0
        while start < len(group.rows):
            if not room:
                sections.append([])
                room = PAGE
            rows = group.rows[start : start + room]
            sections[-1].append(_group(group, rows, "" if start else f"project-{number}"))
            start += len(rows)
            room -= len(rows)
    for number, groups_html in enumerate(sections, 1):
        links = _page_links(number, len(sections))
        yield element("div", *groups_html, links, class_="page", id=f"page-{number}")


def _page_links(number: int, n_pages: int) -> Html:
    if n_pages == 1:
        return Html()
    parts = []
    if number > 1:
        parts.append(element("a", "← Previous", href=f"#page-{number - 1}", rel="prev"))
    parts.append(element("span", f"Page {number:,} of {n_pages:,}"))
    if number < n_pages:
        parts.append(element("a", "Next →", href=f"#page-{number + 1}", rel="next"))
    return element("nav", *parts, class_="turn", aria_label=f"Pages, at page {number}")


def _group(group: ProjectGroup, rows: Sequence[IndexRow], anchor: str) -> Html:
    """Return sessions of a project; without an anchor it continues the page before."""
    usage = group.usage
    about = [group.project.path or "", plural(len(group.rows), "session")]
    if usage.calls:
        about += [plural(usage.calls, "call"), f"{count(usage.tokens.total)} tokens", cost_text(usage)]
    head = element(
        "tr",
        *(element("th", name, scope="col", class_=kind or None) for name, kind in _COLUMNS),
        *(element("th", name, scope="col", class_="right") for name in _NUMBERS),
    )
    name = make_visible(group.project.name)
    return element(
        "section",
        element("h2", name if anchor else f"{name}, continued", id=anchor or None),
        element("p", make_visible(" · ".join(filter(None, about))), class_="about") if anchor else Html(),
        element("table", element("thead", head), element("tbody", *map(_row, rows))),
        class_="shelf",
    )


def _row(row: IndexRow) -> Html:
    session, usage = row.session, row.usage
    started = session.started.astimezone(UTC) if session.started else None
    link = element("a", make_visible(title(session, TITLE)), href=quote(row.name), class_="t")
    numbers = (
        f"{session.counts.get('user', 0):,}",
        f"{usage.calls:,}",
        count(usage.tokens.total),
        _amount(usage) if usage.calls else "",
    )
    return element(
        "tr",
        element("td", time_element(started, "minute") if started else ""),
        element("td", make_visible(session.project.name), class_="project"),
        element("td", link, class_="title"),
        *(element("td", number, class_="right") for number in numbers),
        data_day=f"{started:%Y-%m-%d}" if started else "no date",
    )


def _amount(usage: Usage) -> str:
    """Return a cost with three decimals, so that a column lines up, and a plus sign if some calls have no price."""
    return dollars(usage.cost_nanousd, 3) + ("+" if usage.cost.unpriced_calls and usage.cost.nanousd else "")
