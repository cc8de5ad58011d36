"""Released clients, run headless against a fake API, and the archive of the files that they write.

`POLLUX_CLIENTS` names a folder with `v<release>/node_modules`, `FAKE_GEMINI` the one with `fake_gemini.py`
(`make test-client` sets both).
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.refreshing import refresh

from pollux.archive import open_session, restore
from pollux.archive.restore import WritePlan
from pollux.archive.store import open_archive
from pollux.model import Session
from pollux.sessions.locate import Home

RELEASES = ("0.61.0", "0.51.0", "0.47.0", "0.40.1", "0.38.2")
ANSWER = "Scripted answer."

_REPOSITORY = Path(__file__).parents[2]
_CLIENTS = os.environ.get("POLLUX_CLIENTS")
_FAKE = Path(os.environ.get("FAKE_GEMINI") or _REPOSITORY.parent / "shared" / "fake_gemini") / "fake_gemini.py"
_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "tools": {"useRipgrep": False},
}
_SECONDS = 180
_STARTS = 4


def why_not() -> str | None:
    """Return what is missing to run clients, if anything."""
    if not _CLIENTS:
        return "no clients: `make test-client` installs them and sets POLLUX_CLIENTS"
    if not shutil.which("node"):
        return "no Node.js on the PATH"
    return None if _FAKE.is_file() else f"no {_FAKE}: set FAKE_GEMINI to the folder of the invented API"


@cache
def _fake() -> Any:  # noqa: ANN401  a script without types
    spec = importlib.util.spec_from_file_location("fake_gemini", _FAKE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def client(root: Path, release: str) -> Iterator[ReleasedClient]:
    """Return a client with an empty home, an empty project and an empty archive."""
    assert _CLIENTS is not None
    package = Path(_CLIENTS) / f"v{release}" / "node_modules" / "@google" / "gemini-cli"
    if not package.is_dir():
        pytest.skip(f"no client {release} in {_CLIENTS}")
    opened = ReleasedClient(root, release)
    yield opened
    opened.archive.close()
    _fake().stop(opened.server)


class ReleasedClient:
    """One user, one project, and any release of the client."""

    def __init__(self, root: Path, release: str) -> None:
        self.release = release
        self.user = _settled(root / "alice")
        self.project = root / "dev" / "webapp"
        self.project.mkdir(parents=True)
        self.requests = root / "requests"
        self.requests.mkdir()
        script = {"turns": [], "fallback": {"parts": [{"text": ANSWER}]}}
        self.server, self.url = _fake().start(script, str(self.project), dump_dir=str(self.requests))
        self.archive = open_archive(root / "archive.db")
        self.home = Home(self.user / ".gemini", self.user / ".gemini" / "tmp", "--home")

    def __call__(self, *args: str, release: str | None = None, user: Path | None = None) -> str:
        """Run the client in the project's folder, and return its output."""
        assert _CLIENTS is not None
        package = Path(_CLIENTS) / f"v{release or self.release}" / "node_modules" / "@google" / "gemini-cli"
        script = package / json.loads((package / "package.json").read_bytes())["bin"]["gemini"]
        done = subprocess.run(
            ["node", str(script), *args],  # noqa: S607  the installed Node.js
            cwd=self.project,
            env=self._environment(user or self.user),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def clean_up(self, release: str | None = None) -> list[Path]:
        """Start the client until it has deleted all its sessions, and return those that are left.

        It does not wait for its clean-up when it exits, so one start on a busy machine may delete nothing.
        """
        for _ in range(_STARTS):
            self("--list-sessions", release=release)
            if not self.chats():
                break
        return self.chats()

    def _environment(self, user: Path) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(user),
            "USERPROFILE": str(user),
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "NO_BROWSER": "true",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    def say(self, words: str, *more: str, release: str | None = None, user: Path | None = None) -> list[str]:
        """Send a prompt, and return all texts that the client sent to the model."""
        self("-p", words, "--yolo", *more, release=release, user=user)
        last = max(self.requests.glob("*-main.json"))
        contents = json.loads(last.read_bytes())["contents"]
        return [part["text"] for content in contents for part in content["parts"] if "text" in part]

    def chats(self, user: Path | None = None) -> list[Path]:
        """Return the files of the sessions."""
        return sorted(((user or self.user) / ".gemini" / "tmp").glob("*/chats/session-*"))

    def recorded(self, words: str, *, days_ago: int) -> tuple[str, Path]:
        """Record a session that is some days old, and return its ID and its file."""
        self.say(words)
        [path] = self.chats()
        now, then = datetime.now(UTC), datetime.now(UTC).timestamp() - days_ago * 86_400
        day, old = f"{now:%Y-%m-%d}", f"{datetime.fromtimestamp(then, UTC):%Y-%m-%d}"
        data = path.read_bytes().replace(day.encode(), old.encode())
        path.unlink()
        path = path.with_name(path.name.replace(day, old))
        path.write_bytes(data)
        id_ = re.search(rb'"sessionId": ?"([^"]+)"', data)
        assert id_ is not None
        return id_[1].decode(), path

    def sync(self) -> None:
        refresh(self.archive, [self.home])

    def session(self, id_: str) -> Session:
        located = refresh(self.archive, [self.home]).located
        return next(one for one in open_session.history(self.archive.database, located).sessions if one.id == id_)

    def restore(self, id_: str, **more: Any) -> WritePlan:  # noqa: ANN401  options of `restore.plan`
        """Restore a session from the archive, without a sync."""
        plan = restore.plan(self.archive.database, self.session(id_), [self.home], now=datetime.now(UTC), **more)
        restore.write_plan(plan)
        return plan


def _settled(user: Path) -> Path:
    """Return a new home of a user with settings."""
    settings = user / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(_SETTINGS), "utf-8")
    return user


def another_user(root: Path) -> Path:
    """Return the home of another user, whose client was never started."""
    return _settled(root / "bob")
