"""Read the demo's sessions in a browser: pages, search, filters, folds, addresses, export, themes, narrow screens."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.web.browser.driving import Browser, BrowserTab
from tests.web.browser.serving import Served, serving
from tests.web.homes import wide_home

SESSION = "602c50c2"
"""A session of the demo with a rewound and a rolled back branch, a diff and a failed call."""
TITLE = "Find the cause of duplicate alerts"
PAGES = (
    "",
    "sessions",
    "sessions?has=error",
    "sessions?q=nothinglikethis",
    "search?q=alerts",
    "search?q=nothinglikethis",
    "search",
    "usage",
    "usage?last=30d",
    "projects",
    "files",
    "files?path=skywatch/alerts.py",
    "health",
    f"s/{SESSION}",
    f"s/{SESSION}?detail=full&branches=0",
    f"s/{SESSION}/12",
    f"s/{SESSION}/raw",
    f"s/{SESSION}/raw/3",
    f"s/{SESSION}/export",
    f"s/{SESSION}/tree",
    f"s/{SESSION}/calls",
    "s/e92f6bc2/tree",
)
LISTS = tuple(path for path in PAGES if not path.startswith("s/") or "/raw" in path)
ERRORS = {"nowhere": 404, "s/zzzzzzzz": 404, f"s/{SESSION}/999": 404, "sessions?since=never": 400}
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PAPER = "getComputedStyle(document.body).backgroundColor"
LUMINANCE = f"{PAPER}.match(/[0-9.]+/g).slice(0, 3).reduce((sum, value) => sum + Number(value), 0) / 3"
SAYING_TWO_HOURS = "Can we just make QUIET two hours?"


def test_from_the_overview_to_a_message(tab: BrowserTab) -> None:
    assert tab.go() == 200
    assert tab.texts("nav[aria-label=Main] a") == ["Overview", "Sessions", "Usage", "Projects", "Files", "Health"]
    assert tab.follow("nav[aria-label=Main] a >> text=Sessions") == "sessions"
    assert tab.texts("nav[aria-label=Main] [aria-current=page]") == ["Sessions"]
    assert tab.follow(f"ol.sessions a >> text={TITLE}").startswith(f"s/{SESSION}")
    assert tab.texts("h1") == [TITLE]
    assert tab.tell("document.title") == f"{TITLE} · Pollux"
    assert tab.follow("#m12 .at") == f"s/{SESSION}/12#m12"
    assert tab.tell("Math.abs(document.getElementById('m12').getBoundingClientRect().top) < innerHeight / 2")
    assert tab.tell("scrollY") > 0


@pytest.mark.parametrize("place", ["usage", "projects", "files", "health"])
def test_every_word_of_the_bar_leads_to_its_page(tab: BrowserTab, place: str) -> None:
    tab.go("sessions")
    assert tab.follow(f"nav[aria-label=Main] a >> text={place.capitalize()}") == place
    assert tab.count("h1") == 1
    assert tab.count("main#main") == 1
    assert tab.texts("[aria-current=page]") == [place.capitalize()]


def test_search_leads_to_the_message_with_the_words(tab: BrowserTab) -> None:
    tab.go()
    tab.press("/")
    assert tab.tell("document.activeElement.id") == "q"
    tab.fill("#q", "QUIET two hours")
    tab.press("Enter")
    tab.wait("location.pathname.endsWith('/search') && document.readyState === 'complete'")
    assert parse_qs(urlsplit(tab.address).query) == {"q": ["QUIET two hours"]}
    assert tab.tell("document.getElementById('q').value") == "QUIET two hours"
    marks = [words.lower() for words in tab.texts(".hit mark")]
    assert {"quiet", "two", "hours"} <= {*" ".join(marks).split()}
    path = tab.follow(f".snip:has-text('{SAYING_TWO_HOURS}')")
    number = path.rpartition("#")[2]
    assert path.startswith(f"s/{SESSION}")
    assert SAYING_TWO_HOURS in tab.texts(f"#{number}")[0]
    # The message belongs to a rewound branch, which is unfolded for it.
    assert tab.tell(f"document.getElementById('{number}').checkVisibility()")


def test_a_facet_narrows_a_search(tab: BrowserTab) -> None:
    tab.go("search?q=alerts")
    before = tab.count(".hit")
    tab.follow(".facet a >> text=prompt")
    assert "in=prompt" in tab.address
    assert 0 < tab.count(".hit") < before
    assert {*tab.texts(".hit .part")} == {"prompt"}


def test_filters_are_in_the_address(tab: BrowserTab) -> None:
    tab.go("sessions")
    everything = tab.count("ol.sessions > li")
    tab.choose("select[name=project]", "/home/mara/src/tide-tables")
    tab.follow("form.filters button[type=submit]")
    query = parse_qs(urlsplit(tab.address).query)
    assert query["project"] == ["/home/mara/src/tide-tables"]
    rows = tab.texts("ol.sessions > li")
    assert 0 < len(rows) < everything
    assert all("tide-tables" in row for row in rows)
    tab.go("sessions?has=error")
    assert 0 < tab.count("ol.sessions > li") < everything
    assert tab.tell("document.querySelector('select[name=has]').value") == "error"
    tab.go("sessions?q=nothinglikethis")
    assert tab.count("ol.sessions > li") == 0
    assert tab.count(".empty") == 1


def test_a_rewound_branch_unfolds_in_place(tab: BrowserTab) -> None:
    tab.go(f"s/{SESSION}")
    message = (
        f"[...document.querySelectorAll('.msg')].find((m) => m.textContent.includes({json.dumps(SAYING_TWO_HOURS)}))"
    )
    assert not tab.tell(f"{message}.checkVisibility()")
    tab.click("details.branch.rewound > summary")
    assert tab.tell(f"{message}.checkVisibility()")
    tab.click("details.branch.rewound > summary")
    assert not tab.tell(f"{message}.checkVisibility()")
    tab.press("e")
    assert tab.count("main details:not([open])") == 0
    tab.press("c")
    assert tab.count("main details[open]") == 0


@pytest.mark.parametrize("number", [1, 12, 13, 20])
def test_a_link_to_a_message_opens_there(tab: BrowserTab, number: int) -> None:
    assert tab.go(f"s/{SESSION}/{number}") == 200
    target = f"document.getElementById('m{number}')"
    tab.wait(f"{target} && document.readyState === 'complete'")
    assert tab.tell(f"{target}.checkVisibility() || {target}.localName === 'span'")
    top = tab.tell(f"{target}.getBoundingClientRect().top")
    assert 0 <= top < 900
    assert number == 1 or tab.tell("scrollY") > 0


def test_keys(tab: BrowserTab) -> None:
    tab.go("sessions")
    tab.press("j", "j")
    assert tab.tell("document.activeElement.closest('li') === document.querySelectorAll('ol.sessions > li')[1]")
    tab.press("k")
    tab.press("Enter")
    tab.wait("location.pathname.includes('/s/') && document.readyState === 'complete'")
    tab.press("j")
    assert tab.tell("document.activeElement.classList.contains('prompt')")
    tab.press("?")
    assert tab.tell("document.getElementById('keys').open")
    tab.press("Escape")
    tab.press("g", "u")
    tab.wait("location.pathname.endsWith('/usage') && document.readyState === 'complete'")
    tab.press("g", "o")
    tab.wait("document.title.startsWith('Overview') && document.readyState === 'complete'")


def test_keys_of_a_message(tab: BrowserTab) -> None:
    """`J` and `K` go from message to message, Enter opens and closes the folds of the one that has the focus."""
    here = "document.activeElement.id"
    tab.go(f"s/{SESSION}")
    tab.press("J")
    first = tab.tell(here)
    assert first == "m1"
    tab.press("J", "J")
    assert tab.tell(here) == "m3"
    tab.press("K")
    assert tab.tell(here) == "m2"
    tab.press("J")
    folds = "[...document.querySelectorAll('#m3 details')].map((fold) => fold.open)"
    assert set(tab.tell(folds)) == {False}
    tab.press("Enter")
    assert set(tab.tell(folds)) == {True}
    tab.press("Enter")
    assert set(tab.tell(folds)) == {False}
    tab.press("K", "Enter")  # a prompt without folds: those of the answer below it
    assert set(tab.tell(folds)) == {True}
    tab.press("y")
    tab.wait("navigator.clipboard.readText().then((words) => words.endsWith('/2#m2'))")
    tab.press("u")
    tab.wait("location.pathname.endsWith('/raw/2') && document.readyState === 'complete'")


def test_the_list_of_prompts_follows_the_text(tab: BrowserTab) -> None:
    """A prompt in a closed branch is nowhere on the page."""
    marked = "document.querySelector('#prompts [aria-current]').hash"
    tab.go(f"s/{SESSION}")
    tab.wait(f"{marked} === '#m2'")
    tab.tell("[...document.querySelectorAll('.prompt')].at(-1).scrollIntoView()")
    last = tab.tell("[...document.querySelectorAll('.prompt')].at(-1).id")
    tab.wait(f"{marked} === '#{last}'")
    tab.tell("document.querySelector('.notice.error').scrollIntoView()")
    tab.wait(f"{marked} === '#m2'")


def test_find_marks_words_and_opens_their_folds(tab: BrowserTab) -> None:
    tab.go(f"s/{SESSION}")
    tab.press("/")
    assert tab.tell("document.activeElement.id") == "w"
    tab.fill("#w", "two hours")
    tab.wait("/^1 of \\d+$/.test(document.getElementById('hits').textContent)")
    assert tab.wait("CSS.highlights.get('now')?.size ?? 0") >= 1
    seen = "(range) => range.startContainer.parentElement.checkVisibility()"
    assert tab.tell(f"[...CSS.highlights.get('now')].every({seen})")
    total = int(tab.texts("#hits")[0].split()[-1])
    tab.press("Enter")
    tab.wait(f"document.getElementById('hits').textContent === '{min(2, total)} of {total}'")
    tab.fill("#w", "nothinglikethis")
    tab.wait("document.getElementById('hits').textContent === 'not found'")
    tab.press("Escape")
    tab.wait("document.getElementById('hits').textContent === ''")


def test_find_marks_its_hits_in_the_guide(tab: BrowserTab) -> None:
    tab.go(f"s/{SESSION}?find=QUIET")
    path = "document.querySelector('.guide .found')"
    tab.wait(f"{path}?.getAttribute('d')")
    n_hits = int(tab.texts("#hits")[0].split()[-1])
    assert 1 <= tab.tell(f"{path}.getAttribute('d').match(/M/g).length") <= n_hits
    assert tab.tell(f"{path}.getBoundingClientRect().top") <= tab.tell(
        "document.querySelector('.guide .fresh').getBoundingClientRect().top"
    )
    tab.press("/")
    tab.fill("#w", "nothinglikethis")
    tab.wait("document.getElementById('hits').textContent === 'not found'")
    assert tab.tell(path) is None


@pytest.mark.parametrize(("form", "ending"), [("html", ".html"), ("markdown", ".md"), ("json", ".json")])
def test_export_is_a_download(browser: Browser, served: Served, file: Path, form: str, ending: str) -> None:
    with served.tab(browser) as tab:
        tab.go(f"s/{SESSION}")
        assert tab.follow("[data-key=export]") == f"s/{SESSION}/export"
        tab.choose("select[name=format]", form)
        name = tab.download("main form button[type=submit]", file)
        assert name.startswith("session-")
        assert name.endswith(ending)
        content = file.read_text()
        assert "Two false alarms last night" in content
        assert tab.address == f"s/{SESSION}/export"
        assert not [*tab.seen.errors, *tab.seen.dialogs]


def test_a_message_leads_to_its_record(tab: BrowserTab) -> None:
    tab.go(f"s/{SESSION}")
    assert tab.count(".raw") == 0
    tab.tell("document.querySelector('#m2 .at').focus()")
    tab.tell("document.querySelector('#m2 .raw').focus()")
    assert tab.tell("getComputedStyle(document.querySelector('#m2 .raw')).opacity") == "1"
    assert tab.follow("#m2 .raw") == f"s/{SESSION}/raw/2"
    assert tab.follow("main a >> text=Back to the message").endswith("/2#m2")


def test_keys_lead_to_the_sessions_before_and_after(tab: BrowserTab) -> None:
    tab.go(f"s/{SESSION}")
    before = tab.tell("document.querySelector('a[rel=prev]').href")
    tab.press("[")
    tab.wait(f"location.href === {json.dumps(before)} && document.readyState === 'complete'")
    tab.press("]")
    tab.wait(f"location.pathname.includes('{SESSION}') && document.readyState === 'complete'")


@pytest.mark.parametrize("path", [f"s/{SESSION}", "files?path=skywatch/alerts.py"])
def test_copy_buttons_fill_the_clipboard(tab: BrowserTab, path: str) -> None:
    tab.go(path)
    tab.press("e")
    tab.tell("navigator.clipboard.writeText('')")
    tab.click(".code:has(pre) .copy >> nth=0")
    expected = tab.tell("document.querySelector('.code:has(.copy) pre').textContent")
    assert tab.wait("navigator.clipboard.readText()") == expected
    tab.press("y")
    tab.wait("navigator.clipboard.readText().then((words) => words.startsWith('http://127.0.0.1'))")


@pytest.mark.parametrize("path", ["", "sessions", f"s/{SESSION}", "usage"])
def test_theme_follows_the_system_until_it_is_chosen(browser: Browser, served: Served, path: str) -> None:
    with served.tab(browser, scheme="dark") as tab:
        tab.go(path)
        assert tab.tell(LUMINANCE) < 60
        tab.press("t")
        assert tab.tell(LUMINANCE) > 200
        tab.go("health")
        assert tab.tell(LUMINANCE) > 200
        tab.check_quiet()
    with served.tab(browser) as tab:
        tab.go(path)
        assert tab.tell(LUMINANCE) > 200
        tab.press("t")
        assert tab.tell(LUMINANCE) < 60


@pytest.mark.parametrize("width", [390, 320])
def test_pages_fit_a_phone(browser: Browser, served: Served, width: int) -> None:
    with served.tab(browser, width=width, height=800) as tab:
        too_wide = {}
        for path in PAGES:
            tab.go(path)
            by = tab.tell(SIDEWAYS)
            if by > 0:
                too_wide[path] = (by, tab.tell(WIDEST))
        tab.check_quiet()
        assert not too_wide


@pytest.mark.parametrize("path", ["", "files", "health", "s/602c50c2/12"])
def test_the_word_of_the_page_is_in_sight_on_a_phone(browser: Browser, served: Served, path: str) -> None:
    with served.tab(browser, width=390, height=800) as tab:
        tab.go(path)
        left, right = tab.tell(
            "((box) => [box.left, box.right])(document.querySelector('.top [aria-current]').getBoundingClientRect())"
        )
        assert left >= 0
        assert right <= 390


WIDEST = (
    "[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)"
    ".slice(0, 3).map((e) => e.outerHTML.slice(0, 120))"
)


LONG_NAMES = ("", "sessions", "search?q=words", "usage?last=all", "projects", "files", "health")
NARROW_CELLS = (
    "[...document.querySelectorAll(':is(.rows, .sums, .two) td:first-child')]"
    ".filter((e) => e.clientWidth && e.clientWidth < 80).map((e) => `${e.clientWidth} ${e.textContent.slice(0, 60)}`)"
)
"""First cells, which have the names, that are too narrow to be read."""
OVERLAPS = (
    "[...document.querySelectorAll('.two > div > *')].filter((e) => e.scrollWidth > e.clientWidth + 10)"
    ".map((e) => e.className)"
)
"""Parts of the overview that reach into others; rows reach 8 px into the margin."""


def test_names_without_a_place_to_break_spoil_no_page(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path / "served", wide_home(tmp_path / "home")) as served:
        for width in (1440, 1024, 390, 320):
            with served.tab(browser, width=width, height=800) as tab:
                for path in LONG_NAMES:
                    tab.go(path)
                    assert tab.tell(SIDEWAYS) <= 0, (path, width, tab.tell(WIDEST))
                    assert tab.tell(NARROW_CELLS) == [], (path, width)
                    assert tab.tell(OVERLAPS) == [], (path, width)


@pytest.mark.parametrize("path", ["files", "projects", "health"])
def test_a_row_of_a_table_is_a_paragraph_on_a_phone(browser: Browser, served: Served, path: str) -> None:
    with served.tab(browser, width=390, height=800) as tab:
        tab.go(path)
        assert tab.tell("document.querySelector('.rows td').clientWidth") > 300
        assert tab.tell("[...document.querySelectorAll('.scroll')].every((e) => e.scrollWidth <= e.clientWidth)")
        heads = tab.texts(".rows thead th")
        assert not tab.tell("document.querySelector('.rows thead').checkVisibility()")
        names = tab.tell(
            "[...document.querySelector('.rows tbody tr').cells].slice(1)"
            ".map((cell) => getComputedStyle(cell, '::before').content)"
        )
        assert set(names) <= {f'"{head} "' for head in heads}


def test_facts_begin_below_their_names(browser: Browser, served: Served) -> None:
    """Numbers in columns are aligned at the right; those about a session stand below words."""
    with served.tab(browser, width=390, height=800) as tab:
        tab.go(f"s/{SESSION}")
        assert set(
            tab.tell("[...document.querySelectorAll('.facts dd')].map((e) => getComputedStyle(e).textAlign)")
        ) == {"start"}


def test_prompts_are_a_sheet_on_a_phone(browser: Browser, served: Served) -> None:
    with served.tab(browser, width=390, height=800, script=False) as tab:
        tab.go(f"s/{SESSION}")
        tab.click("a[href='#prompts']")
        assert tab.tell("document.querySelector('#prompts li a').checkVisibility()")
        assert tab.tell("document.querySelector('#prompts').getBoundingClientRect().height") == 800
        tab.follow("#prompts li:nth-child(3) a")
        assert tab.address.startswith(f"s/{SESSION}/")
        tab.check_quiet()


def test_pages_work_without_a_script(browser: Browser, served: Served) -> None:
    with served.tab(browser, script=False) as tab:
        tab.go()
        tab.follow("nav[aria-label=Main] a >> text=Sessions")
        tab.follow(f"ol.sessions a >> text={TITLE}")
        assert tab.count("article.msg") > 10
        tab.click("details.branch.rewound > summary")
        assert tab.tell("document.querySelector('details.branch.rewound').open")
        tab.follow(".pick a >> text=Full")
        assert "detail=full" in tab.address
        tab.fill("#q", "alerts")
        tab.press("Enter")
        tab.follow(".hit .snip >> nth=0")
        assert tab.count("article.msg") > 0
        tab.go(f"s/{SESSION}?find=hours")
        tab.go("usage")
        assert tab.count("main table") >= 1
        tab.check_quiet()


def test_find_works_without_a_script(browser: Browser, served: Served) -> None:
    with served.tab(browser, script=False) as tab:
        tab.go(f"s/{SESSION}")
        tab.fill("#w", "two hours")
        tab.press("Enter")
        assert tab.follow("main ol a").startswith(f"s/{SESSION}")
        number = tab.address.rpartition("#")[2]
        assert "two hours" in tab.texts(f"#{number}")[0]


def test_print_shows_no_bars(tab: BrowserTab) -> None:
    tab.go(f"s/{SESSION}")
    tab.media(media="print")
    for selector in ("header.top nav", ".view", "#prompts"):
        assert not tab.tell(f"document.querySelector('{selector}').checkVisibility()"), selector
    assert tab.tell("document.querySelector('#m2 .words').checkVisibility()")


@pytest.mark.parametrize("path", ["sessions", "files", "usage"])
def test_print_shows_no_forms(tab: BrowserTab, path: str) -> None:
    tab.go(path)
    controls = "[...document.querySelectorAll('header.top, main form, main .pick, .formats, .foot')]"
    assert tab.tell(f"{controls}.every((e) => e.checkVisibility())")
    tab.media(media="print")
    assert tab.tell(f"{controls}.length") > 2
    assert not tab.tell(f"{controls}.some((e) => e.checkVisibility())")


@pytest.mark.parametrize("path", ERRORS)
def test_error_pages_say_what_to_do(browser: Browser, served: Served, path: str) -> None:
    with served.tab(browser) as tab:
        assert tab.go(path) == ERRORS[path]
        assert tab.count("h1") == 1
        assert len(tab.text) > 40
        assert not tab.seen.errors
        assert tab.faults() == []


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_accessible(browser: Browser, served: Served, path: str) -> None:
    """In the light and the dark theme, wide and narrow, with all folds open."""
    for scheme, width in (("light", 1280), ("dark", 390)):
        with served.tab(browser, scheme=scheme, width=width) as tab:
            tab.go(path)
            tab.press("e")
            assert tab.faults() == []
            assert tab.count("h1") == 1
            assert tab.count("main") == 1
            tab.check_quiet()
