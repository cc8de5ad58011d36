"""Read the version control state of a project's folder.

Session files do not record a commit, so this is the state when the record is made, perhaps long after the session; it
is read only on request and marked so. Git's files are read directly: no program from the folder is started.
"""

from __future__ import annotations

import re
from pathlib import Path

from pollux.disk.read import read_side_file
from pollux.model import Json

_REMOTE = re.compile(r'\[remote "origin"\][^\[]*?^\s*url\s*=\s*(\S+)', re.MULTILINE)
_LOGIN = re.compile(r"(?<=://)[^/@]*@")
_REVISION = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = "refs/heads/"
_MAX_BYTES = 64 << 20
"""Size limit of a file of git: a list of all references may be long."""


def read_vcs(folder: Path) -> dict[str, Json] | None:
    """Return branch, commit and remote of the repository that contains a folder, or None."""
    candidates = (_git_folder(ancestor / ".git") for ancestor in (folder, *folder.parents))
    git = next(filter(None, candidates), None)
    if git is None:
        return None
    shared = git / _text(git / "commondir")
    head = _text(git / "HEAD")
    name = head.removeprefix("ref:").strip() if head.startswith("ref:") else ""
    remote = _REMOTE.search(_text(shared / "config"))
    state = {
        "branch": name.removeprefix(_BRANCH),
        "revision": _revision(git, shared, name) if name else head if _REVISION.fullmatch(head) else "",
        "repository": _LOGIN.sub("", remote[1]) if remote else "",
    }
    return {"type": "git", "observed": "when the record was made", **{key: text for key, text in state.items() if text}}


def _git_folder(path: Path) -> Path | None:
    """Return the folder with git's files; a worktree has a file that names it."""
    if path.is_dir():
        return path
    target = _text(path).removeprefix("gitdir:").strip()
    return path.parent / target if target else None


def _revision(git: Path, shared: Path, name: str) -> str:
    """Return the commit of a branch, from its own file or from the list of packed references."""
    if not name.startswith("refs/") or ".." in name:
        return ""
    for folder in (git, shared):
        revision = _text(folder / name)
        if _REVISION.fullmatch(revision):
            return revision
    for line in _text(shared / "packed-refs").splitlines():
        revision, _, reference = line.partition(" ")
        if reference == name and _REVISION.fullmatch(revision):
            return revision
    return ""


def _text(path: Path) -> str:
    """Return the text of a file of git, or nothing if it cannot be read."""
    try:
        return read_side_file(path, limit=_MAX_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
