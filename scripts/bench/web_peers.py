"""Measure the first visit to the viewer and to agentsview: both start on the same home, with nothing stored before.

    python -m scripts.bench.web_peers

puts a section into BENCHMARKS.md. It needs Node.js, Chromium and what `make test-web` installs in `build/browser`.
Neither program has a network other than its own machine, where the system can do that.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from scripts.bench import tables, trees
from scripts.bench.peers import AGENTSVIEW, install, offline
from scripts.bench.trees import MB, ROOT, Tree

from pollux.library.viewer_files import HOST, RunningViewer
from pollux.web.server import ask_for_ticket

os.environ.setdefault("POLLUX_BROWSER", str(ROOT / "build" / "browser"))  # read when the next modules are imported

from tests.web.browser.driving import Browser, launched, why_not

_PORT = 2977
_HEADING = "## Web viewer: the first visit"
_PATIENCE = 300
_PAUSE = 0.05
_MEASURE = """
(() => {
  const loaded = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return [loaded.length, loaded.reduce((sum, entry) => sum + entry.encodedBodySize, 0),
    document.querySelectorAll("*").length];
})()
"""


@dataclass(frozen=True, slots=True)
class Visit:
    """What the first visit to a viewer costs."""

    name: str
    answered: float
    """Seconds from its start to the first answer."""
    complete: float
    """Seconds until all sessions are there."""
    requests: int
    n_bytes: int
    elements: int
    memory: int


def main() -> None:
    """Measure both, and update the page."""
    if offline() and "POLLUX_BENCH_ALONE" not in os.environ:
        _alone()
    if reason := why_not() or install(AGENTSVIEW):
        sys.exit(reason)
    tree = trees.generated("home-3000-760", "--sessions", "3000", "--mb", "760")
    with launched() as browser:
        visits = [_pollux(tree, browser), _agentsview(tree, browser)]
    lines = [*_section(tree, visits)]
    page = ROOT / "BENCHMARKS.md"
    page.write_text(_with_section(page.read_text("utf-8"), lines), "utf-8")
    print("\n".join(lines))


def _alone() -> None:
    """Run this module again in a network of its own."""
    words = 'ip link set lo up && exec "$0" -m scripts.bench.web_peers'
    os.environ["POLLUX_BENCH_ALONE"] = "1"
    os.execvp("unshare", ["unshare", "-rn", "sh", "-c", words, sys.executable])  # noqa: S606  ours


def _pollux(tree: Tree, browser: Browser) -> Visit:
    with _fresh_home(tree) as home:
        run = home / "run"
        run.mkdir(mode=0o700)
        environment = {"HOME": str(home), "XDG_RUNTIME_DIR": str(run)}
        command = [sys.executable, "-m", "pollux", "web", "--no-open", "--port", str(_PORT)]
        start = time.perf_counter()
        with _running(command, environment, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            process.stderr.readline()  # it listens
            (file,) = run.glob("**/web-*.json")
            viewer = msgspec.json.decode(file.read_bytes(), type=RunningViewer)
            _wait_for_answer("/")
            answered = time.perf_counter() - start
            tab = browser.ask(do="open")
            ticket = ask_for_ticket(viewer)
            browser.ask(do="goto", tab=tab, address=f"http://{HOST}:{viewer.port}/{viewer.label}/in?t={ticket}")
            browser.ask(do="wait", tab=tab, expression="document.body?.innerText.includes(' sessions in ')")
            complete = time.perf_counter() - start
            counts = _counts(browser, tab)
            return Visit("`pollux web`", answered, complete, *counts, _memory(process.pid))


def _agentsview(tree: Tree, browser: Browser) -> Visit:
    with _fresh_home(tree) as home:
        (program, *_), *_ = AGENTSVIEW.started()
        command = [program, "serve", "--no-browser", "--no-update-check", "--port", str(_PORT)]
        start = time.perf_counter()
        with _running(command, {"HOME": str(home), **AGENTSVIEW.environment}) as process:
            _wait_for_answer("/")
            answered = time.perf_counter() - start
            tab = browser.ask(do="open")
            browser.ask(do="goto", tab=tab, address=f"http://{HOST}:{_PORT}/")
            browser.ask(do="pause", tab=tab, milliseconds=3000)
            counts = _counts(browser, tab)
            return Visit(f"agentsview {AGENTSVIEW.version}", answered, answered, *counts, _memory(process.pid))


def _counts(browser: Browser, tab: int) -> tuple[int, int, int]:
    """Load the page again without the cache's help, and return its requests, bytes and elements."""
    address = browser.ask(do="tell", tab=tab, expression="location.href")
    other = browser.ask(do="open", beside=tab)
    browser.ask(do="goto", tab=other, address=address)
    browser.ask(do="pause", tab=other, milliseconds=2000)
    requests, n_bytes, elements = browser.ask(do="tell", tab=other, expression=_MEASURE)
    return int(requests), int(n_bytes), int(elements)


@contextmanager
def _fresh_home(tree: Tree) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / ".gemini").symlink_to(tree.root / ".gemini")
        yield home


@contextmanager
def _running(
    command: Sequence[str], environment: Mapping[str, str], stderr: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    variables = {"PATH": os.environ["PATH"], "TZ": "UTC", **environment}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, env=variables
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _wait_for_answer(path: str) -> None:
    """Wait until a server answers at all."""
    for _ in range(int(_PATIENCE / _PAUSE)):
        try:
            with closing(http.client.HTTPConnection(HOST, _PORT, timeout=5)) as connection:
                connection.request("GET", path)
                connection.getresponse().read()
                return
        except OSError:
            time.sleep(_PAUSE)
    sys.exit(f"no answer after {_PATIENCE} s")


def _memory(pid: int) -> int:
    """Return the memory of a process in bytes."""
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("ascii"))
    return int(match[1]) * 1024 if match else 0


def _section(tree: Tree, visits: Sequence[Visit]) -> Iterator[str]:
    yield _HEADING
    yield ""
    yield (
        f"{tree.facts}, nothing stored before; {datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[0]:.1f}. "
        "Counted in Chromium on the first page of each, loaded a second time; bytes are as sent."
    )
    yield ""
    rows = []
    for visit in visits:
        seconds = [f"{visit.answered:.2f}", f"{visit.complete:.1f}"]
        counts = [f"{visit.requests:,}", f"{visit.n_bytes:,}", f"{visit.elements:,}"]
        rows.append([visit.name, *seconds, *counts, f"{visit.memory / MB:.0f} MB"])
    head = ("", "first answer s", "all sessions s", "requests", "bytes", "elements", "server memory")
    yield from tables.table(head, rows)


def _with_section(page: str, lines: Sequence[str]) -> str:
    before, _, after = page.partition(f"\n{_HEADING}\n")
    if after:
        after = after[after.index("\n## ") :]
    else:
        before, heading, after = page.partition("\n## Numbers\n")
        after = heading + after
    text = "\n".join(lines).rstrip("\n")
    return f"{before}\n{text}\n{after}"


if __name__ == "__main__":
    if not shutil.which("chromium") and "POLLUX_CHROMIUM" not in os.environ:
        sys.exit("Chromium is missing: install it, or name it in POLLUX_CHROMIUM.")
    main()
