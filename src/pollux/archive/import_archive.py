"""Import one archive into another: files with their machine and home, versions, bytes, seals.

Versions are matched by content, not by number. A version of which this archive has all bytes adds nothing. A version
that continues an earlier *import* extends it. Any other version is stored separately and marked as imported
(`dependents.py`), even if it claims to come from this machine: versions that this machine has read itself, and what is
known about their files, never change. Forgotten sessions stay forgotten, and importing the same archive again changes
nothing.

The other archive is not trusted (`foreign.py`). The import is a single transaction, so that one that fails or is
interrupted changes nothing.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pollux.archive import dependents, raw, schema, seals
from pollux.archive.dependents import imported_versions, note_imported
from pollux.archive.foreign import FileRow, ForeignArchive, SegmentRow, VersionRow
from pollux.archive.inventory import belongs_to, original_path
from pollux.archive.migrations import transaction
from pollux.archive.raw import PROBE, UNPACKING, compress
from pollux.archive.store import Archive
from pollux.archive.verify import rederive
from pollux.model import Problem
from pollux.sessions.reader import Progress

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class NotReadHere:
    """Imported bytes that claim to come from a file of this machine, but were never read on it."""

    file: str
    n_bytes: int


@dataclass(slots=True)
class ImportResult:
    """What an import added to the archive."""

    n_files: int = 0
    """Files with new bytes."""
    n_versions: int = 0
    """New versions."""
    n_bytes: int = 0
    n_forgotten: int = 0
    """Files that were skipped because their session was forgotten."""
    n_seals: int = 0
    """New seals, which are stored separately from this archive's own."""
    not_read_here: list[NotReadHere] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Damaged parts of the other archive, which were skipped."""


@dataclass(slots=True)
class _Version:
    """A version in this archive."""

    id: int
    length: int
    """Number of bytes up to the first gap."""
    mtime_ns: int
    segments: list[tuple[int, int, bytes, int]]
    """Start, length, SHA-256 and ID."""
    is_import: bool
    is_whole: bool = True

    @property
    def order(self) -> tuple[int, int, bytes]:
        """The sort key among versions whose order is unknown."""
        return self.mtime_ns, self.length, self.segments[0][2] if self.segments else b""


@dataclass(slots=True)
class _Theirs:
    """A version in the other archive."""

    row: VersionRow
    segments: list[SegmentRow]
    """The segments up to the first gap."""
    is_whole: bool
    is_checked: bool = False

    @property
    def length(self) -> int:
        return self.segments[-1].start + self.segments[-1].length if self.segments else 0


@dataclass(frozen=True, slots=True)
class _Known:
    """A row of `files` in this archive."""

    id: int
    machine: str
    first_us: int
    last_us: int
    deleted_us: int | None

    @property
    def seen_us(self) -> int:
        """When the file was last seen or found to be deleted."""
        return max(self.last_us, self.deleted_us or 0)


def import_archive(
    archive: Archive,
    other: ForeignArchive,
    *,
    memory: Mapping[str, str],
    now_us: int,
    progress: Progress = lambda _done, _all: None,
) -> ImportResult:
    """Import another archive completely or not at all, then derive facts from the new bytes.

    Raises `ArchiveError` if the other archive cannot be read to its end.
    """
    result = ImportResult()
    with transaction(archive.database):
        if not schema.are_current(archive.database):
            schema.reset(archive.database)
        copier = _Copier(archive, other, result, now_us)
        _import_files(copier, progress)
        dependents.update(archive.database)
        result.n_seals = seals.store_imported(archive.database, other.seals(), other.entries())
    result.problems += other.problems
    rederive(archive, memory=memory, progress=progress)
    return result


def _import_files(copier: _Copier, progress: Progress) -> None:
    n_bytes, done = copier.theirs.n_bytes(), 0
    tombstones = {row[0] for row in copier.ours.execute("SELECT session_id FROM tombstones")}
    owners = copier.theirs.owners() if tombstones else {}
    for file in copier.theirs.files():
        if _is_forgotten(copier.ours, file, owners.get(file.id), tombstones):
            copier.result.n_forgotten += 1
        else:
            done += _import_file(copier, file)
            progress(min(done, n_bytes), n_bytes)


def _is_forgotten(ours: sqlite3.Connection, file: FileRow, owners: set[str] | None, tombstones: set[str]) -> bool:
    """Return whether a file belongs to a forgotten session, by the other archive's facts or else by its name."""
    row = ours.execute(
        "SELECT forgotten_us FROM files WHERE machine = ? AND home = ? AND path = ?",
        (file.machine, file.home, file.path),
    ).fetchone()
    if row is not None and row[0] is not None:
        return True
    return owners <= tombstones if owners else belongs_to(file.path, tombstones)


def _import_file(copier: _Copier, file: FileRow) -> int:
    """Import the new versions of one file, and return the number of bytes that were compared."""
    ours, result = copier.ours, copier.result
    our_file = _known(ours, file)
    is_new = our_file is None
    our_file = our_file or _new_file(ours, file)
    before = result.n_bytes, result.n_versions
    our_versions = _versions(ours, our_file.id)
    order = [version.id for version in our_versions if version.is_import]
    own = [version.id for version in our_versions if not version.is_import]
    copier.begin(file)
    their_versions = [_their_version(copier, row) for row in copier.theirs.versions(file)]
    matches = [_import_version(copier, our_file.id, our_versions, version) for version in their_versions]
    if (result.n_bytes, result.n_versions) != before or is_new:
        result.n_files += 1
        if own or file.machine == copier.machine:
            path = str(original_path(file.home, file.path))
            result.not_read_here.append(NotReadHere(path, result.n_bytes - before[0]))
        by_id = {version.id: version for version in our_versions}
        imported = _merged_order(order, [version_id for version_id in matches if version_id not in own], by_id)
        _renumber(ours, our_file.id, [*imported, *own])
    if not own:
        _update_state(ours, our_file, file)
    return sum(version.length for version in their_versions)


def _known(ours: sqlite3.Connection, file: FileRow) -> _Known | None:
    row = ours.execute(
        "SELECT id, machine, first_us, last_us, deleted_us FROM files WHERE machine = ? AND home = ? AND path = ?",
        (file.machine, file.home, file.path),
    ).fetchone()
    return _Known(*row) if row else None


def _new_file(ours: sqlite3.Connection, file: FileRow) -> _Known:
    """Insert a file, with a size and inode that no file has, so that a refresh on this machine compares every byte."""
    file_id = ours.execute(
        "INSERT INTO files (machine, home, path, size, mtime_ns, inode, first_us, last_us, deleted_us) "
        "VALUES (?, ?, ?, -1, ?, -1, ?, ?, ?)",
        (file.machine, file.home, file.path, file.mtime_ns, file.first_us, file.last_us, file.deleted_us),
    ).lastrowid
    assert file_id is not None
    return _Known(file_id, file.machine, file.first_us, file.last_us, file.deleted_us)


def _versions(ours: sqlite3.Connection, file_id: int) -> list[_Version]:
    """Return the versions of a file in this archive, each up to its first gap."""
    imported = imported_versions(ours, file_id)
    versions = []
    rows = ours.execute(
        "SELECT id, archived_bytes, mtime_ns FROM versions WHERE file_id = ? ORDER BY number", (file_id,)
    )
    for version_id, length, mtime_ns in rows.fetchall():
        segments, end = [], 0
        for segment in ours.execute(
            "SELECT start, length, sha256, id FROM segments WHERE version_id = ? ORDER BY start", (version_id,)
        ):
            if segment[0] != end:
                break
            segments.append(segment)
            end += segment[1]
        versions.append(_Version(version_id, end, mtime_ns, segments, version_id in imported, is_whole=end == length))
    return versions


def _their_version(copier: _Copier, row: VersionRow) -> _Theirs:
    segments, end = [], 0
    for segment in copier.theirs.segments(row, copier.file):
        if segment.start != end:
            break
        segments.append(segment)
        end += segment.length
    if end != row.archived_bytes:
        copier.problem(f"its bytes from {end} on are missing in {copier.theirs.path.name}")
    return _Theirs(row, segments, is_whole=end == row.archived_bytes)


class _Copier:
    """Copies segments of the other archive, file by file."""

    def __init__(self, archive: Archive, theirs: ForeignArchive, result: ImportResult, now_us: int) -> None:
        self.ours, self.machine = archive.database, archive.machine
        self.theirs, self.result, self.now_us = theirs, result, now_us
        self.file: FileRow
        """The file whose versions are copied."""
        self._bases: dict[int, tuple[int, int, bytes, int]] = {}
        """Our segments by the ID of their segment with the same bytes: start, length, SHA-256 and ID."""

    def begin(self, file: FileRow) -> None:
        self.file, self._bases = file, {}

    def problem(self, message: str) -> None:
        path = str(original_path(self.file.home, self.file.path))
        self.result.problems.append(Problem("damaged-archive", message, path))

    def check(self, version: _Theirs) -> None:
        """Drop the first damaged segment of a version and all that follow."""
        unchecked = [] if version.is_checked else version.segments
        version.is_checked = True
        for index, segment in enumerate(unchecked):
            if self.theirs.content(segment) is None:
                self.problem(f"its bytes from {segment.start} on are damaged in {self.theirs.path.name}")
                version.segments, version.is_whole = version.segments[:index], False
                break

    def copy(self, version: _Version, segment: SegmentRow) -> None:
        """Append the bytes of a checked segment beyond the end of a version, without recompressing if possible."""
        start = max(segment.start, version.length)
        base = self._base(segment)
        base_id, depth, digest = None, 0, segment.sha256
        if start == segment.start and (segment.base_id is None or base is not None):
            data = self.theirs.packed(segment)
            base_id, depth = base or (None, 0)
        else:
            content = (self.theirs.content(segment) or b"")[start - segment.start :]
            digest, data = hashlib.sha256(content).digest(), compress(content)
        length = segment.start + segment.length - start
        segment_id = self.ours.execute(
            "INSERT INTO segments (version_id, start, length, sha256, base_id, depth, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (version.id, start, length, digest, base_id, depth, data),
        ).lastrowid
        assert segment_id is not None
        version.segments.append((start, length, digest, segment_id))
        version.length = start + length
        self.result.n_bytes += length

    def note_bases(self, theirs: _Theirs, ours: _Version) -> None:
        """Remember which of our segments have the same bytes as theirs, as bases for later versions."""
        by_key = {segment[:3]: segment for segment in ours.segments}
        self._bases |= {segment.id: by_key[segment.key] for segment in theirs.segments if segment.key in by_key}

    def _base(self, segment: SegmentRow) -> tuple[int, int] | None:
        """Return our copy of a segment's base and the depth above it, after checking the bytes of that copy."""
        base = self._bases.get(segment.base_id) if segment.base_id is not None else None
        if base is None or _content(self.ours, base) is None:
            return None
        depth: int = self.ours.execute("SELECT depth + 1 FROM segments WHERE id = ?", (base[3],)).fetchone()[0]
        return base[3], depth


def _content(ours: sqlite3.Connection, segment: tuple[int, int, bytes, int]) -> bytes | None:
    """Return the bytes of a segment of this archive, or None if it is damaged."""
    try:
        data = raw.content(ours, segment[3])
    except UNPACKING:
        return None
    return data if hashlib.sha256(data).digest() == segment[2] else None


def _import_version(copier: _Copier, file_id: int, our_versions: list[_Version], version: _Theirs) -> int:
    """Import the missing bytes of a version, and return the ID of our version that has all its bytes now."""
    alike = [ours for ours in our_versions if _begin_alike(copier, ours, version)]
    match = next((ours for ours in alike if ours.length >= version.length), None)
    if match is None:
        copier.check(version)
        match = next((ours for ours in alike if ours.length >= version.length), None)
    if match is None:
        longest = max(alike, key=lambda ours: ours.length, default=None)
        extendable = [ours for ours in alike if ours.is_import and ours.is_whole]
        if longest is not None and not longest.is_whole:
            match = longest  # it has a gap, which `verify` reports; the missing bytes are not another version
        else:
            match = max(extendable, key=lambda ours: ours.length, default=None)
            match = match or _new_version(copier, file_id, our_versions, version)
            _extend(copier, match, version)
    copier.note_bases(version, match)
    return match.id


def _begin_alike(copier: _Copier, ours: _Version, theirs: _Theirs) -> bool:
    """Return whether one of two versions is a prefix of the other."""
    end = min(ours.length, theirs.length)
    start = 0
    for our_segment, their_segment in zip(ours.segments, theirs.segments, strict=False):
        if our_segment[:3] != their_segment.key:
            break
        start = our_segment[0] + our_segment[1]
    if start >= end:
        return True
    copier.check(theirs)
    end = min(end, theirs.length)
    first, second = raw.reader(copier.ours, ours.id), copier.theirs.reader(theirs.row, theirs.segments)
    try:
        return all(
            first(place, min(place + _BLOCK, end)) == second(place, min(place + _BLOCK, end))
            for place in range(start, end, _BLOCK)
        )
    except UNPACKING:
        return False  # ours is damaged; theirs becomes another version, from which `verify` can repair it


def _new_version(copier: _Copier, file_id: int, our_versions: list[_Version], version: _Theirs) -> _Version:
    """Insert an empty version that is marked as imported."""
    copier.result.n_versions += 1
    row = version.row
    version_id = copier.ours.execute(
        "INSERT INTO versions (file_id, number, archived_bytes, head, tail, mtime_ns, first_us) "
        "SELECT ?, coalesce(max(number), 0) + 1, 0, ?, ?, ?, ? FROM versions WHERE file_id = ?",
        (file_id, row.head, row.tail, row.mtime_ns, row.first_us, file_id),
    ).lastrowid
    assert version_id is not None
    note_imported(copier.ours, version_id, source=str(copier.theirs.path), at_us=copier.now_us)
    new = _Version(version_id, 0, row.mtime_ns, [], is_import=True)
    our_versions.append(new)
    return new


def _extend(copier: _Copier, ours: _Version, theirs: _Theirs) -> None:
    """Append the new bytes to an imported version; its head and tail hashes are computed, not copied."""
    for segment in theirs.segments:
        if segment.start + segment.length > ours.length:
            copier.copy(ours, segment)
    ours.mtime_ns = theirs.row.mtime_ns
    copier.ours.execute(
        "UPDATE versions SET archived_bytes = ?, head = ?, tail = ?, mtime_ns = ? WHERE id = ?",
        (ours.length, *_probes(copier.ours, ours), ours.mtime_ns, ours.id),
    )


def _probes(ours: sqlite3.Connection, version: _Version) -> tuple[bytes, bytes]:
    read, end = raw.reader(ours, version.id), version.length
    head, tail = read(0, min(PROBE, end)), read(max(0, end - PROBE), end)
    return hashlib.sha256(head).digest(), hashlib.sha256(tail).digest()


def _merged_order(ours: Sequence[int], theirs: Sequence[int], versions: Mapping[int, _Version]) -> Iterator[int]:
    """Yield the versions of two lists, in an order that respects both; where they leave it open, the older first.

    The result does not depend on which of the two lists is ours.
    """
    orders = [list(ours), list(dict.fromkeys(theirs))]
    while any(orders):
        heads = {order[0] for order in orders if order}
        free = {head for head in heads if not any(head in order[1:] for order in orders)} or heads
        first = min(free, key=lambda version_id: versions[version_id].order)
        yield first
        orders = [[version_id for version_id in order if version_id != first] for order in orders]


def _renumber(ours: sqlite3.Connection, file_id: int, order: Sequence[int]) -> None:
    """Assign new numbers to the versions of a file, make the last one current, and mark all as pending.

    The versions that this machine has read come last, because a refresh continues the current one.
    """
    numbered = [(-number, version_id) for number, version_id in enumerate(order, 1)]
    ours.executemany("UPDATE versions SET number = ? WHERE id = ?", numbered)
    ours.execute("UPDATE versions SET number = -number WHERE file_id = ?", (file_id,))
    ours.executemany("DELETE FROM readings WHERE version_id = ?", [(version_id,) for version_id in order])
    ours.execute("UPDATE files SET version_id = ? WHERE id = ?", (order[-1] if order else None, file_id))


def _update_state(ours: sqlite3.Connection, known: _Known, theirs: FileRow) -> None:
    """Store when a file that this machine never read was seen or deleted, according to the later observation."""
    deleted_us = known.deleted_us if known.seen_us >= max(theirs.last_us, theirs.deleted_us or 0) else theirs.deleted_us
    first_us, last_us = min(known.first_us, theirs.first_us), max(known.last_us, theirs.last_us)
    ours.execute(
        "UPDATE files SET first_us = ?, last_us = ?, deleted_us = ? WHERE id = ?",
        (first_us, last_us, deleted_us, known.id),
    )
    dependents.note_files(ours, "files.id = ?", (known.id,))
