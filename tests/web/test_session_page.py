"""The session page: what it shows, its windows, and its links to messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import builders
from tests.builders import NAME, asks, call, chats, gemini, header, log, put, user
from tests.web.viewing import SESSION, Viewed, viewing

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
    assert "$0.0319 $0.00370 dropped" in found.text
    assert "5 prompts, 8 answers, 5 tool calls" in found.text
    assert "Previous in skywatch" in found.text
    assert "13.1k in, 145 out$0.0104" in found.text
    assert [
        tag.attributes["class"] for tag in found.named("details") if "branch" in (tag.attributes["class"] or "")
    ] == [
        "branch rolled_back",
        "branch rewound",
    ]


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
