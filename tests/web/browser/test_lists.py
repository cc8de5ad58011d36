"""Lists in a browser: orders, search while typing, and lists that follow what a client writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import NAME, Wire, chats, gemini, header, line, log, put, tokens, user
from tests.web.browser.driving import Browser, BrowserTab
from tests.web.browser.serving import Served, serving

ANOTHER = "0badcafe-0000-4000-8000-000000000000"
TITLES = ".sessions .t"
FRESH = "document.querySelector('main').dataset.mark"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder with a home of thirty sessions."""
    for number in range(30):
        session = f"{number:08x}-0000-4000-8000-000000000000"
        records = (
            user("u1", f"question {number} about sunflowers", second=number),
            gemini("g1", "an answer", second=number, tokens=tokens(100 + number)),
        )
        put(chats(tmp_path) / f"session-2026-11-15T19-30-{number:08x}.jsonl", log(header(session), *records))
    return tmp_path


@pytest.fixture
def growing(browser: Browser, tmp_path_factory: pytest.TempPathFactory, home: Path) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served") / "growing", home) as served:
        assert browser is not None
        yield served


@pytest.fixture
def live(browser: Browser, growing: Served) -> Iterator[BrowserTab]:
    with growing.tab(browser) as tab:
        yield tab
        tab.check_quiet()


def begin(home: Path, words: str) -> None:
    """Write a new session, as Gemini CLI does."""
    records: tuple[Wire, ...] = (user("u1", words, second=900), gemini("g1", "yes", second=901, tokens=tokens(7)))
    put(chats(home) / f"{NAME}.jsonl", log(header(ANOTHER), *records))


def add(home: Path, *records: Wire) -> None:
    with (chats(home) / f"{NAME}.jsonl").open("ab") as file:
        for record in records:
            file.write(line(record) + b"\n")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "document.querySelector('h1').textContent.includes('31 sessions')"),
        ("sessions", "document.querySelector('.sessions .t').textContent === 'a new question'"),
        ("sessions?sort=tokens", "document.querySelector('.order span').textContent === '31 sessions'"),
        ("projects", "document.querySelector('main tbody').textContent.includes('31')"),
        ("usage?last=all", "document.querySelector('.src').textContent.includes('31 calls')"),
    ],
)
def test_a_list_follows_a_new_session(live: BrowserTab, home: Path, path: str, words: str) -> None:
    live.go(path)
    assert not live.tell(words)
    begin(home, "a new question")
    live.wait(words)
    assert not live.tell("performance.getEntriesByType('navigation')[0].type === 'reload'")


def test_a_change_before_the_stream_is_not_lost(browser: Browser, growing: Served, home: Path) -> None:
    """The page is old when its stream begins: the mark in it says what it shows."""
    with growing.tab(browser) as tab:
        tab.go("sessions")
        mark = tab.tell(FRESH)
        begin(home, "a new question")
        tab.wait(f"{FRESH} !== '{mark}'")
        tab.tell("document.querySelector('.order span').textContent = 'old'")
        tab.tell(
            f"fetch(document.documentElement.dataset.root + 'events?mark={mark}').then(async (answer) => {{"
            " const reader = answer.body.getReader(); let text = '';"
            " while (!text.includes('sessions')) text += new TextDecoder().decode((await reader.read()).value);"
            " reader.cancel(); window.heard = text; })"
        )
        assert ANOTHER in tab.wait("window.heard")


def test_place_focus_and_selection_stay(live: BrowserTab, home: Path) -> None:
    live.go("sessions")
    live.press("j", "j", "j")
    live.tell("scrollTo(0, 400)")
    focused = live.tell("document.activeElement.getAttribute('href')")
    assert "/s/" in focused
    mark = live.tell(FRESH)
    begin(home, "a new question")
    live.wait(f"{FRESH} !== '{mark}'")
    assert live.tell("document.activeElement.getAttribute('href')") == focused
    assert live.tell("scrollY") == 400
    # A selection is not torn apart: the list waits until it is gone.
    live.tell("getSelection().selectAllChildren(document.querySelector('.sessions .t'))")
    mark = live.tell(FRESH)
    add(home, user("u2", "and one more", second=902))
    live.pause(2500)
    assert live.tell(FRESH) == mark
    live.tell("getSelection().removeAllRanges()")
    live.wait(f"{FRESH} !== '{mark}'")


def test_a_filter_that_is_typed_is_kept(live: BrowserTab, home: Path) -> None:
    live.go("sessions")
    live.fill("form.filters [name=model]", "gem")
    mark = live.tell(FRESH)
    begin(home, "a new question")
    live.pause(2500)
    assert live.tell(FRESH) == mark
    assert live.tell("document.querySelector('form.filters [name=model]').value") == "gem"


def test_an_open_fold_stays_open(live: BrowserTab, home: Path) -> None:
    live.go("usage?last=all")
    live.click(".asrows summary")
    assert live.tell("document.querySelector('.asrows').open")
    mark = live.tell(FRESH)
    begin(home, "a new question")
    live.wait(f"{FRESH} !== '{mark}'")
    assert live.tell("document.querySelector('.asrows').open")


def test_a_hidden_tab_has_no_stream_and_catches_up(live: BrowserTab, home: Path) -> None:
    hide = "Object.defineProperty(document, 'hidden', {{ value: {}, configurable: true }});"
    hide += "document.dispatchEvent(new Event('visibilitychange'))"
    live.go("sessions")
    mark = live.tell(FRESH)
    live.tell(hide.format("true"))
    begin(home, "a new question")
    live.pause(2000)
    assert live.tell(FRESH) == mark
    live.tell(hide.format("false"))
    live.wait(f"{FRESH} !== '{mark}'")
    assert live.texts(TITLES)[0] == "a new question"


def test_orders_are_links_without_script(browser: Browser, served: Served) -> None:
    with served.tab(browser, script=False) as tab:
        tab.go("sessions?project=skywatch")
        newest = tab.texts(TITLES)
        assert tab.follow("nav[aria-label=Order] a >> text=Cost") == "sessions?project=skywatch&sort=cost"
        dearest = tab.texts(TITLES)
        assert newest != dearest
        assert sorted(newest) == sorted(dearest)
        tab.check_quiet()


def test_results_come_while_typing_and_back_returns(tab: BrowserTab) -> None:
    tab.go("search?q=tide&sort=newest")
    before = tab.texts(".hit .t")
    assert before
    tab.press("/")
    for key in "alert":
        tab.press(key if key != "a" else "a")
    tab.wait("document.querySelector('.hit mark')?.textContent.toLowerCase().startsWith('alert')")
    assert tab.tell("document.activeElement.id") == "q"
    assert tab.address == "search?q=alert&sort=newest&typing=1"
    assert tab.tell("document.title").startswith("alert")
    assert "session" in tab.texts("#said")[0]
    tab.tell("history.back()")
    tab.wait("document.getElementById('q').value === 'tide'")
    tab.wait("document.title.startsWith('tide')")
    assert tab.texts(".hit .t") == before
    assert tab.address == "search?q=tide&sort=newest"


def test_typing_sends_one_request_for_the_last_word(tab: BrowserTab) -> None:
    tab.go("search")
    tab.press("/", "w", "e", "a", "t", "h", "e", "r")
    tab.wait("document.querySelector('.hit')")
    asked = [address for address in tab.seen.requests if "typing=1" in address]
    assert "q=weather" in asked[-1]
    assert len(asked) < 7
    tab.press("Enter")
    tab.wait("!location.search.includes('typing') && document.readyState === 'complete'")
    assert tab.address == "search?q=weather"


def test_an_unfinished_query_is_explained_and_nothing_fails(tab: BrowserTab) -> None:
    tab.go("search")
    tab.press("/", "(", "a", " ", "O", "R")
    tab.wait("location.search.includes('typing') && document.title.startsWith('(a OR')")
    assert tab.count("h1") == 1


def test_narrowing_is_a_fold_on_a_phone_and_open_beside_the_hits(browser: Browser, served: Served) -> None:
    with served.tab(browser, width=390, height=800) as tab:
        tab.go("search?q=alerts")
        link = "document.querySelector('.facet a')"
        assert not tab.tell(f"{link}.checkVisibility({{ contentVisibilityAuto: true }})")
        tab.click(".narrow summary")
        assert tab.tell(f"{link}.getBoundingClientRect().height") > 0
    with served.tab(browser, width=1280, height=800) as tab:
        tab.go("search?q=alerts")
        assert tab.tell(f"{link}.getBoundingClientRect().height") > 0
        assert not tab.tell("document.querySelector('.narrow summary').checkVisibility()")
        assert tab.faults() == []


def test_pages_of_a_list_have_keys(tab: BrowserTab) -> None:
    tab.go("sessions?limit=5")
    tab.press("]")
    tab.wait("location.search.includes('after=5') && document.readyState === 'complete'")
    tab.press("]")
    tab.wait("location.search.includes('after=10') && document.readyState === 'complete'")
    tab.press("[")
    tab.wait("location.search.includes('after=5') && document.readyState === 'complete'")
    tab.press("j", "j")
    tab.press("Enter")
    tab.wait("location.pathname.includes('/s/')")


def test_a_session_has_the_times_of_the_lists(browser: Browser, tmp_path: Path) -> None:
    """They are in the zone of the server, wherever the browser is."""
    with serving(tmp_path / "tokyo", TZ="Asia/Tokyo") as served, served.tab(browser) as tab:
        tab.go("search?q=id:602c50c2")
        listed = tab.texts(".hit time")[0]
        assert listed == "Wed 4 Nov 2026, 17:00"
        tab.go("s/602c50c2")
        tab.wait("document.readyState === 'complete'")
        assert "17:00" in tab.text
        assert "08:00" not in tab.text
        assert "Times in Asia/Tokyo" in tab.text
        tab.check_quiet()
