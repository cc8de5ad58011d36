"""Fixtures of all tests: an empty home, the time zone UTC, and no network."""

from __future__ import annotations

import ipaddress
import os
import platform
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]

# Variables that would change what clients, the platform or Pollux do; those that configure the tests are not removed.
_FOREIGN = ("GEMINI_", "GOOGLE_", "POLLUX_", "XDG_")
_OURS = ("POLLUX_CORPUS", "POLLUX_LAW", "POLLUX_LONG", "POLLUX_ORACLE", "POLLUX_REWRITE")
_SCREEN = ("COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR")

_HOME = {
    "HOME": "",
    "USERPROFILE": "",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_RUNTIME_DIR": ".run",
    "XDG_STATE_HOME": ".local/state",
    "WIN_PD_OVERRIDE_APPDATA": "AppData/Roaming",  # platformdirs asks Windows itself, not the environment
    "WIN_PD_OVERRIDE_LOCAL_APPDATA": "AppData/Local",
}

# No deadline, because a slow machine is not a failure. Examples are the same in every run, so that a new failure is
# caused by the change under test; with POLLUX_LONG they are random, except in CI.
settings.register_profile("pollux", deadline=None, derandomize="POLLUX_LONG" not in os.environ or "CI" in os.environ)
settings.load_profile("pollux")


_QUICK_CASES, _QUICK_EXAMPLES = 1, 20
"""With `--quick`: cases of a test, and examples of a property that does not name a number of its own."""
_NOT_QUICK = (
    *("tests/corpus", "tests/fuzz", "tests/recorder", "tests/client", "tests/browser", "tests/interop"),
    *("tests/web/browser", "tests/web/test_server.py", "tests/cli/test_usage_live.py", "tests/archive/test_watch.py"),
    *("tests/test_hostile_texts.py", "tests/views/test_languages.py", "tests/search/test_judged_corpus.py"),
    *("tests/archive/test_faults.py", "tests/library/test_law.py", "tests/cli/test_hostile_screens.py"),
    *("tests/cli/test_first_minute.py", "tests/cli/test_colours.py", "tests/search/test_index_faults.py"),
    *("tests/test_interrupts.py", "tests/test_growth.py", "tests/test_long_lines.py", "tests/cli/test_side_by_side.py"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="run the first case of each test, without the slow folders")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.register_profile("quick", settings.get_profile("pollux"), max_examples=_QUICK_EXAMPLES)
        settings.load_profile("quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--quick`, select the first case of each test, and deselect slow folders and files."""
    if not config.getoption("--quick"):
        return
    selected: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    seen: Counter[str] = Counter()
    for item in sorted(items, key=lambda item: item.nodeid):
        test = item.nodeid.partition("[")[0]
        seen[test] += 1
        is_quick = seen[test] <= _QUICK_CASES and not test.startswith(_NOT_QUICK)
        (selected if is_quick else deselected).append(item)
    config.hook.pytest_deselected(items=deselected)
    items[:] = selected


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in [*os.environ]:
        if (name.startswith(_FOREIGN) and name not in _OURS) or name in _SCREEN:
            monkeypatch.delenv(name)
    # Rich caches the codes of a style for the first number of colours that it is written with: let all tests use one.
    monkeypatch.setenv("TERM", "xterm-256color")
    home = tmp_path_factory.mktemp("home")
    for name, folder in _HOME.items():
        monkeypatch.setenv(name, str(home / folder))
    monkeypatch.setattr(platform, "node", lambda: "localhost")  # the default of `open_archive`


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    if hasattr(time, "tzset"):  # not on Windows
        time.tzset()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _local_only(getattr(socket.socket, name)))


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of real session trees, which is next to the repository; skip the test if there is none."""
    folder = Path(os.environ.get("POLLUX_CORPUS") or ROOT.parent / "shared" / "corpus")
    if not folder.is_dir():
        pytest.skip(f"no corpus at {folder}: set POLLUX_CORPUS to its folder")
    return folder


def _local_only(connect: Any) -> Any:  # noqa: ANN401  # two signatures of the standard library in one
    def guarded(self: socket.socket, address: Any) -> Any:  # noqa: ANN401
        if self.family in {socket.AF_INET, socket.AF_INET6} and not _is_loopback(address[0]):
            pytest.fail(f"a test tried to connect to {address}")
        return connect(self, address)

    return guarded


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
