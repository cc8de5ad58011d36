"""The folders that a system gives to a program.

On Linux two variables tell, or their absence does; to load the library that knows all systems would take a twentieth of
a start.
"""
# ruff: noqa: PLC0415  see above

from __future__ import annotations

import os
import sys
from pathlib import Path

_NAME = "pollux"


def data() -> Path:
    """Return where a program keeps what it makes."""
    known = _on_linux("XDG_DATA_HOME", ".local/share")
    if known is not None:
        return known / _NAME
    import platformdirs

    return platformdirs.user_data_path(_NAME, appauthor=False)


def config() -> Path:
    """Return where a user's settings are."""
    known = _on_linux("XDG_CONFIG_HOME", ".config")
    if known is not None:
        return known / _NAME
    import platformdirs

    return platformdirs.user_config_path(_NAME, appauthor=False)


def current() -> Path:
    """Return the current folder; if it was deleted, its last known path, so that commands still work there."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD") or Path.home())


def _on_linux(variable: str, usual: str) -> Path | None:
    """Tell where there is no doubt."""
    if sys.platform != "linux" or "ANDROID_DATA" in os.environ:
        return None
    found = os.environ.get(variable) or os.path.join(os.environ.get("HOME", ""), usual)  # noqa: PTH118
    return Path(found) if os.path.isabs(found) else None  # noqa: PTH117
