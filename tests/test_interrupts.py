"""Ctrl-C at any moment: the command ends at once, without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pollux.cli.demo import HOME as DEMO

needs_signals = pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to one process")

AT_IMPORT = """
import os, signal, sys

class Interrupt:
    \"\"\"Sends SIGINT to this process when the n-th module is looked for.\"\"\"

    left = int(sys.argv.pop(1))

    def find_spec(self, name, path=None, target=None):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Interrupt())
from pollux.__main__ import program
sys.argv[0] = "pollux"
program()
"""
BEFORE_PROGRAM = 3
"""Modules that Python looks for before our code runs: `pollux`, `__future__` and `pollux.__main__`."""

BUSY_WORKERS = """
import os, time
from pollux.sessions import parallel

def work(number):
    os.write(1, b"busy\\n")
    time.sleep(600)

try:
    list(parallel.map_in_processes(work, range(8), is_worth_it=True))
except KeyboardInterrupt:
    os.write(1, b"interrupted\\n")
    os._exit(130)
"""

IGNORED = """
import pollux.__main__ as command

class Interrupting:
    def __del__(self):
        raise KeyboardInterrupt

command.main = lambda: (Interrupting(), None)[1]
command.program()
"""


SLOW_CLEANUP = """
import os, signal, time
import pollux.__main__ as command

def main():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        time.sleep(600)

command.main = main
command.program()
"""

WITH_PAGER = """
import os, signal, subprocess, sys
import pollux.__main__ as command
from pollux.cli.interrupts import CLEANUP

def main():
    pager = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({4 * CLEANUP})"])
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        pager.wait()
        print("closed", flush=True)

command.main = main
command.program()
"""

LONG_CALL = """
import os, signal, sqlite3, threading
import pollux.__main__ as command

FOR_EVER = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

def main():
    if {forks}:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    assert threading.active_count() == 1  # so that workers may be forked
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    sqlite3.connect(":memory:").execute(FOR_EVER).fetchone()

command.main = main
command.program()
"""

HANDLED = """
import os, signal, sys, time
import pollux.__main__ as command
from pollux.cli.interrupts import CLEANUP

def main():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        pass
    time.sleep(2 * CLEANUP)
    sys.exit(7)

command.main = main
command.program()
"""


def environment(archive: Path) -> dict[str, str]:
    return {**os.environ, "POLLUX_HOME": str(DEMO), "POLLUX_ARCHIVE": str(archive), "NO_COLOR": "1"}


@needs_signals
@pytest.mark.parametrize("args", [("ls",), ("--version",)])
@pytest.mark.parametrize("n_modules", [1, 2, 3, 8, 21, 55, 144, 233])
def test_interrupted_import_leaves_no_traceback(tmp_path: Path, n_modules: int, args: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", AT_IMPORT, str(n_modules + BEFORE_PROGRAM), *args]
    process = subprocess.run(command, capture_output=True, check=False, env=environment(tmp_path / "a.db"))
    assert b"Traceback" not in process.stderr
    assert b"Interrupt" not in process.stderr
    if process.returncode in (130, -signal.SIGINT):
        assert process.stdout == b""
    else:  # it needs fewer modules
        assert process.returncode in (0, 2)


def test_package_loads_no_module_before_signals_are_set() -> None:
    """While `pollux/__init__.py` runs, nothing can catch Ctrl-C yet."""
    code = "import sys; before = {*sys.modules}; import pollux.__main__; print(*sorted({*sys.modules} - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split()
    assert loaded == [b"__future__", b"pollux", b"pollux.__main__"]


@needs_signals
@pytest.mark.skipif(sys.platform != "linux" or os.cpu_count() == 1, reason="no workers")
def test_busy_workers_do_not_delay_the_end() -> None:
    """Workers end with their parent: the pipe is read until the last of them has closed it."""
    with subprocess.Popen([sys.executable, "-c", BUSY_WORKERS], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"busy\n"
        process.send_signal(signal.SIGINT)
        try:
            lines = process.communicate(timeout=60)[0].splitlines()
        finally:
            process.kill()
    assert process.returncode == 130
    assert b"interrupted" in lines


def test_interrupt_that_python_would_ignore_ends_the_command() -> None:
    process = subprocess.run([sys.executable, "-c", IGNORED], capture_output=True, check=False)
    assert (process.returncode, process.stderr) == (130, b"")


@needs_signals
def test_slow_cleanup_is_cut_short() -> None:
    process = subprocess.run([sys.executable, "-c", SLOW_CLEANUP], capture_output=True, check=False, timeout=60)
    assert (process.returncode, process.stderr) == (130, b"")


@needs_signals
@pytest.mark.parametrize("forks", [False, True])
def test_call_that_never_returns_is_cut_short(forks: bool) -> None:  # noqa: FBT001
    code = LONG_CALL.replace("{forks}", str(forks))
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert (process.returncode, process.stderr) == (130, b"")


@needs_signals
def test_handled_interrupt_does_not_end_the_command() -> None:
    process = subprocess.run([sys.executable, "-c", HANDLED], capture_output=True, check=False)
    assert (process.returncode, process.stderr) == (7, b"")


@needs_signals
def test_open_pager_is_waited_for() -> None:
    process = subprocess.run([sys.executable, "-c", WITH_PAGER], capture_output=True, check=False, timeout=60)
    assert (process.returncode, process.stdout, process.stderr) == (130, b"closed\n", b"")
