"""The session page: what it shows, its windows, and its links to messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import builders
from tests.builders import NAME, asks, call, chats, gemini, header, log, put, user
from tests.exports.reader import Page
from tests.web.homes import long_home
from tests.web.viewing import LABEL, SESSION, Viewed, links, viewing

from pollux.render.html.markup import Html
from pollux.web.pages.session_files import nested_list
from pollux.web.static_names import asset_name


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    with viewing(tmp_path_factory.mktemp("viewer")) as made:
        yield made


def test_page_has_facts_prompts_and_articles(viewed: Viewed) -> None:
    found = viewed.page(f"s/{SESSION}")
    assert "Find the cause of duplicate alerts" in found.text
    assert len(found.named("article")) >= 15
    assert "107,810 71% cached" in found.text
    assert "$0.0319 $0.0037 dropped" in found.text
    assert "5 prompts, 8 answers, 5 tool calls, 1 error 3 dropped" in found.text
    assert "Previous in skywatch" in found.text
    assert "13.1k in, 145 out$0.0104" in found.text
    assert [
        tag.attributes["class"] for tag in found.named("details") if "branch" in (tag.attributes["class"] or "")
    ] == [
        "branch rolled_back",
        "branch rewound",
    ]


def test_rows_of_calls_say_how_much_their_folds_have(viewed: Viewed) -> None:
    found = viewed.page(f"s/{SESSION}")
    assert "grep low-cloud /var/log/mail.log | tail -3 3 lines" in found.text
    assert "Edit skywatch/alerts.py +6 −0" in found.text
    assert len(found.named("span", class_="plus")) == 1
    assert found.named("span", class_="minus") == []
    agents = viewed.page("s/e92f6bc2").text
    assert "Subagent 7ffa9413 4 answers, 4 tool calls, $0.0045" in agents


def test_an_ambiguous_id_leads_to_its_sessions(viewed: Viewed) -> None:
    found = viewed.page("s/4", 300)
    assert "'4' matches 3 sessions." in found.text
    assert "Move weather readings from CSV to SQLite" in found.text
    shown = [target for target in links(found) if target.startswith("s/")]
    assert shown == ["s/451ea5d6-1dc2-4957-ae3a-eacc836dc4fa", *shown[1:]]
    assert len(shown) == 3


@pytest.mark.parametrize(
    ("reference", "n_links"),
    [("602c50c3", 1), ("602c50c2-52c5-4acc-a74e-62c818ea6883", 1), ("zzzzzzzz", 0), ("602", 0), ("@99", 0)],
)
def test_an_unknown_id_leads_to_the_nearest_session(viewed: Viewed, reference: str, n_links: int) -> None:
    found = viewed.page(f"s/{reference}x", 404)
    assert "No session matches" in found.text
    shown = [target for target in links(found) if target.startswith("s/")]
    assert shown == ["s/602c50c2-52c5-4acc-a74e-62c818ea6882"] * n_links
    assert "Find the cause of duplicate alerts" in found.text or not n_links
    assert "sessions" in links(found)


@pytest.mark.parametrize(
    "path",
    [
        "sessions",
        "sessions?q=alerts&has=error&project=skywatch",
        "search",
        "search?q=alerts",
        "search?q=zzzzzz",
        "projects",
        "files",
        "files?q=alerts.py",
        "health",
        f"s/{SESSION}/raw",
        f"s/{SESSION}/raw/3",
        f"s/{SESSION}/find?q=alarm",
        f"s/{SESSION}/export",
        f"s/{SESSION}/tree",
        f"s/{SESSION}/calls",
        f"s/{SESSION}/12",
        f"s/{SESSION}?detail=full&branches=0&thoughts=0",
    ],
)
def test_page_is_well_formed(viewed: Viewed, path: str) -> None:
    found = viewed.page(path)
    assert len(found.named("h1")) == 1
    ids = [tag.attributes["id"] for tag in found.tags if "id" in tag.attributes]
    assert len(ids) == len({*ids})
    assert len(found.tags) <= 1_500


def test_colours_of_a_terminal_have_their_own_style_sheet(tmp_path: Path) -> None:
    shell = call("c1", "run_shell_command", resultDisplay="\x1b[38;5;214mamber\x1b[0m", args={"command": "ls"})
    answer = gemini("g1", [{"text": "ok"}, asks("c1")], toolCalls=[shell])
    home = tmp_path / "home"
    put(chats(home) / f"{NAME}.jsonl", log(header(), user("u1", "x"), answer))
    with viewing(tmp_path, (home,)) as viewed:
        page = viewed.page(f"s/{builders.SESSION}")
        assert [tag.attributes.get("class") for tag in page.named("span")].count("f214") == 1
        sheets = [str(tag.attributes["href"]) for tag in page.named("link") if tag.attributes["rel"] == "stylesheet"]
        assert asset_name("palette.css") in sheets[-1]
        assert ".f214{color:#ffaf00}" in viewed.answer(f"static/{asset_name('palette.css')}").text


def test_a_session_without_colours_has_no_such_style_sheet(viewed: Viewed) -> None:
    assert asset_name("palette.css") not in viewed.get(f"s/{SESSION}")


def test_the_guide_has_a_table(viewed: Viewed) -> None:
    """Each mark of the guide is a row, with the same message and the same amounts."""
    page = viewed.page(f"s/{SESSION}")
    assert f"/{LABEL}/s/{SESSION}/calls" in [tag.attributes.get("href") for tag in page.named("a")]
    drawing = viewed.get(f"s/{SESSION}").partition('<figure class="guide">')[2].partition("</figure>")[0]
    marks = re.findall(r'href="([^"]+)" aria-label="([^"]+)"', drawing)
    table = viewed.get(f"s/{SESSION}/calls")
    rows = re.findall(r"<tr><td>.*?</tr>", table)
    assert [re.search(r'href="([^"]+)"', row)[1] for row in rows] == [href for href, _ in marks]  # type: ignore[index]
    assert len(rows) == 14
    assert "Can we just make QUIET two hours? rewound" in Page(table).text
    calls = [label for _, label in marks if " cached" in label]
    amounts = [re.findall(r'class="right(?: w)?">([^<]+)<', row) for row in rows if "model call" in row]
    for label, (fresh, cached, _, _, cost) in zip(calls, amounts, strict=True):
        n_in = int(fresh.replace(",", "")) + int(cached.replace(",", ""))
        assert f"{cost}; {n_in:,} in, {cached} cached" in label


def test_a_long_table_is_in_parts(tmp_path: Path) -> None:
    with viewing(tmp_path, (long_home(tmp_path / "home", 100),)) as viewed:
        first, second = viewed.page(f"s/{builders.SESSION}/calls"), viewed.page(f"s/{builders.SESSION}/calls?from=200")
        assert len(first.named("tr")) == 201
        assert [tag.attributes["href"] for tag in first.named("a", rel="next")] == [links_to(first, "calls?from=200")]
        assert 0 < len(second.named("tr")) - 1 <= 200
        assert not second.named("a", rel="next")
        assert "no prompt and no model call here" in viewed.page(f"s/{builders.SESSION}/calls?from=99999").text


def links_to(page: Page, ending: str) -> str:
    (target,) = {str(tag.attributes["href"]) for tag in page.named("a") if str(tag.attributes["href"]).endswith(ending)}
    return target


def test_the_table_leads_to_records(viewed: Viewed) -> None:
    page = viewed.page(f"s/{SESSION}/calls")
    records = [str(tag.attributes["href"]) for tag in page.named("a") if "/raw/" in str(tag.attributes["href"])]
    assert records[0] == f"/{LABEL}/s/{SESSION}/raw/2"
    assert "Two false alarms last night" in viewed.page(f"s/{SESSION}/raw/2").text


def test_a_session_with_subagents_leads_to_its_tree(viewed: Viewed) -> None:
    page = viewed.page("s/e92f6bc2")
    assert "1 subagent" in page.text
    tree = viewed.page(links_to(page, "/tree").removeprefix(f"/{LABEL}/"))
    assert len(tree.named("ol")) == 2
    current = [tag.attributes["href"] for tag in tree.named("a", **{"aria-current": "true"})]
    assert [str(href).rpartition("/")[2][:8] for href in current] == ["e92f6bc2"]
    assert "/tree" not in viewed.get(f"s/{SESSION}")


def test_a_deleted_session_has_a_restore_command(tmp_path: Path) -> None:
    home = tmp_path / "home"
    file = chats(home) / f"{NAME}.jsonl"
    put(file, log(header(), user("u1", "x"), gemini("g1", "y")))
    with viewing(tmp_path, (home,)) as viewed:
        assert "Copy restore command" not in viewed.get(f"s/{builders.SESSION}")
        file.unlink()
        viewed.library.sync()
        page = viewed.page(f"s/{builders.SESSION}")
        commands = [tag.attributes["data-text"] for tag in page.named("button", **{"data-key": "restore"})]
        assert commands == [f"pollux restore {builders.SESSION}"]
        assert "Gemini CLI has deleted its copy." in page.text


@pytest.mark.parametrize(
    ("depths", "expected"),
    [
        ("", "<ol></ol>"),
        ("0", "<ol><li>0</li></ol>"),
        ("0111", "<ol><li>0<ol><li>1</li><li>1</li><li>1</li></ol></li></ol>"),
        ("012", "<ol><li>0<ol><li>1<ol><li>2</li></ol></li></ol></li></ol>"),
        ("01211", "<ol><li>0<ol><li>1<ol><li>2</li></ol></li><li>1</li><li>1</li></ol></li></ol>"),
        ("0120", "<ol><li>0<ol><li>1<ol><li>2</li></ol></li></ol></li><li>0</li></ol>"),
    ],
)
def test_a_walk_through_a_tree_becomes_lists(depths: str, expected: str) -> None:
    items = [(int(depth), Html(depth)) for depth in depths]
    assert nested_list(items) == expected.replace("<ol>", '<ol class="tree">', 1)
