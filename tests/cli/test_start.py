"""How a command starts: interrupted, or in an impossible time zone."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from pollux.cli.demo import HOME as DEMO
from pollux.library.environment import correct_environment

INTERRUPTED = """
import sys

class Interrupt:
    \"\"\"Raises what Ctrl-C raises, instead of finding the n-th module.\"\"\"

    left = int(sys.argv.pop(1))

    def find_spec(self, name, path=None, target=None):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return None

from importlib import import_module
from typing import Any, TYPE_CHECKING
import pollux
sys.meta_path.insert(0, Interrupt())
from pollux.__main__ import program
sys.argv[0] = "pollux"
program()
"""


def start(*args: str, code: str | None = None, **environ: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "pollux"]
    environment = {**os.environ, "POLLUX_HOME": str(DEMO), "POLLUX_ARCHIVE": "-", **environ}
    return subprocess.run([*command, *args], capture_output=True, check=False, env=environment)


@pytest.mark.parametrize("n_modules", [2, 5, 10, 20, 40, 60, 80, 100, 120])
def test_interrupt_during_imports_is_silent(n_modules: int) -> None:
    ended = start(str(n_modules), "ls", code=INTERRUPTED)
    assert ended.returncode == 130
    assert (ended.stdout, ended.stderr.strip()) == (b"", b"")


@pytest.mark.parametrize(
    ("args", "needed", "needless"),
    [
        (("usage", "--json"), "pollux.reports.usage", {"pollux.reports.audit", "pollux.reports.stats", "tempfile"}),
        (("stats", "--json"), "pollux.reports.stats", {"pollux.reports.audit", "rich"}),
        (("ls",), "rich", set[str]()),
        *((args, "json", {"rich"}) for args in (("ls", "--json"), ("ls", "--saved", "--json"), ("doctor", "--json"))),
        *((args, "json", {"rich"}) for args in (("audit", "latest", "--json"), ("status", "--json"))),
        (("projects", "--json"), "json", {"rich"}),
    ],
)
def test_command_loads_only_modules_that_it_needs(args: tuple[str, ...], needed: str, needless: set[str]) -> None:
    ended = start(*args, PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.decode().splitlines()}
    assert needed in loaded
    assert not loaded & needless


@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
@pytest.mark.parametrize("said", ["9" * 5000, "9" * 30, "100000000", "\u00b2", "-1", "x", ""])
def test_impossible_screen_size_is_ignored(name: str, said: str) -> None:
    assert start("show", "latest", **{name: said}).stdout == start("show", "latest").stdout


@pytest.mark.parametrize(("said", "heeded"), [("80", True), ("0", True), ("9999", True), ("10000", False)])
def test_screen_may_have_thousands_of_columns(said: str, heeded: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    monkeypatch.setenv("COLUMNS", said)
    correct_environment()
    assert (os.environ.get("COLUMNS") == said) == heeded


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the system has no such variable")
@pytest.mark.parametrize("zone", ["XXX-25:99:99", "XXX0YYY-26"])
@pytest.mark.parametrize(
    "args",
    [
        (),
        ("ls",),
        ("show", "latest"),
        ("usage",),
        ("usage", "--by", "day"),
        ("stats",),
        ("status",),
        ("tree", "latest"),
        ("audit", "latest"),
        ("statusline",),
        ("export", "latest", "-f", "html"),
        ("export", "latest", "-f", "devlog"),
        ("ls", "--since", "yesterday"),
    ],
)
def test_impossible_time_zone_is_replaced_by_utc(zone: str, args: tuple[str, ...]) -> None:
    ended, in_utc = start(*args, TZ=zone), start(*args, TZ="UTC")
    assert ended.returncode == in_utc.returncode
    assert ended.stdout == in_utc.stdout
    first, *others = ended.stderr.splitlines()
    assert first == f"TZ={zone} is a day or more away from UTC; times are shown in UTC.".encode()
    assert others == in_utc.stderr.splitlines()
