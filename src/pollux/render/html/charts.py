"""Charts as SVG: drawn here, coloured by classes of the style sheet, without `style` and without script.

A bar or a day is a link with a label, which a script may show as a tip. The same numbers are in a table, which the
caller puts into a fold next to the chart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from math import ceil, floor, log10, sqrt

import msgspec

from pollux.render.html.icons import STAR
from pollux.render.html.markup import Html, element, joined
from pollux.render.html.shapes import box, linked, paths_by_class, units

COLOURS = 6
"""Classes `m1` to `m6`; models from the seventh on share `m5`."""
_SHARED = 5
MANY_BARS = 62
"""More bars than these are drawn as one path per series, with a link for each group instead of each bar."""


class StackedBar(msgspec.Struct, frozen=True):
    """One bar of a stacked chart."""

    values: Mapping[str, int]
    """By series, without the dropped part."""
    dropped: int = 0
    href: str = ""
    label: str = ""
    """What a screen reader says: the period, its sum and its parts."""
    tick: str = ""
    """The text below the bar; empty for most bars."""
    group: str = ""
    """What a link leads to if there are too many bars for a link each, such as a month."""

    @property
    def total(self) -> int:
        """The height of the bar."""
        return sum(self.values.values()) + self.dropped


class SkyDay(msgspec.Struct, frozen=True):
    """A day on which something was used."""

    day: date
    tokens: int
    href: str
    label: str


def colour(number: int) -> str:
    """Return the class of a model by its rank from 0; from the seventh on they share one."""
    return f"m{number + 1 if number < COLOURS else _SHARED}"


def swatch(class_: str) -> Html:
    """Return a small square of a legend."""
    if class_ == "gone":
        square = element("rect", class_="gone", x=".6", y=".6", width="8.8", height="8.8", rx="1.5")
    else:
        square = element("rect", class_=class_, width="10", height="10", rx="2")
    return element("svg", square, viewBox="0 0 10 10", aria_hidden="true")


# Stacked bars: usage by period and model.


def bars(
    columns: Sequence[StackedBar],
    series: Mapping[str, str],
    *,
    label: str,
    show: Callable[[int], str],
    width: int = 1136,
    height: int = 270,
) -> Html:
    """Return a stacked chart with a scale at the left.

    Args:
        columns: the bars, the oldest first, also those of empty periods.
        series: the class of each series, from the bottom up.
        label: what the chart shows.
        show: the text of an amount, for the scale.
        width: of the drawing.
        height: of the drawing.

    """
    top, left, floor_y = 12, 44, height - 26
    limit, step = _scale(max((column.total for column in columns), default=0))
    scale = (floor_y - top) / limit
    pieces = []
    for amount in range(0, limit + 1, step):
        y = units(floor_y - amount * scale)
        pieces.append(element("line", class_="rule", x1=left, x2=width, y1=y, y2=y))
        pieces.append(
            element("text", show(amount), x=left - 10, y=units(floor_y - amount * scale + 4), text_anchor="end")
        )
    pieces += _columns(columns, series, left, width, floor_y, scale, top)
    pieces += _ticks(columns, left, width, floor_y + 19)
    return element("svg", *pieces, class_="bars", viewBox=f"0 0 {width} {height}", role="group", aria_label=label)


def small_bars(
    columns: Sequence[StackedBar], series: Mapping[str, str], *, label: str, first: str, last: str = "today"
) -> Html:
    """Return a stacked chart for a side column: no scale, the first and the last period below."""
    width, height, floor_y = 352, 112, 96
    peak = max((column.total for column in columns), default=0) or 1
    pieces = _columns(columns, series, 0, width, floor_y, (floor_y - 6) / peak, 0)
    pieces.append(element("line", class_="rule", x1=0, x2=width, y1=floor_y, y2=floor_y))
    pieces.append(element("text", first, x=0, y=height - 2))
    pieces.append(element("text", last, x=width, y=height - 2, text_anchor="end"))
    return element("svg", *pieces, class_="bars", viewBox=f"0 0 {width} {height}", role="group", aria_label=label)


def _columns(
    columns: Sequence[StackedBar],
    series: Mapping[str, str],
    left: float,
    right: float,
    floor_y: float,
    scale: float,
    top: float,
) -> list[Html]:
    step = (right - left) / max(len(columns), 1)
    if len(columns) > MANY_BARS:
        return _many_columns(columns, series, left, step, floor_y, scale, top)
    width = min(step * (0.74 if step < 20 else 0.66), 64)  # noqa: PLR2004
    pieces = []
    for number, column in enumerate(columns):
        if not column.total:
            continue
        x = left + (number + 0.5) * step - width / 2
        boxes = []
        for class_, y, tall in _stack(column, series, floor_y, scale):
            inset = 0.5 if class_ == "gone" else 0
            boxes.append(_rect(class_, x + inset, y, width - 2 * inset, tall))
        if top:
            boxes.append(_rect("reach", x, top, width, floor_y - top))
        pieces.append(linked(column.href, column.label, *boxes))
    return pieces


def _many_columns(
    columns: Sequence[StackedBar],
    series: Mapping[str, str],
    left: float,
    step: float,
    floor_y: float,
    scale: float,
    top: float,
) -> list[Html]:
    """Return one area per series, an outline of what was dropped, and an invisible link over each group of bars."""
    pieces = _areas(columns, series, left, step, floor_y, scale)
    dropped = []
    groups: dict[str, list[int]] = {}
    for number, column in enumerate(columns):
        for class_, y, tall in _stack(column, series, floor_y, scale):
            if class_ == "gone":
                dropped.append(box(left + number * step, y, step, tall))
        groups.setdefault(column.group, []).append(number)
    pieces += paths_by_class({"gone": dropped})
    for members in groups.values():
        first = columns[members[0]]
        start, end = left + members[0] * step, left + (members[-1] + 1) * step
        area = _rect("reach", start, top, end - start, floor_y - top)
        pieces.append(linked(first.href, first.label, area))
    return pieces


def _areas(
    columns: Sequence[StackedBar],
    series: Mapping[str, str],
    left: float,
    step: float,
    floor_y: float,
    scale: float,
) -> list[Html]:
    """Return an area for each series, each in front of the higher ones behind it: stairs take few bytes."""
    sums = [0] * len(columns)
    areas: list[Html] = []
    for name, class_ in series.items():
        sums = [below + column.values.get(name, 0) for below, column in zip(sums, columns, strict=True)]
        stairs = [f"V{units(floor_y - total * scale)}h{step:.2f}" for total in sums]
        if any(name in column.values for column in columns):
            areas.insert(
                0,
                element("path", class_=class_, d=f"M{units(left)} {units(floor_y)}{''.join(stairs)}V{units(floor_y)}z"),
            )
    return areas


def _stack(
    column: StackedBar, series: Mapping[str, str], floor_y: float, scale: float
) -> Iterable[tuple[str, float, float]]:
    """Yield class, top and height of each part, from the bottom up; what was dropped comes last."""
    y = floor_y
    for name, class_ in series.items():
        tall = column.values.get(name, 0) * scale
        if tall:
            y -= tall
            yield class_, y, tall
    if column.dropped:
        tall = column.dropped * scale
        yield "gone", y - tall + 0.5, max(tall - 1, 0.5)


def _rect(class_: str, x: float, y: float, width: float, height: float) -> Html:
    return element("rect", class_=class_, x=units(x), y=units(y), width=units(width), height=units(height))


def _ticks(columns: Sequence[StackedBar], left: float, right: float, y: float) -> list[Html]:
    step = (right - left) / max(len(columns), 1)
    ticks = []
    for number, column in enumerate(columns):
        if column.tick:
            ticks.append(
                element(
                    "text",
                    column.tick,
                    x=units(left + (number + 0.5) * step),
                    y=units(y),
                    text_anchor="middle",
                )
            )
    return ticks


def _scale(peak: int) -> tuple[int, int]:
    """Return the top of a scale and the distance of its lines, in round numbers: three to six lines."""
    if peak <= 0:
        return 1, 1
    rough = peak / 4
    power = 10 ** floor(log10(rough)) if rough >= 1 else 1
    step = next(int(factor * power) for factor in (1, 2, 3, 5, 10) if factor * power >= rough)
    return step * ceil(peak / step), step


# The sky: a year, a point for each day.

_CELL, _SKY_TOP, _SKY_LEFT = 21, 30, 46
_BRIGHT = 100_000
"""Tokens from which a day is a star."""
_WEEKS = 53


def sky(days: Sequence[SkyDay], bonds: Iterable[tuple[date, date]], today: date, weeks: Sequence[SkyDay] = ()) -> Html:
    """Return the last 53 weeks: a point for each day, larger with more tokens; lines join the days of one session.

    Each day is a link. With `weeks`, which have the day of their Monday, each week is one: a page beside a long list
    has no room for more.
    """
    last_monday = today - timedelta(days=today.weekday())
    first = last_monday - timedelta(weeks=_WEEKS - 1)
    turn = first + timedelta(weeks=26)
    halves = (
        (first, turn, _SKY_LEFT, "far"),
        (turn, last_monday + timedelta(weeks=1), 10, "near"),
    )
    pairs = list(bonds)
    drawings = [_half(days, pairs, today, weeks, *half) for half in halves]
    return element("div", *drawings, class_="year")


def _half(
    days: Sequence[SkyDay],
    bonds: Sequence[tuple[date, date]],
    today: date,
    links: Sequence[SkyDay],
    start: date,
    end: date,
    left: int,
    class_: str,
) -> Html:
    def place(day: date) -> tuple[int, int]:
        since = (day - start).days
        return left + since // 7 * _CELL, _SKY_TOP + since % 7 * _CELL

    weeks = (end - start).days // 7
    used = {day.day: day for day in days if start <= day.day < end}
    pieces = [*_months(start, weeks, left)]
    if class_ == "far":
        for row, name in enumerate(("Mon", "Wed", "Fri", "Sun")):
            pieces.append(element("text", name, x=0, y=_SKY_TOP + 5 + row * 2 * _CELL))
    columns = []
    for week in range(weeks):
        x, y = place(start + timedelta(weeks=week))
        n_past = min((today - start).days - week * 7, 7)
        columns.append(f"M{x} {y}v{(n_past - 1) * _CELL + 1}" if n_past > 0 else "")
    pieces.append(element("path", class_="none", d="".join(columns)))  # dashed: a dot for each day
    joints = []
    for from_day, to_day in bonds:
        if start <= from_day < end and start <= to_day < end:
            (x1, y1), (x2, y2) = place(from_day), place(to_day)
            joints.append(f"M{x1} {y1}L{x2} {y2}")
    if joints:
        pieces.append(element("path", class_="bond", d="".join(joints)))
    if links:
        pieces += _points(class_, ((entry.tokens, *place(day)) for day, entry in used.items()))
        for link in links:
            if start <= link.day < end:
                x, y = place(link.day)
                pieces.append(linked(link.href, link.label, element("path", d=f"M{x} {y}v{6 * _CELL}")))
    else:
        pieces.append(element("defs", element("path", id=f"star-{class_}", transform="scale(2.2)", d=STAR)))
        for day, entry in used.items():
            point = _point(f"#star-{class_}", entry.tokens, *place(day))
            pieces.append(element("a", *point, href=entry.href, aria_label=entry.label))
    if today not in used and start <= today < end:
        x, y = place(today)
        pieces.append(element("circle", class_="now", cx=x, cy=y, r=5))
    last = end - timedelta(days=1)
    label = f"{start:%B %Y} to {last:%B %Y}"
    width = weeks * _CELL + left - 10
    return element("svg", *pieces, class_=class_, viewBox=f"0 0 {width} 167", role="group", aria_label=label)


def _months(start: date, weeks: int, left: int) -> Iterable[Html]:
    for week in range(weeks):
        monday = start + timedelta(weeks=week)
        if monday.day <= 7 and week < weeks - 1:  # noqa: PLR2004  the first Monday of a month
            name = f"{monday:%b %Y}" if monday.month == 1 else f"{monday:%b}"
            yield element("text", name, x=left + week * _CELL - 10, y=10)


def _points(half: str, places: Iterable[tuple[int, int, int]]) -> Iterator[Html]:
    """Yield the points of days without links, a path for each size; the corners of a line are stars."""
    dots: dict[int, list[str]] = {}
    stars = []
    for tokens, x, y in places:
        if tokens < _BRIGHT:
            dots.setdefault(round(2 * _radius(tokens)), []).append(f"M{x} {y}h0")
        else:
            stars.append(f"{x},{y}")
    for width, parts in sorted(dots.items()):
        yield element("path", class_="dots", stroke_width=width, d="".join(parts))
    if stars:
        size = {"viewBox": "-6 -6 12 12", "markerWidth": "26", "markerHeight": "26", "markerUnits": "userSpaceOnUse"}
        yield element("marker", element("path", class_="day", d=STAR), id=f"star-{half}", **size)
        star = f"url(#star-{half})"
        ends = {"marker_start": star, "marker_mid": star, "marker_end": star}
        yield element("polyline", fill="none", points=" ".join(stars), **ends)


def _radius(tokens: int) -> float:
    return min(1.4 + sqrt(tokens / 1000) * 0.33, 5)


def _point(star: str, tokens: int, x: int, y: int) -> tuple[Html, ...]:
    radius = _radius(tokens)
    if tokens < _BRIGHT:
        return (
            element("circle", cx=x, cy=y, r=units(radius)),
        )  # the style sheet adds class and halo: there may be 371
    halo = element("circle", class_="halo", cx=x, cy=y, r=units(min(radius * 2.45, 12.8)))
    return halo, element("use", href=star, x=x, y=y)


def sky_legend() -> Html:
    """Return the samples of a sky's caption."""
    points = (
        element("circle", class_="day", cx="4", cy="6", r="1.6"),
        element("circle", class_="day", cx="19", cy="6", r="2.8"),
        element("path", class_="day", transform="translate(44 6) scale(1.5)", d=STAR),
    )
    line = element("path", class_="bond", d="M2 4h18")
    return joined(
        (
            element("span", "Tokens per day"),
            element(
                "span",
                element("svg", *points, width="58", height="12", viewBox="0 0 58 12", aria_hidden="true"),
                "5k, 50k, over 100k",
            ),
            element(
                "span",
                element("svg", line, width="22", height="8", viewBox="0 0 22 8", aria_hidden="true"),
                "one session, continued later",
            ),
        )
    )


# Shares: a thin bar in a table cell, and the flow from tokens to money.


def share(active: int, dropped: int, largest: int) -> Html:
    """Return a bar below a name: what is active in blue, what was dropped in amber, of the largest row."""
    of = largest or 1
    kept, lost = round(1000 * active / of), round(1000 * dropped / of)
    boxes = [
        element("rect", class_="bed", width="1000", height="4"),
        element("rect", class_="bar", width=kept, height="4"),
    ]
    if lost:
        boxes.append(element("rect", class_="over", x=kept, width=lost, height="4"))
    return element("svg", *boxes, class_="share", viewBox="0 0 1000 4", preserveAspectRatio="none", aria_hidden="true")


class FlowPart(msgspec.Struct, frozen=True):
    """A kind of tokens, with its share of the tokens and of the money."""

    name: str
    class_: str
    amount: int
    amount_text: str
    money: int
    money_text: str


_FLOW_WIDTH, _FLOW_GAP, _FLOW_LABEL = 1136, 2, 70


def flow(parts: Sequence[FlowPart]) -> Html:
    """Return two lines of bars, tokens above and money below, with a band from each to its own.

    The list below has all parts for narrow screens, and on wide ones those that are too small for their words.
    """
    above, below = _spread([part.amount for part in parts]), _spread([part.money for part in parts])
    pieces, is_drawn = [], []
    for part, (x1, w1), (x2, w2) in zip(parts, above, below, strict=True):
        band = f"M{units(x1)} 38L{units(x1 + w1)} 38L{units(x2 + w2)} 92L{units(x2)} 92z"
        pieces.append(_rect(part.class_, x1, 22, w1, 16))
        pieces.append(element("path", class_=f"band {part.class_}", d=band))
        pieces.append(_rect(part.class_, x2, 92, w2, 16))
        if w1 > _FLOW_LABEL:
            pieces.append(element("text", f"{part.name}, {part.amount_text}", x=units(x1), y=14))
        is_drawn.append(w2 > _FLOW_LABEL)
        if is_drawn[-1]:
            value = element("tspan", part.money_text, class_="value")
            pieces.append(element("text", f"{part.name} ", value, x=units(x2), y=126))
    label = "; ".join(f"{part.name}: {part.amount_text} tokens, {part.money_text}" for part in parts)
    drawing = element(
        "svg", *pieces, viewBox=f"0 0 {_FLOW_WIDTH} 132", preserveAspectRatio="none", role="img", aria_label=label
    )
    rows = []
    for part, has_label in zip(parts, is_drawn, strict=True):
        amounts = (element("span", part.amount_text, class_="num soft"), element("span", part.money_text, class_="num"))
        class_ = "drawn" if has_label else None
        rows.append(element("li", swatch(part.class_), element("span", part.name), *amounts, class_=class_))
    return joined((drawing, element("ul", *rows, aria_hidden="true")))


def _spread(amounts: Sequence[int]) -> list[tuple[float, float]]:
    """Return left edge and width of bars that fill the drawing, with a gap between them."""
    width = _FLOW_WIDTH - _FLOW_GAP * max(len(amounts) - 1, 0)
    total = sum(amounts) or 1
    edges, x = [], 0.0
    for amount in amounts:
        wide = width * amount / total
        edges.append((x, wide))
        x += wide + _FLOW_GAP
    return edges
