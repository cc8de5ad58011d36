"""A viewer in a process of its own, for tests in a browser."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.conftest import ROOT
from tests.web.browser.driving import Browser, BrowserTab

from pollux.library.config import DEMO_HOME
from pollux.library.viewer_files import HOST, RunningViewer
from pollux.web.server import ask_for_ticket

_ATTEMPTS = 1200
_PAUSE = 0.1
_FOREIGN = ("GEMINI_", "GOOGLE_", "POLLUX_", "XDG_")


class Served:
    """A running viewer, and tabs that are signed in to it."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, address: str) -> None:
        """Take the process, the folder with its archive and its private files, and the address that it printed."""
        self.process, self.folder, self.printed = process, folder, address
        (file,) = folder.glob("run/**/web-*.json")
        self.running = msgspec.json.decode(file.read_bytes(), type=RunningViewer)
        self.origin = f"http://{HOST}:{self.running.port}"
        self.root = f"/{self.running.label}/"
        self.cookie = self._signed_in()

    def ticket(self) -> str:
        ticket = ask_for_ticket(self.running)
        assert ticket
        return ticket

    def _signed_in(self) -> str:
        with closing(http.client.HTTPConnection(HOST, self.running.port, timeout=60)) as connection:
            connection.request("GET", f"{self.root}in?t={self.ticket()}")
            with connection.getresponse() as answer:
                return (answer.getheader("set-cookie") or "").partition(";")[0]

    def get(self, path: str) -> tuple[int, bytes]:
        """Return status and body of an answer, without a browser."""
        with closing(http.client.HTTPConnection(HOST, self.running.port, timeout=120)) as connection:
            connection.request("GET", self.root + path, headers={"Cookie": self.cookie})
            with connection.getresponse() as answer:
                return answer.status, answer.read()

    def wait(self) -> None:
        """Wait until the sessions have been read."""
        for _ in range(_ATTEMPTS):
            status, body = self.get("health")
            if status == 200 and b"Reading" not in body:
                return
            time.sleep(_PAUSE)
        message = f"The viewer still answers {status}: {body[:500]!r}"
        raise AssertionError(message)

    @contextmanager
    def tab(self, browser: Browser, *, is_signed_in: bool = True, **options: Any) -> Iterator[BrowserTab]:  # noqa: ANN401
        """Open a tab with cookies of its own: width, height, scheme, script as in `driver.mjs`."""
        cookies = []
        if is_signed_in:
            name, _, value = self.cookie.partition("=")
            fields = {"name": name, "value": value, "domain": HOST, "path": self.root}
            cookies.append({**fields, "httpOnly": True, "sameSite": "Strict"})
        number = browser.ask(do="open", cookies=cookies, **options)
        tab = BrowserTab(browser, self.origin, self.root, number)
        try:
            yield tab
        finally:
            tab.close()


@contextmanager
def serving(
    folder: Path, home: Path = DEMO_HOME, *, options: Sequence[str] = ("--no-open",), **variables: str
) -> Iterator[Served]:
    """Run `pollux web` on a home; its archive and private files are in a folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    private = folder / "home"
    private.mkdir(parents=True)
    (folder / "run").mkdir(mode=0o700)
    environment |= {"HOME": str(private), "XDG_RUNTIME_DIR": str(folder / "run"), "TZ": "UTC", **variables}
    words = ["web", *options, "--home", str(home), "--archive", str(folder / "archive" / "archive.db")]
    with subprocess.Popen(
        [sys.executable, "-m", "pollux", *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            match = re.search(r"http://\S+", line)
            assert match, line + process.stderr.read()
            served = Served(process, folder, match[0])
            served.wait()
            yield served
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
