from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pollux import homes
from pollux.sessions import parallel, reader
from pollux.sessions.parallel import map_in_processes
from pollux.sessions.reader import history

DEMO = Path(__file__).parents[2] / "src" / "pollux" / "demo" / "home"
IS_LINUX = os.name == "posix" and os.uname().sysname == "Linux"


def doubled(number: int) -> tuple[int, int]:
    return 2 * number, os.getpid()


@pytest.mark.parametrize("is_worth_it", [True, False])
def test_results_come_in_order(monkeypatch: pytest.MonkeyPatch, *, is_worth_it: bool) -> None:
    monkeypatch.setattr(parallel, "_can_fork", lambda: IS_LINUX)
    results = list(map_in_processes(doubled, range(50), is_worth_it=is_worth_it))
    assert [number for number, _ in results] == list(range(0, 100, 2))
    used_processes = os.getpid() not in {process for _, process in results}
    assert used_processes is (is_worth_it and IS_LINUX)


def test_process_with_threads_does_not_fork() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not parallel._can_fork()
    finally:
        done.set()
        thread.join()


def test_history_from_several_processes_equals_that_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = history(homes(DEMO))
    monkeypatch.setattr(parallel, "_can_fork", lambda: IS_LINUX)
    monkeypatch.setattr(reader, "_WORTH_PROCESSES", 0)
    monkeypatch.setattr(reader, "_CHUNK", 1 << 10)
    together = history(homes(DEMO))
    assert together.sessions == alone.sessions
    assert together.problems == alone.problems


@pytest.mark.skipif(not IS_LINUX, reason="processes are copies on Linux alone")
def test_parent_finishes_the_work_of_a_killed_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_can_fork", lambda: True)
    own_process = os.getpid()

    def work(number: int) -> int:
        if number == 3 and os.getpid() != own_process:
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    assert list(map_in_processes(work, range(9), is_worth_it=True)) == [n * n for n in range(9)]


@pytest.mark.skipif(not IS_LINUX, reason="processes are copies on Linux alone")
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    program = f"""
import os, pathlib, time
from pollux.sessions import parallel
def work(n):
    pathlib.Path({str(tmp_path)!r}, str(os.getpid())).touch()
    time.sleep(60)
list(parallel.map_in_processes(work, range(2), is_worth_it=True))
"""
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        assert becomes_true(lambda: any(tmp_path.iterdir()))
        parent.kill()
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert becomes_true(lambda: not any(is_running(process) for process in workers))


def becomes_true(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def is_running(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
