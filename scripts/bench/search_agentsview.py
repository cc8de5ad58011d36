"""Time the searches of agentsview, which only answers while its own server runs.

    search_agentsview.py PROGRAM QUERIES [FLAG …]

Starts the server without a synchronisation, runs one command for each text of `QUERIES`, a JSON list, prints the
seconds and whether each command succeeded, and stops the server. Run in a network namespace, where there is no port of
another program.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

_START_SECONDS = 60


def main() -> None:
    """Start the server, ask, and stop it."""
    program, queries, flags = sys.argv[1], json.loads(Path(sys.argv[2]).read_bytes()), sys.argv[3:]
    if shutil.which("ip"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=False, capture_output=True)
    options = ("--no-browser", "--no-sync", "--no-update-check")
    with subprocess.Popen([program, "serve", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait(program)
            runs = [_timed([program, "session", "search", *flags, "--json", "--", query]) for query in queries]
        finally:
            server.terminate()
    print(json.dumps(runs))


def _wait(program: str) -> None:
    """Wait until the server answers."""
    for _ in range(_START_SECONDS * 5):
        ended = subprocess.run([program, "serve", "status"], check=False, capture_output=True, text=True)
        if ended.returncode == 0 and "running" in ended.stdout and "not running" not in ended.stdout:
            return
        time.sleep(0.2)
    sys.exit("agentsview did not start")


def _timed(command: list[str]) -> tuple[float, bool]:
    start = time.perf_counter()
    ended = subprocess.run(command, check=False, capture_output=True)
    return time.perf_counter() - start, ended.returncode == 0


if __name__ == "__main__":
    main()
