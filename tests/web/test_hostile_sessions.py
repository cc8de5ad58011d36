"""Hostile text in every field of a session stays text on every page."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

import pytest
from tests.builders import SESSION
from tests.exports.hostile import EVIL
from tests.exports.reader import Page
from tests.web.homes import AGENT, hostile_home
from tests.web.viewing import LABEL, Viewed, viewing

from pollux.web.app import PAGES
from pollux.web.openapi import PATHS as API_PATHS

INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
HARMLESS = re.compile(rf"#|/{LABEL}/|https?://|mailto:|data:image/(png|jpeg|gif|webp);base64,")
PATHS = (
    "",
    "usage",
    "usage?split=project",
    "usage?split=tool",
    "usage?by=week&measure=tokens&model=%3Cscript%3E",
    f"s/{AGENT}?detail=full",
    f"s/{SESSION}",
    f"s/{SESSION}?detail=full&branches=1",
    f"s/{SESSION}?detail=full&branches=0&find=%3Cscript%3E",
    f"s/{SESSION}/2",
    f"s/{SESSION}/part?from=1",
    f"s/{SESSION}/outline",
    f"s/{SESSION}/find?q=%3Cscript%3E",
    f"s/{SESSION}/raw",
    f"s/{SESSION}/raw/2",
    f"s/{SESSION}/export",
    f"s/{SESSION}/tree",
    f"s/{SESSION}/calls",
    "sessions",
    "sessions?all=1",
    "sessions?q=%22%3Cscript%3E%22&model=%3Cscript%3E&tool=%3Cb%3E",
    "search?q=owned",
    "search?q=%22%3Cscript%3E%22&project=&sort=newest",
    *(f"search?q=owned&in={part}" for part in ("prompt", "answer", "thoughts", "args", "output", "notice")),
    "search?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%20nothing%20like%20this",
    "projects",
    "files",
    "files?path=%3Cscript%3E",
    "health",
)


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    folder = tmp_path_factory.mktemp("hostile")
    with viewing(folder, [hostile_home(folder / "home")]) as made:
        yield made


@pytest.mark.parametrize("path", PATHS)
def test_hostile_text_stays_text(viewed: Viewed, path: str) -> None:
    text = viewed.get(path)
    found = Page(text)
    for tag in found.tags:
        assert tag.name not in {"iframe", "base", "style", "object", "embed"}
        assert not {name for name in tag.attributes if name.startswith("on")} | {"style"} & tag.attributes.keys()
        if tag.name == "script":
            assert (tag.attributes.get("src") or "").startswith(f"/{LABEL}/static/")
        for name in ("href", "src", "action"):
            target = tag.attributes.get(name)
            assert target is None or HARMLESS.match(target), target
    assert "script" not in found.raw or not found.raw["script"].strip()
    assert not INVISIBLE.search(text)


def test_a_hostile_name_of_no_project_stays_text(viewed: Viewed) -> None:
    page = viewed.page("usage?project=%3Cb%3Enowhere", 404)
    assert "No project matches '<b>nowhere'." in page.text
    assert not page.named("b")


def test_session_page_shows_the_hostile_words(viewed: Viewed) -> None:
    shown = viewed.page(f"s/{SESSION}?detail=full").text
    assert shown.count("<script>window.owned=1</script>") > 5
    assert EVIL.splitlines()[0][:40] in viewed.page("sessions").text


def test_every_page_is_tried() -> None:
    """A new page must be added to `PATHS`, unless it is for programs, a download or a redirect."""
    others = {
        *("/static/{name}", "/s/{session}/file/{file}", "/s/{session}/id/{message}", "/projects/{hash}"),
        *("/events", "/s/{session}/events"),
    }
    tried = set()
    for path in PATHS:
        plain = re.sub(r"\?.*", "", path).replace(SESSION, "{session}")
        tried.add("/" + re.sub(r"/\d+$", "/{number}", plain))
    routes = {route.path.replace("{number:str}", "{number}") for table in PAGES for route in table}
    own = {route for route in routes if not route.startswith("/api/")}
    assert own - others <= tried


@pytest.mark.parametrize("path", API_PATHS)
def test_answer_for_programs_is_never_a_page(viewed: Viewed, path: str) -> None:
    """A browser that opens it shows text: its type is JSON, and nobody may guess another one."""
    address = path.removeprefix("/").format(session=SESSION, number=2)
    answer = viewed.answer(address, q="owned")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["schema"].startswith("pollux.")


def test_table_for_programs_has_no_formula(viewed: Viewed) -> None:
    for name in ("sessions", "usage"):
        answer = viewed.answer(f"api/{name}", format="csv", **({"by": "model"} if name == "usage" else {}))
        assert answer.headers["content-type"].startswith("text/csv")
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}.csv"'
        for row in csv.reader(io.StringIO(answer.text, newline="")):
            assert not [cell for cell in row if cell.startswith(("=", "+", "@", "\t", "\r"))]


@pytest.mark.parametrize(
    ("file", "media_type"),
    [("1.0", "image/png"), ("1.1", "application/octet-stream"), ("1.2", "application/octet-stream")],
)
def test_attachment_is_a_download(viewed: Viewed, file: str, media_type: str) -> None:
    """A page, and a script that claims to be a picture, never get the type they claim."""
    answer = viewed.answer(f"s/{SESSION}/file/{file}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == media_type
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("file", ["1.9", "9.0", "x", "1.x", "0", "-1.0", "1.-1"])
def test_attachment_that_does_not_exist_is_not_found(viewed: Viewed, file: str) -> None:
    assert viewed.answer(f"s/{SESSION}/file/{file}").status_code == 404


def test_export_is_a_redacted_download(viewed: Viewed) -> None:
    for name in ("html", "markdown", "json", "events"):
        answer = viewed.answer(f"s/{SESSION}/export", format=name)
        assert answer.status_code == 200, answer.text[:500]
        assert answer.headers["content-disposition"].startswith('attachment; filename="session-6ece72aa')
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.content
    assert viewed.answer(f"s/{SESSION}/export", format="exe").status_code == 400
    assert viewed.answer(f"s/{SESSION}/export", format="html", redact="maybe").status_code == 400


def test_raw_file_is_a_download(viewed: Viewed) -> None:
    answer = viewed.answer(f"s/{SESSION}/raw", file=1)
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.content.startswith(b'{"sessionId"')
    assert viewed.answer(f"s/{SESSION}/raw", file=9).status_code == 400
