"""The usage page: tables, chart and headline show the same numbers; choices are links; nothing hostile gets out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient
from tests.web.markup_reader import MarkupReader, check_policy
from tests.web.test_overview import HOSTILE, NOW, viewer, write_session

from pollux.library.config import DEMO_HOME
from pollux.library.filters import Filter
from pollux.library.usage import UsageQuery

START = datetime(2026, 10, 18, tzinfo=UTC)
"""The first of thirty days up to `NOW`."""


@contextmanager
def opened(home: Path, archive: Path) -> Iterator[TestClient]:
    with viewer(home, archive) as (client, _):
        yield client


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with opened(DEMO_HOME, tmp_path_factory.mktemp("demo") / "archive.db") as client:
        yield client


def usage(client: TestClient, query: str = "") -> MarkupReader:
    response = client.get(f"/label12345/usage{query}")
    assert response.status_code == 200
    check_policy(response.text)
    return MarkupReader(response.text)


def amount(text: str) -> Decimal:
    return Decimal(text.replace("$", "").replace(",", ""))


def bars_of(page: MarkupReader) -> list[str]:
    """Return the labels of the chart's bars."""
    return [link["aria-label"] for link in page.all("a") if "aria-label" in link]


def test_the_headline_and_the_period(demo: TestClient) -> None:
    page = usage(demo)
    assert page.texts["h1"] == ["$0.40 in thirty days."]
    assert "18 October to 16 November 2026" in page.texts["p"]
    assert "$0.05 went into work that was dropped: rewound, rolled back or compressed." in page.texts["p"]


@pytest.mark.parametrize("query", ["", "?by=week", "?by=month&last=all", "?last=90d&by=week", "?last=7d"])
def test_the_table_shows_the_same_sums_as_the_bars(demo: TestClient, query: str) -> None:
    page = usage(demo, query)
    table = page.tables[0][1:]
    labels = bars_of(page)
    assert len(table) == len(labels)
    for row, label in zip(table, labels, strict=True):
        heading, *parts = label.split("; ")
        billed = amount(heading.rpartition(" ")[2])
        assert amount(row[3]) == billed
        assert sum((amount(part.rpartition(" ")[2]) for part in parts), Decimal()) == pytest.approx(
            billed, abs=Decimal("0.0003")
        )
        dropped = sum((amount(part.rpartition(" ")[2]) for part in parts if part.startswith("dropped ")), Decimal())
        assert amount(row[4]) == pytest.approx(billed - dropped, abs=Decimal("0.0002"))


def test_all_tables_are_sums_of_the_same_calls(demo: TestClient) -> None:
    page = usage(demo)
    periods, models, projects, kinds, _tools, sessions = page.tables
    total = amount(models[1][3]) + sum(amount(row[3]) for row in models[2:])
    assert sum(amount(row[3]) for row in periods[1:]) == pytest.approx(total, abs=Decimal("0.001"))
    assert sum(amount(row[3]) for row in projects[1:]) == pytest.approx(total, abs=Decimal("0.001"))
    calls = {sum(int(row[1].replace(",", "")) for row in table[1:]) for table in (periods, models, projects)}
    assert calls == {62}
    assert sum(amount(row[2]) for row in kinds[1:]) == pytest.approx(total, abs=Decimal("0.004"))
    assert len(sessions) == 8
    assert [amount(row[3]) for row in sessions[1:]] == sorted((amount(row[3]) for row in sessions[1:]), reverse=True)


def test_numbers_are_those_of_the_report(tmp_path: Path) -> None:
    with viewer(DEMO_HOME, tmp_path / "archive.db") as (_, state):
        library = state.library
        summary = library.usage_summary(UsageQuery(by="day", filter=Filter(since=START)))
        for by, rows in (("model", summary.models), ("project", summary.projects)):
            report = library.usage(UsageQuery(by=by, filter=Filter(since=START)))
            assert (report.billed, report.active) == (summary.billed, summary.active)
            assert tuple(replace(row, last_us=None) for row in report.rows) == tuple(
                replace(row, last_us=None) for row in rows
            )
        days = library.usage(UsageQuery(by="day", filter=Filter(since=START)))
        assert [(row.key, row.billed, row.active) for row in days.rows] == [
            (period.key, period.billed, period.active) for period in summary.periods
        ]
        tools = library.usage(UsageQuery(by="tool", filter=Filter(since=START)))
        assert {row.key: row.billed for row in summary.tools}.items() <= {
            row.key: row.billed for row in tools.rows
        }.items()
        assert summary.n_tools == len(tools.rows)
        everything = library.usage_summary(UsageQuery(by="month"))
        assert everything.billed == library.overview().overview.usage
        rounding = everything.billed.calls  # each call's cost is rounded to a nano-dollar
        assert abs(everything.breakdown.picousd // 1000 - everything.billed.cost.nanousd) <= rounding
        tokens = everything.billed.tokens
        kinds = {kind.name: kind.tokens for kind in everything.breakdown.kinds}
        assert kinds == {
            "fresh": tokens.input - tokens.cached + tokens.tool,
            "cached": tokens.cached,
            "output": tokens.output,
            "thoughts": tokens.thoughts,
        }


def test_the_choice_is_marked_and_every_other_is_a_link(demo: TestClient) -> None:
    page = usage(demo, "?last=90d&by=week&measure=tokens&project=skywatch")
    current = [link["href"] for link in page.all("a") if link.get("aria-current") == "true"]
    assert len(current) == 3
    links = [link["href"] for link in page.all("a") if "/usage?" in link["href"] and "api" not in link["href"]]
    assert all("project=skywatch" in link for link in links)
    assert page.texts["h1"][0].endswith("tokens in ninety days in skywatch.")
    for link in links:
        assert demo.get(link).status_code == 200


def test_tokens_are_measured_instead_of_money(demo: TestClient) -> None:
    page = usage(demo, "?measure=tokens")
    assert page.texts["h1"] == ["800k tokens in thirty days."]
    assert not [label for label in bars_of(page) if "$" in label]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("?by=century", "but only day, week, month are known"),
        ("?measure=money", "but only cost, tokens are known"),
        ("?rows=7", "but only all are known"),
        ("?last=soon", "soon"),
        ("?since=yesterweek", "yesterweek"),
        ("?project=nosuchproject", "nosuchproject"),
        ("?since=2026-11-01&last=7d", "both set the start"),
    ],
)
def test_a_wrong_choice_is_answered_with_a_sentence(demo: TestClient, query: str, sentence: str) -> None:
    response = demo.get(f"/label12345/usage{query}")
    assert response.status_code in {400, 404}
    assert sentence in response.text
    assert "Traceback" not in response.text


def test_a_period_without_calls_offers_everything(demo: TestClient) -> None:
    page = usage(demo, "?since=2020-01-01&until=2020-02-01")
    assert page.texts["h1"] == ["Nothing in this time."]
    assert "/label12345/usage?last=all" in [link["href"] for link in page.all("a")]


def test_a_model_is_chosen_in_the_form(demo: TestClient) -> None:
    page = usage(demo, "?last=all")
    options = [option["value"] for option in page.all("option") if option.get("value", "").startswith("gemini-")]
    assert len(options) == len({*options}) > 3
    for model in options:
        chosen = usage(demo, f"?last=all&model={model}")
        assert chosen.texts["h1"][0].endswith(f"in all with {model}.")
        assert [option["value"] for option in chosen.all("option") if "selected" in option] == [model]


def test_a_project_is_named_and_not_spelled_out(demo: TestClient) -> None:
    assert usage(demo, "?project=/home/mara/src/skywatch").texts["h1"][0] == "$0.36 in thirty days in skywatch."


def test_longer_lists_are_shown_on_request(demo: TestClient) -> None:
    tools = usage(demo).tables[4]
    every = usage(demo, "?rows=all").tables[4]
    assert len(tools) == 8
    assert len(every) == 14


def test_models_without_a_price_are_named(tmp_path: Path) -> None:
    write_session(tmp_path, 1, NOW, model="gemini-99-secret")
    with opened(tmp_path, tmp_path / "archive.db") as client:
        page = usage(client)
    assert page.texts["h1"] == ["9.1k tokens without a price in thirty days."]
    assert [text for text in page.texts["text"] if "$" in text] == ["$0"]
    assert "No price: gemini-99-secret (1 call)" in page.texts["span"]


def test_a_year_of_days_stays_within_the_budget(tmp_path: Path) -> None:
    for number in range(360):
        model = f"gemini-2.5-{('pro', 'flash', 'flash-lite')[number % 3]}"
        write_session(tmp_path, number, NOW - timedelta(days=number), f"Question {number}", model=model)
    with opened(tmp_path, tmp_path / "archive.db") as client:
        text = client.get("/label12345/usage?last=1y").text
        page = usage(client, "?last=1y")
        assert len(text.encode()) <= 60_000
        assert len(page.elements) <= 1500
        assert "The 62 newest; the download has all 360." in text
        months = usage(client, "?last=1y&by=month")
        assert len(months.tables[0]) == len(bars_of(months)) + 1 == 14


def test_hostile_names_stay_words(tmp_path: Path) -> None:
    for number in range(3):
        write_session(tmp_path, number, NOW - timedelta(days=number), HOSTILE, model=f"{HOSTILE}{number}")
    (tmp_path / ".gemini" / "tmp" / "webapp" / ".project_root").write_text("/srv/<b onload=x>", encoding="utf-8")
    with opened(tmp_path, tmp_path / "archive.db") as client:
        for query in ("", "?last=all&by=month", "?measure=tokens", "?model=%3Cscript%3E"):
            response = client.get(f"/label12345/usage{query}")
            check_policy(response.text)
            page = MarkupReader(response.text)
            assert not page.all("img")
            assert len(page.all("script")) == 2  # ours
            assert "\u202e" not in response.text


def test_the_download_has_the_same_choice(demo: TestClient) -> None:
    for query, chosen in (
        ("?last=90d&by=week", "last=90d.*by=week"),
        ("?last=90d", "by=day"),
        ("?last=all", "by=month"),
    ):
        page = usage(demo, query)
        [link] = [link["href"] for link in page.all("a", "button") if "format=csv" in link["href"]]
        assert re.search(rf"api/usage\?.*{chosen}", link)


def test_all_time_is_by_month_unless_the_reader_chooses_a_step(demo: TestClient) -> None:
    steps = {"": "day", "?last=1y": "day", "?last=all": "month", "?last=all&by=week": "week", "?last=all&by=day": "day"}
    for query, step in steps.items():
        assert f"Billed by {step} and model" in demo.get(f"/label12345/usage{query}").text
    links = [link["href"] for link in usage(demo, "?last=all&by=day").all("a") if "last=1y" in link.get("href", "")]
    assert links
    assert all("by=day" in href for href in links)
    assert not any("by=" in link["href"] for link in usage(demo, "?last=all").all("a") if "last=1y" in link["href"])
