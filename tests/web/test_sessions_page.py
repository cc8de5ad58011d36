"""The list of sessions: its orders, pages and empty states, as links that need no script."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.builders import chats, gemini, header, log, put, tokens, user
from tests.exports.reader import Page
from tests.web.viewing import NOW, Viewed, links, viewing

from pollux.library.filters import parse_filter
from pollux.library.usage import UsageQuery
from pollux.library.values import SessionRow
from pollux.search.fields import field_named
from pollux.web.openapi import SESSION_SORTS, SESSION_TRAITS
from pollux.web.pages.sessions import HAS, SORTS


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    with viewing(tmp_path_factory.mktemp("sessions")) as viewed:
        yield viewed


def _amount(row: SessionRow, order: str) -> Any:  # noqa: ANN401  a number or a time
    return {
        "newest": row.last_used,
        "oldest": row.last_used,
        "begun": row.started,
        "prompts": row.prompts,
        "tokens": row.usage.tokens.total,
        "cost": row.usage.cost.nanousd,
    }[order]


@pytest.mark.parametrize("order", SORTS)
def test_each_order_sorts_by_its_own_number(viewed: Viewed, order: str) -> None:
    amounts = [_amount(row, order) for row in viewed.library.sessions(sort=order).rows]
    assert len(amounts) > 15
    assert len(set(amounts)) > 3
    assert amounts == sorted(amounts, reverse=order != "oldest")


def test_subagents_count_for_the_session_that_started_them(viewed: Viewed) -> None:
    rows = viewed.library.sessions(sort="cost").rows
    by_own = sorted(rows, key=lambda row: -row.own_usage.cost.nanousd)
    assert [row.id for row in rows] != [row.id for row in by_own]


@pytest.mark.parametrize("order", SORTS)
@pytest.mark.parametrize("filters", ["", "project=skywatch", "has=error", "q=alerts", "since=2026-11-01", "all=1"])
def test_pages_in_an_order_are_the_whole_list_once(viewed: Viewed, order: str, filters: str) -> None:
    every = viewed.json(f"api/sessions?limit=500&sort={order}&{filters}")
    names = [row["id"] for row in every["sessions"]]
    assert len(names) == len(set(names)) == every["total"]
    default = viewed.json(f"api/sessions?limit=500&{filters}")
    assert {*names} == {row["id"] for row in default["sessions"]}
    ids, after = [], ""
    for _ in range(10):
        part = viewed.json(f"api/sessions?limit=4&sort={order}&{filters}{after}")
        ids += [row["id"] for row in part["sessions"]]
        if part["next"] is None:
            break
        after = f"&after={part['next']}"
    assert ids == names


def test_orders_are_links_that_keep_the_filters_and_start_at_the_first_page(viewed: Viewed) -> None:
    sorts = {}
    for target in links(viewed.page("sessions?project=skywatch&limit=3&after=3&sort=cost")):
        query = parse_qs(urlsplit(target).query)
        if target.startswith("sessions?") and "after" not in query and query.get("limit"):
            assert query["project"] == ["skywatch"]
            sorts[query.get("sort", ["newest"])[0]] = target
    assert sorts.keys() == {*SORTS}


def test_the_current_order_is_marked_and_kept_by_the_form_and_the_pages(viewed: Viewed) -> None:
    page = viewed.page("sessions?sort=tokens&limit=3&after=3")
    (marked,) = page.named("a", **{"aria-current": "true"})
    assert parse_qs(urlsplit(marked.attributes["href"] or "").query)["sort"] == ["tokens"]
    (hidden,) = page.named("input", type="hidden")
    assert (hidden.attributes["name"], hidden.attributes["value"]) == ("sort", "tokens")
    (after,) = page.named("a", rel="next")
    (before,) = page.named("a", rel="prev")
    assert "sort=tokens" in (after.attributes["href"] or "")
    assert "after=6" in (after.attributes["href"] or "")
    assert "sort=tokens" in (before.attributes["href"] or "")
    assert "after" not in (before.attributes["href"] or "")
    assert "4–6 of" in page.text


def test_the_page_before_is_a_page_up(viewed: Viewed) -> None:
    (before,) = viewed.page("sessions?limit=3&after=9").named("a", rel="prev")
    assert "after=6" in (before.attributes["href"] or "")


def test_an_unknown_order_says_which_there_are(viewed: Viewed) -> None:
    text = viewed.page("sessions?sort=%3Cb%3E", 400).text
    assert "newest, oldest, begun, prompts, tokens, cost" in text


def test_the_api_describes_the_orders(viewed: Viewed) -> None:
    assert tuple(SORTS) == SESSION_SORTS
    assert viewed.json("api/sessions?sort=cost&limit=1")["sessions"]


@pytest.mark.parametrize(
    ("query", "words", "target"),
    [
        ("q=nothinglikethis", "No session matches these filters.", "sessions"),
        ("after=500&sort=cost", "There are no sessions this far down the list.", "sessions?sort=cost"),
    ],
)
def test_an_empty_page_says_what_to_do_next(viewed: Viewed, query: str, words: str, target: str) -> None:
    page = viewed.page(f"sessions?{query}")
    assert words in page.text
    assert target in links(page)


def test_a_home_without_sessions_names_the_next_step(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".gemini"
    home.mkdir(parents=True)
    with viewing(tmp_path, [home]) as viewed:
        text = viewed.page("sessions").text
    assert "No sessions yet." in text
    assert "pollux demo" in text


def test_sessions_with_dropped_messages(viewed: Viewed) -> None:
    found = viewed.json("api/sessions?has=dropped&limit=500")["sessions"]
    every = viewed.library.sessions().rows
    expected = {row.id for row in every if any(fate != "active" and n for fate, n in row.fates.items())}
    assert {row["id"] for row in found} == expected
    assert 0 < len(expected) < len(every)


def test_sessions_with_problems(viewed: Viewed) -> None:
    found = viewed.json("api/sessions?has=problem&limit=500")["sessions"]
    every = viewed.library.sessions().rows
    expected = {row.id for row in every if row.problems}
    assert {row["id"] for row in found} == expected
    assert 0 < len(expected) < len(every)


def test_the_form_the_api_and_queries_know_the_same_traits(viewed: Viewed) -> None:
    field = field_named("has")
    assert field is not None
    assert sorted(HAS) == sorted(SESSION_TRAITS) == sorted(field.choices)
    offered = [option.attributes["value"] for option in viewed.page("sessions").named("option")]
    assert {*HAS} <= {*offered}


@pytest.mark.parametrize("path", ["sessions", "files", "usage"])
def test_many_projects_are_typed_and_not_chosen(tmp_path: Path, path: str) -> None:
    """A menu of thousands of projects would be most of the page."""
    home = tmp_path / "home"
    for number in range(120):
        folder = home / ".gemini" / "tmp" / f"project-{number:03}"
        root = f"/srv/project-{number:03}"
        put(folder / ".project_root", root.encode())
        session_id = f"{number:08x}-1111-4222-8333-444455556666"
        file = folder / "chats" / f"session-2026-11-15T19-30-{session_id[:8]}.jsonl"
        put(
            file,
            log(
                header(session_id, projectHash=sha256(root.encode()).hexdigest()),
                user(f"u{number}", "ask"),
                gemini(f"g{number}", tokens=tokens(1)),
            ),
        )
    with viewing(tmp_path, [home]) as viewed:
        page = viewed.page(path, project="project-007")
        boxes = [*page.named("select"), *page.named("input")]
        (box,) = [box for box in boxes if box.attributes.get("name") == "project"]
        assert box.attributes["value"] == "project-007"
        assert len(viewed.get(path)) < 60_000


def test_rows_draw_their_model_calls(viewed: Viewed) -> None:
    page = viewed.page("sessions")
    strips = [tag for tag in page.named("svg") if tag.attributes.get("class") == "strip"]
    rows = viewed.library.sessions().rows
    calls = viewed.library.newest_calls([row.id for row in rows])
    assert len(strips) == sum(bool(calls.get(row.id)) for row in rows) > 15
    for row in rows:
        assert len(calls.get(row.id, ())) == min(row.usage.calls, 11)


def test_the_newest_calls_are_those_at_the_end(viewed: Viewed) -> None:
    """Of a session with subagents: by time, whichever of them made the call."""
    session = viewed.library.session("e92f6bc2")
    assert session.usage.calls > session.own_usage.calls
    (drawn,) = viewed.library.newest_calls([session.id]).values()
    with viewed.library.snapshot() as snapshot:
        every = snapshot.database.execute(
            "SELECT tok_cached FROM model_calls JOIN sessions USING (session_id)"
            " WHERE root_session_id = ? AND owner_session_id IS NULL ORDER BY at_us, session_id, message_id",
            (session.id,),
        ).fetchall()
    assert [call.cached for call in drawn] == [cached for (cached,) in every[-11:]]


def test_the_page_of_a_project_has_its_name_path_and_sky(viewed: Viewed) -> None:
    path = "/home/mara/src/skywatch"
    page = viewed.page("sessions", project=path)
    assert "skywatch" in page.text
    assert path in page.text
    assert len([tag for tag in page.named("figure") if tag.attributes.get("class") == "sky"]) == 1
    days = [target for target in links(page) if "on=" in target]
    assert parse_qs(urlsplit(days[0]).query)["project"] == [path]
    assert viewed.json(f"api/{days[0]}")["total"] > 0
    assert not viewed.page("sessions?project=skywatch&limit=3&after=3").named("figure")
    assert not viewed.page("sessions").named("figure")


def test_the_sky_of_a_project_has_the_tokens_and_the_cost_of_its_usage(viewed: Viewed) -> None:
    for name in ("skywatch", "tide-tables"):
        wanted = parse_filter(project=name, last="1y", now=NOW, zone=viewed.library.config.zone()[0])
        usage = viewed.library.usage_summary(UsageQuery(filter=wanted, by="day"))
        expected = [
            (row.key, row.billed.tokens.total, row.billed.cost_nanousd)
            for row in usage.periods
            if (row.key or "") > "2025-11-18"
        ]
        days = viewed.library.activity(name).days
        assert [(str(day.day), day.n_tokens, day.nanousd) for day in days] == expected
        assert len(expected) > 3


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_full_page_stays_within_the_budget(tmp_path: Path, *, is_busy: bool) -> None:
    """50 sessions of eleven calls or more, of a project that was used every day of a year, or on few days."""
    home = tmp_path / "home"
    for number in range(360 if is_busy else 60):
        day = NOW - timedelta(days=number, minutes=30)
        session_id = f"{number:08x}-1111-4222-8333-444455556666"
        began = {"timestamp": day.isoformat()}
        prompt = user("u", f"Question {number} about the tides, " * 2) | began
        records = [header(session_id, startTime=day.isoformat()), prompt]
        for call in range(12):
            counts = tokens(9000 + 977 * call) | {"cached": 4000 + 500 * call}
            records.append(gemini(f"g{number}-{call}", tokens=counts) | began)
        put(chats(home) / f"session-{day:%Y-%m-%dT%H-%M}-{session_id[:8]}.jsonl", log(*records))
    with viewing(tmp_path, [home]) as viewed:
        project = viewed.library.projects().rows[0].project.key
        text = viewed.get("sessions", project=project)
        page = Page(text)
        assert len([tag for tag in page.named("svg") if tag.attributes.get("class") == "strip"]) == 50
        assert len(text.encode()) <= 60_000
        assert len(page.tags) <= 1_500
        weeks = [target for target in links(page) if "since=" in target]
        assert len(weeks) == (52 if is_busy else 0)
        shown = viewed.json(f"api/{weeks[1]}")["total"] if weeks else 7
        assert shown == 7
