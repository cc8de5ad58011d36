"""Addresses that cannot be used: each gets one sentence on what is wrong, and the next step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.web.viewing import Viewed, links, viewing


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    with viewing(tmp_path_factory.mktemp("errors")) as viewed:
        yield viewed


@pytest.mark.parametrize(
    ("path", "status", "sentence", "way_on"),
    [
        ("sessions?has=foo", 400, "but only error, dropped,", "sessions"),
        ("sessions?sort=best", 400, "but only newest, oldest,", "sessions"),
        ("sessions?since=notadate", 400, "Invalid value for since: 'notadate'.", "sessions"),
        ("sessions?on=2026-13-45", 400, "it must be a day such as 2026-11-01", "sessions"),
        ("sessions?since=2026-11-10&until=2026-11-01", 400, "until 2026-11-01 is before since 2026-11-10", "sessions"),
        ("sessions?project=nope", 404, "No project matches 'nope'.", "sessions"),
        ("sessions?after=abc", 400, "The cursor is not valid", "sessions"),
        ("sessions?q=(a", 400, "the bracket has no end", "sessions"),
        ("search?q=alerts&in=x", 400, "but only prompt, answer,", "search"),
        ("search?q=alerts&after=junk", 400, "The cursor is not valid", "search"),
        ("usage?last=foo", 400, "Invalid value for last: 'foo'.", "usage"),
        ("usage?since=2026-11-10&until=2026-11-01", 400, "until 2026-11-01 is before since 2026-11-10", "usage"),
        ("usage?measure=foo", 400, "but only cost, tokens are known", "usage"),
        ("projects/zzz", 404, "No project matches 'zzz'.", "projects"),
        ("files?project=nope", 404, "No project matches 'nope'.", "files"),
    ],
)
def test_an_error_says_what_is_wrong_and_leads_on(
    viewed: Viewed, path: str, status: int, sentence: str, way_on: str
) -> None:
    page = viewed.page(path, status)
    assert sentence in page.text
    assert "--" not in page.text
    assert links(page)[-1] == way_on
    viewed.page(way_on)


@pytest.mark.parametrize(
    ("path", "words", "start"),
    [
        ("sessions?project=skywatch&after=999", "There are no sessions this far down", "sessions?project=skywatch"),
        ("files?q=py&after=999", "There are no files this far down", "files?q=py"),
        ("files?path=src/main.rs&after=99", "There are no reads or changes this far", "files?path=src%2Fmain.rs"),
        ("sessions?model=zzz", "No session matches these filters", "sessions"),
        ("files?q=zzz", "No tool call read or changed a file that matches", "files"),
    ],
)
def test_a_page_without_rows_leads_to_those_that_have_some(viewed: Viewed, path: str, words: str, start: str) -> None:
    page = viewed.page(path)
    assert words in page.text
    assert links(page)[-1] == start
    assert words not in viewed.page(start).text


def test_an_unknown_address_leads_to_the_pages(viewed: Viewed) -> None:
    assert "The words at the top lead to all pages." in viewed.page("nothing", 404).text


def test_the_api_says_400_for_a_cursor_and_names_its_parameter(viewed: Viewed) -> None:
    assert viewed.json("api/sessions?after=junk", 400)["code"] == "invalid-cursor"
    assert viewed.json("api/search?q=the&after=junk", 400)["code"] == "invalid-cursor"
    assert viewed.json("api/usage?last=soon", 400)["message"] == "Invalid value for last: 'soon'."
