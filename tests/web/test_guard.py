"""Security tests 1, 2, 3, 5, 6, 8, 10, 13, 14 and 20 of the viewer, at the layer in front of all routes."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.web.client import HOST, LABEL, Answer, Headers, Site, ask, demo_site

from pollux.errors import PolluxError, SessionNotFoundError
from pollux.library.library import Library
from pollux.web.app import PAGES
from pollux.web.failures import code_of, status_of
from pollux.web.guard import Guard, Pass, proof
from pollux.web.routing import StreamedResponse, page
from pollux.web.tickets import LIFETIME, Tickets

PRIVATE = "/home/ada/secret.json"
EVIL = "https://evil.example"


def hello(_request: Request, _library: Library) -> Response:
    return PlainTextResponse("hello")


def fail(_request: Request, _library: Library) -> Response:
    raise ValueError(PRIVATE)


def fail_late(_request: Request, _library: Library) -> Response:
    def pieces() -> list[str]:
        raise SessionNotFoundError("abc", 3)

    return StreamedResponse(piece for piece in pieces())


def fail_in_the_middle(request: Request, _library: Library) -> Response:
    def pieces() -> Iterator[str]:
        yield "<main>half"
        raise SessionNotFoundError("<abc>", 3) if "known" in request.query_params else ValueError(PRIVATE)

    return StreamedResponse(pieces(), media_type=request.query_params.get("type", "text/html"))


PROBES = (
    Route("/", page(hello)),
    Route("/fail", page(fail)),
    Route("/late", page(fail_late)),
    Route("/half", page(fail_in_the_middle)),
    Route("/api/fail", page(fail)),
    Route("/api/late", page(fail_late)),
)


@pytest.fixture
def probes(tmp_path: Path) -> Iterator[Site]:
    with demo_site(tmp_path / "archive.db", [PROBES, *PAGES]) as site:
        yield site


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
DOOR_POLICY = (
    "default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""What the pages of the guard allow. Both are written out, so that no change to them goes unseen."""


def check_headers(answer: Answer) -> None:
    policy = answer.headers["content-security-policy"]
    assert policy == POLICY or re.fullmatch(DOOR_POLICY, policy)
    assert "frame-ancestors 'none'" in policy
    assert "base-uri 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "server" not in answer.headers


def all_paths() -> list[str]:
    """Return an address for every route, with something for each parameter."""
    paths = [route.path for table in PAGES for route in table]
    return sorted(
        {re.sub(r"\{[^}]*\}", "1", path).removeprefix("/") for path in paths} | {"", "no/such/page", "events"}
    )


@pytest.mark.parametrize("path", all_paths())
def test_without_the_cookie_no_route_answers(site: Site, path: str) -> None:
    foreign_cookies = (
        "",
        "pollux-2990=",
        f"pollux-2990={'A' * 43}",
        f"pollux-2991={site.entry.cookie}",
        "pollux-2990=\xff",
    )
    for cookie in foreign_cookies:
        answer = ask(site.app, site.root + path, (HOST, ("cookie", cookie)))
        assert answer.status == 401
        assert "set-cookie" not in answer.headers
        assert LABEL not in answer.text
        check_headers(answer)
    page = ask(site.app, site.root + path.removeprefix("api/"))
    assert "<code>pollux web</code>" in page.text or path.startswith("api")


@pytest.mark.parametrize(
    "path", ["/", "", "/favicon.ico", "/alive", "/in", f"/{LABEL}", f"/{LABEL[:-1]}/", "/x/in?t=1"]
)
def test_addresses_outside_of_the_label_do_not_exist_for_anybody(site: Site, path: str) -> None:
    answer = ask(site.app, path or "/", (HOST, site.cookie))
    assert answer.status == 401
    assert LABEL not in answer.text


def test_the_right_cookie_is_found_among_others(probes: Site) -> None:
    name, value = probes.cookie
    for cookie in (f"a=b; {value}", f"{value};theme=dark", f"pollux-2990=wrong; {value}"):
        assert ask(probes.app, probes.root, (HOST, (name, cookie))).text == "hello"
    assert ask(probes.app, probes.root, (HOST, (name, "a=b"), (name, value))).text == "hello"


def test_a_ticket_sets_the_cookie_and_leads_to_the_first_page(probes: Site) -> None:
    answer = ask(probes.app, f"{probes.root}in?t={probes.tickets.issue()}")
    assert answer.status == 200
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert attributes == ["HttpOnly", "SameSite=Strict", f"Path=/{LABEL}/"]
    assert f'content="0; url=/{LABEL}/"' in answer.text
    assert ask(probes.app, probes.root, (HOST, ("cookie", cookie))).text == "hello"
    check_headers(answer)


def test_a_wrong_used_or_old_ticket_is_refused(site: Site) -> None:
    used = site.tickets.issue()
    assert ask(site.app, f"{site.root}in?t={used}").status == 200
    for query in (f"?t={used}", "?t=wrong", "?t=", "", "?t=%00", "?t=%ff", "?" + "t=a&" * 300):
        answer = ask(site.app, f"{site.root}in{query}")
        assert answer.status == 403
        assert "set-cookie" not in answer.headers
        check_headers(answer)
    now = 0.0
    site.app._tickets = Tickets(seconds=lambda: now)
    old = site.app._tickets.issue()
    now += LIFETIME
    assert ask(site.app, f"{site.root}in?t={old}").status == 403


def test_a_ticket_lets_one_of_two_threads_in(site: Site) -> None:
    for _ in range(20):
        target = f"{site.root}in?t={site.tickets.issue()}"
        barrier = threading.Barrier(2)

        def enter(target: str = target, barrier: threading.Barrier = barrier) -> Answer:
            barrier.wait()
            return ask(site.app, target)

        with ThreadPoolExecutor(2) as threads:
            answers = [future.result() for future in [threads.submit(enter), threads.submit(enter)]]
        assert sorted(answer.status for answer in answers) == [200, 403]
        assert len([answer for answer in answers if "set-cookie" in answer.headers]) == 1


def test_a_reloaded_sign_in_page_leads_on(site: Site) -> None:
    answer = ask(site.app, f"{site.root}in?t=used", (HOST, site.cookie))
    assert answer.status == 200
    assert "set-cookie" not in answer.headers


def test_head_does_not_use_a_ticket_up(site: Site) -> None:
    ticket = site.tickets.issue()
    assert ask(site.app, f"{site.root}in?t={ticket}", method="HEAD").status == 403
    assert ask(site.app, f"{site.root}in?t={ticket}").status == 200


@pytest.mark.parametrize(
    ("to", "target"),
    [
        ("s/0363a0b0/12", "s/0363a0b0/12"),
        ("usage", "usage"),
        ("//evil.example", ""),
        ("/evil.example", ""),
        ("../x/", ""),
        ("s/../../x", ""),
        ("https:evil.example", ""),
        ("x%22%3E%3Cscript%3E", ""),
        ("a%0d%0ab", ""),
        ("", ""),
    ],
)
def test_a_ticket_leads_only_below_the_label(site: Site, to: str, target: str) -> None:
    answer = ask(site.app, f"{site.root}in?t={site.tickets.issue()}&to={to}")
    assert re.findall(r'url=([^"]*)"', answer.text) == [f"/{LABEL}/{target}"]


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        (["127.0.0.1:2990"], 200),
        (["127.0.0.1"], 200),
        (["localhost:2990"], 200),
        (["localhost:8080"], 200),  # ssh -L
        (["LOCALHOST:2990"], 200),
        (["evil.example"], 421),
        (["evil.example:2990"], 421),
        (["127.0.0.1.evil.example"], 421),
        (["127.0.0.1.evil"], 421),
        (["evil.127.0.0.1"], 421),
        (["localhost."], 421),
        (["localhost.:2990"], 421),
        (["localhost.evil:2990"], 421),
        (["127.0.0.2"], 421),
        (["127.1"], 421),
        (["2130706433"], 421),
        (["0.0.0.0:2990"], 421),
        (["[::1]:2990"], 421),
        (["127.0.0.1:2990@evil.example"], 421),
        (["evil.example@127.0.0.1:2990"], 421),
        (["127.0.0.1:"], 421),
        (["127.0.0.1:999999"], 421),
        (["127.0.0.1:2990\n"], 421),
        ([" 127.0.0.1"], 421),
        ([""], 421),
        ([], 421),
        (["127.0.0.1:2990", "127.0.0.1:2990"], 421),
        (["127.0.0.1:2990", "evil.example"], 421),
    ],
)
def test_only_this_computer_is_a_valid_host(probes: Site, hosts: list[str], status: int) -> None:
    answer = ask(probes.app, probes.root, [*(("host", host) for host in hosts), probes.cookie])
    assert answer.status == status
    assert "evil" not in answer.text
    check_headers(answer)


def test_a_foreign_host_is_refused_everywhere(site: Site) -> None:
    for path in (
        "/",
        "/alive",
        f"{site.root}in?t={site.tickets.issue()}",
        f"{site.root}static/x.css",
        f"{site.root}api/x",
    ):
        assert ask(site.app, path, [("host", "rebound.example"), site.cookie]).status == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:2990", 200),
        ("HTTP://127.0.0.1:2990", 200),
        ("null", 403),
        ("", 403),
        ("https://127.0.0.1:2990", 403),
        ("http://127.0.0.1", 403),
        ("http://127.0.0.1:8000", 403),
        ("http://localhost:2990", 403),
        (EVIL, 403),
        ("http://127.0.0.1:2990.evil.example", 403),
        ("http://127.0.0.1:2990, http://evil.example", 403),
        ("file://", 403),
    ],
)
def test_a_foreign_origin_is_refused(probes: Site, origin: str, status: int) -> None:
    answer = probes.get(headers=[("origin", origin)])
    assert answer.status == status
    check_headers(answer)


def fetch_headers(site: str, mode: str = "", dest: str = "") -> Headers:
    values = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    return [(name, value) for name, value in values.items() if value]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (fetch_headers("none", "navigate", "document"), 200),
        (fetch_headers("same-origin", "navigate", "document"), 200),
        (fetch_headers("same-origin", "cors", "empty"), 200),
        (fetch_headers("cross-site", "no-cors", "image"), 403),
        (fetch_headers("cross-site", "no-cors", "script"), 403),
        (fetch_headers("cross-site", "cors", "empty"), 403),
        (fetch_headers("cross-site", "navigate", "iframe"), 403),
        (fetch_headers("cross-site", "navigate", "object"), 403),
        (fetch_headers("same-site", "no-cors", "image"), 403),
        (fetch_headers("same-site", "navigate", "frame"), 403),
        (fetch_headers("same-site"), 403),
        (fetch_headers("cross-site", "navigate", "document"), 403),
        (fetch_headers("same-site", "navigate", "document"), 403),
        (fetch_headers("invented", "cors"), 403),
    ],
)
def test_requests_of_other_sites_are_refused(probes: Site, headers: Headers, status: int) -> None:
    answer = probes.get(headers=headers)
    assert answer.status == status
    assert (answer.text == "hello") == (status == 200)
    check_headers(answer)


@pytest.mark.parametrize("site_of_link", ["cross-site", "same-site"])
def test_a_link_from_elsewhere_gets_a_page_with_a_link(probes: Site, site_of_link: str) -> None:
    headers = fetch_headers(site_of_link, "navigate", "document")
    answer = probes.get("s/1%22%3E%3Cb%3E?find=a%22b&x=%3Cscript%3E", headers)
    assert re.findall(r'href="([^"]*)"', answer.text) == [f"/{LABEL}/s/1%22%3E%3Cb%3E?find=a%22b&amp;x=%3Cscript%3E"]
    assert "<script" not in answer.text
    assert "<b>" not in answer.text
    elsewhere = ask(probes.app, "//evil.example/x", (HOST, *headers))
    assert "href" not in elsewhere.text


def test_a_ticket_works_from_a_file_but_not_from_an_image(site: Site) -> None:
    target = f"{site.root}in?t={site.tickets.issue()}"
    for headers in (fetch_headers("cross-site", "no-cors", "image"), fetch_headers("cross-site", "navigate", "iframe")):
        assert ask(site.app, target, (HOST, *headers)).status == 403
    assert ask(site.app, target, (HOST, *fetch_headers("cross-site", "navigate", "document"))).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "TRACE", "OPTIONS", "PATCH", "CONNECT", "get", "INVENTED"])
@pytest.mark.parametrize("path", ["", "in", "static/x", "api/sessions"])
def test_only_get_and_head_are_methods(site: Site, method: str, path: str) -> None:
    answer = ask(site.app, site.root + path, (HOST, site.cookie), method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"
    check_headers(answer)


def test_head_has_the_headers_of_get(probes: Site) -> None:
    answer = ask(probes.app, probes.root, (HOST, probes.cookie), "HEAD")
    assert answer.status == 200
    check_headers(answer)


@pytest.mark.parametrize("target", ["?q=" + "a" * 70_000, "?" + "a=1&" * 10_000, "s/" + "a" * 9_000])
def test_a_long_address_is_refused(probes: Site, target: str) -> None:
    answer = probes.get(target)
    assert answer.status == 414
    assert len(answer.body) < 1000
    check_headers(answer)


def test_the_longest_query_passes(probes: Site) -> None:
    assert probes.get("?" + "a" * 8192).text == "hello"


def test_what_is_not_http_gets_no_answer(site: Site) -> None:
    async def nothing(*_: object) -> dict[str, object]:
        raise AssertionError

    asyncio.run(site.app({"type": "websocket", "path": site.root}, nothing, nothing))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["fail", "api/fail"])
def test_a_fault_of_pollux_shows_neither_path_nor_traceback(probes: Site, path: str) -> None:
    answer = probes.get(path)
    assert answer.status == 500
    for secret in ("Traceback", "ValueError", PRIVATE, "test_guard", ".py", "line "):
        assert secret not in answer.text
    assert [type(error) for error in probes.failures] == [ValueError]
    check_headers(answer)
    if path.startswith("api"):
        assert json.loads(answer.body)["schema"] == "pollux.error/1"


def test_a_fault_outside_of_all_routes_says_as_little() -> None:
    async def broken(*_: object) -> None:
        raise ValueError(PRIVATE)

    entry, failures = Pass(LABEL, 2990), list[Exception]()
    cookie = ("cookie", f"{entry.cookie_name}={entry.cookie}")
    answer = ask(Guard(broken, entry, Tickets(), failures.append), entry.root, (HOST, cookie))
    assert answer.status == 500
    assert "This is a bug in Pollux." in answer.text
    for secret in ("Traceback", "ValueError", PRIVATE, ".py", "line "):
        assert secret not in answer.text
    assert [type(error) for error in failures] == [ValueError]
    check_headers(answer)


def test_a_page_that_cannot_be_completed_ends_with_a_sentence(probes: Site) -> None:
    answer = probes.get("half")
    assert answer.text.startswith("<main>half<div")
    assert "The rest of this page is missing." in answer.text
    assert "This is a bug in Pollux." in answer.text
    assert PRIVATE not in answer.text
    assert [type(error) for error in probes.failures] == [ValueError]


def test_a_page_that_ends_with_an_error_of_the_library_says_which(probes: Site) -> None:
    answer = probes.get("half?known=1")
    assert "The rest of this page is missing." in answer.text
    assert "No session matches &#x27;&lt;abc&gt;&#x27;" in answer.text
    assert not probes.failures


def test_a_fault_in_the_middle_of_another_answer_breaks_the_connection(probes: Site) -> None:
    with pytest.raises(ValueError, match="secret"):
        probes.get("half?type=application/json")
    assert len(probes.failures) == 1


def test_an_error_of_the_library_before_the_first_piece_is_a_page(probes: Site) -> None:
    answer = probes.get("late")
    assert answer.status == 404
    assert "No session matches &#x27;abc&#x27;" in answer.text
    assert "<code>pollux ls --all</code>" in answer.text
    check_headers(answer)
    document = json.loads(probes.get("api/late").body)
    assert document == {
        "schema": "pollux.error/1",
        "code": "session-not-found",
        "message": "No session matches 'abc' (3 searched).",
        "hint": "Run `pollux ls --all` to list sessions.",
    }
    assert not probes.failures


@pytest.mark.parametrize("path", ["nowhere", "s", "static/", "static/base.css", "a/b/c/d", "%00", "%ff%fe"])
def test_an_unknown_address_is_a_page(site: Site, path: str) -> None:
    answer = site.get(path)
    assert answer.status in (404, 422)
    check_headers(answer)


def test_alive_needs_the_secret_and_proves_to_know_it(site: Site) -> None:
    asked = proof(site.entry.secret, "ask", "n1")
    for header in ("", "wrong", proof(site.entry.secret, "answer", "n1"), proof(site.entry.secret, "ask", "n2")):
        assert ask(site.app, "/alive?nonce=n1", (HOST, ("authorization", header))).status == 401
    answer = json.loads(ask(site.app, "/alive?nonce=n1", (HOST, ("authorization", asked))).body)
    assert answer["proof"] == proof(site.entry.secret, "answer", "n1")
    assert ask(site.app, f"{site.root}in?t={answer['ticket']}").status == 200


def test_every_error_of_the_library_has_a_status_and_a_code() -> None:
    def kinds(of: type[PolluxError]) -> list[type[PolluxError]]:
        return [of, *(deeper for kind in of.__subclasses__() for deeper in kinds(kind))]

    for kind in kinds(PolluxError):
        error = kind.__new__(kind)
        assert 300 <= status_of(error) < 600
        assert status_of(error) != 500
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code_of(error)), kind
