"""Pages in a real browser: folds, search, keys and themes work, hostile text does nothing, and big pages open at once.

Slow, and only run by `make test-browser`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.browser.browsing import visit, why_not
from tests.builders import PRICES
from tests.exports import everything
from tests.exports.everything import made
from tests.exports.hostile import LONG_LINE, hostile
from tests.views.build import ROOT, call, message, prompt

from pollux.cli.demo import HOME
from pollux.exports import EXPORTERS, Written, html
from pollux.exports.source import Subject, Wanted, subject
from pollux.model import DiffDisplay, Message, TextDisplay
from pollux.sessions.reader import history, homes, opened
from pollux.views.transcript import Branches, Detail

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

FULL = Wanted(Detail.FULL, Branches.ALL)
N_FOLDS = "document.querySelectorAll('#main details').length"
N_OPEN = "document.querySelectorAll('#main details[open]').length"
FOCUS = "document.activeElement.id"
HITS = "document.getElementById('hits').textContent"
PAPER = "getComputedStyle(document.body).backgroundColor"
HARMLESS = re.compile(r"#|https?:|mailto:|data:image/png;base64,|data:application/octet-stream;base64,")
CURRENT = "document.querySelector('#prompts [aria-current]')?.hash"


def written(folder: Path, one: Subject) -> Path:
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
    """`why.md` stands only in what the agent did, which is folded twice."""
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
    assert rest[4:] == ["no hits", "", before, False]
    assert seen.is_quiet


def test_words_are_found_over_the_borders_of_elements(page: Path) -> None:
    """`return len(self` is four colours, and `count now` an emphasis and a word."""
    steps = [
        step
        for words in ("return len(self", "count now", "countingthe")
        for step in ({"type": ["#search", words]}, {"wait": 400}, {"tell": HITS})
    ]
    assert visit(page, *steps).told == ["1 of 1", "1 of 1", "no hits"]


def test_keys_go_from_prompt_to_prompt_and_the_list_follows(page: Path) -> None:
    steps = [step for key in "jjjk" for step in [*press(key), {"wait": 200}, *tell(FOCUS, CURRENT)]]
    seen = visit(page, *tell(CURRENT), *steps)
    assert seen.told[0] == "#m3"
    assert seen.told[1::2] == ["m3", "m13", "m16", "m13"]
    assert seen.told[2::2] == ["#m3", "#m13", "#m16", "#m13"]


def test_keys_reach_the_last_prompt_and_stop_there(page: Path) -> None:
    last = "[...document.querySelectorAll('#main > .prompt')].at(-1).id"
    seen = visit(page, *press("jjjjjjjjjjjjj"), *tell(FOCUS, last), *press("kkkkkkkkkkkkkkkk"), *tell(FOCUS))
    assert seen.told[0] == seen.told[1]
    assert seen.told[2] == "m3"


def test_keys_do_nothing_while_somebody_types(page: Path) -> None:
    seen = visit(page, {"press": "/"}, *press("ect?"), *tell("document.getElementById('search').value", N_OPEN))
    assert seen.told[0] == "ect?"
    assert seen.told[1] > 0


def test_help_is_shown_and_left(page: Path) -> None:
    is_open = "document.getElementById('keys').open"
    seen = visit(page, {"press": "?"}, *tell(is_open), {"press": "Escape"}, *tell(is_open))
    assert seen.told == [True, False]


def test_theme_follows_the_system_and_the_reader(page: Path) -> None:
    steps = [*tell(PAPER), {"press": "t"}, *tell(PAPER)]
    light, dark = (visit(page, *steps, scheme=scheme).told for scheme in ("light", "dark"))
    assert light == [*reversed(dark)]
    assert light[0] != light[1]


def test_link_to_a_message_opens_what_it_is_folded_in(page: Path) -> None:
    nested = "document.querySelector('.nested article').id"
    (id_,) = visit(page, *tell(nested)).told
    is_open = "document.querySelector('.agent').open"
    seen = visit(page, *tell(f"location.hash = '#{id_}'"), {"wait": 200}, *tell(is_open))
    assert seen.told[1] is True


def test_code_is_copied_as_it_is(page: Path) -> None:
    button = ".prose .code .copy"
    words = f"document.querySelector('{button}').textContent"
    seen = visit(page, {"click": button}, {"wait": 100}, *tell(words, "navigator.clipboard.readText()"))
    assert seen.told == ["Copied", "def count(self) -> int:\n    return len(self.tasks)  # all"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_page_is_accessible(page: Path, width: int, scheme: str) -> None:
    seen = visit(page, {"press": "e"}, {"audit": True}, width=width, scheme=scheme)
    assert seen.audit == []


def test_narrow_screen_is_not_overflown_and_has_its_list(page: Path) -> None:
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


def test_paper_shows_words_and_nothing_to_click_on(page: Path, tmp_path: Path) -> None:
    displayed = "['.bar', '#prompts', '.copy'].map((one) => getComputedStyle(document.querySelector(one)).display)"
    seen = visit(page, {"pdf": str(tmp_path / "page.pdf")}, {"print": True}, *tell(displayed, PAPER), scheme="dark")
    assert seen.told == [["none"] * 3, "rgb(255, 255, 255)"]
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_page_can_be_read_without_its_script(page: Path) -> None:
    seen = visit(page, {"click": ".thinking summary"}, {"click": ".sources summary"}, script=False)
    assert not seen.errors


@pytest.mark.parametrize("detail", Detail)
def test_hostile_text_does_nothing_but_show_itself(tmp_path: Path, detail: Detail) -> None:
    page = written(tmp_path, hostile(Wanted(detail, Branches.ALL, thoughts=True), line=LONG_LINE))
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
    """Give two thousand messages of the usual size."""
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
    page = written(tmp_path, made(long_talk(), wanted=Wanted(detail)))
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
        made_of = subject(session, opened(session), sessions, opened, PRICES, name=name, index_page=exporter.index_page)
        (tmp_path / name).write_bytes(b"".join(exporter.render(made_of)))
        rows.append(Written(session, name))
    for name, data in exporter.pages(rows, PRICES):
        (tmp_path / name).write_bytes(data)
    return tmp_path / "index.html"


def rows(more: str = "") -> str:
    return f"[...document.querySelectorAll('.shelf tbody tr{more}')].filter((one) => one.checkVisibility()).length"


def test_site_leads_to_its_sessions_and_back(site: Path) -> None:
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
