"""The lock of an archive is a file created by a writer; any other file in its place is not changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests import builders

from pollux.archive.lock import ForeignLockError, WriterLock

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no pipes and no links without a privilege on Windows")


def taken(archive: Path) -> bool:
    lock = WriterLock(archive)
    try:
        return lock.take()
    finally:
        lock.release()


@pytest.mark.parametrize("kind", ["soft", "hard", "none"])
def test_other_file_in_place_of_the_lock_is_not_changed(tmp_path: Path, kind: str) -> None:
    precious, lock = tmp_path / "precious", tmp_path / "a.db.lock"
    precious.write_bytes(b"precious")
    if kind == "soft":
        lock.symlink_to(precious)
    elif kind == "hard":
        lock.hardlink_to(precious)
    else:
        precious = precious.rename(lock)
    with pytest.raises(ForeignLockError, match="not the lock of an archive; move it away"):
        taken(tmp_path / "a.db")
    assert precious.read_bytes() == b"precious"


def test_an_empty_file_behind_a_link_is_not_a_lock(tmp_path: Path) -> None:
    (tmp_path / "a.db.lock").symlink_to(tmp_path / "made")
    with pytest.raises(ForeignLockError):
        taken(tmp_path / "a.db")
    assert not (tmp_path / "made").exists()


def test_a_pipe_is_not_a_lock(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.db.lock")
    with pytest.raises(ForeignLockError, match="a pipe or a device"):
        taken(tmp_path / "a.db")


@pytest.mark.parametrize("left", [b"", b"{", b'{"pid":', b'{"pid":4711,"command":"sync"}'])
def test_lock_file_left_by_a_writer_is_reused(tmp_path: Path, left: bytes) -> None:
    path = builders.put(tmp_path / "a.db.lock", left)
    lock = WriterLock(tmp_path / "a.db")
    assert lock.take()
    assert f"(process {os.getpid()})" in lock.owner()
    lock.release()
    assert path.read_bytes() == b""
