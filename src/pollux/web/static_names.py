"""The static files, under names that change with their content, so that a browser may keep them for ever."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path, PurePath

from pollux.render.html.colours import palette
from pollux.render.html.compact import compact_script
from pollux.render.html.style_sheets import compact_sheet, style_sheet

ASSETS = Path(__file__).with_name("assets")
PALETTE = "palette.css"
"""The 256 colours of a terminal, for sessions whose tools printed in colour."""
SHARED = {"base.css": ("frame.css",), "session.css": ("session.css",)}
"""Style sheets that begin with sheets which exported pages have as well."""
_COMPACT = {".css": compact_sheet, ".js": compact_script}
_DIGITS = 12


@cache
def asset_content(name: str) -> bytes:
    """Return a file as it is served: style sheets and scripts are compact."""
    if name == PALETTE:
        return palette().encode()
    text = "".join(style_sheet(part) for part in SHARED.get(name, ()))
    if (ASSETS / name).exists():
        text += (ASSETS / name).read_text("utf-8")
    compact = _COMPACT.get(PurePath(name).suffix)
    return (compact(text) if compact else text).encode()


def asset_names() -> tuple[str, ...]:
    """Return the names of all files that are served."""
    return (*sorted({*SHARED, *(path.name for path in ASSETS.iterdir())}), PALETTE)


@cache
def asset_name(name: str) -> str:
    """Return the name under which a file is served: `base.css` becomes `base.<digest>.css`."""
    stem, _, suffix = name.rpartition(".")
    digest = hashlib.sha256(asset_content(name)).hexdigest()
    return f"{stem}.{digest[:_DIGITS]}.{suffix}"
