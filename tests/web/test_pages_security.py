"""Security tests 9 to 15 of the viewer that need no browser, on every route of every page."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from itertools import cycle
from urllib.parse import quote, unquote

import msgspec
import pytest
from tests.exports.reader import Page
from tests.web.client import LABEL, Answer, Site, demo_site
from tests.web.hostile_home import ATTACHMENTS, SESSION, TITLES, write_hostile_home

from pollux.library.config import DEMO_HOME
from pollux.web.app import PAGES
from pollux.web.guard import POLICY
from pollux.web.session_links import file_header

_OTHERS = {"static/{name}", "events", "s/{session}/events"}
"""Static files, and streams, which have no end."""
PATHS = sorted({route.path.removeprefix("/") for table in PAGES for route in table} - _OTHERS)
PARAMETERS = re.compile(r"\{(\w+)[^}]*\}")
QUERY_NAMES = (
    *("q", "query", "project", "model", "tool", "since", "until", "last", "on", "has", "sort", "after", "in", "path"),
    *("detail", "thoughts", "branches", "find", "from", "to", "format", "redact", "by", "split", "measure", "all", "n"),
)
HOSTILE_VALUES = (
    *(
        "<script>owned=1</script>",
        "\"'><img src=x onerror=owned=1>",
        "\0",
        "\udcff\ud83d",
        "-1",
        "9" * 400,
        "1e999",
        "NaN",
    ),
    *(
        "../../../../etc/passwd",
        "%2e%2e%2f",
        "[" * 4000,
        '{"a":' * 900,
        "' OR 1=1 --",
        "\u202e\u2066",
        "=cmd()",
        "  ",
        "",
    ),
    *("2026-13-45", "0000-00-00", "99999999d", "javascript:owned=1", "//evil.example", "latest", "@1", "*" * 900),
)
HOSTILE_IDS = (
    *("..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "%252e%252e%252fetc%252fpasswd", "..%5c..", "%00"),
    *("%ed%a0%80", "%ff", "<script>", "@99999999999999999999", "-1", "9" * 300, "a" * 4000, "'%20OR%201=1", "*", "%25"),
    *("file:%2f%2f%2fetc%2fpasswd", "C:%5c", "latest", "~root", "archive.db", "0bad0bad%23u1", "%23"),
)
_OWN = re.compile(rf"/{LABEL}/|#|\?|https?://|data:image/(?:png|jpeg|gif|webp);base64,")
_FORBIDDEN = frozenset({"iframe", "frame", "object", "embed", "base", "applet", "style", "portal", "foreignobject"})


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("hostile")
    with demo_site(folder / "archive.db", home=write_hostile_home(folder / "home")) as site:
        yield site


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with demo_site(tmp_path_factory.mktemp("demo") / "archive.db", home=DEMO_HOME) as site:
        yield site


def filled(path: str, session: str, other: str = "1") -> str:
    """Return an address for a route: a session, and `other` for all further parameters."""
    return PARAMETERS.sub(lambda match: session if match[1] == "session" else other, path)


def check_answer(answer: Answer) -> None:
    """Check that an answer is no fault and that a page contains nothing active."""
    assert answer.status < 500, answer.text[:2000]
    policy = answer.headers["content-security-policy"]
    assert policy == POLICY or "sandbox" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "Traceback" not in answer.text
    for value in answer.headers.values():
        assert value.isprintable()
    assert "owned=1" not in answer.headers.get("set-cookie", "")
    is_download = answer.headers.get("content-disposition", "").startswith("attachment")
    if answer.headers.get("content-type", "").startswith("text/html") and not is_download:
        check_page(answer.text)


def check_page(text: str) -> None:
    """Check that a page has no script, style or handler of its own, and no address elsewhere that loads by itself."""
    for tag in Page(text).tags:
        assert tag.name not in _FORBIDDEN
        for name, value in tag.attributes.items():
            assert not name.startswith("on"), tag
            assert name not in ("style", "srcdoc", "formaction", "ping"), tag
            if name in ("href", "src", "action", "xlink:href"):
                assert _OWN.match(value or ""), tag
            if name in ("src", "action") or tag.name in ("link", "use"):
                assert name not in ("src", "action", "href") or re.match(rf"/{LABEL}/|#|data:image/", value or ""), tag
        if tag.name == "script":
            assert "src" in tag.attributes or tag.attributes.get("type") == "application/json"
        if tag.name == "meta":
            assert "http-equiv" not in tag.attributes
        if tag.name == "a" and re.match("https?:", tag.attributes.get("href") or ""):
            assert "noopener" in (tag.attributes.get("rel") or "") or "noreferrer" in (tag.attributes.get("rel") or "")


@pytest.mark.parametrize("path", PATHS)
def test_every_page_of_the_demo_is_inert(shared_site: Site, path: str) -> None:
    answer = shared_site.get(filled(path, "latest"))
    check_answer(answer)


@pytest.mark.parametrize("path", PATHS)
def test_hostile_sessions_stay_text_on_every_page(hostile_site: Site, path: str) -> None:
    sessions = [SESSION, *(f"{number:08x}" for number in range(len(TITLES)))] if "{session}" in path else [""]
    for session in sessions:
        for query in ("", "?detail=full&thoughts=1&branches=all&q=owned&find=owned&from=1&to=9&format=html"):
            check_answer(hostile_site.get(filled(path, session) + query))


@pytest.mark.parametrize("path", PATHS)
def test_hostile_parameters_are_no_fault(shared_site: Site, path: str) -> None:
    address = filled(path, "latest")
    for name, value in zip(cycle(QUERY_NAMES), HOSTILE_VALUES * 2, strict=False):
        check_answer(shared_site.get(f"{address}?{name}={quote(value, errors='surrogatepass')[:8000]}"))
    everything = "&".join(f"{name}=%3Cscript%3Eowned=1" for name in QUERY_NAMES)
    check_answer(shared_site.get(f"{address}?{everything}"))
    check_answer(shared_site.get(f"{address}?" + "q=a&" * 2000))


@pytest.mark.parametrize("path", [path for path in PATHS if "{" in path] + ["static/{name}"])
def test_no_name_in_an_address_leads_to_another_file(shared_site: Site, path: str) -> None:
    for name in HOSTILE_IDS:
        for address in {filled(path, name), filled(path, "latest", name), filled(path, name, name)}:
            answer = shared_site.get(address)
            check_answer(answer)
            assert b"root:x:0" not in answer.body


def test_traversal_with_plain_dots_finds_nothing(shared_site: Site) -> None:
    for address in (
        "static/../../../etc/passwd",
        "../etc/passwd",
        "static//etc/passwd",
        "s/latest/file/../../x",
        ".",
        "./",
    ):
        answer = shared_site.get(address)
        assert answer.status in (401, 404), address
        assert b"root:x:0" not in answer.body


def test_attachments_are_downloads(hostile_site: Site) -> None:
    answers = [hostile_site.get(f"s/{SESSION}/file/1.{number}") for number in range(len(ATTACHMENTS))]
    assert [answer.body for answer in answers] == [*ATTACHMENTS.values()]
    for answer in answers:
        check_answer(answer)
        assert answer.headers["content-disposition"].startswith("attachment")
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["content-type"] == "application/octet-stream"
    assert hostile_site.get(f"s/{SESSION}/file/1.{len(ATTACHMENTS)}").status == 404


def test_a_hostile_title_stays_in_its_place(hostile_site: Site) -> None:
    for number in range(len(TITLES)):
        answer = hostile_site.get(f"s/{number:08x}")
        assert answer.status == 200
        assert re.search(r"<title>[^<>]+ · Pollux</title>", answer.text)
        for format_name in ("html", "markdown", "json"):
            export = hostile_site.get(f"s/{number:08x}/export?format={format_name}")
            assert export.status == 200
            name = export.headers["content-disposition"]
            assert re.fullmatch(r'attachment; filename="[^"\\/<>]+"; filename\*=UTF-8\'\'[\w.%~-]+', name), name


def _nested(value: object, depth: int) -> object:
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("path", ["sessions", "search", "files", "api/sessions", "api/search", "api/files"])
def test_a_forged_cursor_is_explained(shared_site: Site, path: str) -> None:
    """Cursors are decoded, so deep, long and wrong ones are tried, in both encodings."""
    values = [{}, None, 1, -1, "x", [1, 2], ["", [0, None, None], [0, 0], None], _nested(0, 200), "x" * 4000, [2**63]]
    packed = [base64.urlsafe_b64encode(msgspec.msgpack.encode(value)).decode() for value in values]
    plain = [base64.urlsafe_b64encode(msgspec.json.encode(value)).decode() for value in values]
    deepest = base64.urlsafe_b64encode(b"\x91" * 5000 + b"\x00").decode()
    for cursor in (*packed, *plain, deepest, "9" * 5000, "%00", "%ff", "=", "A", "٣"):
        answer = shared_site.get(f"{path}?q=alerts&after={quote(cursor, safe='%')}")
        check_answer(answer)
        assert answer.status in (200, 400, 422)


@pytest.mark.parametrize(
    "path", ["nowhere", "s/zzzz", "s/0", "projects/zzzz", "sessions?since=never", "search?q=(", "s/latest/99999"]
)
def test_an_error_page_is_inert_too(hostile_site: Site, path: str) -> None:
    answer = hostile_site.get(path)
    assert 300 <= answer.status < 500
    check_answer(answer)
    assert answer.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize(
    "name",
    ['a";\r\nset-cookie: owned=1;"', 'x.html"; filename="evil.exe', "é超时\u202e.exe", "../../a/b", "\ud800\x00\n"],
)
def test_a_hostile_name_stays_in_the_header_of_a_download(name: str) -> None:
    header = file_header(name)
    match = re.fullmatch(r"attachment; filename=\"([A-Za-z0-9._-]*)\"; filename\*=UTF-8''([A-Za-z0-9._~%-]*)", header)
    assert match, header
    assert len(match[1]) == len(name)
    assert unquote(match[2]) == name.replace("\ud800", "?")
