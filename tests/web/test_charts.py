"""Charts show the numbers they are given, in few elements, and no text in them becomes markup."""

from __future__ import annotations

import re
from datetime import date, timedelta
from itertools import pairwise

import pytest
from tests.web.markup_reader import MarkupReader, check_policy

from pollux.render.html.charts import (
    MANY_BARS,
    FlowPart,
    SkyDay,
    StackedBar,
    bars,
    colour,
    flow,
    share,
    sky,
    small_bars,
)
from pollux.render.html.guide import STRIP_BARS, CallMark, ErrorMark, GuideMark, PromptMark, guide, strip
from pollux.render.html.markup import Html

HOSTILE = "\"><script>alert(1)</script>\u202e'&"
SERIES = {"flash": "m1", "pro": "m2"}
TODAY = date(2026, 11, 16)
_BOX = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-([\d.]+)z")


def heights(drawing: Html, class_: str) -> list[float]:
    """Return the heights of the rectangles of a class."""
    return [float(box["height"]) for box in MarkupReader(drawing).all("rect", class_)]


def boxes(drawing: Html, class_: str) -> list[tuple[float, ...]]:
    """Return x, y, width and height of the boxes in the paths of a class."""
    found = []
    for path in MarkupReader(drawing).all("path", class_):
        found += [tuple(map(float, match[:4])) for match in _BOX.findall(path["d"])]
    return found


def chart(columns: list[StackedBar]) -> Html:
    return bars(columns, SERIES, label="Billed", show=str)


def test_heights_are_in_proportion_to_the_amounts() -> None:
    drawing = chart([StackedBar({"flash": 30, "pro": 10}, dropped=20), StackedBar({}), StackedBar({"flash": 15})])
    tall, half = heights(drawing, "m1")
    [pro], [gone] = heights(drawing, "m2"), heights(drawing, "gone")
    assert tall == pytest.approx(2 * half, abs=0.2)
    assert tall == pytest.approx(3 * pro, abs=0.3)
    assert gone == pytest.approx(2 * pro - 1, abs=0.3)  # inside its outline


def test_parts_of_a_bar_stand_on_each_other() -> None:
    [flash, pro, gone] = [
        box
        for box in MarkupReader(chart([StackedBar({"flash": 3, "pro": 1}, dropped=2)])).all("rect")
        if box["class"] != "reach"
    ]
    assert float(flash["y"]) == pytest.approx(float(pro["y"]) + float(pro["height"]), abs=0.15)
    assert float(pro["y"]) == pytest.approx(float(gone["y"]) + float(gone["height"]) + 0.5, abs=0.15)


@pytest.mark.parametrize("peak", [1, 2, 3, 7, 99, 104_411_450, 10**12])
def test_the_scale_has_round_numbers_and_holds_every_bar(peak: int) -> None:
    drawing = chart([StackedBar({"flash": peak})])
    page = MarkupReader(drawing)
    numbers = [int(text) for text in page.texts["text"]]
    assert numbers[0] == 0
    assert numbers[-1] >= peak
    assert len(numbers) <= 7
    assert len({second - first for first, second in pairwise(numbers)}) == 1
    assert all(str(number).rstrip("0") in {"", *map(str, range(1, 100))} for number in numbers)
    assert min(float(box["y"]) for box in page.all("rect", "m1")) >= 12


def test_each_bar_is_a_link_with_a_label() -> None:
    drawing = chart(
        [StackedBar({"flash": number + 1}, href=f"/x?on={number}", label=f"Day {number}") for number in range(30)]
    )
    links = MarkupReader(drawing).all("a")
    assert [link["aria-label"] for link in links] == [f"Day {number}" for number in range(30)]
    assert [link["href"] for link in links] == [f"/x?on={number}" for number in range(30)]


def stairs(drawing: str, class_: str) -> list[float]:
    """Return the heights of the steps of an area, above the floor of the chart."""
    (area,) = MarkupReader(drawing).all("path", class_)
    floor_y = float(area["d"].rpartition("V")[2].removesuffix("z"))
    return [round(floor_y - float(y), 1) for y in re.findall(r"V([\d.]+)h", area["d"])]


def test_a_year_of_days_is_a_path_per_model() -> None:
    columns = []
    for number in range(365):
        day = TODAY - timedelta(days=364 - number)
        columns.append(
            StackedBar(
                {"flash": number + 1, "pro": 5}, 3, href=f"/{day:%Y-%m}", label=f"{day:%B}", group=f"{day:%Y-%m}"
            )
        )
    drawing = chart(columns)
    page = MarkupReader(drawing)
    assert len(page.elements) <= 60
    assert len(drawing) <= 25_000
    assert len(stairs(drawing, "m1")) == len(stairs(drawing, "m2")) == len(boxes(drawing, "gone")) == 365
    assert len(page.all("a")) == len({column.group for column in columns}) == 13
    tall = stairs(drawing, "m1")
    assert tall[-1] / tall[99] == pytest.approx(365 / 100, rel=0.02)
    classes = [path["class"] for path in page.all("path")]
    assert classes == ["m2", "m1", "gone"]  # the lower areas hide what is behind them


def test_both_ways_to_draw_show_the_same_amounts() -> None:
    few = [StackedBar({"flash": 2 * number + 1, "pro": number}, number % 3) for number in range(MANY_BARS)]
    many = [*few, StackedBar({})]
    single = [float(box["height"]) for box in MarkupReader(chart(few)).all("rect") if box["class"] == "m1"]
    assert [*single, 0] == pytest.approx(stairs(chart(many), "m1"), abs=0.11)
    above = [float(box["height"]) for box in MarkupReader(chart(few)).all("rect") if box["class"] == "m2"]
    pairs = zip(stairs(chart(many), "m1"), stairs(chart(many), "m2"), strict=True)
    assert [0, *above, 0] == pytest.approx([high - low for low, high in pairs], abs=0.21)  # the first bar has no part


@pytest.mark.parametrize("columns", [[], [StackedBar({})], [StackedBar({})] * 400])
def test_nothing_is_drawn_without_numbers(columns: list[StackedBar]) -> None:
    for drawing in (chart(columns), small_bars(columns, SERIES, label="Billed", first="1 Oct")):
        page = MarkupReader(drawing)
        assert not page.open
        assert not [box for box in page.all("rect") if box["class"] != "reach"]
        assert not page.all("path")


def test_texts_in_charts_are_escaped() -> None:
    mark = CallMark(1, 1, label=HOSTILE, href="/")
    drawings = (
        bars(
            [StackedBar({HOSTILE: 1}, 1, "/", HOSTILE, HOSTILE)], {HOSTILE: "m1"}, label=HOSTILE, show=lambda _: HOSTILE
        ),
        small_bars([StackedBar({HOSTILE: 1}, label=HOSTILE, href="/")], {HOSTILE: "m1"}, label=HOSTILE, first=HOSTILE),
        guide([mark, PromptMark("/", HOSTILE), ErrorMark("", HOSTILE)], HOSTILE),
        sky([SkyDay(TODAY, 1, "/", HOSTILE)], [], TODAY),
        flow([FlowPart(HOSTILE, "m1", 9, HOSTILE, 9, HOSTILE)]),
        strip([mark]),
    )
    for drawing in drawings:
        check_policy(drawing)
        assert "\u202e" not in drawing
        assert not MarkupReader(drawing).all("script")


def test_a_strip_shows_the_newest_calls_at_the_right() -> None:
    calls = [CallMark(number, 0) for number in range(1, 20)]
    drawing = strip(calls)
    bars_ = sorted(lines(drawing, "fresh"))
    assert len(bars_) == STRIP_BARS
    lengths = [bottom - top for _, bottom, top in bars_]
    assert lengths == sorted(lengths)
    assert lengths[-1] == pytest.approx(21, abs=0.1)
    assert bars_[-1][0] < 104 - 3


def lines(drawing: str, class_: str) -> list[tuple[float, float, float]]:
    """Return place, bottom and top of the bars of a strip."""
    (path,) = MarkupReader(drawing).all("path", class_)
    return [(float(x), float(y1), float(y2)) for x, y1, y2 in re.findall(r"M(\S+) ([\d.]+)V([\d.]+)", path["d"])]


def test_a_dropped_call_is_an_outline() -> None:
    drawing = strip([CallMark(5, 5), CallMark(5, 5, is_dropped=True)])
    assert len(boxes(drawing, "lost")) == len(lines(drawing, "cached")) == len(lines(drawing, "fresh")) == 1
    [(_, top, _, height)] = boxes(drawing, "lost")
    [(_, _, fresh_top)], [(_, bottom, _)] = lines(drawing, "fresh"), lines(drawing, "cached")
    assert (top, top + height) == (fresh_top, bottom - 0.5)


def test_a_guide_shows_every_call_prompt_and_error_in_order() -> None:
    marks: list[GuideMark] = [
        PromptMark("/1", "Prompt"),
        CallMark(30, 10, href="/2", label="Call"),
        ErrorMark("/3", "Error"),
        CallMark(10, 0, is_dropped=True, href="/4", label="Dropped"),
    ]
    page = MarkupReader(guide(marks))
    assert [link["href"] for link in page.all("a")] == ["/1", "/2", "/3", "/4"]
    assert len(page.all("path", "typed")) == len(page.all("path", "err")) == len(page.all("path", "lost")) == 1
    assert page.texts["figcaption"] == ["fresh inputcacheddroppedpeak 40 tokens"]


def test_a_guide_of_any_length_stays_small() -> None:
    marks: list[GuideMark] = [
        PromptMark("/s/x/1", "Prompt") if number % 5 == 0 else CallMark(number, 3, href="/s/x/2", label="Call")
        for number in range(50_001)
    ]
    drawing = guide(marks)
    assert len(MarkupReader(drawing).elements) <= 1300
    assert len(drawing) <= 110_000
    tallest = max(box[3] for box in boxes(drawing, "fresh"))
    assert tallest == pytest.approx(42, abs=0.2)  # the largest call of all is among those shown


def test_a_sky_has_a_point_for_each_day_that_was_used() -> None:
    days = [TODAY - timedelta(days=back) for back in (0, 1, 30, 200, 364)]
    drawing = sky([SkyDay(day, 5000, f"/?on={day}", f"{day}") for day in days], [(days[2], days[1])], TODAY)
    page = MarkupReader(drawing)
    assert sorted(link["aria-label"] for link in page.all("a")) == sorted(map(str, days))
    assert len(page.all("path", "bond")) == 1
    assert not page.all("circle", "now")
    columns = [int(height) for path in page.all("path", "none") for height in re.findall(r"v(\d+)", path["d"])]
    n_days = 52 * 7 + TODAY.weekday()
    assert sum(height // 21 + 1 for height in columns) == n_days


def test_weeks_are_links_where_days_are_too_many() -> None:
    days = [SkyDay(TODAY - timedelta(days=back), 900 * back, "/day", "day") for back in range(364)]
    mondays = [day for day in days if not day.day.weekday()]
    weeks = [SkyDay(day.day, 1, f"/{day.day}", f"Week {day.day}") for day in mondays]
    drawing = sky(days, [], TODAY, weeks)
    page = MarkupReader(drawing)
    assert sorted(link["href"] for link in page.all("a")) == sorted(f"/{week.day}" for week in weeks)
    stars = sum(line["points"].count(",") for line in page.all("polyline"))
    assert stars == sum(day.tokens >= 100_000 for day in days)
    dots = sum(path["d"].count("h0") for path in page.all("path", "dots"))
    assert dots + stars == len(days)
    assert len(page.elements) <= 200


def test_days_with_more_tokens_are_larger_and_the_largest_are_stars() -> None:
    amounts = (100, 5_000, 50_000, 99_999, 100_000)
    days = [SkyDay(TODAY - timedelta(days=back), tokens, "/", "") for back, tokens in enumerate(amounts)]
    page = MarkupReader(sky(days, [], TODAY))
    radii = [float(circle["r"]) for circle in page.all("circle")[: len(amounts) - 1]]
    assert radii == sorted(radii)
    assert len(set(radii)) == 4
    assert [page.all("use")[0]["x"], len(page.all("use"))] == [page.all("circle", "halo")[0]["cx"], 1]


def test_a_year_in_which_every_day_was_used_stays_small() -> None:
    days = []
    for back in range(368):
        day = TODAY - timedelta(days=back)
        days.append(SkyDay(day, 60_000, f"sessions?on={day}", f"{day:%d %b %Y}; 63.8k tokens, $0.037"))
    drawing = sky(days, [], TODAY)
    assert len(MarkupReader(drawing).elements) <= 800
    assert len(drawing) <= 45_000


def test_days_outside_the_year_are_left_out() -> None:
    drawing = sky(
        [SkyDay(TODAY - timedelta(days=400), 5, "/", ""), SkyDay(TODAY + timedelta(days=9), 5, "/", "")], [], TODAY
    )
    assert not MarkupReader(drawing).all("a")


def test_shares_add_up() -> None:
    bed, bar, over = MarkupReader(share(300, 100, 800)).all("rect")
    assert (bed["width"], bar["width"], over["x"], over["width"]) == ("1000", "375", "375", "125")
    assert len(MarkupReader(share(0, 0, 0)).all("rect")) == 2


def test_a_flow_fills_both_lines() -> None:
    parts = [
        FlowPart(name, "m1", amount, f"{amount}", money, f"${money}")
        for name, amount, money in (("A", 70, 10), ("B", 30, 90))
    ]
    drawing = flow(parts)
    widths = [float(box["width"]) for box in MarkupReader(drawing).all("rect") if "rx" not in box]
    assert widths[0] + widths[2] == pytest.approx(1134, abs=0.2)
    assert widths[1] + widths[3] == pytest.approx(1134, abs=0.2)
    assert widths[0] == pytest.approx(0.7 * 1134, abs=0.2)
    assert [text.strip() for text in MarkupReader(drawing).texts["li"]] == ["A70$10", "B30$90"]


def test_models_beyond_the_sixth_share_a_colour() -> None:
    assert [colour(number) for number in (0, 5, 6, 7, 99)] == ["m1", "m6", "m5", "m5", "m5"]
