"""One archive taken into another: files with their machine and home, versions, bytes.

What both have is told by its content, not by its number: a version that goes on where ours ends extends it, one that
we have in whole or longer adds nothing, any other stands beside ours. Nothing of ours is overwritten, what is to be
forgotten stays forgotten, and to take the same archive in again changes nothing.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise

from pollux.archive import facts, raw, seals
from pollux.archive.inventory import belongs_to, place_of
from pollux.archive.migrations import transaction
from pollux.archive.segments import Segment, fault, packed, segment
from pollux.archive.store import Archive
from pollux.archive.verify import rederive
from pollux.model import Problem
from pollux.sessions import Progress

_BATCH_FILES, _BATCH_BYTES = 200, 64 << 20
_BLOCK = 1 << 20
_PROBE = 4096


@dataclass(slots=True)
class Merged:
    """What was taken over."""

    n_files: int = 0
    """Files with something new."""
    n_versions: int = 0
    """Versions that we did not have at all."""
    n_bytes: int = 0
    n_forgotten: int = 0
    """Files left out because their session is to be forgotten."""
    n_seals: int = 0
    """Seals over there, which were taken over if there were none here."""
    seals_are_taken: bool = False
    problems: list[Problem] = field(default_factory=list)
    """What is damaged over there, and was left out."""


@dataclass(slots=True)
class _Version:
    """A version, here or there."""

    id: int
    kept: int
    """Bytes from the beginning on, without a gap."""
    mtime_ns: int
    first_us: int
    head: bytes
    tail: bytes
    segments: list[tuple[int, int, bytes, int]]
    """Start, length, digest and number."""
    is_whole: bool = True
    is_checked: bool = False

    @property
    def order(self) -> tuple[int, int, bytes]:
        """Where it belongs among versions of which nothing else is known."""
        return self.mtime_ns, self.kept, self.segments[0][2] if self.segments else b""


@dataclass(frozen=True, slots=True)
class _File:
    id: int
    machine: str
    home: str
    path: str
    size: int
    mtime_ns: int
    inode: int
    first_us: int
    last_us: int
    gone_us: int | None
    forgotten_us: int | None
    version_id: int | None

    @property
    def seen_us(self) -> int:
        """When it was last known how the file is."""
        return max(self.last_us, self.gone_us or 0)


_COLUMNS = "id, machine, home, path, size, mtime_ns, inode, first_us, last_us, gone_us, forgotten_us, version_id"


def take_in(
    archive: Archive,
    other: Archive,
    *,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
) -> Merged:
    """Take another archive over; whatever stops it, doing it again goes on."""
    ours, theirs = archive.database, other.database
    result = Merged()
    if not facts.are_current(ours):
        with transaction(ours):
            facts.reset(ours)
    with _one_moment(theirs):
        left_out = _forgotten(ours, theirs)
        sizes = dict(theirs.execute("SELECT file_id, sum(kept) FROM versions GROUP BY file_id").fetchall())
        n_bytes, done = sum(sizes.values()), 0
        for batch in _batches(theirs, sizes):
            with transaction(ours):
                for file in batch:
                    if file.id in left_out:
                        result.n_forgotten += 1
                    else:
                        _take_file(ours, theirs, file, result)
            done += sum(sizes.get(file.id, 0) for file in batch)
            progress(done, n_bytes)
        result.n_seals = len(seals.seals(theirs))
        result.seals_are_taken = seals.take_over(ours, theirs)
    rederive(archive, memory=memory, progress=progress)
    return result


@contextmanager
def _one_moment(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN")
    try:
        yield
    finally:
        database.execute("ROLLBACK")


def _forgotten(ours: sqlite3.Connection, theirs: sqlite3.Connection) -> set[int]:
    """Return their files of sessions that we were asked to forget: by their facts, else by name."""
    tombstones = {row[0] for row in ours.execute("SELECT session_id FROM tombstones")}
    owners: dict[int, set[str]] = {}
    if facts.are_current(theirs):
        rows = theirs.execute(
            "SELECT file_id, session_id FROM session_files JOIN versions ON versions.id = file_version_id"
        )
        for file_id, owner in rows:
            owners.setdefault(file_id, set()).add(owner)
    found = set()
    for file_id, machine, home, path in theirs.execute("SELECT id, machine, home, path FROM files").fetchall():
        known = ours.execute(
            "SELECT forgotten_us FROM files WHERE machine = ? AND home = ? AND path = ?", (machine, home, path)
        ).fetchone()
        is_forgotten = known is not None and known[0] is not None
        of_owners = owners[file_id] <= tombstones if file_id in owners else belongs_to(path, tombstones)
        if is_forgotten or of_owners:
            found.add(file_id)
    return found


def _batches(theirs: sqlite3.Connection, sizes: Mapping[int, int]) -> Iterator[list[_File]]:
    rows = theirs.execute(f"SELECT {_COLUMNS} FROM files WHERE forgotten_us IS NULL ORDER BY id").fetchall()  # noqa: S608
    batch: list[_File] = []
    n_bytes = 0
    for row in rows:
        batch.append(_File(*row))
        n_bytes += sizes.get(row[0], 0)
        if len(batch) >= _BATCH_FILES or n_bytes >= _BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch


def _take_file(ours: sqlite3.Connection, theirs: sqlite3.Connection, file: _File, result: Merged) -> None:
    row = ours.execute(
        f"SELECT {_COLUMNS} FROM files WHERE machine = ? AND home = ? AND path = ?",  # noqa: S608
        (file.machine, file.home, file.path),
    ).fetchone()
    known = _File(*row) if row else _new_file(ours, file)
    before = result.n_bytes, result.n_versions
    here = _versions(ours, known.id)
    order = [one.id for one in here]
    copier = _Copier(ours, theirs, file, result)
    versions = _versions(theirs, file.id)
    there = [_take_version(copier, known.id, here, version) for version in versions]
    if (result.n_bytes, result.n_versions) == before and row:
        _note_state(ours, known, file, known.version_id, is_theirs=False)
        return
    result.n_files += 1
    current = _put_in_order(ours, known.id, _interleaved(order, there, {one.id: one for one in here}))
    if versions and not versions[-1].is_whole:
        file = replace(file, size=-1)  # so that a refresh looks again, if the file is here
    _note_state(ours, known, file, current, is_theirs=bool(there) and current == there[-1])


def _new_file(ours: sqlite3.Connection, file: _File) -> _File:
    ours.execute(
        "INSERT INTO files (machine, home, path, size, mtime_ns, inode, first_us, last_us, gone_us) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            file.machine,
            file.home,
            file.path,
            file.size,
            file.mtime_ns,
            file.inode,
            file.first_us,
            file.last_us,
            file.gone_us,
        ),
    )
    return _File(*ours.execute(f"SELECT {_COLUMNS} FROM files WHERE id = last_insert_rowid()").fetchone())  # noqa: S608


def _versions(database: sqlite3.Connection, file_id: int) -> list[_Version]:
    found = []
    rows = database.execute(
        "SELECT id, kept, mtime_ns, first_us, head, tail FROM versions WHERE file_id = ? ORDER BY number", (file_id,)
    ).fetchall()
    for version_id, kept, mtime_ns, first_us, head, tail in rows:
        segments = database.execute(
            "SELECT start, length, sha256, id FROM segments WHERE version_id = ? ORDER BY start", (version_id,)
        ).fetchall()
        joined = segments[: next((n for n, (one, two) in enumerate(pairwise(segments), 1) if _gap(one, two)), None)]
        joined = joined if not joined or joined[0][0] == 0 else []
        end = joined[-1][0] + joined[-1][1] if joined else 0
        found.append(_Version(version_id, end, mtime_ns, first_us, head, tail, joined, is_whole=end == kept))
    return found


def _gap(one: tuple[int, int, bytes, int], two: tuple[int, int, bytes, int]) -> bool:
    return one[0] + one[1] != two[0]


class _Copier:
    """Carries the segments of one file over."""

    def __init__(
        self,
        ours: sqlite3.Connection,
        theirs: sqlite3.Connection,
        file: _File,
        result: Merged,
    ) -> None:
        """Take both sides; nothing is carried over yet."""
        self.ours, self.theirs, self.file, self.result = ours, theirs, file, result
        self.bases: dict[int, int] = {}
        """Which segment of ours has the bytes of one of theirs."""

    def sound(self, version: _Version) -> _Version:
        """Leave out what is damaged, and all that comes after it."""
        unchecked = [] if version.is_checked else version.segments
        version.is_checked = True
        for place, (start, _, _, segment_id) in enumerate(unchecked):
            wrong = fault(self.theirs, segment(self.theirs, segment_id))
            if wrong:
                self.problem(f"from byte {start} on it is damaged over there: {wrong}")
                version.segments, version.kept, version.is_whole = version.segments[:place], start, False
                break
        return version

    def problem(self, words: str) -> None:
        """Note what was left out."""
        self.result.problems.append(Problem("damaged-archive", words, str(place_of(self.file.home, self.file.path))))

    def copy(self, version_id: int, one: Segment, start: int) -> tuple[int, int, bytes, int]:
        """Store a segment, or what of it comes after `start`; as it is packed over there, where that is possible."""
        base_id = self.bases.get(one.base_id) if one.base_id is not None else None
        depth, digest = 0, one.sha256
        if start == one.start and (one.base_id is None or base_id is not None):
            data = self.theirs.execute("SELECT data FROM segments WHERE id = ?", (one.id,)).fetchone()[0]
            if base_id is not None:
                depth = self.ours.execute("SELECT depth + 1 FROM segments WHERE id = ?", (base_id,)).fetchone()[0]
        else:
            content = raw.content(self.theirs, one.id)[start - one.start :]
            base_id, digest, data = None, hashlib.sha256(content).digest(), packed(content)
        length = one.start + one.length - start
        found = self.ours.execute(
            "INSERT INTO segments (version_id, start, length, sha256, base_id, depth, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (version_id, start, length, digest, base_id, depth, data),
        ).lastrowid
        assert found is not None
        self.result.n_bytes += length
        return start, length, digest, found

    def note_bases(self, theirs: _Version, ours: _Version) -> None:
        """Remember which of our segments have the bytes of theirs, for versions that lean on them."""
        known = {one[:3]: one[3] for one in ours.segments}
        self.bases |= {one[3]: known[one[:3]] for one in theirs.segments if one[:3] in known}


def _take_version(copier: _Copier, file_id: int, here: list[_Version], version: _Version) -> int:
    """Find what we have of a version and take the rest over; return which of our versions it is now."""
    if not version.is_whole:
        copier.problem(f"from byte {version.kept} on it is missing over there")
    alike = [one for one in here if _begin_alike(copier, one, version)]
    longer = next((one for one in alike if one.kept >= version.kept), None)
    if longer is not None:
        copier.note_bases(version, longer)
        return longer.id
    version = copier.sound(version)
    found = max(alike, key=lambda one: one.kept, default=None)
    if found is None:
        found = _new_version(copier, file_id, version)
        here.append(found)
    elif found.kept >= version.kept or not found.is_whole:  # nothing sound is left to add, or nowhere to add it to
        copier.note_bases(version, found)
        return found.id
    _extend(copier, found, version)
    copier.note_bases(version, found)
    return found.id


def _begin_alike(copier: _Copier, ours: _Version, theirs: _Version) -> bool:
    """Tell whether one of two versions is the beginning of the other."""
    end = min(ours.kept, theirs.kept)
    start = 0
    for one, two in zip(ours.segments, theirs.segments, strict=False):
        if one[:3] != two[:3]:
            break
        start = one[0] + one[1]
    if start >= end:
        return True
    copier.sound(theirs)
    end = min(end, theirs.kept)
    first, second = raw.reader(copier.ours, ours.id), raw.reader(copier.theirs, theirs.id)
    return all(
        first(place, min(place + _BLOCK, end)) == second(place, min(place + _BLOCK, end))
        for place in range(start, end, _BLOCK)
    )


def _new_version(copier: _Copier, file_id: int, version: _Version) -> _Version:
    copier.result.n_versions += 1
    found = copier.ours.execute(
        "INSERT INTO versions (file_id, number, kept, head, tail, mtime_ns, first_us) "
        "SELECT ?, coalesce(max(number), 0) + 1, 0, ?, ?, ?, ? FROM versions WHERE file_id = ?",
        (file_id, version.head, version.tail, version.mtime_ns, version.first_us, file_id),
    ).lastrowid
    assert found is not None
    return _Version(found, 0, version.mtime_ns, version.first_us, version.head, version.tail, [])


def _extend(copier: _Copier, ours: _Version, theirs: _Version) -> None:
    """Add what comes after the end of ours."""
    for start, length, _, segment_id in theirs.segments:
        if start + length > ours.kept:
            one = segment(copier.theirs, segment_id)
            ours.segments.append(copier.copy(ours.id, one, max(start, ours.kept)))
            ours.kept = start + length
    head, tail = (theirs.head, theirs.tail) if theirs.is_whole else _probes(copier.ours, ours)
    ours.mtime_ns = theirs.mtime_ns
    copier.ours.execute(
        "UPDATE versions SET kept = ?, head = ?, tail = ?, mtime_ns = ? WHERE id = ?",
        (ours.kept, head, tail, ours.mtime_ns, ours.id),
    )


def _probes(database: sqlite3.Connection, version: _Version) -> tuple[bytes, bytes]:
    read, end = raw.reader(database, version.id), version.kept
    head, tail = read(0, min(_PROBE, end)), read(max(0, end - _PROBE), end)
    return hashlib.sha256(head).digest(), hashlib.sha256(tail).digest()


def _interleaved(ours: Sequence[int], theirs: Sequence[int], known: Mapping[int, _Version]) -> list[int]:
    """Put two orders of versions together: each stays as it is, and where they say nothing, the older comes first.

    It does not matter which of the two is ours.
    """
    theirs = list(dict.fromkeys(theirs))
    found: list[int] = []
    while waiting := [
        [one for one in order if one not in found] for order in (ours, theirs) if not set(order) <= set(found)
    ]:
        heads = {order[0] for order in waiting}
        free = {head for head in heads if not any(head in order[1:] for order in waiting)} or heads
        found.append(min(free, key=lambda one: known[one].order))
    return found


def _put_in_order(ours: sqlite3.Connection, file_id: int, order: Sequence[int]) -> int | None:
    """Give the versions of a file new numbers and have it read again; return the newest."""
    ours.executemany("UPDATE versions SET number = ? WHERE id = ?", [(-n, one) for n, one in enumerate(order, 1)])
    ours.execute("UPDATE versions SET number = -number WHERE file_id = ?", (file_id,))
    ours.executemany("DELETE FROM readings WHERE version_id = ?", [(one,) for one in order])
    return order[-1] if order else None


def _note_state(ours: sqlite3.Connection, known: _File, theirs: _File, current: int | None, *, is_theirs: bool) -> None:
    """Note how the file was last seen, by whoever saw its newest version, or saw it last."""
    of_current = theirs if is_theirs and (current != known.version_id or theirs.seen_us > known.seen_us) else known
    last = max((known, theirs), key=lambda one: one.seen_us)
    ours.execute(
        "UPDATE files SET version_id = ?, size = ?, mtime_ns = ?, inode = ?, first_us = ?, last_us = ?, gone_us = ? "
        "WHERE id = ?",
        (
            current,
            of_current.size,
            of_current.mtime_ns,
            of_current.inode,
            min(known.first_us, theirs.first_us),
            max(known.last_us, theirs.last_us),
            last.gone_us,
            known.id,
        ),
    )
