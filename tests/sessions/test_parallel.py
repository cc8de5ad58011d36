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
    found = list(map_in_processes(doubled, range(50), is_worth_it=is_worth_it))
    assert [number for number, _ in found] == list(range(0, 100, 2))
    is_elsewhere = os.getpid() not in {process for _, process in found}
    assert is_elsewhere is (is_worth_it and IS_LINUX)


def test_a_process_with_threads_is_not_copied() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not parallel._can_fork()
    finally:
        done.set()
        thread.join()


def test_history_is_the_same_from_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = history(homes(DEMO))
    monkeypatch.setattr(parallel, "_can_fork", lambda: IS_LINUX)
    monkeypatch.setattr(reader, "_WORTH_PROCESSES", 0)
    monkeypatch.setattr(reader, "_CHUNK", 1 << 10)
    together = history(homes(DEMO))
    assert together.sessions == alone.sessions
    assert together.problems == alone.problems


@pytest.mark.skipif(not IS_LINUX, reason="processes are copies on Linux alone")
def test_what_a_killed_process_leaves_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_can_fork", lambda: True)
    here = os.getpid()

    def work(number: int) -> int:
        if number == 3 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    assert list(map_in_processes(work, range(9), is_worth_it=True)) == [n * n for n in range(9)]


@pytest.mark.skipif(not IS_LINUX, reason="processes are copies on Linux alone")
def test_copies_end_with_the_one_who_started_them(tmp_path: Path) -> None:
    program = f"""
import os, pathlib, time
from pollux.sessions import parallel
def work(n):
    pathlib.Path({str(tmp_path)!r}, str(os.getpid())).touch()
    time.sleep(60)
list(parallel.map_in_processes(work, range(2), is_worth_it=True))
"""
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        assert soon(lambda: any(tmp_path.iterdir()))
        parent.kill()
    copies = [int(path.name) for path in tmp_path.iterdir()]
    assert soon(lambda: not any(is_there(one) for one in copies))


def soon(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def is_there(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
