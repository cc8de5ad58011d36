"""Names of static files that change with their content, so that a browser may keep them for ever."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

ASSETS = Path(__file__).with_name("assets")
_DIGITS = 12


@cache
def asset_name(name: str) -> str:
    """Return the name under which a file of `assets` is served: `base.css` becomes `base.<digest>.css`."""
    stem, _, suffix = name.rpartition(".")
    digest = hashlib.sha256((ASSETS / name).read_bytes()).hexdigest()
    return f"{stem}.{digest[:_DIGITS]}.{suffix}"
