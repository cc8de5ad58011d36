"""Runs a page in a real browser; `make test-browser` installs what this needs.

`POLLUX_BROWSER` is a folder with playwright-core and axe-core, `POLLUX_CHROMIUM` a Chromium that is not on the PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BROWSER = os.environ.get("POLLUX_BROWSER")
_CHROMIUM = os.environ.get("POLLUX_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
ENVIRONMENT = {**os.environ, "POLLUX_CHROMIUM": _CHROMIUM or ""}
_SECONDS = 120


def why_not() -> str | None:
    """Return what is missing to run a browser."""
    if not _BROWSER:
        return "no browser: `make test-browser` installs one and sets POLLUX_BROWSER"
    if not shutil.which("node"):
        return "no Node.js on the PATH"
    return None if _CHROMIUM else "no Chromium on the PATH: install it, or set POLLUX_CHROMIUM"


@dataclass(frozen=True, slots=True)
class Visit:
    """Console messages, errors, requests, dialogs, answers and findings of a page."""

    said: list[str]
    errors: list[str]
    requests: list[str]
    dialogs: list[str]
    told: list[Any]
    audit: list[str]
    opened_ms: float
    cpu_ms: float
    """CPU time of the page's own process until it was open."""
    address: str

    @property
    def is_quiet(self) -> bool:
        """Return whether there was no message, error, dialog or request but for the page itself."""
        fetched = [one for one in self.requests if not one.startswith(("file://", "data:image/"))]
        return not (self.said or self.errors or self.dialogs or fetched)


def visit(page: Path, *steps: dict[str, Any], **how: Any) -> Visit:  # noqa: ANN401  width, height, scheme, zone, script
    """Open a page, take the steps, and return what happened."""
    wanted = {"page": page.as_uri(), "steps": steps, **how}
    script = Path(__file__).with_name("visit.mjs")
    ended = subprocess.run(
        ["node", str(script)],  # noqa: S607
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
        env=ENVIRONMENT,
    )
    assert ended.returncode == 0, ended.stderr
    return Visit(**json.loads(ended.stdout.splitlines()[-1]))
