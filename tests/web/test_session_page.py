"""The session page: what it shows, its windows, and its links to messages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.web.viewing import SESSION, Viewed, viewing


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
