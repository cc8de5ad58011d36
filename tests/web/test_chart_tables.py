"""Each chart of the viewer has its numbers as a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.conftest import ROOT
from tests.web.viewing import Viewed, viewing

from pollux.web.pages.projects import _KNOWN_BY


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    with viewing(tmp_path_factory.mktemp("charts")) as viewed:
        yield viewed


def tables(text: str) -> list[list[list[str]]]:
    """Return the cells of the tables in folds."""
    found = []
    for fold in re.findall(r'<details class="asrows">.*?</details>', text, re.DOTALL):
        rows = re.findall(r"<tr>(.*?)</tr>", fold, re.DOTALL)
        found.append([re.findall(r"<t[hd][^>]*>([^<]*)", row) for row in rows])
    return found


def dollars_of(cells: list[str]) -> int:
    """Return an amount of the last column in thousandths of a dollar."""
    return int(cells[-1].replace("$", "").replace(".", "").replace(",", ""))


def test_the_costs_of_thirty_days_are_a_table(viewed: Viewed) -> None:
    _, table = tables(viewed.get(""))
    assert table[0] == ["Day", "Billed"]
    assert table[1][0] == "Sat 14 Nov"
    board = viewed.library.dashboard()
    recent = [period for period in board.days if (period.key or "") >= "2026-10-20"]
    assert len(table) - 1 == len(recent) > 5
    exact = sum(period.billed.cost.nanousd for period in recent) / 1_000_000
    assert abs(sum(map(dollars_of, table[1:])) - exact) <= len(recent)


@pytest.mark.parametrize(("path", "n_days"), [("", 18), ("sessions?project=skywatch", 9)])
def test_the_days_of_a_sky_are_a_table(viewed: Viewed, path: str, n_days: int) -> None:
    table = tables(viewed.get(path))[0]
    assert table[0] == ["Day", "Tokens", "Billed"]
    assert table[1][0] == "Sat 14 Nov 2026"
    assert len(table) - 1 == len({row[0] for row in table[1:]}) == n_days
    points = viewed.page(path).named("a")
    assert sum(" tokens, $" in (link.attributes.get("aria-label") or "") for link in points) == n_days


def test_where_the_money_goes_is_a_table(viewed: Viewed) -> None:
    periods, kinds = tables(viewed.get("usage?last=all"))
    assert periods[0][:2] == ["Month", "Calls"]
    assert kinds[0] == ["Kind", "Tokens", "Billed"]
    assert [row[0] for row in kinds[1:]] == ["Fresh input", "Cached input", "Output", "Thoughts"]
    assert all(len(row) == 3 and row[2].startswith("$") for row in kinds[1:])


def test_projects_say_what_they_cost(viewed: Viewed) -> None:
    rows = {row.project.name: row for row in viewed.library.projects().rows}
    text = viewed.page("projects").text
    assert "Billed" in text
    nanousd = rows["skywatch"].nanousd
    assert nanousd is not None
    assert f"${nanousd / 1e9:.3f}" in text


def test_a_home_without_recent_calls_has_no_empty_table(viewed: Viewed) -> None:
    assert tables(viewed.get("usage?since=2020-01-01&until=2020-02-01")) == []


def test_projects_say_how_their_folder_is_known(viewed: Viewed) -> None:
    sources = {row.project.source for row in viewed.library.projects().rows}
    assert len(sources) > 2
    text = viewed.page("projects").text
    assert {*_KNOWN_BY} >= sources
    for source in sources:
        assert _KNOWN_BY[source or ""] in text


def test_every_source_of_a_path_has_words() -> None:
    table = (ROOT / "docs" / "formats.md").read_text("utf-8").partition("## Projects")[2].partition("\n\n")[2]
    assert {*re.findall(r"^\| `([\w.]+)` ", table, re.MULTILINE)} == {*_KNOWN_BY}
