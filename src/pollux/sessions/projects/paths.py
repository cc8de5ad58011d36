"""Paths of projects as text: spellings, ancestors, hash and slug.

Nothing here accesses a disk, so that sessions from Windows can be read on Linux.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Iterator

LONGEST_PATH = 4096
_HASH = re.compile(r"[0-9a-f]{64}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")


def project_hash(path: str) -> str:
    """Return the hash by which the client names a project's folder."""
    import hashlib  # noqa: PLC0415  most commands hash nothing

    # the client sees U+FFFD for names that are not valid Unicode
    return hashlib.sha256(_SURROGATE.sub("\ufffd", path).encode()).hexdigest()


def is_project_hash(name: str) -> bool:
    """Return whether a folder is named after the hash of a project's path."""
    return _HASH.fullmatch(name) is not None


def slug(path: str) -> str:
    """Return the folder name that the client uses for a path; it appends `-1`, `-2` … to a name that is taken."""
    return re.sub(r"[^a-z0-9]+", "-", base_name(path).lower()).strip("-") or "project"


def is_absolute(path: str) -> bool:
    """Return whether a path is absolute on any system."""
    return path.startswith("/") or is_windows(path)


def is_windows(path: str) -> bool:
    """Return whether a path is an absolute path on Windows."""
    return _WINDOWS.match(path) is not None


def separator(path: str) -> str:
    """Return the separator of the names in a path."""
    return "\\" if is_windows(path) else "/"


def path_key(path: str) -> str:
    """Return the path in a form that is equal for all spellings of it."""
    return _normal(path).lower() if is_windows(path) else _normal(path)


def base_name(path: str) -> str:
    """Return the last name in a path."""
    return _split(_normal(path))[1]


def spellings(path: str) -> tuple[str, ...]:
    """Return the spellings that the client may have hashed: on Windows, the shell decides on `C:` or `c:`."""
    path = _normal(path)
    return (path, path[0].swapcase() + path[1:]) if is_windows(path) else (path,)


def lineage(path: str) -> Iterator[str]:
    """Yield a path and its ancestors, nearest first."""
    path = _normal(path)
    yield path
    while (parent := _split(path)[0]) != path:
        path = parent
        yield path


def from_root(path: str, root: str | None) -> str:
    """Return a path relative to a project's folder, or unchanged if it is outside."""
    if root and path.startswith(root):
        relative = path[len(root) :]
        if relative in {"", "/", "\\"}:
            return "."
        if relative[0] in "/\\" or root[-1] in "/\\":
            return relative.lstrip("/\\")
    return path


def _normal(path: str) -> str:
    if is_windows(path):
        return ntpath.normpath(path)
    return posixpath.normpath("/" + path.lstrip("/"))


def _split(path: str) -> tuple[str, str]:
    return ntpath.split(path) if is_windows(path) else posixpath.split(path)
