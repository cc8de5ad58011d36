"""Measure Pollux against the size of what it reads, and write BENCHMARKS.md.

The trees come from `../shared/gen_tree.py`, so this needs the folder that stands beside the repository. Everything is
measured in one run and told as ratios to reading the same files with `cat`: machines differ, ratios less so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GENERATOR = ROOT.parent / "shared" / "gen_tree.py"
BUILD = ROOT / "build" / "bench"
MB = 1_000_000
_BIG_MB = 500
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Measure:
    """The best of some runs of one command."""

    name: str
    seconds: float
    peak_mb: float


def main() -> None:
    """Build the trees, measure, write the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=3000)
    options.add_argument("--mb", type=int, default=760)
    given = options.parse_args()
    if not GENERATOR.exists():
        sys.exit(f"{GENERATOR} is missing: the benchmark needs the folder beside the repository")
    home = _tree(given.sessions, given.mb)
    big = _big_home()
    rows = [(_facts(folder), _measured(folder)) for folder in (home, big)]
    page = _page(rows) + _page_of_archive(home)
    (ROOT / "BENCHMARKS.md").write_text(page, encoding="utf-8")
    print(page)


def _tree(sessions: int, megabytes: int) -> Path:
    home = BUILD / f"home-{sessions}-{megabytes}"
    if not (home / "truth.json").exists():
        command = [sys.executable, str(GENERATOR), "--out", str(home), "--sessions", str(sessions)]
        subprocess.run([*command, "--mb", str(megabytes), "--seed", "7"], check=True)
    return home


def _big_home() -> Path:
    """Write one session of half a gigabyte: prompts, answers and tool results, each with its own id."""
    home = BUILD / f"home-one-{_BIG_MB}"
    file = home / ".gemini" / "tmp" / "big" / "chats" / "session-2026-11-01T10-00-b1900000.jsonl"
    if file.exists():
        return home
    file.parent.mkdir(parents=True)
    at = "2026-11-01T10:00:00.000Z"
    text = "the quick brown fox reads line after line of a very long log file\n" * 300
    with file.open("w", encoding="utf-8") as out:
        head = {"sessionId": "b1900000-0000-4000-8000-000000000000", "projectHash": "0" * 64, "startTime": at}
        out.write(json.dumps({**head, "lastUpdated": at, "kind": "main"}) + "\n")
        number = 0
        while out.tell() < _BIG_MB * MB:
            number += 1
            for record in _turn(number, at, text):
                out.write(json.dumps(record) + "\n")
    return home


def _turn(number: int, at: str, text: str) -> list[dict[str, object]]:
    call_id = f"read_file-{number}"
    part = {"functionResponse": {"id": call_id, "name": "read_file", "response": {"output": text}}}
    call = {"id": call_id, "name": "read_file", "args": {"file_path": "a.log"}, "result": [part], "status": "success"}
    tokens = {"input": 9000, "output": 20, "cached": 0, "thoughts": 0, "tool": 0, "total": 9020}
    answer = {"id": f"g{number}", "timestamp": at, "type": "gemini", "content": "", "model": "gemini-2.5-pro"}
    return [
        {"id": f"u{number}", "timestamp": at, "type": "user", "content": [{"text": f"Question {number}"}]},
        {**answer, "tokens": tokens},
        {**answer, "tokens": tokens, "toolCalls": [call]},
        {"id": f"r{number}", "timestamp": at, "type": "user", "content": [part]},
    ]


def _facts(home: Path) -> str:
    files = [path for path in home.rglob("chats/**/*") if path.is_file()]
    return f"{len(files):,} files, {sum(path.stat().st_size for path in files) / MB:,.0f} MB"


def _measured(home: Path) -> list[Measure]:
    files = sorted(str(path) for path in home.rglob("chats/**/*") if path.is_file())
    pollux = [sys.executable, "-m", "pollux"]
    alone, kept = ["--home", str(home), "--no-archive"], ["--home", str(home), "--archive", str(_archive(home))]
    commands: list[tuple[str, Sequence[str]]] = [
        ("cat", ["cat", *files]),
        ("pollux ls --json --no-archive", [*pollux, "ls", "--json", *alone]),
        ("pollux export latest -f gemini --no-archive", [*pollux, "export", "latest", "-f", "gemini", *alone]),
        ("pollux show latest --no-archive", [*pollux, "show", "latest", *alone]),
        ("pollux sync (first)", [*pollux, "sync", *kept]),
        ("pollux sync (nothing changed)", [*pollux, "sync", *kept]),
        ("pollux ls --json", [*pollux, "ls", "--json", *kept]),
    ]
    best: dict[str, Measure] = {}
    for _ in range(_ROUNDS):  # interleaved, so that a noisy minute hurts all alike
        _forget_archive(home)
        for name, command in commands:
            found = _run(name, command)
            if name not in best or found.seconds < best[name].seconds:
                best[name] = found
    return list(best.values())


def _archive(home: Path) -> Path:
    return BUILD / f"{home.name}.db"


def _forget_archive(home: Path) -> None:
    for path in BUILD.glob(f"{home.name}.db*"):
        path.unlink()


def _refresh_inside(home: Path) -> str:
    """Measure a refresh inside the process: with nothing changed, and after the largest log grew by one turn."""
    from pollux.archive.refresh import refresh  # noqa: PLC0415  the rest of this script needs no Pollux
    from pollux.archive.store import opened  # noqa: PLC0415
    from pollux.sessions import homes  # noqa: PLC0415

    def seconds() -> float:
        with opened(_archive(home)) as archive:
            start = time.perf_counter()
            refresh(archive, homes(home))
            return time.perf_counter() - start

    idle = min(seconds() for _ in range(_ROUNDS))
    log = max(home.rglob("session-*.jsonl"), key=lambda path: path.stat().st_size)
    size = log.stat().st_size
    turn = {"id": f"bench-{time.time_ns()}", "timestamp": "2026-11-15T00:00:00.000Z", "type": "user", "content": "more"}
    with log.open("a", encoding="utf-8") as out:
        out.write(json.dumps(turn) + "\n")
    grown = seconds()
    os.truncate(log, size)
    return f"nothing changed {idle:.3f} s, the largest session ({size / MB:.0f} MB) grew by a turn {grown:.3f} s"


def _run(name: str, command: Sequence[str]) -> Measure:
    environment = {**os.environ, "XDG_DATA_HOME": str(BUILD / "data")}
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as process:
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return Measure(name, time.perf_counter() - start, usage.ru_maxrss / 1024)


def _page(rows: list[tuple[str, list[Measure]]]) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; the best of three interleaved runs.",
        f"Machine: {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}.",
        "",
        "| tree | command | seconds | × cat | peak memory |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for facts, measures in rows:
        base = measures[0].seconds
        lines += [
            f"| {facts} | `{one.name}` | {one.seconds:.2f} | {one.seconds / base:.1f} | {one.peak_mb:.0f} MB |"
            for one in measures
        ]
    return "\n".join(lines) + "\n"


def _page_of_archive(home: Path) -> str:
    files = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    kept = _archive(home).stat().st_size
    return (
        f"\nThe archive of the first tree: {kept / MB:.0f} MB, 1/{files / kept:.2f} of its files.\n"
        f"A refresh of it, inside the process: {_refresh_inside(home)}.\n"
    )


if __name__ == "__main__":
    main()
