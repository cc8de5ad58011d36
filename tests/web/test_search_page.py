"""The search page: facets over all hits, orders, the reading of a query, and what is said while it is typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.web.viewing import Viewed, links, viewing

from pollux.search import facets as counting

FACET = re.compile(r'<a href="([^"]*)"[^>]*><span>([^<]*)</span>(?:<span class="num soft">([\d,]+)</span>)?</a>')
NARROWING = ("in", "project", "model", "tool", "fate", "since")


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    with viewing(tmp_path_factory.mktemp("search")) as viewed:
        yield viewed


@pytest.fixture(autouse=True)
def _without_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count facets however slow the machine is."""
    monkeypatch.setattr("pollux.library.search._FACET_SECONDS", 600)


def facets(text: str) -> dict[str, int | None]:
    """Return the number next to each link that narrows a search, by its target."""
    (nav,) = re.findall(r'<nav class="facet".*?</nav>', text, re.DOTALL)
    numbers = {}
    for target, _, number in FACET.findall(nav):
        numbers[target.replace("&amp;", "&").partition("/search")[2]] = int(number.replace(",", "")) if number else None
    return numbers


def n_sessions(viewed: Viewed, query: str) -> int:
    return len(viewed.json(f"api/search{query}&limit=500")["sessions"])


@pytest.mark.parametrize(
    "query", ["?q=alerts", "?q=the&project=skywatch", "?q=the&fate=active&sort=cost", "?q=SKY-118"]
)
def test_each_number_is_what_its_link_finds(viewed: Viewed, query: str) -> None:
    numbers = facets(viewed.get(f"search{query}"))
    known = {target: number for target, number in numbers.items() if number is not None}
    assert len(known) > 5
    for target, number in known.items():
        assert (target, number) == (target, n_sessions(viewed, target))


def test_facets_cover_sessions_that_are_not_on_the_page(viewed: Viewed) -> None:
    few, many = (facets(viewed.get(f"search?q=the&limit={limit}")) for limit in (2, 100))
    assert [*few.values()] == [*many.values()]
    assert {name for target in many for name in parse_qs(urlsplit(target).query)} >= {*NARROWING}


def test_a_link_keeps_the_query_and_returns_to_the_first_page(viewed: Viewed) -> None:
    after = viewed.json("api/search?q=the&limit=2&sort=newest")["next"]
    text = viewed.get("search", q="the", limit=2, after=after, sort="newest")
    for target in facets(text):
        query = parse_qs(urlsplit(target).query)
        assert query["q"] == ["the"]
        assert query["sort"] == ["newest"]
        assert "after" not in query


def test_a_chosen_value_can_be_taken_back_and_others_have_no_number(viewed: Viewed) -> None:
    numbers = facets(viewed.get("search?q=the&tool=replace"))
    by_tool = {}
    for target, number in numbers.items():
        query = parse_qs(urlsplit(target).query)
        if [*query] == ["q"] or [*query] == ["q", "tool"]:
            by_tool[query.get("tool", [""])[0]] = number
    assert by_tool.pop("replace") == n_sessions(viewed, "?q=the&tool=replace")
    assert "" in by_tool
    assert len(by_tool) > 3
    assert {*by_tool.values()} == {None}


def test_the_reading_of_a_query(viewed: Viewed) -> None:
    text = viewed.page('search?q=alerts "held back" -mail&in=answer&project=skywatch').text
    assert "1 word, 1 phrase, without 1 other, in answer, in project skywatch" in text


def test_examples_are_links_to_what_they_find(viewed: Viewed) -> None:
    page = viewed.page("search")
    examples = [target for target in links(page) if target.startswith("search?q=")]
    assert len(examples) == 7
    for target in examples:
        assert viewed.answer(target).status_code == 200


def test_orders_are_links(viewed: Viewed) -> None:
    page = viewed.page("search?q=the&sort=oldest&limit=2")
    sorts = {parse_qs(urlsplit(link).query).get("sort", ["relevance"])[0] for link in links(page) if "q=the" in link}
    assert sorts >= {"relevance", "newest", "oldest", "cost"}
    assert "search?q=the&limit=2" in links(page)


def test_many_sessions_say_what_the_numbers_count(viewed: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_SESSIONS", 5)
    text = viewed.get("search?q=the&limit=2")
    assert "Numbers count the 5 newest sessions that match." in text
    assert "2 sessions of more" in text


def test_a_query_that_cannot_be_counted_has_no_numbers(viewed: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollux.library.search._FACET_SECONDS", 0)
    text = viewed.get("search?q=re:/th./&limit=2")
    assert {*facets(text).values()} == {None}
    assert "narrow the query" in text


@pytest.mark.parametrize("query", ["cost:", '"open', "tool:", "al*", "(a OR"])
def test_an_unfinished_query_is_no_error_while_it_is_typed(viewed: Viewed, query: str) -> None:
    viewed.page("search", q=query, typing=1)


def test_a_word_that_is_typed_finds_what_begins_with_it(viewed: Viewed) -> None:
    assert "No session contains" in viewed.page("search?q=aler").text
    page = viewed.page("search?q=aler&typing=1")
    assert f"{n_sessions(viewed, '?q=aler*')} sessions" in page.text
    assert any("typing=1" in link for link in links(page))


def test_filters_stay_when_other_words_are_searched_for(viewed: Viewed) -> None:
    page = viewed.page("search?q=the&project=skywatch&sort=cost&typing=1")
    hidden = {tag.attributes["name"]: tag.attributes["value"] for tag in page.named("input", type="hidden")}
    assert hidden == {"project": "skywatch", "sort": "cost"}
    assert not viewed.page("sessions?project=skywatch").named("input", type="hidden")


def test_hostile_filters_stay_words(viewed: Viewed) -> None:
    evil = '"><script>alert(1)</script>'
    for path in (f"search?q=the&tool={evil}", f"search?q={evil}&model={evil}", f"search?q=the&project={evil}"):
        text = viewed.answer(path).text
        assert "<script>alert" not in text
    viewed.page(f"search?q=the&in={evil}", 400)
    viewed.page(f"search?q=the&fate={evil}", 400)


def test_a_session_is_named_once_above_its_hits(viewed: Viewed) -> None:
    found = viewed.json("api/search?q=alerts")["sessions"]
    page = viewed.page("search?q=alerts")
    titles = [tag.attributes["href"] for tag in page.named("a", class_="t")]
    hits = [tag.attributes["href"] for tag in page.named("a", class_="snip")]
    assert len(titles) == len({*titles}) == len(found) == 10
    assert len(hits) == sum(min(session["hits"], 3) for session in found) > 10  # a page has at most three of each
    assert {*titles} <= {*hits}
    for target in hits:
        path, _, anchor = (target or "").partition("#")
        assert f'id="{anchor}"' in viewed.get(path.removeprefix("/abcdefghij/"))


def test_the_api_has_the_facets(viewed: Viewed) -> None:
    found = viewed.json("api/search?q=alerts&limit=1")["facets"]
    assert (found["sessions"], found["complete"]) == (10, True)
    assert {"key": "prompt", "name": "prompt", "count": 1} in found["in"]
    assert {"project", "model", "tool", "fate", "month"} <= found.keys()
    assert viewed.json("api/search?q=nothinglikethis")["facets"] is None


def test_tools_have_the_names_that_a_session_page_shows(viewed: Viewed) -> None:
    (nav,) = re.findall(r'<nav class="facet".*?</nav>', viewed.get("search?q=alerts"), re.DOTALL)
    names = {words for target, words, _ in FACET.findall(nav) if "tool=" in target}
    assert {"Read", "Shell", "tickets/get_ticket"} <= names
    assert not names & {"ReadFile", "SearchText", "mcp_tickets_get_ticket"}
