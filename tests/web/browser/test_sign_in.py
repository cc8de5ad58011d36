"""Sign in as a browser does; other sites and other ports get nothing. Security tests 4, 7 and 14 of the viewer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from tests.web.browser.driving import Browser, BrowserTab
from tests.web.browser.serving import Served, serving

SESSION = "602c50c2"


class OtherSite(NamedTuple):
    """A server on another port of this computer."""

    origin: str
    cookies: list[tuple[str, str | None]]
    """Path and cookies of each request."""
    pages: dict[str, str]


@pytest.fixture
def other_site() -> Iterator[OtherSite]:
    cookies: list[tuple[str, str | None]] = []
    pages: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append((self.path, self.headers.get("cookie")))
            body = pages.get(self.path, "<!doctype html><title>Other</title>").encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield OtherSite(f"http://127.0.0.1:{server.server_port}", cookies, pages)
        server.shutdown()
        thread.join()


def wait_for_page(tab: BrowserTab, path: str = "") -> None:
    tab.wait(f"location.pathname === {tab.root + path!r} && document.readyState === 'complete'")


@pytest.mark.parametrize("path", ["", f"s/{SESSION}/12"])
def test_a_typed_address_signs_in_once(browser: Browser, served: Served, path: str) -> None:
    ticket = f"in?t={served.ticket()}" + (f"&to={path}" if path else "")
    with served.tab(browser, is_signed_in=False) as tab:
        tab.go(ticket)
        wait_for_page(tab, path)
        tab.check_quiet()
        assert tab.count("nav[aria-label=Main]") == 1
        (cookie,) = tab.cookies()
        assert cookie["path"] == served.root
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert tab.tell("document.cookie") == ""
        assert "?t=" not in tab.tell("document.referrer + location.href")
    with served.tab(browser, is_signed_in=False) as tab:
        assert tab.go(ticket) == 403
        assert "no longer works" in tab.text
        assert tab.go() == 401
        assert "pollux web" in tab.text


def test_the_file_that_pollux_opens_signs_in(browser: Browser, tmp_path: Path) -> None:
    """The browser gets the path of a private file, which is deleted when its ticket was used."""
    noted, program = tmp_path / "noted", tmp_path / "browser.sh"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > "{noted}.part" && mv "{noted}.part" "{noted}"\n')
    program.chmod(0o700)
    with serving(tmp_path / "served", options=(), BROWSER=f"{program} %s &") as served:
        address = noted.read_text()
        assert "?t=" not in address
        file = Path(unquote(urlsplit(address).path))
        assert file.stat().st_mode & 0o077 == 0
        with served.tab(browser, is_signed_in=False) as tab:
            tab.go(address)
            wait_for_page(tab)
            assert tab.count("nav[aria-label=Main]") == 1
            assert tab.seen.requests[0] == address
            tab.check_quiet(ignored=(address,))
        assert not file.exists()


def test_the_cookie_is_not_sent_to_another_port(browser: Browser, served: Served, other_site: OtherSite) -> None:
    with served.tab(browser, is_signed_in=False) as tab:
        tab.go(f"in?t={served.ticket()}")
        wait_for_page(tab)
        for path in ("/", "/index.html", f"/{served.running.label}x/"):
            tab.go(other_site.origin + path)
        assert {cookie for _, cookie in other_site.cookies} == {None}
        # Cookies ignore ports: only the label, which other servers do not know, keeps it from them.
        tab.go(f"{other_site.origin}{served.root}")
        sent = dict(other_site.cookies)[served.root]
        assert served.running.label not in str(sent)
        assert (sent or "").startswith(f"pollux-{served.running.port}=")


def test_other_sites_cannot_frame_or_read_pages(browser: Browser, served: Served, other_site: OtherSite) -> None:
    target = f"{served.origin}{served.root}"
    other_site.pages["/"] = f"<iframe src='{target}'></iframe><iframe src='{target}in?t=x'></iframe>"
    with served.tab(browser) as tab:
        tab.go(f"{other_site.origin}/")
        assert tab.tell("document.querySelectorAll('iframe').length") == 2
        assert not [text for text in tab.frame_texts() if "Pollux" in text or "Sessions" in text]
        fetched = f"fetch('{target}api/sessions', {{credentials: 'include'}}).then((a) => a.text(), () => 'refused')"
        assert tab.tell(fetched) == "refused"
        options = "{mode: 'no-cors', credentials: 'include'}"
        blind = f"fetch('{target}api/sessions', {options}).then((answer) => answer.type, () => 'refused')"
        assert tab.tell(blind) in ("refused", "opaque")
        answers = [status for status, address in tab.seen.answers if address.startswith(f"{target}api/sessions")]
        assert set(answers) <= {403}


def test_our_own_pages_cannot_be_framed(browser: Browser, served: Served) -> None:
    with served.tab(browser) as tab:
        tab.go("sessions")
        tab.tell(
            "new Promise((done) => { const frame = document.createElement('iframe'); frame.src = location.href; "
            "frame.onload = frame.onerror = done; document.body.append(frame); setTimeout(done, 1000); }).then(() => 0)"
        )
        assert not [text for text in tab.frame_texts() if "Sessions" in text]
        assert [words for words in tab.seen.said if "Content Security Policy" in words]


def test_a_link_on_another_site_needs_one_more_click(browser: Browser, served: Served, other_site: OtherSite) -> None:
    """The browser keeps a strict cookie from a navigation that another site started."""
    other_site.pages["/"] = f"<a href='{served.origin}{served.root}s/{SESSION}/12?detail=full'>look</a>"
    with served.tab(browser) as tab:
        tab.go(f"{other_site.origin}/")
        tab.follow("a")
        assert "One more click" in tab.text
        assert tab.follow("a") == f"s/{SESSION}/12?detail=full"
        assert tab.count("article.msg") > 3


def test_the_driver_hears_what_a_page_must_not_do(browser: Browser, served: Served, other_site: OtherSite) -> None:
    """Check the checks: violations of the policy, foreign requests, dialogs and errors are all noticed."""
    with served.tab(browser) as tab:
        tab.go("sessions")
        tab.check_quiet()
        tab.tell(f"void (new Image().src = '{other_site.origin}/x.png')")
        tab.tell("void setTimeout(() => { alert('owned'); nothing.here(); })")
        tab.tell("document.body.insertAdjacentHTML('beforeend', '<p style=color:red>'), 0")
        tab.pause(200)
        seen = tab.seen
        assert seen.dialogs == ["owned"]
        assert seen.errors
        directives = ("img-src 'self'", "style-src 'self'")
        assert all(any(directive in words for words in seen.said) for directive in directives), seen.said
        with pytest.raises(AssertionError):
            tab.check_quiet()
    assert not other_site.cookies
