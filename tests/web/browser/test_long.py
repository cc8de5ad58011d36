"""Read a session of 50,002 messages in a browser: a few windows are loaded at a time, and the text never jumps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.builders import SESSION
from tests.web.browser.driving import Browser, BrowserTab
from tests.web.browser.serving import Served, serving
from tests.web.homes import long_home

N_TURNS = 12_500
N_MESSAGES = 4 * N_TURNS + 2
MIDDLE = 25_003
"""The prompt of turn 6,250; two messages before it were rewound."""
SHORT = SESSION[:8]
MOST_ELEMENTS = 6_000
MOST_BYTES = 150_000
MOST_MEMORY = 150_000_000
N_ELEMENTS = "document.querySelectorAll('*').length"
NUMBERS = "[...document.querySelectorAll('.thread article.msg[id^=m]')].map((message) => Number(message.id.slice(1)))"
IS_LOADED = (
    "[...document.querySelectorAll('.part.wait')].every((part) => { const box = part.getBoundingClientRect(); "
    "return box.bottom < 0 || box.top > innerHeight; })"
)
"""Whether no placeholder is in sight."""
FIRST = (
    "(() => { const message = [...document.querySelectorAll('.thread article.msg')]"
    ".find((candidate) => candidate.getBoundingClientRect().top >= 150); "
    "return message && [message.id, message.getBoundingClientRect().top]; })()"
)
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    assert browser is not None
    folder = tmp_path_factory.mktemp("long")
    with serving(folder / "served", long_home(folder / "sessions", N_TURNS)) as served:
        yield served


def top_of(tab: BrowserTab, message: str) -> float:
    return float(tab.tell(f"document.getElementById('{message}').getBoundingClientRect().top"))


@pytest.fixture(scope="module", autouse=True)
def peak_of_opening(served: Served) -> int:
    """Open the session before any test does, and return the most memory that the viewer had meanwhile."""
    clear = Path(f"/proc/{served.process.pid}/clear_refs")
    if not clear.exists():
        return 0  # only Linux counts it
    clear.write_text("5", "ascii")
    assert served.get(f"s/{SHORT}")[0] == 200
    return memory(served, "VmHWM")


def memory(served: Served, name: str) -> int:
    """Return a number of bytes from the status of the viewer's process."""
    status = Path(f"/proc/{served.process.pid}/status").read_text("ascii")
    match = re.search(rf"{name}:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) * 1024


def test_opening_the_session_needs_little_memory(peak_of_opening: int) -> None:
    assert peak_of_opening <= MOST_MEMORY


def test_the_page_opens_with_one_window(tab: BrowserTab, served: Served) -> None:
    assert tab.go(f"s/{SHORT}") == 200
    tab.wait(IS_LOADED)
    assert tab.tell("document.querySelector('.thread').dataset.total") == str(N_MESSAGES)
    assert tab.tell(N_ELEMENTS) <= MOST_ELEMENTS
    assert max(tab.tell(NUMBERS)) < 1_000
    _, body = served.get(f"s/{SHORT}")
    assert len(body) <= MOST_BYTES


def test_windows_load_while_scrolling_down(tab: BrowserTab) -> None:
    tab.go(f"s/{SHORT}")
    seen: set[int] = set()
    most = 0
    for _ in range(40):
        tab.wheel(3_000)
        tab.tell(SETTLED)
        tab.wait(IS_LOADED)
        seen |= {*tab.tell(NUMBERS)}
        most = max(most, tab.tell(N_ELEMENTS))
    assert most <= MOST_ELEMENTS
    assert max(seen) > 500
    shown = [number for number in range(1, max(seen)) if number not in seen]
    # Only the responses of tools have no article of their own.
    assert {(number if number < 44 else number - 2) % 4 for number in shown} <= {3}
    assert 1 not in tab.tell(NUMBERS)


def test_text_stays_put_while_windows_load_above(tab: BrowserTab) -> None:
    tab.go(f"s/{SHORT}/{MIDDLE}")
    tab.wait(f"document.getElementById('m{MIDDLE}')")
    tab.wait(IS_LOADED)
    tab.pause(300)
    loaded: set[int] = set()
    jumps: list[float] = []
    for _ in range(60):
        message, before = tab.tell(FIRST)
        offset = tab.tell("scrollY")
        tab.wheel(-400)
        tab.wait(f"scrollY !== {offset}")
        tab.tell(SETTLED)
        tab.wait(IS_LOADED)
        if tab.count(f"#{message}"):
            jumps.append(top_of(tab, message) - before - 400)
        loaded |= {*tab.tell(NUMBERS)}
    assert min(loaded) < MIDDLE - 100
    assert [by for by in jumps if abs(by) > 2] == []
    assert len(jumps) > 50
    assert tab.tell(N_ELEMENTS) <= MOST_ELEMENTS


@pytest.mark.parametrize("number", [2, MIDDLE, MIDDLE + 2, N_MESSAGES])
def test_a_link_leads_to_any_message(tab: BrowserTab, served: Served, number: int) -> None:
    """The response of a tool has no article: its link leads to the message before it."""
    path = f"s/{SHORT}/{number}"
    tab.go(f"{path}#m{number}")
    tab.wait(f"document.getElementById('m{number}')")
    tab.wait(IS_LOADED)
    tab.pause(500)  # windows above it load, and must not push it away
    assert -20 <= top_of(tab, f"m{number}") < 900
    assert tab.tell(N_ELEMENTS) <= MOST_ELEMENTS
    _, body = served.get(path)
    assert len(body) <= MOST_BYTES


def test_find_covers_the_whole_session(tab: BrowserTab) -> None:
    tab.go(f"s/{SHORT}")
    tab.fill("#w", "needle12345")
    tab.wait("document.getElementById('hits').textContent === '1 of 1'")
    tab.wait("CSS.highlights.get('now')?.size")
    number = tab.tell("[...CSS.highlights.get('now')][0].startContainer.parentElement.closest('.msg').id")
    assert number == f"m{4 * 12_345 + 4 + 2}"
    tab.pause(300)
    assert 0 <= top_of(tab, number) < 900
    tab.fill("#w", "needle124")
    tab.wait("document.getElementById('hits').textContent === '1 of 111'")  # 124, 1240-1249 and 12400-12499
    for hit in (2, 3):
        tab.press("Enter")
        tab.wait(f"document.getElementById('hits').textContent === '{hit} of 111'")
    tab.press("Shift+Enter")
    tab.wait("document.getElementById('hits').textContent === '2 of 111'")
    tab.fill("#w", "needle")
    tab.wait("/^1 of [0-9,]+\\+?$/.test(document.getElementById('hits').textContent)")
    total = tab.texts("#hits")[0].rpartition(" ")[2]
    assert re.fullmatch(r"5,000\+|12,500", total)
    assert tab.tell(N_ELEMENTS) <= MOST_ELEMENTS


def test_folds_are_remembered_when_a_window_is_emptied(tab: BrowserTab) -> None:
    tab.go(f"s/{SHORT}")
    state = "document.querySelector('.branch.rewound')?.open"
    assert tab.tell(state) is False
    tab.click(".branch.rewound > summary")
    assert tab.tell(state)
    tab.tell("document.activeElement.blur()")  # a window with the focus stays
    tab.tell("scrollTo(0, 60000)")
    tab.wait("!document.querySelector('.branch.rewound')")
    tab.tell("scrollTo(0, 0)")
    tab.wait("document.querySelector('.branch.rewound')")
    assert tab.tell(state)


def test_back_returns_to_the_message(tab: BrowserTab) -> None:
    tab.go(f"s/{SHORT}/{MIDDLE}#m{MIDDLE}")
    tab.wait(IS_LOADED)
    for _ in range(5):
        tab.wheel(600)
        tab.tell(SETTLED)
    tab.wait(IS_LOADED)
    tab.pause(300)
    message, before = tab.tell(FIRST)
    tab.follow("nav[aria-label=Main] a >> text=Health")
    tab.tell("history.back()")
    tab.wait(f"document.getElementById('{message}') && document.readyState === 'complete'")
    tab.wait(IS_LOADED)
    tab.pause(500)
    assert abs(top_of(tab, message) - before) < 900


def test_windows_have_links_without_a_script(browser: Browser, served: Served) -> None:
    with served.tab(browser, script=False) as tab:
        tab.go(f"s/{SHORT}/{MIDDLE}")
        first = min(tab.tell(NUMBERS))
        assert tab.follow(".part:not(.wait) + .part.wait a").startswith(f"s/{SHORT}/")
        assert min(tab.tell(NUMBERS)) > first
        assert tab.tell(N_ELEMENTS) <= MOST_ELEMENTS


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read in /proc")
def test_the_server_needs_little_memory(served: Served) -> None:
    """After opening the session at many places, and finding in all of it."""
    for number in range(1, N_MESSAGES, 2_500):
        assert served.get(f"s/{SHORT}/{number}")[0] == 200
    for words in ("needle12345", "number", "ü"):
        assert served.get(f"s/{SHORT}/find?q={quote(words)}")[0] == 200
    assert memory(served, "VmRSS") <= MOST_MEMORY
