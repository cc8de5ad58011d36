"""What a project's folder says of its version control, at the moment somebody looks.

No session says which commit it began with. So this is looked up only when asked for, and marked as what it is: seen
when the record was made, perhaps long after. Git's own files are read; no program of the folder's choice is started.
"""

from __future__ import annotations

import re
from pathlib import Path

from pollux.disk.regular_files import read_side_file
from pollux.model import Json

_REMOTE = re.compile(r'\[remote "origin"\][^\[]*?^\s*url\s*=\s*(\S+)', re.MULTILINE)
_LOGIN = re.compile(r"(?<=://)[^/@]*@")
_REVISION = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = "refs/heads/"
_LARGEST = 64 << 20
"""Bytes of one of git's files: a list of all references may be long."""


def observed(folder: Path) -> dict[str, Json] | None:
    """Read branch, commit and address of the repository that a folder is in; `None` if it is in none."""
    git = next((place for one in (folder, *folder.parents) if (place := _git_folder(one / ".git"))), None)
    if git is None:
        return None
    shared = git / _text(git / "commondir")
    head = _text(git / "HEAD")
    name = head.removeprefix("ref:").strip() if head.startswith("ref:") else ""
    remote = _REMOTE.search(_text(shared / "config"))
    found = {
        "branch": name.removeprefix(_BRANCH),
        "revision": _revision(git, shared, name) if name else head if _REVISION.fullmatch(head) else "",
        "repository": _LOGIN.sub("", remote[1]) if remote else "",
    }
    return {"type": "git", "observed": "when the record was made", **{key: text for key, text in found.items() if text}}


def _git_folder(path: Path) -> Path | None:
    """Find the folder that git keeps its files in; a worktree has a file that names it."""
    if path.is_dir():
        return path
    named = _text(path).removeprefix("gitdir:").strip()
    return path.parent / named if named else None


def _revision(git: Path, shared: Path, name: str) -> str:
    """Look a branch up: in a file of its own, or in the list of all."""
    if not name.startswith("refs/") or ".." in name:
        return ""
    for folder in (git, shared):
        if _REVISION.fullmatch(found := _text(folder / name)):
            return found
    packed = (line.split(" ", 1) for line in _text(shared / "packed-refs").splitlines() if " " in line)
    return next((words[0] for words in packed if words[1] == name and _REVISION.fullmatch(words[0])), "")


def _text(path: Path) -> str:
    """Return the text of one of git's files; nothing, if it cannot be read."""
    try:
        return read_side_file(path, limit=_LARGEST).decode("utf-8", "replace").strip()
    except OSError:
        return ""
