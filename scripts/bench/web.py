"""Measure the viewer on a home of many sessions: time to the first page, weight, memory and processor time.

    python -m scripts.bench.web [--sessions 100000] [--first]

Prints a table in Markdown. The archive is filled first. Processor time is that of the server for one request,
the least of three after a first one. With `--first`, every page gets a server of its own, and is also asked for after
another process has archived a change of one session. Other viewers are not measured here.
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
from pathlib import Path

import msgspec
from scripts.bench.server_process import ServerProcess
from scripts.bench.trees import BUILD
from scripts.bench.web_home import LONG_SESSIONS, N_SESSIONS, RARE, write_home

from pollux.library.viewer_files import HOST, RunningViewer
from pollux.web.server import ask_for_ticket

_MEDIUM, _LONG = LONG_SESSIONS
_PAGES = {
    "overview": "",
    "sessions": "sessions",
    "sessions of a project": "sessions?project=project-07",
    "sessions by cost": "sessions?sort=cost",
    "search, a common word": "search?q=parser",
    "search, a rare word": f"search?q={RARE}",
    "usage": "usage",
    "usage of a year": "usage?last=1y",
    "usage of all time": "usage?last=all",
    "projects": "projects",
    "files": "files",
    "health": "health",
    "API: sessions": "api/sessions",
    "API: usage": "api/usage",
    "API: projects": "api/projects",
    "session of 50,000 messages": f"s/{_LONG}",
    "a window of it": f"s/{_LONG}/part?from=1",
    "find in 5,000 messages": f"s/{_MEDIUM}/find?q={RARE}",
    "find in 50,000 messages": f"s/{_LONG}/find?q={RARE}",
}
_ROUNDS = 3


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
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "TZ": "UTC"},
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
    options.add_argument("--first", action="store_true", help="a server for each page")
    arguments = options.parse_args()
    n_sessions = arguments.sessions
    home = write_home(BUILD / f"home-web-{n_sessions}", n_sessions)
    folder = BUILD / "web" / str(n_sessions)
    sync = ["sync", "--home", str(home), "--archive", str(folder / "archive.db")]
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "pollux", *sync], check=True, stdout=subprocess.DEVNULL)
    if arguments.first:
        _print_first_requests(home, folder, sync)
        return
    start = time.perf_counter()
    with serving(home, folder) as viewer:
        viewer.get("sessions")
        first = time.perf_counter() - start
        print(f"{n_sessions:,} sessions, load {os.getloadavg()[0]:.1f}; first list after {first:.2f} s\n")
        print("| page | bytes | CPU ms, first | CPU ms, again |\n| --- | ---: | ---: | ---: |")
        for name, path in _PAGES.items():
            print(_row(viewer, name, path), flush=True)
        print(f"\nServer memory: {viewer.memory_mb()} MB, at most {viewer.memory_mb('VmHWM')} MB.")


def _print_first_requests(home: Path, folder: Path, sync: Sequence[str]) -> None:
    """Print the processor time of the first request of each page after start, after a change, and of the same again."""
    print("| page | CPU ms, after start | after a change | again |\n| --- | ---: | ---: | ---: |")
    for name, path in _PAGES.items():
        with serving(home, folder) as viewer:
            viewer.settle()
            viewer.get("sessions?after=1000000")  # imports modules, opens a connection
            first = _cpu_ms(viewer, path)
            _touch_a_session(home)
            for command in (sync, ["usage", *sync[1:]]):
                subprocess.run([sys.executable, "-m", "pollux", *command], check=True, stdout=subprocess.DEVNULL)
            changed = _cpu_ms(viewer, path)
            print(f"| {name} | {first:.0f} | {changed:.0f} | {_cpu_ms(viewer, path):.0f} |", flush=True)


def _touch_a_session(home: Path) -> None:
    """Add a prompt to a session that was used last week."""
    path = min(home.glob(".gemini/tmp/*/chats/session-2026-10-3*.jsonl"))
    prompt = {"id": f"{time.time_ns()}", "timestamp": "2026-10-31T12:00:00.000Z", "type": "user", "content": "And now?"}
    with path.open("ab") as file:
        file.write(msgspec.json.encode(prompt) + b"\n")


def _cpu_ms(viewer: MeasuredViewer, path: str) -> float:
    before = viewer.processor_ms()
    status, _, _ = viewer.get(path)
    if status != http.client.OK:
        sys.exit(f"{path} was answered with status {status}")
    return viewer.processor_ms() - before


def _row(viewer: MeasuredViewer, name: str, path: str) -> str:
    times, n_bytes = [], 0
    for _ in range(_ROUNDS + 1):
        before = viewer.processor_ms()
        status, _, n_bytes = viewer.get(path)
        times.append(viewer.processor_ms() - before)
        if status != http.client.OK:
            sys.exit(f"{path} was answered with status {status}")
    return f"| {name} | {n_bytes:,} | {times[0]:.0f} | {min(times[1:]):.0f} |"


if __name__ == "__main__":
    main()
