"""Measure the viewer and agentsview on the same home of many sessions: filling, pages in Chromium, and find.

    python -m scripts.bench.web_peers [--sessions N] [--page] [STEP …]

The steps `fill-pollux` and `fill-agentsview` start each program with nothing stored; `pollux` and `agentsview` measure
the pages of a program that has everything stored. A step stores its numbers beside the home, so that it can be repeated
alone; `--page` puts a section with all of them into BENCHMARKS.md. The steps need Node.js, Chromium and what
`make test-web` installs in `build/browser`. Neither program has a network other than its own machine, where the system
can do that.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec
from scripts.bench import tables
from scripts.bench.peers import AGENTSVIEW, install, offline, surroundings
from scripts.bench.sections import write_section
from scripts.bench.server_process import ServerProcess
from scripts.bench.trees import BUILD, ROOT, Tree
from scripts.bench.web_home import LONG_SESSIONS, N_SESSIONS, RARE, TRUTH, write_home

from pollux.library.viewer_files import HOST, RunningViewer
from pollux.web.server import ask_for_ticket

os.environ.setdefault("POLLUX_BROWSER", str(ROOT / "build" / "browser"))  # read when the next modules are imported

from tests.web.browser.driving import Browser, launched, why_not

_PORT = 2977
_PATIENCE = 3 * 3600
"""Seconds in which a program must have read all sessions."""
_PAUSE = 0.25
_QUIET_MS = 3000
"""Milliseconds after which a page has asked for everything that it shows."""
_ROUNDS = 3
_MEDIUM, _LONG = LONG_SESSIONS
_PAGES: Mapping[str, tuple[str, str]] = {
    "first page": ("", "/"),
    "list of sessions": ("sessions", "/sessions"),
    "usage": ("usage", "/usage"),
    "session of 50,000 messages": (f"s/{_LONG}", f"/sessions/{quote(f'gemini:{_LONG}', safe='')}"),
}
"""What is opened in Chromium: the page of Pollux, and that of agentsview."""
_ANSWERS: Mapping[str, tuple[str, str]] = {
    "find in 5,000 messages": (f"s/{_MEDIUM}/find?q={RARE}", f"/api/v1/sessions/gemini:{_MEDIUM}/search?q={RARE}"),
    "find in 50,000 messages": (f"s/{_LONG}/find?q={RARE}", f"/api/v1/sessions/gemini:{_LONG}/search?q={RARE}"),
    "search, a common word": ("api/search?q=parser", "/api/v1/search?q=parser&limit=20"),
    "search, a rare word": (f"api/search?q={RARE}", f"/api/v1/search?q={RARE}&limit=20"),
}
"""What is asked without a browser."""
_MEASURE = """
(() => {
  const loaded = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return [loaded.length, loaded.reduce((sum, entry) => sum + entry.encodedBodySize, 0),
    document.querySelectorAll("*").length];
})()
"""


class Fill(msgspec.Struct, frozen=True):
    """How long a program takes that has nothing stored."""

    answered: float
    """Seconds from its start to the first answer."""
    shown: float
    """Seconds until its first page shows sessions."""
    complete: float
    """Seconds until all sessions are there."""
    cpu: float
    """Processor time until then, in seconds."""
    memory: int
    """The most memory of the server until then, in MB."""


class PageCost(msgspec.Struct, frozen=True):
    """A page in Chromium with an empty cache, and the server's processor time for it and all that it asks for."""

    requests: int
    n_bytes: int
    elements: int
    first_ms: float
    """The first time after the server's start."""
    again_ms: float
    """The least of several times after that."""


class Served(msgspec.Struct, frozen=True):
    """What the pages of a program cost that has everything stored."""

    started: float
    """Seconds from its start to the first answer."""
    pages: dict[str, PageCost]
    answers: dict[str, tuple[float, float]]
    """Processor time in milliseconds: of the first request, and the least of several after that."""
    memory: int
    """The server's memory at the end, in MB."""
    peak: int


class Numbers(msgspec.Struct, frozen=True):
    """All measurements; a step that did not run is missing."""

    fills: dict[str, Fill] = {}
    served: dict[str, Served] = {}
    at: dict[str, str] = {}
    """When each step ran."""
    load: dict[str, float] = {}
    """The load average at the end of each step."""


class Program:
    """One of the two programs, with a home of its own that links to the sessions."""

    def __init__(self, tree: Tree, name: str) -> None:
        """Choose the folder for what it stores."""
        self.name, self.home = name, tree.home_of(f"web-{name}")
        self._run = self.home / "run"

    @property
    def is_pollux(self) -> bool:
        """Whether it is ours."""
        return self.name == "pollux"

    def forget(self) -> None:
        """Delete what it has stored."""
        for path in self.home.iterdir():
            if path.is_symlink():
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    @contextlib.contextmanager
    def running(self) -> Iterator[tuple[ServerProcess, float]]:
        """Start the server; yield its process and when it was started."""
        if self.is_pollux:
            shutil.rmtree(self._run, ignore_errors=True)
            self._run.mkdir(mode=0o700)
            command = [sys.executable, "-m", "pollux", "web", "--no-open", "--port", str(_PORT)]
            more = {"XDG_RUNTIME_DIR": str(self._run)}
        else:
            options = ("--no-browser", "--no-update-check", "--port", str(_PORT))
            command = [str(AGENTSVIEW.folder / AGENTSVIEW.program), "serve", *options]
            more = {**AGENTSVIEW.environment}
        quiet = subprocess.DEVNULL
        start = time.perf_counter()
        with subprocess.Popen(
            command, stdin=quiet, stdout=quiet, stderr=quiet, env=surroundings(self.home, more)
        ) as process:
            try:
                yield ServerProcess(process.pid), start
            finally:
                process.terminate()

    def wait(self) -> float:
        """Wait until the server answers at all; return the time."""
        for _ in range(int(_PATIENCE / _PAUSE)):
            with contextlib.suppress(OSError):
                self.get("/")
                return time.perf_counter()
            time.sleep(_PAUSE / 5)
        sys.exit(f"{self.name} did not answer")

    def entrance(self) -> str:
        """Return the address that signs a browser in."""
        if not self.is_pollux:
            return self.address("/")
        viewer = self._viewer()
        return f"http://{HOST}:{viewer.port}/{viewer.label}/in?t={ask_for_ticket(viewer)}"

    def address(self, path: str) -> str:
        """Return the address of a page."""
        label = f"/{self._viewer().label}/" if self.is_pollux else ""
        return f"http://{HOST}:{_PORT}{label}{path}"

    def cookie(self) -> str:
        """Return a cookie for requests without a browser."""
        if not self.is_pollux:
            return ""
        viewer = self._viewer()
        _, _, cookie = self.get(f"/{viewer.label}/in?t={ask_for_ticket(viewer)}")
        return cookie.partition(";")[0]

    def get(self, path: str, cookie: str = "") -> tuple[int, bytes, str]:
        """Return the status, the body and the cookie of an answer; the path begins with a slash."""
        with contextlib.closing(http.client.HTTPConnection(HOST, _PORT, timeout=600)) as connection:
            connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.getheader("set-cookie") or ""

    def path(self, path: str) -> str:
        """Return a path below the label."""
        return f"/{self._viewer().label}/{path}" if self.is_pollux else path

    def _viewer(self) -> RunningViewer:
        (file,) = self._run.glob("**/web-*.json")
        return msgspec.json.decode(file.read_bytes(), type=RunningViewer)


class Bench:
    """The home, and the numbers so far."""

    def __init__(self, n_sessions: int) -> None:
        """Write the home unless it is there, and read the numbers of earlier runs."""
        self.tree = Tree(write_home(BUILD / f"home-web-{n_sessions}", n_sessions))
        self.n_sessions = msgspec.json.decode((self.tree.root / TRUTH).read_bytes())["sessions"] + len(LONG_SESSIONS)
        self._place = BUILD / f"web-peers-{n_sessions}.json"
        self.numbers = Numbers()
        if self._place.exists():
            self.numbers = msgspec.json.decode(self._place.read_bytes(), type=Numbers)

    def store(self, step: str, *, fill: Fill | None = None, served: Served | None = None) -> None:
        """Replace the numbers of a step, and write them to disk."""
        numbers, name = self.numbers, step.removeprefix("fill-")
        self.numbers = Numbers(
            numbers.fills | ({name: fill} if fill else {}),
            numbers.served | ({name: served} if served else {}),
            numbers.at | {step: f"{datetime.now(UTC):%Y-%m-%d %H:%M}"},
            numbers.load | {step: os.getloadavg()[0]},
        )
        self._place.write_bytes(msgspec.json.format(msgspec.json.encode(self.numbers), indent=1))


def main() -> None:
    """Run the steps that were named, or all, and print the section."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sessions", type=int, default=N_SESSIONS)
    options.add_argument("--page", action="store_true", help="put the section into BENCHMARKS.md")
    options.add_argument("steps", nargs="*", choices=[[], *STEPS], help="all of them unless some are named")
    arguments = options.parse_args()
    if offline() and "POLLUX_BENCH_ALONE" not in os.environ:
        if reason := why_not() or install(AGENTSVIEW):
            sys.exit(reason)
        _alone()
    bench = Bench(arguments.sessions)
    for step in arguments.steps or STEPS:
        print(f"{step} …", file=sys.stderr)
        STEPS[step](bench)
    lines = [*_section(bench)]
    if arguments.page:
        write_section(lines)
    else:
        print("\n".join(lines))


def _alone() -> None:
    """Run this module again in a network of its own."""
    words = 'ip link set lo up && exec "$0" -m scripts.bench.web_peers "$@"'
    os.environ["POLLUX_BENCH_ALONE"] = "1"
    os.execvp("unshare", ["unshare", "-rn", "sh", "-c", words, sys.executable, *sys.argv[1:]])  # noqa: S606  ours


def _fill_pollux(bench: Bench) -> None:
    program = Program(bench.tree, "pollux")
    program.forget()
    with program.running() as (process, start):
        answered = program.wait() - start
        cookie = program.cookie()
        while program.get(program.path(""), cookie)[0] != http.client.OK:
            time.sleep(_PAUSE)
        shown = time.perf_counter() - start
        peak = 0
        while _n_listed(program, cookie) < bench.n_sessions:
            peak = max(peak, process.memory_mb("VmHWM"))
            time.sleep(2)
        complete = time.perf_counter() - start
        process.settle()
        peak = max(peak, process.memory_mb("VmHWM"))
        bench.store("fill-pollux", fill=Fill(answered, shown, complete, process.processor_s_of_all(), peak))
    _finish_index(program)


def _n_listed(program: Program, cookie: str) -> int:
    status, body, _ = program.get(program.path("api/sessions?limit=1"), cookie)
    return int(msgspec.json.decode(body)["total"]) if status == http.client.OK else 0


def _finish_index(program: Program) -> None:
    """Wait for the index of the search, which a process of its own builds."""
    command = [sys.executable, "-m", "pollux", "sync"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=surroundings(program.home))


def _fill_agentsview(bench: Bench) -> None:
    program = Program(bench.tree, "agentsview")
    program.forget()
    with program.running() as (process, start):
        answered = program.wait() - start
        cpu = process.processor_s_of_all()
        fill = Fill(answered, answered, answered, cpu, process.memory_mb("VmHWM"))
        bench.store("fill-agentsview", fill=fill)


def _serve(bench: Bench, name: str) -> None:
    """Measure the pages of a program that has everything stored."""
    program = Program(bench.tree, name)
    with program.running() as (process, start):
        started = program.wait() - start
        process.settle()
        with launched() as browser:
            place = 0 if program.is_pollux else 1
            pages = {what: _page_cost(browser, program, process, paths[place]) for what, paths in _PAGES.items()}
        cookie = program.cookie()
        answers = {}
        for what, paths in _ANSWERS.items():
            times = [_answer_ms(program, process, paths[place], cookie) for _ in range(_ROUNDS + 1)]
            answers[what] = times[0], min(times[1:])
        process.settle()
        served = Served(started, pages, answers, process.memory_mb(), process.memory_mb("VmHWM"))
    bench.store(name, served=served)


def _page_cost(browser: Browser, program: Program, process: ServerProcess, path: str) -> PageCost:
    times = []
    counts = (0, 0, 0)
    for _ in range(_ROUNDS + 1):
        tab = browser.ask(do="open")
        browser.ask(do="goto", tab=tab, address=program.entrance())
        browser.ask(do="pause", tab=tab, milliseconds=_QUIET_MS)
        browser.ask(do="goto", tab=tab, address="about:blank")
        process.settle()
        before = process.processor_ms()
        browser.ask(do="goto", tab=tab, address=program.address(path))
        browser.ask(do="pause", tab=tab, milliseconds=_QUIET_MS)
        times.append(process.processor_ms() - before)
        requests, n_bytes, elements = browser.ask(do="tell", tab=tab, expression=_MEASURE)
        counts = (int(requests), int(n_bytes), int(elements))
        browser.ask(do="close", tab=tab)
    return PageCost(*counts, times[0], min(times[1:]))


def _answer_ms(program: Program, process: ServerProcess, path: str, cookie: str) -> float:
    before = process.processor_ms()
    status, _, _ = program.get(program.path(path), cookie)
    if status != http.client.OK:
        sys.exit(f"{program.name}: {path} was answered with status {status}")
    return process.processor_ms() - before


STEPS: Mapping[str, Callable[[Bench], None]] = {
    "fill-pollux": _fill_pollux,
    "fill-agentsview": _fill_agentsview,
    "pollux": lambda bench: _serve(bench, "pollux"),
    "agentsview": lambda bench: _serve(bench, "agentsview"),
}
_NAMES = {"pollux": "`pollux web`", "agentsview": f"agentsview {AGENTSVIEW.version}"}


def _section(bench: Bench) -> Iterator[str]:
    numbers = bench.numbers
    yield "## Web viewer: next to agentsview"
    yield ""
    times = sorted(numbers.at.values())
    load = max(numbers.load.values(), default=0.0)
    when = f"; {times[0]} to {times[-1]}, load up to {load:.1f}" if times else ""
    yield (
        f"{bench.n_sessions:,} sessions, {bench.tree.facts}{when}. Pages were opened in Chromium after the first "
        "page, whose files it keeps; processor time is the server's, for the page and all that it asks for, the first "
        "time and again."
    )
    yield ""
    yield from tables.table(("", *(_NAMES[name] for name in _NAMES)), [*_fill_rows(numbers), *_served_rows(numbers)])


def _fill_rows(numbers: Numbers) -> Iterator[Sequence[str]]:
    rows: Mapping[str, Callable[[Fill], str]] = {
        "nothing stored: first answer": lambda fill: f"{fill.answered:.1f} s",
        "first page with sessions": lambda fill: f"{fill.shown:.1f} s",
        "all sessions": lambda fill: f"{fill.complete:.0f} s",
        "processor time until then": lambda fill: f"{fill.cpu:.0f} s",
        "most memory of the server until then": lambda fill: f"{fill.memory:,} MB",
    }
    for what, show in rows.items():
        yield [what, *(show(numbers.fills[name]) if name in numbers.fills else "–" for name in _NAMES)]


def _weight(cost: PageCost) -> str:
    return f"{cost.requests}, {cost.n_bytes / 1000:,.0f} KB, {cost.elements:,}"


def _served_rows(numbers: Numbers) -> Iterator[Sequence[str]]:
    served = [numbers.served.get(name) for name in _NAMES]
    yield ["all stored: first answer", *(f"{each.started:.1f} s" if each else "–" for each in served)]
    for page in _PAGES:
        costs = [each.pages[page] if each else None for each in served]
        words = [
            f"{cost.requests}, {cost.n_bytes / 1000:,.0f} KB, {cost.elements:,}" if cost else "–" for cost in costs
        ]
        yield [f"{page}: requests, size, elements", *words]
        yield [f"{page}: CPU", *(f"{cost.first_ms:,.0f} / {cost.again_ms:,.0f} ms" if cost else "–" for cost in costs)]
    for what in _ANSWERS:
        times = [each.answers[what] if each else None for each in served]
        yield [f"{what}: CPU", *(f"{time_[0]:,.0f} / {time_[1]:,.0f} ms" if time_ else "–" for time_ in times)]
    yield ["memory of the server after that", *(f"{each.memory:,} MB" if each else "–" for each in served)]
    yield ["most memory of the server", *(f"{each.peak:,} MB" if each else "–" for each in served)]


if __name__ == "__main__":
    if not shutil.which("chromium") and "POLLUX_CHROMIUM" not in os.environ:
        sys.exit("Chromium is missing: install it, or name it in POLLUX_CHROMIUM.")
    main()
