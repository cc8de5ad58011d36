"""Acknowledged bytes survive kills, power cuts and full disks.

`POLLUX_FAULTS=500` sets the number of killed processes, a few dozen by default.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.refreshing import refresh

from pollux.archive import raw, store
from pollux.archive.store import open_archive
from pollux.errors import ArchiveError
from pollux.sessions.locate import Home

if sys.platform == "win32":
    pytest.skip("this system has no SIGKILL", allow_module_level=True)

from tests.archive import child
from tests.archive.child import Acknowledged
from tests.archive.growing import Life, content, rebuild, versions

KILLS = int(os.environ.get("POLLUX_FAULTS", "60"))
ROUNDS = 10

# This method starts processes in milliseconds, and without threads.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.archive.child"])


@contextmanager
def started(target: Any, *args: Any) -> Iterator[tuple[int, Connection]]:  # noqa: ANN401  any function of `child`
    """Run a function in another process, and kill the process at the end."""
    ours, theirs = processes.Pipe()
    first = args[0]
    process = processes.Process(
        target=target, args=(first, args[1], theirs, *args[2:]) if len(args) > 1 else (first, theirs)
    )
    process.start()
    theirs.close()
    assert process.pid is not None
    try:
        yield process.pid, ours
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()


def received(pipe: Connection, *, seconds: float) -> Iterator[Any]:
    """Yield the messages that arrive within some seconds, or until the sender ends."""
    end = time.monotonic() + seconds
    try:
        while pipe.poll(max(0.0, end - time.monotonic())):
            yield pipe.recv()
    except (EOFError, ConnectionError):
        return


def check_bytes(archive: store.Archive, taken_in: Acknowledged) -> None:
    """Check that the archive contains each acknowledged byte and is undamaged."""
    assert archive.database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert archive.database.execute("PRAGMA foreign_key_check").fetchall() == []
    archived = versions(archive)
    digests: dict[tuple[str, str, int], set[str]] = {}
    for home, path, size, digest in set(taken_in):
        if (home, path, size) not in digests:
            contents = archived.get((home, path), [])
            digests[home, path, size] = {hashlib.sha256(version[:size]).hexdigest() for version in contents}
        assert digest in digests[home, path, size], path


def check_refresh(archive: Path, root: Path) -> None:
    """Check that the next refresh works, and that its facts equal those of a rebuild."""
    homes = tuple(builders.home(root / text) for text in ("one", "two"))
    with open_archive(archive, wait=lambda _who: None) as opened:
        assert opened.is_writable
        refresh(opened, homes)
        grown = content(opened)
        rebuild(opened, homes)
        built = content(opened)
    assert {**grown, "projects": []} == {**built, "projects": []}


@pytest.mark.parametrize("way", ["by the clock", "at a statement"])
def test_kills_lose_no_acknowledged_byte(tmp_path: Path, way: str) -> None:
    archive, root = tmp_path / "archive.db", tmp_path / "homes"
    rng, taken_in = random.Random(way), Acknowledged()  # noqa: S311
    for number in range(KILLS // 2):
        fatal = rng.randint(1, 500) if way == "at a statement" else None
        with started(child.keep_on, archive, root, rng.randrange(1 << 30), fatal) as (pid, pipe):
            pipe.recv()
            for files in received(pipe, seconds=rng.uniform(0, 0.25) if fatal is None else 30):
                taken_in += files
            if fatal is None:
                os.kill(pid, signal.SIGKILL)
            for files in received(pipe, seconds=5):  # messages sent before the kill
                taken_in += files
        if number % 5 == 0:
            with open_archive(archive) as opened:
                check_bytes(opened, taken_in)
            check_refresh(archive, root)
    with open_archive(archive) as opened:
        check_bytes(opened, taken_in)
    check_refresh(archive, root)
    assert taken_in


def test_kill_during_creation_leaves_a_usable_archive(tmp_path: Path) -> None:
    for fatal in range(1, 14):
        archive, root = tmp_path / f"{fatal}.db", tmp_path / "homes"
        with started(child.keep_on, archive, root, fatal, fatal) as (_, pipe):
            assert [*received(pipe, seconds=20)] == [[]]
        check_refresh(archive, root)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the state of a process is read from /proc")
def test_power_cuts_lose_no_acknowledged_byte(tmp_path: Path) -> None:
    archive, root = tmp_path / "archive.db", tmp_path / "homes"
    rng, taken_in, n_torn = random.Random(1), Acknowledged(), 0  # noqa: S311
    with started(child.keep_on, archive, root, 1, None) as (pid, pipe):
        for number in range(KILLS // 2):
            for files in received(pipe, seconds=rng.uniform(0.005, 0.06)):
                taken_in += files
            before = _cut(pid, pipe, taken_in, archive, tmp_path / f"{number}-before")
            copy = _cut(pid, pipe, Acknowledged(), archive, tmp_path / f"{number}", pause=rng.uniform(0, 0.01))
            taken_later = Acknowledged()
            for files in received(pipe, seconds=0):
                taken_later += files
            n_torn += _tear(copy, before, rng)
            _is_undamaged(copy, taken_in)
            taken_in += taken_later
            shutil.rmtree(tmp_path / f"{number}-before")
            shutil.rmtree(tmp_path / f"{number}")
    assert taken_in
    assert n_torn


def _cut(pid: int, pipe: Connection, taken_in: Acknowledged, archive: Path, place: Path, pause: float = 0) -> Path:
    """Copy the files of the archive while their process is stopped."""
    time.sleep(pause)
    place.mkdir()
    os.kill(pid, signal.SIGSTOP)
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.001)
    for path in archive.parent.glob("archive.db*"):
        shutil.copy(path, place / path.name)
    if pause == 0:
        for received_files in received(pipe, seconds=0):
            taken_in += received_files
    os.kill(pid, signal.SIGCONT)
    return place / "archive.db"


def _wal(copy: Path) -> bytes:
    file = copy.with_name("archive.db-wal")
    return file.read_bytes() if file.exists() else b""


def _tear(copy: Path, before: Path, rng: random.Random) -> bool:
    """Overwrite bytes that may not be on the disk yet: those added to the journal since the last acknowledgement.

    If some of them are in the archive already, the journal is kept, because it is synced before it is copied.
    """
    now, safe = _wal(copy), _wal(before)
    if len(now) <= len(safe) or len(safe) < 32 or now[:32] != safe[:32] or copy.read_bytes() != before.read_bytes():
        return False
    at = rng.randint(len(safe), len(now))
    torn = now[:at] + (bytes(len(now) - at) if rng.random() < 0.5 else b"")
    copy.with_name("archive.db-wal").write_bytes(torn)
    copy.with_name("archive.db-shm").unlink(missing_ok=True)
    return True


def _is_undamaged(copy: Path, taken_in: Acknowledged) -> None:
    with open_archive(copy) as opened:
        check_bytes(opened, taken_in)


def filled(root: Path, n_files: int = 40) -> tuple[Home, ...]:
    """Write a home with sessions that do not compress well."""
    rng = random.Random(4)  # noqa: S311
    for number in range(n_files):
        text = rng.randbytes(15_000).hex()
        data = builders.log(builders.header(f"{number:08}-{builders.SESSION[9:]}"), builders.user("u1", text))
        builders.put(builders.chats(root) / f"session-2026-11-15T19-30-{number:08}.jsonl", data)
    return (builders.home(root),)


def synced(archive: Path, homes: tuple[Home, ...], limit: int | None = None) -> Any:  # noqa: ANN401  any message
    with started(child.sync_once, archive, homes, limit) as (_, pipe):
        return pipe.recv()


def acknowledged(root: Path) -> Acknowledged:
    return child.summed(_Still(root))


class _Still(Life):
    """Homes that do not change."""

    def __init__(self, root: Path) -> None:
        self.roots = [root]


def test_file_size_limit_is_reported(tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    homes = filled(tmp_path, 5)
    assert synced(archive, homes)[0] == 6
    before = acknowledged(tmp_path)
    homes = filled(tmp_path)
    for limit in (archive.stat().st_size + extra for extra in (0, 5_000, 60_000, 300_000)):
        message = synced(archive, homes, limit)
        assert message.startswith(f"The archive {archive} cannot be used (")
        assert "\n" not in message
        with open_archive(archive) as opened:
            check_bytes(opened, before)
    assert isinstance(synced(archive, homes), tuple)  # bytes copied by the limited sync are kept
    with open_archive(archive) as opened:
        check_bytes(opened, acknowledged(tmp_path))


def test_full_file_system_is_reported(tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    message = synced(archive, filled(tmp_path / "home", 2), 0)
    assert message == f"There is no archive at {archive} yet (disk I/O error); name another with --archive."
    assert synced(archive, filled(tmp_path / "home", 2))[0] == 3


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """Mount a file system on a folder, or skip the test without the permission."""
    folder.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, *options, folder], capture_output=True, check=False).returncode:
        pytest.skip("needs the permission to mount file systems")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)  # noqa: S607


def test_full_disk_is_reported_and_reading_continues(tmp_path: Path) -> None:
    homes = filled(tmp_path, 5)
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=600k", "tmpfs") as disk:
        archive = disk / "archive.db"
        assert synced(archive, homes)[0] == 6
        before = acknowledged(tmp_path)
        homes = filled(tmp_path)
        for _ in range(3):
            assert "database or disk is full" in synced(archive, homes)
        with open_archive(archive, write=False) as opened:
            check_bytes(opened, before)
        subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)  # noqa: S607
        assert isinstance(synced(archive, homes)[0], int)
        with open_archive(archive) as opened:
            check_bytes(opened, acknowledged(tmp_path))


def test_archive_on_a_read_only_file_system_is_read(tmp_path: Path) -> None:
    homes = filled(tmp_path / "home", 3)
    place = tmp_path / "place"
    place.mkdir()
    archive = place / "archive.db"
    synced(archive, homes)
    before = acknowledged(tmp_path / "home")
    with mounted(place, "--bind", str(place)):
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)  # noqa: S607
        with open_archive(archive) as opened:
            assert (opened.is_writable, opened.read_only_reason) == (False, "Read-only file system")
            check_bytes(opened, before)
            assert refresh(opened, homes).n_files == 0
        assert synced(archive, homes) == (
            f"Cannot write to {archive} (Read-only file system); name another with --archive."
        )
        with pytest.raises(ArchiveError, match=r"There is no archive at .* yet \(Read-only file system\)"):
            open_archive(place / "deeper" / "new.db")


def test_unreadable_journal_is_reported(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with open_archive(tmp_path / "archive.db") as archive:
        archive.database.execute("INSERT INTO tombstones VALUES ('one', 1)")
        for name in ("archive.db", "archive.db-wal"):
            shutil.copy(tmp_path / name, place / name)
    with mounted(place, "--bind", str(place)):
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)  # noqa: S607
        with pytest.raises(
            ArchiveError, match=r"The newest part of .* is in archive\.db-wal, which cannot be read here"
        ):
            open_archive(place / "archive.db")


def test_file_without_permission_is_a_problem_and_others_are_archived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = filled(tmp_path, 3)
    forbidden = "session-2026-11-15T19-30-00000001.jsonl"
    with open_archive(tmp_path / "archive.db") as archive:
        with monkeypatch.context() as patch:
            patch.setattr(raw, "open", _without(forbidden), raising=False)
            result = refresh(archive, homes)
            assert (result.n_files, [problem.message for problem in result.problems]) == (
                3,
                ["cannot be read: Permission denied"],
            )
        result = refresh(archive, homes)
        assert (result.n_files, result.problems) == (1, [])
        check_bytes(archive, acknowledged(tmp_path))


def _without(name: str) -> Any:  # noqa: ANN401  signature of `open`
    def opening(place: str, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        if place.endswith(name):
            raise PermissionError(13, "Permission denied", place)
        return open(place, *args, **options)  # noqa: PTH123

    return opening


def test_two_simultaneous_syncs_both_succeed(tmp_path: Path) -> None:
    for number in range(ROUNDS):
        archive, homes = tmp_path / f"{number}.db", filled(tmp_path / "home", 2 + number)
        with (
            started(child.sync_once, archive, homes, None) as (_, one),
            started(child.sync_once, archive, homes, None) as (_, other),
        ):
            ended = sorted([one.recv(), other.recv()])
        assert ended[0] == (0, 0)
        assert ended[1][0] == 3 + number
        with open_archive(archive) as opened:
            assert {len(archived) for archived in versions(opened).values()} == {1}
            check_bytes(opened, acknowledged(tmp_path / "home"))


def test_reader_never_waits_and_sees_one_state(tmp_path: Path) -> None:
    archive, root = tmp_path / "archive.db", tmp_path / "homes"
    longest, n_looks = 0.0, 0
    with started(child.keep_on, archive, root, 3, None) as (_, pipe):
        pipe.recv()
        pipe.recv()
        end = time.monotonic() + 2
        while time.monotonic() < end:
            began = time.monotonic()
            with open_archive(archive, write=False) as opened:
                _look(opened.database, seconds=0.01)
            longest = max(longest, time.monotonic() - began)
            n_looks += 1
    assert n_looks > 10
    assert longest < 1  # a refresh takes longer than reading, and no reader waits for it


def _look(database: sqlite3.Connection, *, seconds: float) -> None:
    """Read twice in one transaction with a pause, and check that both results are equal and consistent."""
    database.execute("BEGIN")
    try:
        first = [database.execute(query).fetchone() for query in _CONSISTENT]
        time.sleep(seconds)
        assert [database.execute(query).fetchone() for query in _CONSISTENT] == first
        assert first[:3] == [(0,), (0,), (0,)]
    except sqlite3.OperationalError as error:
        assert "no such table" in str(error)  # noqa: PT017  no facts yet
    finally:
        database.execute("COMMIT")


_CONSISTENT = (
    "SELECT count(*) FROM session_files WHERE file_version_id NOT IN (SELECT id FROM versions)",
    "SELECT count(*) FROM messages WHERE session_id NOT IN (SELECT session_id FROM sessions)",
    """
    SELECT count(*) FROM versions
    WHERE archived_bytes != (SELECT coalesce(sum(length), 0) FROM segments WHERE version_id = versions.id)
    """,
    "SELECT count(*), sum(archived_bytes) FROM versions",
    "SELECT count(*), sum(seq) FROM messages",
)


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    with started(child.hold, archive) as (pid, pipe):
        assert pipe.recv() == "held"
        with open_archive(archive) as opened:
            assert opened.read_only_reason == f"pollux verify (process {pid}) is writing to it"
        waits: list[str] = []
        os.kill(pid, signal.SIGKILL)
        with open_archive(archive, wait=waits.append) as opened:
            assert opened.is_writable


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undamaged")
    with open_archive(folder / "archive.db") as archive:
        refresh(archive, filled(folder, 8))
    return folder / "archive.db"


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("part", [50, 1_000, 4_096, 10_000, 0.3, 0.7, -4_096, -1])
def test_truncated_archive_is_rejected_and_unchanged(undamaged: Path, tmp_path: Path, part: float, write: bool) -> None:  # noqa: FBT001
    data = undamaged.read_bytes()
    half = data[: int(part * len(data)) if 0 < part < 1 else int(part)]
    copy = builders.put(tmp_path / "archive.db", half)
    with pytest.raises(ArchiveError, match=r"is not a valid archive \(it is truncated: \d+ bytes of "):
        open_archive(copy, write=write)
    assert copy.read_bytes() == half


def test_empty_file_becomes_an_archive(tmp_path: Path) -> None:
    copy = builders.put(tmp_path / "archive.db", b"")
    with open_archive(copy) as archive:
        assert refresh(archive, filled(tmp_path, 1)).n_files == 2


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("data", [b"not an archive at all\n" * 500, b"x", bytes(5000)])
def test_other_file_is_rejected_and_unchanged(tmp_path: Path, data: bytes, write: bool) -> None:  # noqa: FBT001
    file = builders.put(tmp_path / "archive.db", data)
    with pytest.raises(ArchiveError, match=r"is not a valid archive \(file is not a database\)"):
        open_archive(file, write=write)
    assert file.read_bytes() == data


@pytest.mark.parametrize("write", [True, False])
def test_archive_of_a_newer_pollux_is_rejected_and_unchanged(undamaged: Path, tmp_path: Path, write: bool) -> None:  # noqa: FBT001
    copy = tmp_path / "archive.db"
    shutil.copy(undamaged, copy)
    with sqlite3.connect(copy) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    before = copy.read_bytes()
    with pytest.raises(ArchiveError, match=r"newer Pollux \(format 99, .*\); please update Pollux"):
        open_archive(copy, write=write)
    assert copy.read_bytes() == before
