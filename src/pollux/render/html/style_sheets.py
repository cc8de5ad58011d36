"""The style sheets that the viewer and the exported pages share."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from string import ascii_letters

from pollux.render.html.compact import compact_style

STYLES = Path(__file__).with_name("styles")
_DEFINITION = re.compile(r"(--[\w-]+)\s*:")


def style_sheet(name: str) -> str:
    """Return a style sheet as it was written: `frame.css` for every page, `session.css` for a conversation."""
    return (STYLES / name).read_text("utf-8")


def compact_sheet(css: str) -> str:
    """Return a style sheet as pages have it: compact, and with short names for colours and fonts."""
    return compact_style(css, _short_names())


@cache
def _short_names() -> dict[str, str]:
    """Return a short name for each custom property, the same in all sheets."""
    names: dict[str, str] = {}
    for path in sorted(STYLES.iterdir()):
        for name in _DEFINITION.findall(path.read_text("utf-8")):
            names.setdefault(name, f"--{_letters(len(names))}")
    return names


def _letters(number: int) -> str:
    more, last = divmod(number, len(ascii_letters))
    return (_letters(more - 1) if more else "") + ascii_letters[last]
