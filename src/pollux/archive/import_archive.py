"""Import one archive into another: files with their machine and home, versions, bytes, seals.

What both have is recognised by its content, not by its number. A version that is here already in whole, or longer, adds
nothing. One that goes on where an earlier *import* ends extends that. Any other becomes a version of its own and is
marked as imported (`imports.py`), also if it says that it comes from this machine: nothing is ever added to a version
that this machine has read itself, and nothing that this archive knows about such a file is changed. What was forgotten
here stays forgotten, and to import the same archive again changes nothing.

The other archive is not trusted (`foreign.py`), and all of it is one transaction: an import that is stopped or that
fails leaves the archive as it was.
"""

from __future__ import annotations

import hashlib
import platform
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pollux.archive import dependents, raw, schema, seals
from pollux.archive.foreign import FileRow, Foreign, SegmentRow, VersionRow
from pollux.archive.imports import imported_versions, note_imported
from pollux.archive.inventory import belongs_to, place_of
from pollux.archive.migrations import transaction
from pollux.archive.segments import UNPACKING, packed
from pollux.archive.store import Archive
from pollux.archive.verify import rederive
from pollux.model import Problem
from pollux.sessions.reader import Progress

_BLOCK = 1 << 20
_PROBE = 4096


@dataclass(frozen=True, slots=True)
class NotReadHere:
    """Bytes that are said to come from a file of this machine, which this machine never read."""

    file: str
    n_bytes: int


@dataclass(slots=True)
class Merged:
    """What was imported."""

    n_files: int = 0
    """Files with something new."""
    n_versions: int = 0
    """Versions that were not here at all."""
    n_bytes: int = 0
    n_forgotten: int = 0
    """Files left out because their session is to be forgotten."""
    n_seals: int = 0
    """Seals that were not here, and are now kept apart from this archive's own."""
    not_read_here: list[NotReadHere] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """What is damaged in the other archive, and was left out."""


@dataclass(slots=True)
class _Version:
    """A version in this archive."""

    id: int
    kept: int
    """Bytes from the beginning on, without a gap."""
    mtime_ns: int
    segments: list[tuple[int, int, bytes, int]]
    """Start, length, digest and id."""
    is_import: bool
    is_whole: bool = True

    @property
    def order(self) -> tuple[int, int, bytes]:
        """Where it belongs among versions of which nothing else is known."""
        return self.mtime_ns, self.kept, self.segments[0][2] if self.segments else b""


@dataclass(slots=True)
class _Theirs:
    """A version in the other archive."""

    row: VersionRow
    segments: list[SegmentRow]
    """From the first byte on, without a gap."""
    is_whole: bool
    is_checked: bool = False

    @property
    def kept(self) -> int:
        return self.segments[-1].start + self.segments[-1].length if self.segments else 0


@dataclass(frozen=True, slots=True)
class _Known:
    """What this archive knows of a file."""

    id: int
    machine: str
    first_us: int
    last_us: int
    gone_us: int | None

    @property
    def seen_us(self) -> int:
        """When somebody last looked whether the file is there."""
        return max(self.last_us, self.gone_us or 0)


def take_in(
    archive: Archive,
    other: Foreign,
    *,
    memory: Mapping[str, str],
    now_us: int,
    progress: Progress = lambda _done, _all: None,
) -> Merged:
    """Import another archive, all or nothing; then bring the facts up to date.

    Raises `ArchiveError` if the other archive cannot be read to its end; then nothing has changed.
    """
    result = Merged()
    with transaction(archive.database):
        if not schema.are_current(archive.database):
            schema.reset(archive.database)
        copier = _Copier(archive.database, other, result, now_us)
        _take_files(copier, progress)
        dependents.update(archive.database)
        result.n_seals = seals.keep_apart(archive.database, other.seals(), other.entries())
    result.problems += other.problems
    rederive(archive, memory=memory, progress=progress)
    return result


def _take_files(copier: _Copier, progress: Progress) -> None:
    n_bytes, done = copier.theirs.n_bytes(), 0
    tombstones = {row[0] for row in copier.ours.execute("SELECT session_id FROM tombstones")}
    owners = copier.theirs.owners() if tombstones else {}
    for file in copier.theirs.files():
        if _is_forgotten(copier.ours, file, owners.get(file.id), tombstones):
            copier.result.n_forgotten += 1
        else:
            done += _take_file(copier, file)
            progress(min(done, n_bytes), n_bytes)


def _is_forgotten(ours: sqlite3.Connection, file: FileRow, owners: set[str] | None, tombstones: set[str]) -> bool:
    """Return whether a file is of a session that was forgotten here: by the facts over there, else by its name."""
    row = ours.execute(
        "SELECT forgotten_us FROM files WHERE machine = ? AND home = ? AND path = ?",
        (file.machine, file.home, file.path),
    ).fetchone()
    if row is not None and row[0] is not None:
        return True
    return owners <= tombstones if owners else belongs_to(file.path, tombstones)


def _take_file(copier: _Copier, file: FileRow) -> int:
    """Import the versions of one file that are not here; return how many bytes were looked at."""
    ours, result = copier.ours, copier.result
    known = _known(ours, file)
    is_new = known is None
    known = known or _new_file(ours, file)
    before = result.n_bytes, result.n_versions
    here = _versions(ours, known.id)
    order = [one.id for one in here if one.is_import]
    own = [one.id for one in here if not one.is_import]
    copier.begin(file)
    versions = [_their_version(copier, row) for row in copier.theirs.versions(file)]
    there = [_take_version(copier, known.id, here, version) for version in versions]
    if (result.n_bytes, result.n_versions) != before or is_new:
        result.n_files += 1
        if own or file.machine == platform.node():
            result.not_read_here.append(NotReadHere(str(place_of(file.home, file.path)), result.n_bytes - before[0]))
        imported = _interleaved(order, [one for one in there if one not in own], {one.id: one for one in here})
        _put_in_order(ours, known.id, [*imported, *own])
    if not own:
        _note_state(ours, known, file)
    return sum(version.kept for version in versions)


def _known(ours: sqlite3.Connection, file: FileRow) -> _Known | None:
    row = ours.execute(
        "SELECT id, machine, first_us, last_us, gone_us FROM files WHERE machine = ? AND home = ? AND path = ?",
        (file.machine, file.home, file.path),
    ).fetchone()
    return _Known(*row) if row else None


def _new_file(ours: sqlite3.Connection, file: FileRow) -> _Known:
    """Add a file. No file has its size and its inode, so a refresh that finds it on this disk compares every byte."""
    file_id = ours.execute(
        "INSERT INTO files (machine, home, path, size, mtime_ns, inode, first_us, last_us, gone_us) "
        "VALUES (?, ?, ?, -1, ?, -1, ?, ?, ?)",
        (file.machine, file.home, file.path, file.mtime_ns, file.first_us, file.last_us, file.gone_us),
    ).lastrowid
    assert file_id is not None
    return _Known(file_id, file.machine, file.first_us, file.last_us, file.gone_us)


def _versions(ours: sqlite3.Connection, file_id: int) -> list[_Version]:
    """Return the versions of a file of this archive, as far as their bytes follow on each other."""
    imported = imported_versions(ours, file_id)
    found = []
    rows = ours.execute("SELECT id, kept, mtime_ns FROM versions WHERE file_id = ? ORDER BY number", (file_id,))
    for version_id, kept, mtime_ns in rows.fetchall():
        segments, end = [], 0
        for segment in ours.execute(
            "SELECT start, length, sha256, id FROM segments WHERE version_id = ? ORDER BY start", (version_id,)
        ):
            if segment[0] != end:
                break
            segments.append(segment)
            end += segment[1]
        found.append(_Version(version_id, end, mtime_ns, segments, version_id in imported, is_whole=end == kept))
    return found


def _their_version(copier: _Copier, row: VersionRow) -> _Theirs:
    """Return a version of the other archive, as far as its bytes follow on each other."""
    segments, end = [], 0
    for segment in copier.theirs.segments(row, copier.file):
        if segment.start != end:
            break
        segments.append(segment)
        end += segment.length
    if end != row.kept:
        copier.problem(f"from byte {end} on it is missing in {copier.theirs.path.name}")
    return _Theirs(row, segments, is_whole=end == row.kept)


class _Copier:
    """Copies segments of the other archive, file by file."""

    def __init__(self, ours: sqlite3.Connection, theirs: Foreign, result: Merged, now_us: int) -> None:
        """Take both sides."""
        self.ours, self.theirs, self.result, self.now_us = ours, theirs, result, now_us
        self.file: FileRow
        """The file whose versions are copied."""
        self._bases: dict[int, tuple[int, int, bytes, int]] = {}
        """Segments of ours by the id of theirs that has the same bytes: start, length, digest and id."""

    def begin(self, file: FileRow) -> None:
        """Turn to another file."""
        self.file, self._bases = file, {}

    def problem(self, words: str) -> None:
        """Note what was left out of a file."""
        place = str(place_of(self.file.home, self.file.path))
        self.result.problems.append(Problem("damaged-archive", words, place))

    def check(self, version: _Theirs) -> None:
        """Leave out what is damaged, and all that comes after it."""
        unchecked = [] if version.is_checked else version.segments
        version.is_checked = True
        for place, segment in enumerate(unchecked):
            if self.theirs.content(segment) is None:
                self.problem(f"from byte {segment.start} on it is damaged in {self.theirs.path.name}")
                version.segments, version.is_whole = version.segments[:place], False
                break

    def copy(self, version: _Version, segment: SegmentRow) -> None:
        """Add to a version what a checked segment has after its end; as it is packed over there, where that works."""
        start = max(segment.start, version.kept)
        base = self._base(segment)
        base_id, depth, digest = None, 0, segment.sha256
        if start == segment.start and (segment.base_id is None or base is not None):
            data = self.theirs.packed(segment)
            base_id, depth = base or (None, 0)
        else:
            content = (self.theirs.content(segment) or b"")[start - segment.start :]
            digest, data = hashlib.sha256(content).digest(), packed(content)
        length = segment.start + segment.length - start
        segment_id = self.ours.execute(
            "INSERT INTO segments (version_id, start, length, sha256, base_id, depth, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (version.id, start, length, digest, base_id, depth, data),
        ).lastrowid
        assert segment_id is not None
        version.segments.append((start, length, digest, segment_id))
        version.kept = start + length
        self.result.n_bytes += length

    def note_bases(self, theirs: _Theirs, ours: _Version) -> None:
        """Remember which segments of ours are said to have the bytes of theirs, for versions that lean on them."""
        known = {one[:3]: one for one in ours.segments}
        self._bases |= {one.id: known[one.key] for one in theirs.segments if one.key in known}

    def _base(self, segment: SegmentRow) -> tuple[int, int] | None:
        """Return the segment of ours that a segment of theirs can lean on, and how deep that makes it.

        The hash that both name was checked over there with the segment that leans on it; here it is checked now.
        """
        base = self._bases.get(segment.base_id) if segment.base_id is not None else None
        if base is None or _content(self.ours, base) is None:
            return None
        depth: int = self.ours.execute("SELECT depth + 1 FROM segments WHERE id = ?", (base[3],)).fetchone()[0]
        return base[3], depth


def _content(ours: sqlite3.Connection, segment: tuple[int, int, bytes, int]) -> bytes | None:
    """Return the bytes of a segment of this archive, or nothing where it is damaged."""
    try:
        data = raw.content(ours, segment[3])
    except UNPACKING:
        return None
    return data if hashlib.sha256(data).digest() == segment[2] else None


def _take_version(copier: _Copier, file_id: int, here: list[_Version], version: _Theirs) -> int:
    """Import what is not here of a version; return the version of ours that has its bytes now."""
    alike = [one for one in here if _begin_alike(copier, one, version)]
    ours = next((one for one in alike if one.kept >= version.kept), None)
    if ours is None:
        copier.check(version)
        ours = next((one for one in alike if one.kept >= version.kept), None)
    if ours is None:
        longest = max(alike, key=lambda one: one.kept, default=None)
        extended = max((one for one in alike if one.is_import and one.is_whole), key=lambda one: one.kept, default=None)
        if longest is not None and not longest.is_whole:
            ours = longest  # ours has a gap, of which `verify` tells: what is missing there is no other version
        else:
            ours = extended or _new_version(copier, file_id, here, version)
            _extend(copier, ours, version)
    copier.note_bases(version, ours)
    return ours.id


def _begin_alike(copier: _Copier, ours: _Version, theirs: _Theirs) -> bool:
    """Return whether one of two versions is the beginning of the other."""
    end = min(ours.kept, theirs.kept)
    start = 0
    for one, two in zip(ours.segments, theirs.segments, strict=False):
        if one[:3] != two.key:
            break
        start = one[0] + one[1]
    if start >= end:
        return True
    copier.check(theirs)
    end = min(end, theirs.kept)
    first, second = raw.reader(copier.ours, ours.id), copier.theirs.reader(theirs.row, theirs.segments)
    try:
        return all(
            first(place, min(place + _BLOCK, end)) == second(place, min(place + _BLOCK, end))
            for place in range(start, end, _BLOCK)
        )
    except UNPACKING:
        return False  # ours is damaged; theirs is another version, and may mend it


def _new_version(copier: _Copier, file_id: int, here: list[_Version], version: _Theirs) -> _Version:
    """Add an empty version, marked as imported."""
    copier.result.n_versions += 1
    row = version.row
    version_id = copier.ours.execute(
        "INSERT INTO versions (file_id, number, kept, head, tail, mtime_ns, first_us) "
        "SELECT ?, coalesce(max(number), 0) + 1, 0, ?, ?, ?, ? FROM versions WHERE file_id = ?",
        (file_id, row.head, row.tail, row.mtime_ns, row.first_us, file_id),
    ).lastrowid
    assert version_id is not None
    note_imported(copier.ours, version_id, source=str(copier.theirs.path), at_us=copier.now_us)
    made = _Version(version_id, 0, row.mtime_ns, [], is_import=True)
    here.append(made)
    return made


def _extend(copier: _Copier, ours: _Version, theirs: _Theirs) -> None:
    """Add what comes after the end of an imported version. Its probes are made from its bytes, and not believed."""
    for segment in theirs.segments:
        if segment.start + segment.length > ours.kept:
            copier.copy(ours, segment)
    ours.mtime_ns = theirs.row.mtime_ns
    copier.ours.execute(
        "UPDATE versions SET kept = ?, head = ?, tail = ?, mtime_ns = ? WHERE id = ?",
        (ours.kept, *_probes(copier.ours, ours), ours.mtime_ns, ours.id),
    )


def _probes(ours: sqlite3.Connection, version: _Version) -> tuple[bytes, bytes]:
    read, end = raw.reader(ours, version.id), version.kept
    head, tail = read(0, min(_PROBE, end)), read(max(0, end - _PROBE), end)
    return hashlib.sha256(head).digest(), hashlib.sha256(tail).digest()


def _interleaved(ours: Sequence[int], theirs: Sequence[int], known: Mapping[int, _Version]) -> list[int]:
    """Put two orders of versions together: each stays as it is, and where they say nothing, the older comes first.

    It does not matter which of the two is ours.
    """
    return [*_merged_order([*ours], [*dict.fromkeys(theirs)], known)]


def _merged_order(ours: list[int], theirs: list[int], known: Mapping[int, _Version]) -> Iterator[int]:
    while ours or theirs:
        orders = [order for order in (ours, theirs) if order]
        heads = {order[0] for order in orders}
        free = {head for head in heads if not any(head in order[1:] for order in orders)} or heads
        first = min(free, key=lambda one: known[one].order)
        yield first
        ours, theirs = ([one for one in order if one != first] for order in (ours, theirs))


def _put_in_order(ours: sqlite3.Connection, file_id: int, order: Sequence[int]) -> None:
    """Give the versions of a file new numbers, make the last the current one, and have all of them read again.

    The versions that this machine has read come last: a refresh counts on from the current one.
    """
    ours.executemany("UPDATE versions SET number = ? WHERE id = ?", [(-n, one) for n, one in enumerate(order, 1)])
    ours.execute("UPDATE versions SET number = -number WHERE file_id = ?", (file_id,))
    ours.executemany("DELETE FROM readings WHERE version_id = ?", [(one,) for one in order])
    ours.execute("UPDATE files SET version_id = ? WHERE id = ?", (order[-1] if order else None, file_id))


def _note_state(ours: sqlite3.Connection, known: _Known, theirs: FileRow) -> None:
    """Note when a file that this machine never read was seen, and whether it was gone, by whoever looked last."""
    last_gone_us = known.gone_us if known.seen_us >= max(theirs.last_us, theirs.gone_us or 0) else theirs.gone_us
    first_us, last_us = min(known.first_us, theirs.first_us), max(known.last_us, theirs.last_us)
    ours.execute(
        "UPDATE files SET first_us = ?, last_us = ?, gone_us = ? WHERE id = ?",
        (first_us, last_us, last_gone_us, known.id),
    )
    dependents.note_files(ours, "files.id = ?", (known.id,))
