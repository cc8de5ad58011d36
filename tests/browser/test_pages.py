"""Pages in a real browser: folds, search, keys, themes, zones; hostile text does nothing, and big pages open fast.

Slow, and only run by `make test-browser`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.browser.browsing import visit, why_not
from tests.builders import PRICES
from tests.exports import everything
from tests.exports.everything import made
from tests.exports.hostile import LONG_LINE, hostile
from tests.views.build import ROOT, START, added, call, message, prompt

from pollux import homes
from pollux.cli.demo import HOME
from pollux.exports import EXPORTERS, ExportedSession, html
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.model import DiffDisplay, Fate, Message, Origin, Project, Session, TextDisplay
from pollux.sessions.reader import history, opened
from pollux.views import session_text
from pollux.views.transcript import Branches, Detail

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

FULL = ExportOptions(Detail.FULL, Branches.ALL)
N_FOLDS = "document.querySelectorAll('#main details').length"
N_OPEN = "document.querySelectorAll('#main details[open]').length"
FOCUS = "document.activeElement.id"
HITS = "document.getElementById('hits').textContent"
PAPER = "getComputedStyle(document.body).backgroundColor"
HARMLESS = re.compile(r"#|https?:|mailto:|data:image/png;base64,|data:application/octet-stream;base64,")
CURRENT = "document.querySelector('#prompts [aria-current]')?.hash"


def written(folder: Path, one: ExportSource) -> Path:
    file = folder / "page.html"
    file.write_bytes(b"".join(html.render(one)))
    return file


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return written(tmp_path, everything.subject(FULL))


def tell(*expressions: str) -> list[dict[str, Any]]:
    return [{"tell": one} for one in expressions]


def press(keys: str) -> list[dict[str, Any]]:
    return [{"press": key} for key in keys]


def test_page_opens_quietly_and_fetches_nothing(page: Path) -> None:
    seen = visit(page, *tell("document.title", "document.querySelectorAll('script').length"))
    assert seen.is_quiet
    assert seen.requests[0] == page.as_uri()
    assert seen.told == ["Add a count method ␛[2J <b>now</b>", 1]


def test_all_folds_open_and_close(page: Path) -> None:
    seen = visit(page, *tell(N_FOLDS, N_OPEN), *press("e"), *tell(N_OPEN), *press("c"), *tell(N_OPEN))
    n_folds, *n_open = seen.told
    assert 0 < n_open[0] < n_folds
    assert n_open[1:] == [n_folds, 0]
    assert seen.is_quiet


def test_search_counts_hits_opens_their_folds_and_closes_them_again(page: Path) -> None:
    """`why.md` occurs only in the transcript of the agent, inside two folds."""
    inside = "document.querySelector('.agent').open"
    seen = visit(
        page,
        *tell(N_OPEN, inside),
        {"press": "/"},
        *tell(FOCUS),
        {"type": ["#search", "WHY.md"]},
        {"wait": 400},
        *tell(HITS, inside, "CSS.highlights.get('hit').size", "CSS.highlights.get('now').size"),
        {"type": ["#search", "line 5"]},
        {"wait": 400},
        {"press": "Enter"},
        *tell(HITS),
        {"press": "Shift+Enter"},
        *tell(HITS),
        {"type": ["#search", "nowhere to be found"]},
        {"wait": 400},
        *tell(HITS),
        {"press": "Escape"},
        *tell(HITS, N_OPEN, inside),
    )
    before, closed, focused, hits, opened_now, *rest = seen.told
    assert (closed, focused, opened_now) == (False, "search", True)
    assert hits == "1 of 1"
    second, first = re.fullmatch(r"2 of (\d+)", rest[2]), re.fullmatch(r"1 of (\d+)", rest[3])
    assert rest[:2] == [1, 1]
    assert second
    assert first
    assert second[1] == first[1] != "1"
    assert rest[4:] == ["no matches", "", before, False]
    assert seen.is_quiet


def test_search_matches_across_elements(page: Path) -> None:
    """`return len(self` is four colours, and `count now` an emphasis and a word."""
    steps = [
        step
        for words in ("return len(self", "count now", "countingthe")
        for step in ({"type": ["#search", words]}, {"wait": 400}, {"tell": HITS})
    ]
    assert visit(page, *steps).told == ["1 of 1", "1 of 1", "no matches"]


def test_keys_move_between_prompts_and_the_list_follows(page: Path) -> None:
    steps = [step for key in "jjjk" for step in [*press(key), {"wait": 200}, *tell(FOCUS, CURRENT)]]
    seen = visit(page, *tell(CURRENT), *steps)
    assert seen.told[0] == "#m3"
    assert seen.told[1::2] == ["m3", "m13", "m16", "m13"]
    assert seen.told[2::2] == ["#m3", "#m13", "#m16", "#m13"]


def test_keys_reach_the_last_prompt_and_stop_there(page: Path) -> None:
    last = "[...document.querySelectorAll('#main > .thread > .prompt')].at(-1).id"
    seen = visit(page, *press("jjjjjjjjjjjjj"), *tell(FOCUS, last), *press("kkkkkkkkkkkkkkkk"), *tell(FOCUS))
    assert seen.told[0] == seen.told[1]
    assert seen.told[2] == "m3"


def test_keys_do_nothing_in_the_search_field(page: Path) -> None:
    seen = visit(page, {"press": "/"}, *press("ect?"), *tell("document.getElementById('search').value", N_OPEN))
    assert seen.told[0] == "ect?"
    assert seen.told[1] > 0


def test_list_of_keys_opens_and_closes(page: Path) -> None:
    is_open = "document.getElementById('keys').open"
    seen = visit(page, {"press": "?"}, *tell(is_open), {"press": "Escape"}, *tell(is_open))
    assert seen.told == [True, False]


def test_theme_follows_the_system_and_the_reader(page: Path) -> None:
    steps = [*tell(PAPER), {"press": "t"}, *tell(PAPER)]
    light, dark = (visit(page, *steps, scheme=scheme).told for scheme in ("light", "dark"))
    assert light == [*reversed(dark)]
    assert light[0] != light[1]


def test_link_to_a_message_opens_its_folds(page: Path) -> None:
    nested = "document.querySelector('.nested article').id"
    (id_,) = visit(page, *tell(nested)).told
    is_open = "document.querySelector('.agent').open"
    seen = visit(page, *tell(f"location.hash = '#{id_}'"), {"wait": 200}, *tell(is_open))
    assert seen.told[1] is True


def test_copy_button_copies_the_code(page: Path) -> None:
    button = ".prose .code .copy"
    words = f"document.querySelector('{button}').textContent"
    seen = visit(page, {"click": button}, {"wait": 100}, *tell(words, "navigator.clipboard.readText()"))
    assert seen.told == ["Copied", "def count(self) -> int:\n    return len(self.tasks)  # all"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_page_is_accessible(page: Path, width: int, scheme: str) -> None:
    seen = visit(page, {"press": "e"}, {"audit": True}, width=width, scheme=scheme)
    assert seen.audit == []


def test_guide_and_prompts_are_where_the_viewer_has_them(page: Path) -> None:
    """They come last in the file, and stand above and beside the conversation."""
    box = "document.querySelector('{}').getBoundingClientRect()"
    places = [box.format(name) for name in ("#main > header", ".guide", ".view", ".thread", "#prompts")]
    tops = f"[{', '.join(f'{place}.top' for place in places)}]"
    seen = visit(
        page, *tell(tops, f"{places[4]}.right <= {places[3]}.left", "document.querySelectorAll('.guide a').length")
    )
    header, guide, view, thread, prompts = seen.told[0]
    assert header < guide < view < thread
    assert prompts < guide
    assert seen.told[1] is True
    assert seen.told[2] >= 9
    targets = "[...document.querySelectorAll('.guide a')].every((a) => document.querySelector(a.href.baseVal))"
    assert visit(page, *tell(targets)).told == [True]


def test_stars_are_not_cut_off(page: Path) -> None:
    """Messages are laid out only when they come into view, which clips what is outside their box."""
    inside = (
        "[...document.querySelectorAll('.thread > .prompt')].every((p) => "
        "p.querySelector('.knot').getBoundingClientRect().left >= p.getBoundingClientRect().left)"
    )
    assert visit(page, *tell(inside)).told == [True]


def test_narrow_screen_does_not_overflow_and_shows_the_list_on_request(page: Path) -> None:
    shown = "getComputedStyle(document.getElementById('prompts')).visibility"
    seen = visit(
        page,
        *press("e"),
        *tell("document.documentElement.scrollWidth", shown),
        {"click": ".menu"},
        *tell(shown),
        {"click": "#prompts li:nth-child(2) a"},
        *tell(shown),
        width=360,
    )
    assert seen.told == [360, "hidden", "visible", "hidden"]
    assert seen.address.endswith("#m13")


def test_print_has_no_controls(page: Path, tmp_path: Path) -> None:
    displayed = (
        "['.top', '.view', '#prompts', '.copy'].map((one) => getComputedStyle(document.querySelector(one)).display)"
    )
    seen = visit(page, {"pdf": str(tmp_path / "page.pdf")}, {"print": True}, *tell(displayed, PAPER), scheme="dark")
    assert seen.told == [["none"] * 4, "rgb(255, 255, 255)"]
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_page_can_be_read_without_its_script(page: Path) -> None:
    seen = visit(page, {"click": ".thinking summary"}, {"click": ".sources summary"}, script=False)
    assert not seen.errors


LOG = "\n".join(f"line {number}" for number in range(60))
FOLDED = (
    added(Origin.SESSION_CONTEXT, "<session_context>\nThe context."),
    prompt("Start.", minute=0),
    message(tool_calls=(call("run_shell_command", {"command": "make"}, display=TextDisplay(LOG), exit_code=1),)),
    prompt("Wrong way.", fate=Fate.REWOUND, minute=2),
    message("Indeed.", fate=Fate.REWOUND, minute=3),
    prompt("Better way.", minute=23 * 60),
    message("Done.", minute=23 * 60 + 1),
)


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("fold", [".tool .more", ".added", ".branch"])
def test_hidden_lines_context_and_dropped_messages_open(tmp_path: Path, fold: str, *, script: bool) -> None:
    page = written(tmp_path, made(FOLDED))
    shots = [tmp_path / name for name in ("closed.png", "open.png")]
    steps = [{"shot": str(shots[0])}, {"click": f"{fold} > summary"}, {"shot": str(shots[1])}]
    seen = visit(page, *steps, script=script)
    assert not seen.errors
    assert shots[0].read_bytes() != shots[1].read_bytes()
    if script:
        is_open = f"document.querySelector('{fold}').open"
        assert visit(page, *tell(is_open), *steps, *tell(is_open)).told == [False, True]


def test_copying_a_shortened_output_copies_all_of_it(tmp_path: Path) -> None:
    page = written(tmp_path, made(FOLDED))
    seen = visit(page, {"click": ".tool .copy"}, {"wait": 100}, *tell("navigator.clipboard.readText()"))
    assert seen.told == [LOG]


def test_keys_skip_prompts_in_closed_branches(tmp_path: Path) -> None:
    page = written(tmp_path, made(FOLDED))
    open_branch = "document.querySelector('.branch').open = true"
    steps = [*press("jj"), *tell(FOCUS, open_branch), {"wait": 200}, *press("k"), *tell(FOCUS)]
    assert visit(page, *steps).told == ["m6", True, "m4"]


def test_link_to_a_dropped_message_opens_its_branch(tmp_path: Path) -> None:
    page = written(tmp_path, made(FOLDED))
    seen = visit(page, {"click": "#prompts li:nth-child(2) a"}, *tell("document.querySelector('.branch').open"))
    assert seen.told == [True]


def test_times_and_days_are_in_the_reader_s_zone(tmp_path: Path) -> None:
    """The last prompt comes 23 hours after the first."""
    page = written(tmp_path, made(FOLDED))
    clocks = "[...document.querySelectorAll('#prompts time')].map((one) => one.textContent)"
    days = "[...document.querySelectorAll('.day')].map((one) => [one.textContent, one.nextElementSibling.id])"
    note = "document.getElementById('zone').textContent"
    labels = "[...document.querySelectorAll('.at')].at(-1).textContent"
    steps = tell(clocks, days, note, labels)
    utc, tokyo = visit(page, *steps).told, visit(page, *steps, zone="Asia/Tokyo").told
    start = START.astimezone(UTC)
    assert utc == [
        [f"{start + timedelta(minutes=minute):%H:%M}" for minute in (0, 2, 23 * 60)],
        [[session_text.day(start + timedelta(hours=23)), "m6"]],
        "Times are UTC.",
        f"{start + timedelta(minutes=23 * 60 + 1):%H:%M:%S}, link to message 7",
    ]
    there = start + timedelta(hours=9)
    assert tokyo[0] == [f"{there + timedelta(minutes=minute):%H:%M}" for minute in (0, 2, 23 * 60)]
    assert tokyo[1] == [[session_text.day(there + timedelta(hours=23)), "m6"]]
    assert tokyo[2] == "Times are in your time zone, Asia/Tokyo."


def test_day_begins_at_midnight_of_the_reader(tmp_path: Path) -> None:
    midnight = datetime(2026, 11, 12, tzinfo=UTC)
    hours = [(midnight + timedelta(hours=hour)) for hour in (1, 14, 16, 23)]
    page = written(tmp_path, made([prompt(f"{at:%H}", at=at) for at in hours]))
    days = "[...document.querySelectorAll('.day')].map((one) => [one.textContent, one.nextElementSibling.id])"
    assert visit(page, *tell(days)).told == [[]]
    assert visit(page, *tell(days), zone="Asia/Tokyo").told == [[["Fri 13 Nov 2026", "m3"]]]


@pytest.mark.parametrize("zone", ["UTC", "America/Argentina/Buenos_Aires"])
def test_dates_do_not_break_on_a_phone(page: Path, site: Path, zone: str) -> None:
    broken = "[...document.querySelectorAll('time')].filter((one) => one.getClientRects().length > 1).length"
    for opened_page in (page, site):
        seen = visit(opened_page, *tell(broken, "document.documentElement.scrollWidth"), width=320, zone=zone)
        assert seen.told == [0, 320]


@pytest.mark.parametrize("detail", Detail)
def test_hostile_text_does_nothing(tmp_path: Path, detail: Detail) -> None:
    page = written(tmp_path, hostile(ExportOptions(detail, Branches.ALL, thoughts=True), line=LONG_LINE))
    places = "({attributes}) => (attributes.href ?? attributes.src).value"
    links = f"[...document.querySelectorAll('[href], [src]')].map({places})"
    inline = "document.querySelectorAll('[style], [onclick], [onerror], [onload], iframe, object, embed, base').length"
    seen = visit(
        page,
        *press("e"),
        {"wait": 500},
        *tell("window.owned", "document.title", links, inline, "document.querySelectorAll('script').length"),
        *tell("document.documentElement.outerHTML.length"),
    )
    assert seen.is_quiet
    owned, title, found, n_inline, n_scripts, size = seen.told
    assert owned is None
    assert "owned" in title
    assert [one for one in found if not HARMLESS.match(one)] == []
    assert (n_inline, n_scripts) == (0, 1)
    assert size > len(LONG_LINE)


def long_talk() -> Sequence[Message]:
    """Return two thousand messages of the usual size."""
    words = "Some *words* and `code`:\n\n- one\n- two\n\n```python\ndef f(x):\n    return x + 1\n```\n\nClosing words."
    log = "\n".join(f"line {number} of the output" for number in range(30))
    calls = (
        call("run_shell_command", {"command": "make test"}, display=TextDisplay(log)),
        call("replace", {"file_path": f"{ROOT}/board.py"}, display=DiffDisplay(everything.DIFF, "board.py")),
    )
    return [
        message(words, model="gemini-3-pro", tool_calls=calls, minute=number // 4)
        if number % 8
        else prompt(f"Prompt {number}: please do something.", minute=number // 4)
        for number in range(2000)
    ]


@pytest.mark.parametrize("detail", [Detail.NORMAL, Detail.FULL])
def test_two_thousand_messages_open_within_a_second(tmp_path: Path, detail: Detail) -> None:
    page = written(tmp_path, made(long_talk(), export_options=ExportOptions(detail)))
    shown = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    searched = "(() => { const at = performance.now(); search('closing'); return performance.now() - at; })()"
    visits = [visit(page, {"wait": 300}, *tell(shown, searched, HITS)) for _ in range(3)]
    first_paint, found = (min(one.told[number] for one in visits) for number in range(2))
    assert first_paint < 1000
    assert min(one.cpu_ms for one in visits) < 1000
    assert found < 1000
    assert visits[0].told[2] == "1 of 1,750"


# The site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    exporter = EXPORTERS["html"]
    sessions = {one.id: one for one in history(homes(HOME)).sessions}
    chosen = [one for one in sessions.values() if one.kind == "main"][:6]
    rows = []
    for number, session in enumerate(chosen):
        name = f"{number}.html"
        made_of = export_source(
            session, opened(session), sessions, opened, PRICES, name=name, index_page=exporter.index_page
        )
        (tmp_path / name).write_bytes(b"".join(exporter.render(made_of)))
        rows.append(ExportedSession(session, name))
    for name, data in exporter.pages(rows, PRICES):
        (tmp_path / name).write_bytes(data)
    return tmp_path / "index.html"


def rows(more: str = "") -> str:
    return f"[...document.querySelectorAll('.shelf tbody tr{more}')].filter((one) => one.checkVisibility()).length"


def test_site_links_to_sessions_and_back(site: Path) -> None:
    assert visit(site, {"click": ".shelf a"}).address.endswith("/0.html")
    seen = visit(site.with_name("3.html"), {"click": ".parts a"})
    assert seen.address == site.as_uri()
    assert seen.is_quiet


def test_sessions_are_filtered_and_grouped(site: Path) -> None:
    heads = "[...document.querySelectorAll('.shelf:not([hidden]) h2')].map((one) => one.textContent)"
    bar = "document.querySelector('.days g').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    seen = visit(
        site,
        *tell(heads, rows()),
        {"press": "g"},
        *tell(heads, rows()),
        {"type": ["#search", "büro"]},
        *tell(rows(), HITS),
        {"press": "Escape"},
        {"press": "g"},
        *tell(heads, rows(), bar, HITS),
    )
    by_project, n_rows, by_day, n_by_day, n_filtered, hits, again, n_again, _, of_a_day = seen.told
    assert by_project == again == ["skywatch", "Büro-Notizen"]
    assert n_rows == n_by_day == n_again == 6
    assert by_day == sorted(by_day, reverse=True)
    assert (n_filtered, hits) == (1, "1 of 6")
    assert re.fullmatch(r"[01] of 6", of_a_day)
    assert seen.is_quiet


@pytest.mark.parametrize("how", [{"width": 1280}, {"width": 360}, {"scheme": "dark"}])
def test_index_is_accessible(site: Path, how: dict[str, Any]) -> None:
    seen = visit(site, {"audit": True}, *tell("document.documentElement.scrollWidth"), **how)
    assert seen.audit == []
    assert seen.told == [how.get("width", 1280)]


@pytest.fixture
def large_site(tmp_path: Path) -> Path:
    projects = [Project(path="/alpha"), Project(path="/beta")]
    start = datetime(2026, 11, 12, 8, tzinfo=UTC)
    sessions = [
        Session(f"s{number}", "main", projects[number // 150], started=start - timedelta(hours=number))
        for number in range(250)
    ]
    for name, data in EXPORTERS["html"].pages([ExportedSession(one, f"{one.id}.html") for one in sessions], PRICES):
        (tmp_path / name).write_bytes(data)
    return tmp_path / "index.html"


def test_index_shows_one_page_and_filters_all(large_site: Path) -> None:
    pages = "[...document.querySelectorAll('.page')].filter((one) => one.checkVisibility()).map((one) => one.id)"
    seen = visit(
        large_site,
        *tell(pages, rows()),
        {"click": "#page-1 [rel=next]"},
        *tell(pages, rows()),
        {"click": ".projects li:nth-child(2) a"},
        *tell(pages),
        {"type": ["#search", "beta"]},
        *tell(HITS, rows()),
        {"press": "Escape"},
        {"press": "g"},
        *tell(pages, rows()),
        {"press": "g"},
        *tell(pages, rows()),
    )
    assert seen.told[:5] == [["page-1"], 100, ["page-2"], 100, ["page-2"]]
    assert seen.told[5:7] == ["100 of 250", 100]
    assert seen.told[7] == ["page-1"]
    assert 100 <= seen.told[8] < 125
    assert seen.told[9:] == [["page-1"], 100]
    assert seen.is_quiet


def test_index_turns_pages_without_its_script(large_site: Path, tmp_path: Path) -> None:
    shots = [tmp_path / name for name in ("first.png", "second.png")]
    steps = [{"shot": str(shots[0])}, {"click": "#page-1 [rel=next]"}, {"shot": str(shots[1])}]
    seen = visit(large_site, *steps, {"click": "#page-2 [rel=next]"}, script=False)
    assert seen.address.endswith("#page-3")
    assert shots[0].read_bytes() != shots[1].read_bytes()


def test_sessions_are_grouped_by_the_reader_s_day(large_site: Path) -> None:
    heads = "[...document.querySelectorAll('.shelf h2')].slice(0, 2).map((one) => one.textContent)"
    first = "document.querySelector('.shelf td time').textContent"
    steps = [*press("g"), *tell(heads, first)]
    assert visit(large_site, *steps).told == [["2026-11-12", "2026-11-11"], "2026-11-12 08:00"]
    seen = visit(large_site, *steps, zone="Pacific/Honolulu")
    assert seen.told == [["2026-11-11", "2026-11-10"], "2026-11-11 22:00"]
