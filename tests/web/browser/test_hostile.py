"""Hostile session text does nothing in a browser. Security tests 11, 12 and 15 of the viewer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import HASH, SESSION
from tests.web.browser.driving import Browser
from tests.web.browser.serving import Served, serving
from tests.web.homes import AGENT, hostile_home
from tests.web.hostile_home import ATTACHMENTS, write_hostile_home
from tests.web.hostile_home import SESSION as WITH_FILES

from pollux.web.app import PAGES

PATHS = (
    "",
    *("sessions", "sessions?all=1", "sessions?q=owned", "sessions?q=%3Cscript%3Eowned%3D1%3C%2Fscript%3E"),
    *("search?q=owned", "search?q=%22%3Cimg%20src%3Dx%20onerror%3Downed%3D1%3E%22", "search?q=owned&in=output"),
    *("search", "search?q=%3Cimg%20src%3Dx%20onerror%3Downed%3D1%3E%20nothing", f"projects/{HASH[:8]}"),
    *(
        "usage",
        "usage?split=project",
        "usage?split=tool",
        "projects",
        "files",
        "files?path=%3Cscript%3E",
        "files?path=a.py",
        "health",
    ),
)
BELOW = ("", "?detail=full&branches=0", "/2", "/raw", "/raw/1", "/raw/2", "/export", "/tree", "/find?q=owned", "/calls")
TARGETS = (
    "[...document.querySelectorAll('[href], [src], [action]')].map((element) => "
    "element.getAttribute('href') ?? element.getAttribute('src') ?? element.getAttribute('action'))"
)
UNKNOWN = (
    "[...document.querySelectorAll('iframe, base, style, object, embed, math, template, animate, [autofocus]')]"
    ".map((element) => element.outerHTML.slice(0, 200))"
)


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    assert browser is not None
    folder = tmp_path_factory.mktemp("hostile")
    home = write_hostile_home(hostile_home(folder / "sessions"))
    with serving(folder / "served", home) as served:
        yield served


def check_harmless(browser: Browser, served: Served, path: str, *, script: bool) -> None:
    with served.tab(browser, script=script) as tab:
        tab.go(path)
        if script:
            tab.press("e", "J", "j", "K")
        tab.tell("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
        tab.pause(50)
        assert tab.tell("typeof owned") == "undefined"
        assert tab.tell(UNKNOWN) == []
        starts = (served.root, "#", "http://", "https://", "mailto:", "data:image/png;base64,")
        assert [target for target in tab.tell(TARGETS) if not target.startswith(starts)] == []
        assert tab.tell("document.documentElement.scrollWidth - innerWidth") <= 0
        assert tab.count("main") == 1
        assert tab.count("footer.foot") == 1
        tab.check_quiet()


@pytest.mark.parametrize("path", PATHS)
def test_a_hostile_list_is_text(browser: Browser, served: Served, path: str) -> None:
    check_harmless(browser, served, path, script=True)
    check_harmless(browser, served, path, script=False)


def test_every_page_is_tried() -> None:
    """A new page must be added to `PATHS` or `BELOW`, unless it is for programs, for scripts or a download."""
    others = {
        *("/static/{name}", "/events", "/s/{session}/events", "/s/{session}/part", "/s/{session}/outline"),
        *("/s/{session}/file/{file}", "/s/{session}/id/{message}"),
    }
    tried = {"/" + path.partition("?")[0].replace(HASH[:8], "{hash}") for path in PATHS}
    tried |= {"/s/{session}" + re.sub(r"/\d+", "/{number}", below.partition("?")[0]) for below in BELOW}
    routes = {route.path.replace(":str", "") for table in PAGES for route in table}
    assert {route for route in routes if not route.startswith("/api/")} - others <= tried


@pytest.mark.parametrize("session", [SESSION, AGENT, WITH_FILES])
@pytest.mark.parametrize("below", BELOW)
def test_a_hostile_session_is_text(browser: Browser, served: Served, session: str, below: str) -> None:
    check_harmless(browser, served, f"s/{session}{below}", script=True)


def test_hostile_words_are_shown_and_found(browser: Browser, served: Served) -> None:
    with served.tab(browser) as tab:
        tab.go(f"s/{SESSION}?find=%3Cscript%3E")
        tab.wait("/^1 of /.test(document.getElementById('hits').textContent)")
        assert "<script>window.owned=1</script>" in tab.text
        assert "[bold red]owned[/]" in tab.text
        tab.fill("#w", "</script><script>owned=1</script>")
        tab.wait("CSS.highlights.get('now')?.size ?? 0")
        tab.fill("#w", "\\u202e [x](javascript:owned=1) %00")
        tab.wait("document.getElementById('hits').textContent === 'not found'")
        assert tab.tell("typeof owned") == "undefined"
        tab.check_quiet()


def test_an_unknown_hostile_session_is_an_error_page(browser: Browser, served: Served) -> None:
    with served.tab(browser) as tab:
        assert tab.go("s/%3Cscript%3Eowned=1%3C%2Fscript%3E") == 404
        assert tab.tell("typeof owned") == "undefined"
        assert not [*tab.seen.errors, *tab.seen.dialogs, *tab.seen.foreign(served.origin)]


def test_attachments_are_downloads(browser: Browser, served: Served, tmp_path: Path) -> None:
    """Also those that are pages, drawings and documents, or pictures that are none."""
    with served.tab(browser) as tab:
        tab.go(f"s/{WITH_FILES}?detail=full")
        tab.press("e")
        n_files = tab.count("#main a[href*='/file/']")
        assert n_files == len(ATTACHMENTS) - 1  # what claims to be a picture is an `img`
        for number in range(n_files):
            path = tmp_path / str(number)
            name = tab.download(f"#main a[href*='/file/'] >> nth={number}", path)
            assert not {*name} & {*'<>/\\:\r\n"\u202e'}, name
            assert path.read_bytes() in ATTACHMENTS.values()
        assert tab.count("#main img[src$='/file/1.3']") == 1
        assert tab.tell("document.querySelector('#main img').naturalWidth") == 0
        assert tab.address.startswith(f"s/{WITH_FILES}")
        assert tab.tell("typeof owned") == "undefined"
        assert tab.seen.downloads == n_files
