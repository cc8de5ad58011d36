"""Paths of projects as text, whatever system they are of: their spellings, ancestors, hash and slug.

Nothing here looks at a disk, so a session of Windows can be told on Linux.
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
    """Hash a path as the client does."""
    import hashlib  # noqa: PLC0415  most starts hash nothing

    # a name that is not Unicode reaches the client as U+FFFD
    return hashlib.sha256(_SURROGATE.sub("\ufffd", path).encode()).hexdigest()


def is_project_hash(name: str) -> bool:
    """Return whether a folder is named after the hash of a project's path."""
    return _HASH.fullmatch(name) is not None


def slug(path: str) -> str:
    """Make the folder name that the client wants for a path; if it is taken, `-1`, `-2` … follow."""
    return re.sub(r"[^a-z0-9]+", "-", base_name(path).lower()).strip("-") or "project"


def is_absolute(path: str) -> bool:
    """Tell whether a path is absolute on any system."""
    return path.startswith("/") or is_windows(path)


def is_windows(path: str) -> bool:
    """Tell whether a path is one of Windows."""
    return _WINDOWS.match(path) is not None


def separator(path: str) -> str:
    """Give what stands between the names in a path."""
    return "\\" if is_windows(path) else "/"


def path_key(path: str) -> str:
    """Give what two spellings of one path have in common."""
    return _normal(path).lower() if is_windows(path) else _normal(path)


def base_name(path: str) -> str:
    """Give the last name in a path."""
    return _split(_normal(path))[1]


def spellings(path: str) -> tuple[str, ...]:
    """Give the ways the client may have spelled a path: on Windows a drive is `C:` or `c:` as the shell likes."""
    path = _normal(path)
    return (path, path[0].swapcase() + path[1:]) if is_windows(path) else (path,)


def lineage(path: str) -> Iterator[str]:
    """Give a path and its ancestors, nearest first."""
    path = _normal(path)
    yield path
    while (parent := _split(path)[0]) != path:
        path = parent
        yield path


def from_root(path: str, root: str | None) -> str:
    """Return a path as seen from a project's folder, or as it is if that does not contain it."""
    if root and path.startswith(root):
        rest = path[len(root) :]
        if rest in {"", "/", "\\"}:
            return "."
        if rest[0] in "/\\" or root[-1] in "/\\":
            return rest.lstrip("/\\")
    return path


def _normal(path: str) -> str:
    if is_windows(path):
        return ntpath.normpath(path)
    return posixpath.normpath("/" + path.lstrip("/"))


def _split(path: str) -> tuple[str, str]:
    return ntpath.split(path) if is_windows(path) else posixpath.split(path)
