"""Drive one Chromium through a script of Node.js; `make test-web` installs what this needs.

`POLLUX_BROWSER` is a folder with playwright-core and axe-core, `POLLUX_CHROMIUM` a Chromium that is not on the PATH.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.browser.browsing import ENVIRONMENT, why_not

__all__ = ["Browser", "BrowserTab", "Seen", "launched", "why_not"]

SERIOUS = ("serious", "critical")


@dataclass(frozen=True, slots=True)
class Seen:
    """Console messages, errors, requests, answers and dialogs of a tab since it was opened."""

    said: list[str]
    errors: list[str]
    requests: list[str]
    answers: list[tuple[int, str]]
    dialogs: list[str]
    popups: int
    downloads: int

    def foreign(self, origin: str) -> list[str]:
        """Return requests to another server."""
        return [address for address in self.requests if not address.startswith((f"{origin}/", "data:image/"))]


class Browser:
    """A running Chromium."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Take a process of `driver.mjs`."""
        self._process = process

    def ask(self, **command: Any) -> Any:  # noqa: ANN401  JSON
        """Return the result of a command. Raises `AssertionError` with the browser's words if it failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"The browser has ended at {command}"
        answer = json.loads(line)
        assert "error" not in answer, f"{command}: {answer['error']}"
        return answer["result"]


class BrowserTab:
    """A tab with cookies of its own."""

    def __init__(self, browser: Browser, origin: str, root: str, number: int) -> None:
        """Take the origin of a viewer, the path of its label, and the number that the browser gave."""
        self._browser, self.origin, self.root, self._number = browser, origin, root, number

    def _ask(self, command: str, **more: Any) -> Any:  # noqa: ANN401
        return self._browser.ask(do=command, tab=self._number, **more)

    def go(self, path: str = "") -> int:
        """Open a page below the label, or an address; return the status."""
        address = path if "://" in path else f"{self.origin}{self.root}{path}"
        return int(self._ask("goto", address=address))

    def tell(self, expression: str) -> Any:  # noqa: ANN401
        """Return the value of an expression in the page."""
        return self._ask("tell", expression=expression)

    def wait(self, expression: str) -> Any:  # noqa: ANN401
        """Wait until an expression is true, and return its value."""
        return self._ask("wait", expression=expression)

    def pause(self, milliseconds: int) -> None:
        """Let time pass in which something must not happen."""
        self._ask("pause", milliseconds=milliseconds)

    def press(self, *keys: str) -> None:
        self._ask("press", keys=keys)

    def fill(self, selector: str, words: str) -> None:
        self._ask("fill", selector=selector, words=words)

    def choose(self, selector: str, value: str) -> None:
        self._ask("choose", selector=selector, value=value)

    def click(self, selector: str) -> None:
        self._ask("click", selector=selector)

    def follow(self, selector: str) -> str:
        """Click what leads to another page, and return its path below the label."""
        return str(self._ask("follow", selector=selector)).removeprefix(f"{self.origin}{self.root}")

    def wheel(self, by: int) -> None:
        self._ask("wheel", by=by)

    def download(self, selector: str, path: Path) -> str:
        """Click what starts a download, store it, and return the name that the server suggests."""
        return str(self._ask("download", selector=selector, path=str(path)))

    def shot(self, path: Path, *, whole: bool = False) -> None:
        self._ask("shot", path=str(path), whole=whole)

    def media(self, **options: str) -> None:
        """Switch to `media="print"` or `scheme="dark"`."""
        self._ask("media", **options)

    def frame_texts(self) -> list[str]:
        """Return the text of each frame inside the page."""
        frames = self._ask("frames")
        return [str(self._ask("frameText", number=number)) for number in range(1, len(frames))]

    def faults(self) -> list[str]:
        """Return the serious findings of axe-core."""
        findings = self._ask("audit")
        return [f"{item['rule']} ({item['nodes']}): {item['first']}" for item in findings if item["impact"] in SERIOUS]

    def cookies(self) -> list[dict[str, Any]]:
        return list(self._ask("cookies"))

    @property
    def address(self) -> str:
        """The address of the page, below the label if it is there."""
        return str(self._ask("address")).removeprefix(f"{self.origin}{self.root}")

    @property
    def seen(self) -> Seen:
        answer = self._ask("seen")
        return Seen(**{**answer, "answers": [(status, address) for status, address in answer["answers"]]})

    @property
    def text(self) -> str:
        """The visible text of the page."""
        return str(self.tell("document.body.innerText"))

    def count(self, selector: str) -> int:
        return int(self.tell(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def texts(self, selector: str) -> list[str]:
        return list(self.tell(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"))

    def check_quiet(self, *, ignored: Sequence[str] = ()) -> None:
        """Check that nothing was said in the console, no dialog opened, and no other server was asked.

        Args:
            ignored: addresses elsewhere that the test itself has opened.

        """
        seen = self.seen
        trouble = [*seen.said, *seen.errors, *seen.dialogs]
        trouble += [address for address in seen.foreign(self.origin) if address not in ignored]
        assert not trouble, trouble
        assert not seen.popups
        assert not seen.downloads
        assert [answer for answer in seen.answers if answer[0] >= 400] == []

    def beside(self) -> BrowserTab:
        """Open another tab of the same browser window, which shares cookies and connections with this one."""
        number = self._browser.ask(do="open", beside=self._number)
        return BrowserTab(self._browser, self.origin, self.root, number)

    def close(self) -> None:
        self._ask("close")


@contextmanager
def launched() -> Iterator[Browser]:
    """Start Chromium; it ends with the block."""
    script = Path(__file__).with_name("driver.mjs")
    with subprocess.Popen(
        ["node", str(script)],  # noqa: S607
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        try:
            yield Browser(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
