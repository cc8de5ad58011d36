"""A long session is shown in windows: any message has an address, and a page renders one window."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from tests.builders import SESSION
from tests.exports.reader import Page
from tests.web.homes import long_home
from tests.web.viewing import Viewed, links, viewing

from pollux.library.values import SessionRow
from pollux.library.windows import MOST_WINDOWS, SIZE, OpenConversation, Window, cut_windows
from pollux.web.open_sessions import OpenSessions, open_sessions
from pollux.web.pages.session import WHOLE, nearest

N_TURNS = 300
SHORT = SESSION[:8]


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    folder = tmp_path_factory.mktemp("long")
    with viewing(folder, [long_home(folder / "home", N_TURNS)]) as made:
        yield made


def numbers(page: Page) -> list[int]:
    """Return the numbers of the messages that have an article on a page."""
    ids = [tag.attributes.get("id") or "" for tag in page.named("article")]
    return [int(id_[1:]) for id_ in ids if re.fullmatch(r"m\d+", id_)]


def parts(page: Page) -> list[tuple[int, int, bool]]:
    """Return first and last message of each part of a page, and whether it is loaded."""
    found = []
    for tag in page.named("section"):
        if "data-from" in tag.attributes:
            is_loaded = "wait" not in (tag.attributes["class"] or "")
            found.append((int(tag.attributes["data-from"] or 0), int(tag.attributes["data-to"] or 0), is_loaded))
    return found


def test_page_has_one_window_and_a_link_for_each_other(viewed: Viewed) -> None:
    found = viewed.page(f"s/{SESSION}")
    shown = parts(found)
    total = viewed.json(f"api/sessions/{SESSION}")["total"]
    assert total == 4 * N_TURNS + 2 > WHOLE
    assert [is_loaded for *_, is_loaded in shown] == [True] + [False] * (len(shown) - 1)
    assert shown[0][0] == 1
    assert shown[-1][1] == total
    for (_, last, _), (first, *_) in pairwise(shown):
        assert first == last + 1
    assert f"s/{SHORT}/{shown[1][0]}#m{shown[1][0]}" in links(found)


@pytest.mark.parametrize("number", [1, 2, 41, 43, 45, 600, 1201, 1202])
def test_any_message_has_an_address(viewed: Viewed, number: int) -> None:
    """A message without an article, such as a tool's response, leads to the nearest one before it."""
    found = viewed.page(f"s/{SESSION}/{number}")
    ((first, last, _),) = [part for part in parts(found) if part[2]]
    assert first <= number <= last
    ids = [tag.attributes.get("id") for tag in found.tags]
    assert ids.count(f"m{number}") == 1
    thread = next(tag for tag in found.named("div") if tag.attributes.get("class") == "thread")
    assert thread.attributes["data-target"] == f"m{nearest(numbers(found), number)}"


def test_dropped_message_is_shown_in_an_open_branch(viewed: Viewed) -> None:
    whole = viewed.json(f"api/sessions/{SESSION}")
    number = next(n for n, message in enumerate(whole["timeline"], 1) if message["id"] == "dropped")
    (branch,) = viewed.page(f"s/{SESSION}/{number}").named("details", class_="branch rewound")
    assert "open" in branch.attributes
    (branch,) = viewed.page(f"s/{SESSION}").named("details", class_="branch rewound")
    assert "open" not in branch.attributes


def test_parts_together_are_the_whole_session(viewed: Viewed) -> None:
    shown = parts(viewed.page(f"s/{SESSION}"))
    whole = viewed.page(f"s/{SESSION}", all=1)
    assert parts(whole) == [(1, 4 * N_TURNS + 2, True)]
    found: list[int] = []
    ids: list[str | None] = []
    prompts: list[str] = []
    for first, last, _ in shown:
        text = viewed.get(f"s/{SESSION}/part", **{"from": first, "to": last})
        part = Page(text)
        found += numbers(part)
        ids += [tag.attributes["id"] for tag in part.tags if "id" in tag.attributes]
        prompts += re.findall(r"<h2 class=\"unseen\">(Prompt \d+)</h2>", text)
    assert found == numbers(whole)
    assert len(ids) == len({*ids})
    assert prompts == [f"Prompt {number}" for number in range(1, N_TURNS + 2)]


def test_page_stays_within_its_budget(viewed: Viewed) -> None:
    viewed.get(f"s/{SESSION}/1")  # the first page creates the open sessions, which this test replaces
    viewed.app.state.open_sessions.close()
    sessions = OpenSessions(viewed.library)
    viewed.app.state.open_sessions = sessions
    text = viewed.get(f"s/{SESSION}/600")
    assert len(text.encode()) <= 150_000
    assert len(Page(text).tags) <= 6_000
    assert sessions.n_rendered <= 120
    assert sessions.n_opened == 1
    rendered = sessions.n_rendered
    assert viewed.get(f"s/{SESSION}/600") == text
    assert (sessions.n_rendered, sessions.n_opened) == (rendered, 1)


def test_outline_lists_a_part_of_the_prompts(viewed: Viewed) -> None:
    found = viewed.page(f"s/{SESSION}")
    listed = [target for target in links(found) if "#m" in target and target.startswith(f"s/{SHORT}/")]
    assert "Later prompts" in found.text
    assert len(listed) < 2_000
    assert "Earlier prompts" in viewed.page(f"s/{SESSION}/1200").text
    items = Page(viewed.get(f"s/{SESSION}/outline", **{"from": 200, "to": 260}))
    assert len(items.named("li")) == 60


def test_part_of_a_session_that_has_changed_is_refused(viewed: Viewed) -> None:
    assert "load it again" in viewed.get(f"s/{SESSION}/part", 422, **{"from": 2, "to": 3})
    assert viewed.answer(f"s/{SESSION}/part", **{"from": 99999}).status_code == 422


@pytest.mark.parametrize("number", ["0", "1203", "99999999999999999999", "x", "-1"])
def test_message_that_does_not_exist_is_not_found(viewed: Viewed, number: str) -> None:
    assert "has no message" in viewed.get(f"s/{SESSION}/{number}", 404)


def test_find_covers_the_whole_session(viewed: Viewed) -> None:
    found = viewed.json(f"api/sessions/{SESSION}/find", q="NEEDLE299")
    assert found["at"] == [4 * N_TURNS + 2]
    assert viewed.json(f"api/sessions/{SESSION}/find", q="number")["at"][:3] == [1, 4, 5]
    assert viewed.json(f"api/sessions/{SESSION}/find", q="text of the file")["at"][:2] == [2, 6]
    assert viewed.json(f"api/sessions/{SESSION}/find", q="toolCalls")["at"] == []
    page = viewed.page(f"s/{SESSION}/find", q="needle299")
    assert f"s/{SESSION}/{4 * N_TURNS + 2}#m{4 * N_TURNS + 2}" in links(page)


def test_found_messages_are_links_with_the_words_around_them(viewed: Viewed) -> None:
    text = viewed.get(f"s/{SESSION}/find", q="NUMBER 299")
    assert "prompt <mark>number 299</mark></p></a>" in text
    assert len(Page(text).named("a", class_="snip")) == 1


def test_found_messages_are_listed_in_pages(viewed: Viewed) -> None:
    found = viewed.json(f"api/sessions/{SESSION}/find", q="number")["at"]
    targets: list[str] = []
    after = 0
    while after < len(found):
        page = viewed.page(f"s/{SESSION}/find", q="number", after=after)
        assert f"of {len(found):,}" in page.text
        targets += [target for target in links(page) if re.search(r"#m\d", target)]
        assert len(targets) > after
        after = len(targets)
    assert targets == [f"s/{SESSION}/{number}#m{number}" for number in found]
    assert not page.named("a", rel="next")


def test_windows_begin_at_prompts_and_are_never_too_many() -> None:
    assert cut_windows([]) == ()
    assert cut_windows([0] * 50) == (Window(0, 50),)
    turns = [2, 0, 0, 0] * 1000
    windows = cut_windows(turns)
    assert all(turns[window.start] == 2 for window in windows)
    assert all(SIZE * 2 // 5 <= window.stop - window.start <= SIZE * 6 // 5 for window in windows[:-1])
    assert cut_windows([0] * 1000)[1].start == SIZE * 6 // 5
    dropped = [1, 0] * 500
    assert all(dropped[window.start] == 1 for window in cut_windows(dropped))
    assert len(cut_windows([0] * 200_000)) <= MOST_WINDOWS
    assert windows[-1].stop == len(turns)


def test_nearest_message_is_before_else_first() -> None:
    assert nearest([3, 5, 9], 8) == 5
    assert nearest([3, 5, 9], 1) == 3
    assert nearest([], 1) == 0


def test_sessions_read_longest_ago_are_closed(viewed: Viewed) -> None:
    sessions = OpenSessions(viewed.library, most_messages=1)
    row = viewed.library.session(SESSION)
    with sessions.reading(row) as first:
        pass
    with sessions.reading(row) as second:
        assert second is first
    sessions.close()


def test_changed_session_is_closed_before_it_is_opened_again(viewed: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both would need twice the memory; a reader that has waited for the closed one reads the new one."""
    sessions = OpenSessions(viewed.library)
    row = viewed.library.session(SESSION)
    with sessions.reading(row) as before:
        pass
    changed = msgspec.structs.replace(row, title="another title")
    open_it = viewed.library.conversation

    def conversation(row: SessionRow) -> OpenConversation:
        assert before.is_closed
        return open_it(row)

    monkeypatch.setattr(viewed.library, "conversation", conversation)
    with sessions.reading(changed) as after:
        assert after is not before
        assert after.message(1).text
    after.close()  # as by another thread, just before this one has the lock
    monkeypatch.setattr(viewed.library, "conversation", open_it)
    with sessions.reading(changed) as again:
        assert again is not after
        assert again.message(1).text
    sessions.close()


def test_open_sessions_belong_to_the_server(viewed: Viewed) -> None:
    viewed.get(f"s/{SESSION}")
    assert isinstance(viewed.app.state.open_sessions, OpenSessions)
    assert callable(open_sessions)
