"""A real browser, told what to do with a page: `make test-browser` installs what it takes.

`POLLUX_BROWSER` names a folder with playwright-core and axe-core, `POLLUX_CHROMIUM` a Chromium other than the one on
the PATH.
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
_ENVIRONMENT = {**os.environ, "POLLUX_CHROMIUM": _CHROMIUM or ""}
_SECONDS = 120


def why_not() -> str | None:
    """Say what is missing to browse."""
    if not _BROWSER:
        return "no browser: `make test-browser` installs what it takes and sets POLLUX_BROWSER"
    if not shutil.which("node"):
        return "no Node.js on the PATH"
    return None if _CHROMIUM else "no Chromium on the PATH: install it, or set POLLUX_CHROMIUM"


@dataclass(frozen=True, slots=True)
class Visit:
    """What happened on a page."""

    said: list[str]
    errors: list[str]
    requests: list[str]
    dialogs: list[str]
    told: list[Any]
    audit: list[str]
    opened_ms: float
    cpu_ms: float
    """What opening cost the browser's process of this page, whatever else the machine does."""
    address: str

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was complained about, asked, or fetched but the page itself."""
        fetched = [one for one in self.requests if not one.startswith(("file://", "data:image/"))]
        return not (self.said or self.errors or self.dialogs or fetched)


def visit(page: Path, *steps: dict[str, Any], **how: Any) -> Visit:  # noqa: ANN401  width, height, scheme, script
    """Open a page, take the steps, and say what happened."""
    wanted = {"page": page.as_uri(), "steps": steps, **how}
    script = Path(__file__).with_name("visit.mjs")
    ended = subprocess.run(
        ["node", str(script)],  # noqa: S607
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
        env=_ENVIRONMENT,
    )
    assert ended.returncode == 0, ended.stderr
    return Visit(**json.loads(ended.stdout.splitlines()[-1]))
