"""The first page: what there is, whether it is archived, what the client deletes next, and a year at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.library.dashboard import Dashboard, ExpiringSession
from pollux.library.library import Library
from pollux.library.values import ActiveDay, DailyUse, FreshnessState, PeriodUsage
from pollux.render.html.charts import StackedBar, colour, small_bars, swatch
from pollux.render.html.icons import star
from pollux.render.html.markup import Html, element, joined
from pollux.text.numbers import count, dollars, number_word, plural
from pollux.views.session_text import title
from pollux.web.changes import mark_of
from pollux.web.door import with_commands
from pollux.web.layout import address, document
from pollux.web.lists import chart_table, visible
from pollux.web.routing import Reading, page, viewer_of
from pollux.web.rows import project_address, session_address, session_list
from pollux.web.skies import sky_figure
from pollux.web.times import short_day

_PROJECTS = 6
_MONTH = 30
_REASONS = {
    "count": ("more sessions than maxCount",),
    "empty": ("nothing to resume in it",),
    "stub": ("stub left by ", element("code", "--resume")),
    "unreadable": ("the client cannot read it",),
    "headerless": ("missing header",),
    "subagent": ("an old subagent file beside it",),
}


def overview(request: Request, library: Library) -> Response:
    """Return the first page; while the first run reads the homes, with what it has read so far."""
    mark = mark_of(library)
    board = library.dashboard()
    reading = viewer_of(request).reading
    return document(
        request, "Overview", _body(request, board, reading), place="Overview", footer=_footer(request, board), mark=mark
    )


ROUTES = (Route("/", page(overview)),)


def _body(request: Request, board: Dashboard, reading: Reading | None) -> Iterator[Html]:
    if reading is not None:
        yield _progress(reading)
    if board.overview.n_sessions:
        yield from _content(request, board)
    elif reading is None:
        yield from _empty(board)


def _progress(reading: Reading) -> Html:
    """Return how far the first run is; the script loads the page again."""
    words = f"Reading your session files for the first time: {reading.percent} %. The page fills by itself."
    bar = element("progress", value=reading.percent, max=100, aria_label="Read")
    return element("p", words, " ", bar, class_="reading soft", role="status", data_reload=2)


def _empty(board: Dashboard) -> Iterator[Html]:
    yield element("h1", "No sessions yet", class_="unseen")
    homes = [element("li", element("code", str(home))) for home in board.homes]
    yield element(
        "div",
        element("p", "No Gemini CLI sessions yet."),
        element("p", with_commands(board.hint)) if board.hint else Html(),
        element("p", "Pollux looked in:") if homes else Html(),
        element("ul", *homes) if homes else Html(),
        element("p", "Try the viewer on sample sessions: ", element("code", "pollux demo web")),
        class_="empty",
    )


def _content(request: Request, board: Dashboard) -> Iterator[Html]:
    yield element(
        "section",
        element("p", f"{board.now:%A} {board.now.day} {board.now:%B %Y}", class_="label"),
        element("h1", _headline(board)),
        _deletions(board),
        _facts(board),
        class_="lede",
    )
    yield _sky(request, board)
    left = element("div", _newest(request, board), _projects(request, board))
    right = element("div", _cost(request, board), _expiring(request, board))
    yield element("div", left, right, class_="two")


def _headline(board: Dashboard) -> str:
    numbers = board.overview
    sessions = number_word(numbers.n_sessions).capitalize()
    noun = "session" if numbers.n_sessions == 1 else "sessions"
    projects = "project" if numbers.n_projects == 1 else "projects"
    if not numbers.n_unarchived:
        kept = "all archived"
    elif numbers.n_unarchived == numbers.n_files:
        kept = "none archived"
    else:
        kept = f"{plural(numbers.n_unarchived, 'file')} not archived"
    return f"{sessions} {noun} in {number_word(numbers.n_projects)} {projects}, {kept}."


def _deletions(board: Dashboard) -> Html:
    numbers = board.overview
    n_later = numbers.soon - board.n_tomorrow
    parts: list[str] = []
    if numbers.due:
        parts.append(f"Gemini CLI deletes {_of_them(numbers.due)} at its next start")
    elif board.n_tomorrow:
        parts.append(f"Gemini CLI deletes {_of_them(board.n_tomorrow)} by tomorrow")
    elif n_later:
        parts.append(f"Gemini CLI deletes {_of_them(n_later)} within a week")
    if not parts:
        gone = f" {_sentence(numbers.n_deleted)} only in your archive." if numbers.n_deleted else ""
        return element("p", f"Gemini CLI deletes none of them within a week.{gone}", class_="more")
    more = ""
    if numbers.due and board.n_tomorrow:
        more = f", and {number_word(board.n_tomorrow)} more tomorrow"
    elif numbers.due and n_later:
        more = f", and {number_word(n_later)} more within a week"
    end = "Your archive keeps them." if not numbers.n_unarchived else "Run `pollux sync` to keep them."
    return element("p", element("b", parts[0]), f"{more}. ", with_commands(end), class_="more")


def _of_them(number: int) -> str:
    return "one of them" if number == 1 else f"{number_word(number)} of them"


def _sentence(number: int) -> str:
    return "One is" if number == 1 else f"{number_word(number).capitalize()} are"


def _facts(board: Dashboard) -> Html:
    usage = board.overview.usage
    lost = usage.cost.nanousd - board.active.cost.nanousd
    dropped = element("span", f"{dollars(lost, 2)} dropped", class_="c") if lost else Html()
    pairs = (
        ("Prompts", (f"{board.overview.n_prompts:,}",)),
        ("Model calls", (f"{usage.calls:,}",)),
        ("Tokens", (count(usage.tokens.total),)),
        ("Billed", (dollars(usage.cost_nanousd, 2), " ", dropped)),
    )
    return element(
        "dl", *(element("div", element("dt", name), element("dd", *value)) for name, value in pairs), class_="facts"
    )


def _sky(request: Request, board: Dashboard) -> Html:
    days = []
    for period in board.days:
        usage = period.billed
        days.append(ActiveDay(date.fromisoformat(period.key or ""), usage.tokens.total, usage.cost_nanousd))
    return sky_figure(request, DailyUse(tuple(days), board.continued, board.now.date()))


def _newest(request: Request, board: Dashboard) -> Html:
    link = element("a", f"All {board.overview.n_sessions:,}", href=address(request, "sessions"))
    rows = session_list(request, board.newest, board.calls, now=board.now)
    return _section("new", "Recent sessions", link, rows)


def _section(name: str, heading: str, link: Html, *inside: Html) -> Html:
    head = element("div", element("h2", heading, id=name), link, class_="head")
    return element("section", head, *inside, aria_labelledby=name)


def _projects(request: Request, board: Dashboard) -> Html:
    names = ("Project", "Sessions", "Tokens", "Billed", "Last used")
    classes = (None, "right w", "right w", "right", "right")
    heads = (element("th", name, scope="col", class_=class_) for name, class_ in zip(names, classes, strict=True))
    rows = []
    for row in board.projects[:_PROJECTS]:
        link = element("a", row.project.name, class_="t", href=project_address(request, row.project))
        rows.append(
            element(
                "tr",
                element("td", link),
                element("td", f"{row.n_sessions:,}", class_="right w"),
                element("td", count(row.n_tokens), class_="right w"),
                element("td", dollars(row.nanousd, 3), class_="right"),
                element("td", short_day(row.last, board.now) if row.last else "", class_="right soft"),
            )
        )
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    link = element("a", f"All {len(board.projects):,}", href=address(request, "projects"))
    return _section("pro", "Projects", link, table)


def _cost(request: Request, board: Dashboard) -> Html:
    today = board.now.date()
    first = today - timedelta(days=_MONTH - 1)
    by_day = {date.fromisoformat(period.key or ""): period for period in board.days}
    recent = [period for day, period in by_day.items() if day >= first]
    names = [model or "no model" for model in board.order]
    series = {name: colour(number) for number, name in enumerate(names)}
    costs: Counter[str] = Counter()
    priced: set[str] = set()
    columns = []
    for number in range(_MONTH):
        day = first + timedelta(days=number)
        models = by_day[day].models if day in by_day else ()
        values = {row.name: row.billed.cost.nanousd for row in models}
        costs.update(values)
        priced.update(row.name for row in models if row.billed.cost_nanousd is not None)
        label = f"{day:%a} {day.day} {day:%b}: {dollars(sum(values.values()), 3)}"
        parts = [f"{name} {dollars(nanousd, 3)}" for name, nanousd in values.items()]
        columns.append(
            StackedBar(values, href=address(request, "sessions", on=day.isoformat()), label="; ".join((label, *parts)))
        )
    chart = small_bars(columns, series, label="Billed by day", first=f"{first.day} {first:%b}")
    n_calls = sum(period.billed.calls for period in recent)
    n_tokens = sum(period.billed.tokens.total for period in recent)
    keys = []
    for name, nanousd in costs.most_common(6):
        amount = element("span", dollars(nanousd if name in priced else None, 3), class_="num")
        keys.append(element("li", swatch(series[name]), element("span", visible(name)), amount))
    total = element("b", dollars(sum(costs.values()) if priced or not costs else None, 2), class_="num")
    note = element("span", f"in {plural(n_calls, 'call')}, {count(n_tokens)} tokens", class_="soft small")
    link = element("a", "Usage", href=address(request, "usage"))
    return _section(
        "spent",
        "Cost, last 30 days",
        link,
        element("p", total, note, class_="sum"),
        chart,
        element("ul", *keys, class_="keyed"),
        chart_table(("Day", "Billed"), _cost_rows(recent)) if recent else Html(),
    )


def _cost_rows(periods: Iterable[PeriodUsage]) -> Iterator[tuple[str, ...]]:
    """Yield the days of the chart that have calls, newest first."""
    for period in sorted(periods, key=lambda period: period.key or "", reverse=True):
        day = date.fromisoformat(period.key or "")
        yield f"{day:%a} {day.day} {day:%b}", dollars(period.billed.cost_nanousd, 3)


def _expiring(request: Request, board: Dashboard) -> Html:
    if not board.expiring:
        return Html()
    rows = []
    for entry in board.expiring:
        link = element("a", title(entry.session, 200), class_="t", href=session_address(request, entry.session.id))
        why = element("span", element("b", _when_deleted(entry, board)), ": ", *_reason(entry), class_="why")
        rows.append(element("li", star("star" if entry.is_archived else "star off"), link, why))
    n_all = board.overview.due + board.overview.soon
    link = element("a", f"All {n_all:,}", href=address(request, "health") + "#next")
    words = "★ archived · based on the clean-up rules of Gemini CLI "
    note = element("p", words, board.client, class_="small soft note")
    return _section("risk", "Expiring next", link, element("ul", *rows, class_="risk"), note)


def _when_deleted(entry: ExpiringSession, board: Dashboard) -> str:
    if entry.due <= board.now:
        return "At the next start"
    days = (entry.due.astimezone(board.now.tzinfo).date() - board.now.date()).days
    return "Tomorrow" if days == 1 else "Today" if days < 1 else f"In {plural(days, 'day')}"


def _reason(entry: ExpiringSession) -> tuple[str, ...]:
    if entry.reason == "age":
        return (f"unused for {entry.limit}" if entry.limit else "unused for too long",)
    return _REASONS.get(entry.reason, (entry.reason,))


def _footer(request: Request, board: Dashboard) -> list[str]:
    notes: list[str] = []
    if board.overview.n_problems:
        link = element("a", "health", href=address(request, "health"))
        notes.append(joined((f"{plural(board.overview.n_problems, 'problem')}: ", link)))
    notes.append(plural(board.overview.n_files, "session file"))
    is_archived = board.freshness.state != FreshnessState.FILES
    notes.append(board.freshness.note or ("Archive is up to date" if is_archived else "Read without an archive"))
    return notes
