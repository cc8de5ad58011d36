"""The budget of the viewer as counts: bytes, requests and elements of every page, in a browser."""

from __future__ import annotations

import pytest
from tests.web.browser.driving import BrowserTab
from tests.web.browser.serving import Served

from pollux.web.static_names import PALETTE, asset_content, asset_names

MOST_STYLE = 30_000
MOST_SCRIPT = 25_000
MOST_BYTES = 60_000
MOST_ELEMENTS = 1_500
MOST_REQUESTS = 4
MOST_SESSION_BYTES = 150_000
MOST_SESSION_REQUESTS = 6
PAGES = ("", "sessions", "search?q=alerts", "usage", "projects", "files", "health")
WEIGHTS = (
    "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
    ".map((entry) => [new URL(entry.name).pathname, entry.decodedBodySize])"
)


def size_of(suffix: str) -> int:
    """Return the bytes of the files as served, without the colours that few sessions need."""
    return sum(len(asset_content(name)) for name in asset_names() if name.endswith(suffix) and name != PALETTE)


def test_styles_and_scripts_are_small() -> None:
    assert size_of(".css") <= MOST_STYLE
    assert size_of(".js") <= MOST_SCRIPT


def requests_of(tab: BrowserTab) -> list[str]:
    """Return what a page asked for; the browser asks for its icon once in a while, and a stream ends with the tab."""
    return [address for address in tab.seen.requests if "/icon." not in address and "/events" not in address]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_light(tab: BrowserTab, served: Served, path: str) -> None:
    tab.go(path)
    assert len(requests_of(tab)) <= MOST_REQUESTS
    assert tab.count("*") <= MOST_ELEMENTS
    _, body = served.get(path)
    assert len(body) <= MOST_BYTES


@pytest.mark.parametrize("path", ["s/602c50c2", "s/602c50c2/12?detail=full"])
def test_a_session_is_light(tab: BrowserTab, served: Served, path: str) -> None:
    tab.go(path)
    assert len(requests_of(tab)) <= MOST_SESSION_REQUESTS
    _, body = served.get(path)
    assert len(body) <= MOST_SESSION_BYTES


def test_styles_and_scripts_are_loaded_once(tab: BrowserTab) -> None:
    """They have names that change with their content, so a browser keeps them for ever."""
    tab.go("sessions")
    tab.follow("nav[aria-label=Main] a >> text=Usage")
    weights = dict(tab.tell(WEIGHTS))
    transferred = tab.tell("performance.getEntriesByType('resource').map((entry) => entry.transferSize)")
    assert len(weights) >= 3
    assert set(transferred) == {0}
