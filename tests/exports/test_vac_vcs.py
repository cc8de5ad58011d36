"""The checkout of a folder is read as git reports it, where git is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.builders import put

from pollux.exports.vac.vcs import read_vcs

REVISION = "1" * 40
GIT = shutil.which("git")


def repository(folder: Path, head: str = "ref: refs/heads/main\n") -> Path:
    put(folder / ".git" / "HEAD", head.encode())
    put(folder / ".git" / "refs" / "heads" / "main", f"{REVISION}\n".encode())
    return folder


def test_folder_outside_a_repository_has_no_checkout(tmp_path: Path) -> None:
    assert read_vcs(tmp_path) is None


def test_branch_commit_and_address_are_read(tmp_path: Path) -> None:
    repository(tmp_path)
    put(
        tmp_path / ".git" / "config",
        b'[remote "other"]\n\turl = https://example.org/x\n[remote "origin"]\n\tfetch = y\n\turl = https://me:pw@example.org/r\n',
    )
    assert read_vcs(tmp_path / "src" / "deep") == {
        "type": "git",
        "observed": "when the record was made",
        "branch": "main",
        "revision": REVISION,
        "repository": "https://example.org/r",
    }


def test_packed_branch_is_read(tmp_path: Path) -> None:
    repository(tmp_path, "ref: refs/heads/a/b\n")
    put(
        tmp_path / ".git" / "packed-refs", f"# pack-refs\n{'2' * 40} refs/heads/a\n{'3' * 40} refs/heads/a/b\n".encode()
    )
    assert (read_vcs(tmp_path) or {})["revision"] == "3" * 40


def test_detached_commit_is_read_without_a_branch(tmp_path: Path) -> None:
    checkout = read_vcs(repository(tmp_path, f"{REVISION}\n"))
    assert checkout == {"type": "git", "observed": "when the record was made", "revision": REVISION}


@pytest.mark.parametrize(
    "head",
    ["", "ref: refs/heads/nobody", "ref: ../../secret", "nonsense", f"ref: refs/heads/{'x' * 300}", "ref: refs/\0"],
)
def test_unknown_values_are_left_out(tmp_path: Path, head: str) -> None:
    put(tmp_path.parent / "secret", b"secret")
    assert "revision" not in (read_vcs(repository(tmp_path, head)) or {})


@pytest.mark.skipif(GIT is None, reason="git is not installed")
def test_checkout_equals_the_output_of_git(tmp_path: Path) -> None:
    def git(*arguments: str, folder: Path = tmp_path) -> str:
        options = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        command = (str(GIT), *options, *arguments)
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--initial-branch", "trunk")
    git("remote", "add", "origin", "https://user:secret@example.org/r.git")
    git("commit", "--allow-empty", "-m", "first")
    git("worktree", "add", "-b", "side", "there")
    git("commit", "--allow-empty", "-m", "second", folder=tmp_path / "there")
    for folder, branch in ((tmp_path, "trunk"), (tmp_path / "there", "side")):
        for _ in range(2):
            checkout = read_vcs(folder) or {}
            assert (checkout["branch"], checkout["revision"]) == (branch, git("rev-parse", "HEAD", folder=folder))
            assert checkout["repository"] == "https://example.org/r.git"
            git("pack-refs", "--all")
