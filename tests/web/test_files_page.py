"""The page of files, and the history of one file."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs

import pytest
from tests.web.viewing import Viewed, links, viewing


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    with viewing(tmp_path_factory.mktemp("viewer")) as made:
        yield made


def test_each_file_is_listed_once(viewed: Viewed) -> None:
    page = viewed.page("files")
    names = [tag for tag in links(page) if tag.startswith("files?path=")]
    assert len(names) == len({*names}) == 19
    assert "1–19 of 19" in page.text


@pytest.mark.parametrize(
    "path", ["files", "files?q=*.py", "files?q=src+*.rs", "files?project=skywatch", "files?limit=5"]
)
def test_list_as_json_has_the_same_files(viewed: Viewed, path: str) -> None:
    page = viewed.page(path)
    (link,) = [target for target in links(page) if target.startswith("api/files/used")]
    document = viewed.json(link)
    assert document["schema"] == "pollux.used_files/1"
    targets = [target for target in links(page) if target.startswith("files?path=")]
    assert [row["path"] for row in document["files"]] == [parse_qs(target)["files?path"][0] for target in targets]
    assert f"of {document['total']}" in page.text


def test_words_and_project_narrow_the_list(viewed: Viewed) -> None:
    page = viewed.page("files", q="src *.rs")
    names = [tag for tag in links(page) if tag.startswith("files?path=")]
    assert len(names) == 4
    assert "No tool call read or changed a file that matches" in viewed.page("files", q="zzz").text
    key = names[0].partition("project=")[2]
    assert "tide-tables" in viewed.page(f"files?project={key}").text
    assert viewed.answer("files", project="no-such-project").status_code == 404


def test_history_shows_diffs_and_links_to_messages(viewed: Viewed) -> None:
    page = viewed.page("files?path=skywatch/alerts.py")
    assert "2 reads and changes" in page.text
    assert "def key_of(rule: str, now: datetime) -> str:" in page.text
    (fold,) = page.named("details")
    assert "open" in fold.attributes
    targets = [target for target in links(page) if target.startswith("s/")]
    assert len(targets) == 2
    for target in targets:
        assert "alerts.py" in viewed.page(f"{target}?detail=full").text


def test_history_of_an_unknown_file_says_so(viewed: Viewed) -> None:
    assert "No tool call read or changed this file" in viewed.page("files?path=%3Cb%3Enowhere%3C/b%3E").text


def test_json_of_a_file_has_the_same_touches(viewed: Viewed) -> None:
    touches = viewed.json("api/files?path=skywatch/alerts.py")
    assert touches["total"] == 2
    assert {row["path"] for row in touches["files"]} == {"/home/mara/src/skywatch/skywatch/alerts.py"}
