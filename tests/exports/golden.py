"""Expected exports, stored in `tests/data` and rewritten with POLLUX_REWRITE=1."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from tests.builders import PRICES

from pollux import __version__, homes
from pollux.cli.demo import HOME
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.sessions.reader import History, history, opened
from pollux.views.transcript import Branches, Detail

DATA = Path(__file__).parents[1] / "data" / "exports" / "transcripts"

# These contain everything in the demo: agents, plans, diffs, screens, pictures, tables, broken files,
# compressed, rewound and rolled back messages, Windows paths, other scripts, the oldest and the newest generation.
SESSIONS = ("e92f6bc2", "4eed6371", "408a8bb2", "9ba706d8", "7bbedca9", "0363a0b0", "099159e0")
KINDS = {"normal": ExportOptions(), "full": ExportOptions(Detail.FULL, Branches.ALL)}


@cache
def demo() -> History:
    return history(homes(HOME))


def demo_subject(prefix: str, options: ExportOptions | None = None, **more: Any) -> ExportSource:  # noqa: ANN401
    """Return an export source of the demo session whose ID begins like this."""
    history = demo()
    session = next(session for session in history.sessions if session.id.startswith(prefix) and session.kind == "main")
    by_id = {session.id: session for session in history.sessions}
    return export_source(session, opened(session), by_id, opened, PRICES, options=options or ExportOptions(), **more)


def same(name: str, data: bytes) -> None:
    """Check that data equal the stored file except for paths, versions, styles and scripts, or rewrite it."""
    text = data.decode().replace(str(HOME), "DEMO").replace(f"Pollux {__version__}", "Pollux VERSION")
    text = re.sub(r"<(style|script)>.*?</\1>", r"<\1></\1>", text, flags=re.DOTALL)
    text = re.sub(r"sha256-[A-Za-z0-9+/=]{44}", "sha256-DIGEST", text)
    file = DATA / name
    if "POLLUX_REWRITE" in os.environ:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8", newline="\n")
    assert text == file.read_text("utf-8"), f"{file} differs: look at it, and rewrite it with POLLUX_REWRITE=1"
