"""Measure the budget of the viewer on a home of many sessions: time to the first page, weight, memory, processor time.

    python -m scripts.bench.web [--sessions 100000] [--page]

Prints a section in Markdown, which `--page` puts into BENCHMARKS.md. The archive is filled first. Every page is asked
for first after the start of a server of its own, then after another process has archived a change of one session, and
then again. Other viewers are measured by `web_peers`.
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from scripts.bench import tables
from scripts.bench.sections import write_section
from scripts.bench.server_process import ServerProcess
from scripts.bench.trees import BUILD
from scripts.bench.web_home import LONG_SESSIONS, N_SESSIONS, RARE, write_home

from pollux.library.viewer_files import HOST, RunningViewer
from pollux.web.server import ask_for_ticket

_MEDIUM, _LONG = LONG_SESSIONS


class _Page(NamedTuple):
    """A page, and its limits; None for none."""

    path: str
    ms: int | None = None
    """Processor time of the server."""
    kilobytes: int | None = None
    opened: str = ""
    """What is asked for first, because the limit is that of an open session."""


_PAGES = {
    "overview": _Page("", None, 60),
    "sessions": _Page("sessions", 50, 60),
    "sessions of a project": _Page("sessions?project=project-07", 50, 60),
    "sessions by cost": _Page("sessions?sort=cost", 50, 60),
    "search, a common word": _Page("search?q=parser", 50, 60),
    "search, a word of every session": _Page(f"search?q={RARE}", 50, 60),
    "usage": _Page("usage", 50, 60),
    "usage of a year": _Page("usage?last=1y", 50, 60),
    "usage of all time": _Page("usage?last=all", 50, 60),
    "projects": _Page("projects", None, 60),
    "files": _Page("files", None, 60),
    "health": _Page("health", None, 60),
    "API: sessions": _Page("api/sessions"),
    "API: usage": _Page("api/usage"),
    "API: projects": _Page("api/projects"),
    "session of 50,000 messages": _Page(f"s/{_LONG}", None, 150),
    "a window of it": _Page(f"s/{_LONG}/part?from=125", 80, None, f"s/{_LONG}"),
    "find in 5,000 messages": _Page(f"s/{_MEDIUM}/find?q={RARE}", 60, None, f"s/{_MEDIUM}"),
    "find in 50,000 messages": _Page(f"s/{_LONG}/find?q={RARE}", 500, None, f"s/{_LONG}"),
}
_ROUNDS = 3
_MOST_SECONDS, _MOST_MEMORY = 0.5, 150


class _Cost(NamedTuple):
    """What a page takes: bytes, and milliseconds of processor time."""

    n_bytes: int
    first: float
    changed: float
    again: float


class MeasuredViewer(ServerProcess):
    """A running viewer of which `folder` has the runtime files."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        """Sign in."""
        super().__init__(process.pid)
        (file,) = folder.glob("run/**/web-*.json")
        self._running = msgspec.json.decode(file.read_bytes(), type=RunningViewer)
        self._cookie = ""
        _, cookie, _ = self.get(f"in?t={ask_for_ticket(self._running)}")
        self._cookie = cookie.partition(";")[0]

    def get(self, path: str) -> tuple[int, str, int]:
        """Return the status, the cookie and the size of an answer."""
        with closing(http.client.HTTPConnection(HOST, self._running.port, timeout=600)) as connection:
            connection.request("GET", f"/{self._running.label}/{path}", headers={"Cookie": self._cookie})
            answer = connection.getresponse()
            return answer.status, answer.getheader("set-cookie") or "", len(answer.read())


def _environment(folder: Path) -> dict[str, str]:
    """Return the same for all programs: stored sums are those of a time zone."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "TZ": "UTC"}


def _archive(folder: Path, sync: Sequence[str]) -> None:
    """Archive what is new, and add it up, in other processes."""
    for command in (sync, ["usage", *sync[1:]]):
        words = [sys.executable, "-m", "pollux", *command]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=_environment(folder))


@contextmanager
def serving(home: Path, folder: Path) -> Iterator[MeasuredViewer]:
    """Run a viewer with a private home and runtime folder."""
    (folder / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    command = ["web", "--no-open", "--home", str(home), "--archive", str(folder / "archive.db")]
    with subprocess.Popen(
        [sys.executable, "-m", "pollux", *command],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=_environment(folder),
    ) as process:
        try:
            assert process.stderr is not None
            process.stderr.readline()
            yield MeasuredViewer(process, folder)
        finally:
            process.terminate()


def main() -> None:
    """Write the home, fill the archive, and print what was measured."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sessions", type=int, default=N_SESSIONS)
    options.add_argument("--page", action="store_true", help="put the section into BENCHMARKS.md")
    arguments = options.parse_args()
    n_sessions = arguments.sessions
    home = write_home(BUILD / f"home-web-{n_sessions}", n_sessions)
    folder = BUILD / "web" / str(n_sessions)
    sync = ["sync", "--home", str(home), "--archive", str(folder / "archive.db")]
    folder.mkdir(parents=True, exist_ok=True)
    _archive(folder, sync)
    costs = {}
    for name, page in _PAGES.items():
        print(f"{name} …", file=sys.stderr)
        costs[name] = _cost(home, folder, sync, page)
    lines = [*_section(n_sessions + len(LONG_SESSIONS), costs, *_whole_run(home, folder))]
    if arguments.page:
        write_section(lines)
    else:
        print("\n".join(lines))


def _cost(home: Path, folder: Path, sync: Sequence[str], page: _Page) -> _Cost:
    """Measure a page with a server of its own."""
    with serving(home, folder) as viewer:
        viewer.settle()
        viewer.get("sessions?after=1000000")  # imports modules, opens a connection
        if page.opened:
            viewer.get(page.opened)
            viewer.settle()
        first, n_bytes = _cpu_ms(viewer, page.path)
        _touch_a_session(home)
        _archive(folder, sync)
        changed, _ = _cpu_ms(viewer, page.path)
        return _Cost(n_bytes, first, changed, min(_cpu_ms(viewer, page.path)[0] for _ in range(_ROUNDS)))


def _whole_run(home: Path, folder: Path) -> tuple[float, int, int]:
    """Return the seconds until the first list, the memory of a server after all pages, and the most that it had."""
    start = time.perf_counter()
    with serving(home, folder) as viewer:
        viewer.get("sessions")
        seconds = time.perf_counter() - start
        for page in _PAGES.values():
            viewer.get(page.path)
        viewer.settle()
        return seconds, viewer.memory_mb(), viewer.memory_mb("VmHWM")


def _section(n_sessions: int, costs: dict[str, _Cost], seconds: float, memory: int, peak: int) -> Iterator[str]:
    yield "## Web viewer: the budget"
    yield ""
    yield (
        f"{n_sessions:,} sessions, {datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[0]:.1f}. Milliseconds are "
        "processor time of the server for one request: the first after its start, the first after another process has "
        "archived a change of one session, and the least of three after that. Bytes are not compressed."
    )
    yield ""
    rows = []
    for name, cost in costs.items():
        page, size = _PAGES[name], cost.n_bytes / 1000
        is_met = (page.ms is None or max(cost[1:]) <= page.ms) and (page.kilobytes is None or size <= page.kilobytes)
        verdict = _verdict(is_met=is_met) if page.ms or page.kilobytes else ""
        times = (f"{milliseconds:.0f}" for milliseconds in cost[1:])
        limits = (f"{page.ms} ms" if page.ms else "–", f"{page.kilobytes} KB" if page.kilobytes else "–")
        rows.append((name, limits[0], *times, limits[1], f"{size:.0f}", verdict))
    yield from tables.table(("page", "limit", "after start", "after a change", "again", "limit", "KB", ""), rows)
    is_quick = seconds <= _MOST_SECONDS
    others = (
        ("start to the first list", f"{_MOST_SECONDS} s", f"{seconds:.2f} s", _verdict(is_met=is_quick)),
        ("server memory after all pages, 55,000 messages open", f"{_MOST_MEMORY} MB", f"{memory} MB",
         _verdict(is_met=memory <= _MOST_MEMORY)),
        ("most memory of the server", "–", f"{peak} MB", ""),
    )  # fmt: skip
    yield from tables.table(("server", "limit", "measured", ""), others)


def _verdict(*, is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def _touch_a_session(home: Path) -> None:
    """Add a prompt to a session that was used last week."""
    path = min(home.glob(".gemini/tmp/*/chats/session-2026-10-3*.jsonl"))
    prompt = {"id": f"{time.time_ns()}", "timestamp": "2026-10-31T12:00:00.000Z", "type": "user", "content": "And now?"}
    with path.open("ab") as file:
        file.write(msgspec.json.encode(prompt) + b"\n")


def _cpu_ms(viewer: MeasuredViewer, path: str) -> tuple[float, int]:
    before = viewer.processor_ms()
    status, _, n_bytes = viewer.get(path)
    if status != http.client.OK:
        sys.exit(f"{path} was answered with status {status}")
    return viewer.processor_ms() - before, n_bytes


if __name__ == "__main__":
    main()
