"""Whatever is done to the archive's process or its disk: nothing that was acknowledged is lost.

`POLLUX_FAULTS=500` kills so many processes instead of a few dozen.
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
    pytest.skip("there is no SIGKILL here", allow_module_level=True)

from tests.archive import child
from tests.archive.child import Acknowledged
from tests.archive.growing import Life, content, rebuild, versions

KILLS = int(os.environ.get("POLLUX_FAULTS", "60"))
ROUNDS = 10

# Starts in milliseconds, and has no threads to be cut in half.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.archive.child"])


@contextmanager
def started(target: Any, *args: Any) -> Iterator[tuple[int, Connection]]:  # noqa: ANN401  any of child's functions
    """Run something in another process; kill it in the end."""
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
    """Return what comes within some time, or until there is nobody to send."""
    end = time.monotonic() + seconds
    try:
        while pipe.poll(max(0.0, end - time.monotonic())):
            yield pipe.recv()
    except (EOFError, ConnectionError):
        return


def has_all(archive: store.Archive, taken_in: Acknowledged) -> None:
    """Make sure that every acknowledged byte is there, and that the file is undamaged."""
    assert archive.database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert archive.database.execute("PRAGMA foreign_key_check").fetchall() == []
    archived = versions(archive)
    digests: dict[tuple[str, str, int], set[str]] = {}
    for home, path, size, digest in set(taken_in):
        if (home, path, size) not in digests:
            found = archived.get((home, path), [])
            digests[home, path, size] = {hashlib.sha256(one[:size]).hexdigest() for one in found}
        assert digest in digests[home, path, size], path


def goes_on(archive: Path, root: Path) -> None:
    """Make sure that the next refresh works, and that it leaves the facts that a rebuild would."""
    homes = tuple(builders.home(root / one) for one in ("one", "two"))
    with open_archive(archive, wait=lambda _who: None) as found:
        assert found.is_writable
        refresh(found, homes)
        grown = content(found)
        rebuild(found, homes)
        built = content(found)
    assert {**grown, "projects": []} == {**built, "projects": []}


@pytest.mark.parametrize("way", ["by the clock", "at a statement"])
def test_kills_lose_nothing(tmp_path: Path, way: str) -> None:
    archive, root = tmp_path / "archive.db", tmp_path / "homes"
    rng, taken_in = random.Random(way), Acknowledged()  # noqa: S311
    for number in range(KILLS // 2):
        fatal = rng.randint(1, 500) if way == "at a statement" else None
        with started(child.keep_on, archive, root, rng.randrange(1 << 30), fatal) as (pid, pipe):
            pipe.recv()
            for one in received(pipe, seconds=rng.uniform(0, 0.25) if fatal is None else 30):
                taken_in += one
            if fatal is None:
                os.kill(pid, signal.SIGKILL)
            for one in received(pipe, seconds=5):  # what was on its way
                taken_in += one
        if number % 5 == 0:
            with open_archive(archive) as found:
                has_all(found, taken_in)
            goes_on(archive, root)
    with open_archive(archive) as found:
        has_all(found, taken_in)
    goes_on(archive, root)
    assert taken_in


def test_kill_while_the_archive_is_made(tmp_path: Path) -> None:
    for fatal in range(1, 14):
        archive, root = tmp_path / f"{fatal}.db", tmp_path / "homes"
        with started(child.keep_on, archive, root, fatal, fatal) as (_, pipe):
            assert [*received(pipe, seconds=20)] == [[]]
        goes_on(archive, root)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="whether a process has stopped is read from /proc")
def test_power_cuts_lose_nothing(tmp_path: Path) -> None:
    archive, root = tmp_path / "archive.db", tmp_path / "homes"
    rng, taken_in, n_torn = random.Random(1), Acknowledged(), 0  # noqa: S311
    with started(child.keep_on, archive, root, 1, None) as (pid, pipe):
        for number in range(KILLS // 2):
            for one in received(pipe, seconds=rng.uniform(0.005, 0.06)):
                taken_in += one
            before = _cut(pid, pipe, taken_in, archive, tmp_path / f"{number}-before")
            copy = _cut(pid, pipe, Acknowledged(), archive, tmp_path / f"{number}", pause=rng.uniform(0, 0.01))
            taken_later = Acknowledged()
            for one in received(pipe, seconds=0):
                taken_later += one
            n_torn += _tear(copy, before, rng)
            _is_whole(copy, taken_in)
            taken_in += taken_later
            shutil.rmtree(tmp_path / f"{number}-before")
            shutil.rmtree(tmp_path / f"{number}")
    assert taken_in
    assert n_torn


def _cut(pid: int, pipe: Connection, taken_in: Acknowledged, archive: Path, place: Path, pause: float = 0) -> Path:
    """Copy the archive's files as they are at one moment."""
    time.sleep(pause)
    place.mkdir()
    os.kill(pid, signal.SIGSTOP)
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.001)
    for one in archive.parent.glob("archive.db*"):
        shutil.copy(one, place / one.name)
    if pause == 0:
        for found in received(pipe, seconds=0):
            taken_in += found
    os.kill(pid, signal.SIGCONT)
    return place / "archive.db"


def _wal(copy: Path) -> bytes:
    file = copy.with_name("archive.db-wal")
    return file.read_bytes() if file.exists() else b""


def _tear(copy: Path, before: Path, rng: random.Random) -> bool:
    """Spoil what the disk need not have yet: whatever was added to the journal since the last acknowledgement.

    Not where some of it has been moved into the archive already: that happens only once the disk has it.
    """
    now, safe = _wal(copy), _wal(before)
    if len(now) <= len(safe) or len(safe) < 32 or now[:32] != safe[:32] or copy.read_bytes() != before.read_bytes():
        return False
    at = rng.randint(len(safe), len(now))
    torn = now[:at] + (bytes(len(now) - at) if rng.random() < 0.5 else b"")
    copy.with_name("archive.db-wal").write_bytes(torn)
    copy.with_name("archive.db-shm").unlink(missing_ok=True)
    return True


def _is_whole(copy: Path, taken_in: Acknowledged) -> None:
    with open_archive(copy) as found:
        has_all(found, taken_in)


def filled(root: Path, n_files: int = 40) -> tuple[Home, ...]:
    """Make a home with sessions that do not compress to nothing."""
    rng = random.Random(4)  # noqa: S311
    for number in range(n_files):
        text = rng.randbytes(15_000).hex()
        data = builders.log(builders.header(f"{number:08}-{builders.SESSION[9:]}"), builders.user("u1", text))
        builders.put(builders.chats(root) / f"session-2026-11-15T19-30-{number:08}.jsonl", data)
    return (builders.home(root),)


def synced(archive: Path, homes: tuple[Home, ...], limit: int | None = None) -> Any:  # noqa: ANN401  whatever it said
    with started(child.sync_once, archive, homes, limit) as (_, pipe):
        return pipe.recv()


def acknowledged(root: Path) -> Acknowledged:
    return child.summed(_Still(root))


class _Still(Life):
    """A home as it is."""

    def __init__(self, root: Path) -> None:
        self.roots = [root]


def test_file_size_limit_is_reported(tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    homes = filled(tmp_path, 5)
    assert synced(archive, homes)[0] == 6
    before = acknowledged(tmp_path)
    homes = filled(tmp_path)
    for limit in (archive.stat().st_size + extra for extra in (0, 5_000, 60_000, 300_000)):
        said = synced(archive, homes, limit)
        assert said.startswith(f"The archive {archive} cannot be used (")
        assert "\n" not in said
        with open_archive(archive) as found:
            has_all(found, before)
    assert isinstance(synced(archive, homes), tuple)  # what a limited sync copied stays
    with open_archive(archive) as found:
        has_all(found, acknowledged(tmp_path))


def test_full_file_system_is_reported(tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    said = synced(archive, filled(tmp_path / "home", 2), 0)
    assert said == f"There is no archive at {archive} yet (disk I/O error); name another with --archive."
    assert synced(archive, filled(tmp_path / "home", 2))[0] == 3


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """Mount something on a folder, where we may."""
    folder.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, *options, folder], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount file systems")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)  # noqa: S607


def test_full_disk_is_reported_and_reading_continues(tmp_path: Path) -> None:
    homes = filled(tmp_path, 5)
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=500k", "tmpfs") as disk:
        archive = disk / "archive.db"
        assert synced(archive, homes)[0] == 6
        before = acknowledged(tmp_path)
        homes = filled(tmp_path)
        for _ in range(3):
            assert "database or disk is full" in synced(archive, homes)
        with open_archive(archive, write=False) as found:
            has_all(found, before)
        subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)  # noqa: S607
        assert isinstance(synced(archive, homes)[0], int)
        with open_archive(archive) as found:
            has_all(found, acknowledged(tmp_path))


def test_place_that_is_read_only_is_read(tmp_path: Path) -> None:
    homes = filled(tmp_path / "home", 3)
    place = tmp_path / "place"
    place.mkdir()
    archive = place / "archive.db"
    synced(archive, homes)
    before = acknowledged(tmp_path / "home")
    with mounted(place, "--bind", str(place)):
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)  # noqa: S607
        with open_archive(archive) as found:
            assert (found.is_writable, found.read_only_reason) == (False, "Read-only file system")
            has_all(found, before)
            assert refresh(found, homes).n_files == 0
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
            found = refresh(archive, homes)
            assert (found.n_files, [one.message for one in found.problems]) == (
                3,
                ["cannot be read: Permission denied"],
            )
        found = refresh(archive, homes)
        assert (found.n_files, found.problems) == (1, [])
        has_all(archive, acknowledged(tmp_path))


def _without(name: str) -> Any:  # noqa: ANN401  as open itself
    def opening(place: str, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        if place.endswith(name):
            raise PermissionError(13, "Permission denied", place)
        return open(place, *args, **options)  # noqa: PTH123

    return opening


def test_two_that_sync_at_once_both_end_well(tmp_path: Path) -> None:
    for number in range(ROUNDS):
        archive, homes = tmp_path / f"{number}.db", filled(tmp_path / "home", 2 + number)
        with (
            started(child.sync_once, archive, homes, None) as (_, one),
            started(child.sync_once, archive, homes, None) as (_, other),
        ):
            ended = sorted([one.recv(), other.recv()])
        assert ended[0] == (0, 0)
        assert ended[1][0] == 3 + number
        with open_archive(archive) as found:
            assert {len(archived) for archived in versions(found).values()} == {1}
            has_all(found, acknowledged(tmp_path / "home"))


def test_reader_never_waits_and_sees_one_moment(tmp_path: Path) -> None:
    archive, root = tmp_path / "archive.db", tmp_path / "homes"
    longest, n_looks = 0.0, 0
    with started(child.keep_on, archive, root, 3, None) as (_, pipe):
        pipe.recv()
        pipe.recv()
        end = time.monotonic() + 2
        while time.monotonic() < end:
            began = time.monotonic()
            with open_archive(archive, write=False) as found:
                _look(found.database, seconds=0.01)
            longest = max(longest, time.monotonic() - began)
            n_looks += 1
    assert n_looks > 10
    assert longest < 1  # a refresh that is killed by nobody takes longer than a look; no look waits for one


def _look(database: sqlite3.Connection, *, seconds: float) -> None:
    """Read twice with a pause between, in one transaction: nothing may have moved, and all must fit together."""
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


def test_lock_dies_with_its_process(tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    with started(child.hold, archive) as (pid, pipe):
        assert pipe.recv() == "held"
        with open_archive(archive) as found:
            assert found.read_only_reason == f"pollux verify (process {pid}) is writing to it"
        told: list[str] = []
        os.kill(pid, signal.SIGKILL)
        with open_archive(archive, wait=told.append) as found:
            assert found.is_writable


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undamaged")
    with open_archive(folder / "archive.db") as archive:
        refresh(archive, filled(folder, 8))
    return folder / "archive.db"


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("part", [50, 1_000, 4_096, 10_000, 0.3, 0.7, -4_096, -1])
def test_half_an_archive_is_refused_and_left_alone(undamaged: Path, tmp_path: Path, part: float, write: bool) -> None:  # noqa: FBT001
    whole = undamaged.read_bytes()
    half = whole[: int(part * len(whole)) if 0 < part < 1 else int(part)]
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
def test_other_file_is_refused_and_left_alone(tmp_path: Path, data: bytes, write: bool) -> None:  # noqa: FBT001
    file = builders.put(tmp_path / "archive.db", data)
    with pytest.raises(ArchiveError, match=r"is not a valid archive \(file is not a database\)"):
        open_archive(file, write=write)
    assert file.read_bytes() == data


@pytest.mark.parametrize("write", [True, False])
def test_archive_of_a_newer_pollux_is_refused_and_left_alone(undamaged: Path, tmp_path: Path, write: bool) -> None:  # noqa: FBT001
    copy = tmp_path / "archive.db"
    shutil.copy(undamaged, copy)
    with sqlite3.connect(copy) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    before = copy.read_bytes()
    with pytest.raises(ArchiveError, match=r"newer Pollux \(format 99, .*\); please update Pollux"):
        open_archive(copy, write=write)
    assert copy.read_bytes() == before
