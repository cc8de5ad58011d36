"""`usage --live` on a real terminal: it shows new calls at any size of the terminal, and leaves the last report."""

from __future__ import annotations

import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import builders
from tests.cli.usage_cases import answer, counts

if sys.platform == "win32":
    pytest.skip("no pseudo terminals here", allow_module_level=True)
else:
    import fcntl
    import termios

_PATIENCE = 60.0
"""Seconds, on a machine that has much else to do."""
_HOME = b"\x1b[H"
"""Every drawing begins in the corner."""
_BACK = b"\x1b[?1049l"
"""What was on the terminal before comes back."""
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *command: str, columns: int, lines: int) -> None:
        self._ours, self._theirs = os.openpty()
        self.resize(columns, lines)
        self.said = b""
        # The first of a session that opens a terminal owns it: only so does Ctrl-C become an interrupt.
        opening = ("sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(self._theirs))
        environment = {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen((*opening, *command), env=environment, start_new_session=True)

    def resize(self, columns: int, lines: int) -> None:
        self._lines = lines
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def read_until(self, words: str) -> list[str]:
        """Wait for some words in a drawing that fills the screen; return its lines."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            *drawings, rest = self.said.split(_HOME)
            for drawing in drawings:
                lines = plain(drawing.decode("utf-8", "replace")).split("\n")
                if len(lines) == self._lines and any(words in line for line in lines):
                    return lines
            self.said = rest  # the one that is not complete yet
            self._read()
        pytest.fail(f"no {words!r} in {self.said[-2000:]!r}")

    def end(self) -> tuple[int, str]:
        """Press Ctrl-C; return the status and what is on the screen afterwards."""
        self.type(b"\x03")
        end = time.monotonic() + _PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self._read()
        self._read()
        _, _, left = self.said.partition(_BACK)
        return self.process.wait(1), plain(left.decode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def _read(self) -> None:
        while select.select([self._ours], [], [], 0.1)[0]:
            self.said += os.read(self._ours, 1 << 16)


def plain(text: str) -> str:
    return _CONTROL.sub("", text).replace("\r", "")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Terminal]:
    options = ("--home", str(tmp_path), "--archive", str(tmp_path / "archive.db"))
    builders.chats(tmp_path).mkdir(parents=True)
    terminal = Terminal(sys.executable, "-m", "pollux", "usage", "--live", *options, columns=80, lines=24)
    yield terminal
    terminal.close()


def write(root: Path, data: bytes, name: str = builders.NAME) -> None:
    with (builders.chats(root) / f"{name}.jsonl").open("ab") as file:
        file.write(data)


def test_turns_appear_while_they_are_written(live: Terminal, tmp_path: Path) -> None:
    live.read_until("No model call matches yet.")
    turn = builders.log(builders.header(), builders.user(content="What costs this?"), answer("g1", counts(1000, 100)))
    write(tmp_path, turn)
    assert any("What costs this?" in line and "$0.00225" in line for line in live.read_until("$0.00225"))
    torn = builders.line(answer("g2", counts(3000, 100)))
    write(tmp_path, torn[:50])
    time.sleep(1.5)  # so that half of a line has been looked at
    write(tmp_path, torn[50:] + b"\n")
    assert any("What costs this?" in line and "$0.00700" in line for line in live.read_until("2 calls"))
    status, left = live.end()
    assert (status, "$0.00700" in left, "Traceback" in left) == (0, True, False)


def test_screen_fits_every_terminal_size(live: Terminal, tmp_path: Path) -> None:
    for n in range(40):
        head = builders.header(f"{n:08}-0000-4000-8000-000000000000")
        log = builders.log(head, builders.user(content=f"Question {n}"), answer(f"g{n}", counts(1000, 100)))
        write(tmp_path, log, f"session-2026-11-15T19-30-{n:08}")
    live.read_until("40 calls")
    for columns, lines, n_rows in ((60, 15, 7), (100, 50, 40), (40, 8, 1), (80, 24, 16)):
        live.resize(columns, lines)
        drawn = live.read_until("billed")
        assert max(map(len, drawn)) <= columns
        assert sum("Quest" in line for line in drawn) == n_rows
        if lines > 10:
            assert any(f"{40 - n_rows} more row" in line for line in drawn) == (n_rows < 40)
            assert any(line.startswith("Prices:") for line in drawn)
    assert live.end()[0] == 0
