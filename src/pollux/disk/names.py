"""Names of files as an archive has them: which can stand in an archive at all, and which can be written on a disk.

An archive may come from another system, where other names are possible, or from somebody who made the names up.
"""

from __future__ import annotations

import os
from pathlib import PureWindowsPath

from pollux.text.escape import printable

_LONGEST = 255
"""Bytes of one name on the usual file systems."""
_NOT_ON_WINDOWS = frozenset('<>:"/\\|?*')


def path_fault(path: str) -> str | None:
    """Return why no file below a home can have this path, or nothing if one can."""
    for name in path.split("/"):
        if name in ("", ".", ".."):
            return f"'{printable(path)}' is not a path below a home"
        if "\0" in name:
            return f"'{printable(path)}' contains a NUL character"
    return None


def name_fault(name: str, *, is_windows: bool = os.name == "nt") -> str | None:
    """Return why no file in a folder of this system can have this name, or nothing if one can."""
    if name in ("", ".", "..") or "/" in name:
        return "it is not a plain name"
    if "\0" in name:
        return "it contains a NUL character"
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST:
        return f"it is longer than {_LONGEST} bytes"
    if is_windows:
        return _windows_fault(name)
    return None


def _windows_fault(name: str) -> str | None:
    if any(one in _NOT_ON_WINDOWS or ord(one) < ord(" ") for one in name):
        return "it contains a character that Windows does not allow"
    if name.endswith((".", " ")):
        return "it ends with a dot or a space, which Windows takes away"
    if PureWindowsPath(name).is_reserved():
        return "Windows reserves it for a device"
    return None
