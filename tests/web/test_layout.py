"""The frame of a page: bar, search field, footer, addresses and the weight of its files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from pollux.render.html.markup import Html, element
from pollux.render.html.style_sheets import STYLES
from pollux.web.layout import PLACES, address, document
from pollux.web.static_names import ASSETS, PALETTE, asset_content, asset_name, asset_names

HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'&\u202e\x00\ud800"


def client(body: Iterable[Html], **options: object) -> TestClient:
    """Return a client of a server whose every page has this body."""

    def answer(request: Request) -> Response:
        return document(request, HOSTILE, body, **options)  # type: ignore[arg-type]

    app = Starlette(routes=[Mount("/label12345", routes=[Route("/{rest:path}", answer)])])
    app.state.label = "label12345"
    return TestClient(app, base_url="http://127.0.0.1")


def page(path: str = "/label12345/", **options: object) -> str:
    """Return the text of a page with one paragraph."""
    response = client([element("p", HOSTILE)], **options).get(path)
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    return response.text


def request_with_label(label: str) -> Request:
    """Return a request to a server with a label."""
    app = Starlette()
    app.state.label = label
    return Request({"type": "http", "app": app, "headers": []})


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("", {}, "/abc/"),
        ("s/0363a0b0/12", {"detail": "full"}, "/abc/s/0363a0b0/12?detail=full"),
        ("sessions", {"q": "a b&c=d#e", "project": None, "since": ""}, "/abc/sessions?q=a+b%26c%3Dd%23e"),
        ("sessions", {"has": ["errors", "dropped"]}, "/abc/sessions?has=errors&has=dropped"),
        ("s/x", {"thoughts": False, "from_": 3}, "/abc/s/x?thoughts=0&from=3"),
        ("s/../<b>?\n", {}, "/abc/s/../%3Cb%3E%3F%0A"),
        ("sessions", {"q": "\ud800"}, "/abc/sessions?q=%3F"),
    ],
)
def test_an_address_is_below_the_label_and_escaped(path: str, query: dict[str, str], expected: str) -> None:
    assert address(request_with_label("abc"), path, **query) == expected


def test_text_of_a_session_is_never_markup() -> None:
    text = page("/label12345/search?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", place=HOSTILE, footer=[HOSTILE])
    assert "<img" not in text
    assert re.findall(r"<script[^>]*>", text) == [f'<script src="/label12345/static/{asset_name("base.js")}">']
    assert not re.search(r"<[^>]*\s(style|on\w+)=", text)
    assert "\x00" not in text
    assert "\u202e" not in text
    assert 'value="&quot;&gt;&lt;script&gt;' in text


def test_only_the_search_page_repeats_its_query() -> None:
    assert 'value="words"' in page("/label12345/search?q=words")
    assert 'value="words"' not in page("/label12345/sessions?q=words")


@pytest.mark.parametrize("place", PLACES)
def test_the_bar_marks_one_place(place: str) -> None:
    text = page(place=place)
    assert re.findall(r'aria-current="page">(\w+)<', text) == [place]


def test_landmarks_exist_once() -> None:
    text = page()
    for mark in ("<header", "<main", "<footer", 'role="search"', 'aria-label="Main"', 'class="skip"', "<title>"):
        assert text.count(mark) == 1, mark


def test_a_page_may_have_its_own_main() -> None:
    body = [element("nav", "Prompts"), element("main", "Thread", id="main", class_="paper")]
    text = client(body, main=None).get("/label12345/").text
    assert text.count("<main") == 1
    assert 'class="paper"' in text


def test_an_error_in_the_first_piece_is_not_half_a_page() -> None:
    def body() -> Iterator[Html]:
        raise ValueError("no archive")
        yield Html()

    with pytest.raises(ValueError, match="no archive"):
        client(body()).get("/label12345/")


def test_names_of_files_change_with_their_content() -> None:
    assert re.fullmatch(r"base\.[0-9a-f]{12}\.css", asset_name("base.css"))


def test_a_name_has_the_digest_of_what_is_served() -> None:
    for name in asset_names():
        assert hashlib.sha256(asset_content(name)).hexdigest()[:12] in asset_name(name)


def test_style_sheets_are_served_without_comments_and_line_breaks() -> None:
    frame, lists, session = (STYLES / "frame.css", ASSETS / "base.css", STYLES / "session.css")
    for name, files in (("base.css", (frame, lists)), ("session.css", (session,))):
        text = asset_content(name).decode()
        written = "".join(file.read_text("utf-8") for file in files)
        assert "/*" in written
        assert "/*" not in text
        assert "\n" not in text
        assert text.count("{") == text.count("}") == written.count("{")


def test_scripts_have_no_text_over_several_lines() -> None:
    """Their indentation is removed when they are served."""
    for path in ASSETS.glob("*.js"):
        code = path.read_text("utf-8")
        assert all(line.count("`") % 2 == 0 for line in code.splitlines()), path.name
        assert "/*" not in re.sub(r"/\*.*?\*/", "", code), path.name
        assert len(asset_content(path.name)) < len(code.encode()), path.name


def test_files_stay_within_their_budget() -> None:
    sizes = {name: len(asset_content(name)) for name in asset_names()}
    styles = sum(size for name, size in sizes.items() if name.endswith(".css") and name != PALETTE)
    scripts = sum(size for name, size in sizes.items() if name.endswith(".js"))
    assert styles <= 30_000
    assert scripts <= 25_000
    assert sizes[PALETTE] <= 16_000  # only pages with terminal colours load it


def test_files_name_no_other_host_and_evaluate_nothing() -> None:
    for path in (*ASSETS.iterdir(), *STYLES.iterdir()):
        text = path.read_text("utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http:" not in text, path.name
        assert "https:" not in text, path.name
        assert "@import" not in text, path.name
        assert "innerHTML" not in text or path.name == "session.js", path.name
        assert "eval(" not in text, path.name
