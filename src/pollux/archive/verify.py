"""Whether an archive is sound: every byte against its hash, every reference, the facts against the bytes.

What is damaged is named to the byte, and where the same bytes are still to be had. A repair puts back only what has the
very hash of what was lost; what is derived is built anew.
"""

from __future__ import annotations

import hashlib
import platform
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import zstandard

from pollux.archive import facts, raw
from pollux.archive.inventory import place_of
from pollux.archive.lock import WriterLock
from pollux.archive.migrations import transaction
from pollux.archive.refresh import Refreshed, derive, reader_of
from pollux.archive.store import Archive
from pollux.errors import DamagedArchiveError
from pollux.locate import Home, locate
from pollux.sessions import Progress

_PROBE = 4096
"""A version notes the hash of so many bytes of its beginning and of its end."""
_DEEPEST = 64
"""More segments than that never lean on each other."""
_LEVEL = 3
_NAMED = 5
"""Rows that differ, named for each table."""
_NOT_COMPARED = {"readings": ("snapshot",), "projects": ("path", "slug", "how_known", "proven", "git_remote")}
"""What has more than one right form, or is known from elsewhere and may change."""

UNPACKING = (
    DamagedArchiveError,
    zstandard.ZstdError,
    sqlite3.DatabaseError,
    TypeError,
    ValueError,
    LookupError,
    MemoryError,
)
"""What goes wrong with a segment that is damaged, or that leans on nothing."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is not as it should be."""

    code: str
    message: str
    machine: str | None = None
    file: str | None = None
    version: int | None = None
    start: int | None = None
    end: int | None = None
    source: str | None = None
    """Where the same bytes are to be had."""
    is_repaired: bool = False


@dataclass(slots=True)
class Report:
    """What was looked at, and what was found."""

    n_segments: int = 0
    n_bytes: int = 0
    damage: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is no damage, but left something out."""

    @property
    def is_sound(self) -> bool:
        """Whether everything is as it should be, by now."""
        return all(one.is_repaired for one in self.damage)

    @property
    def bytes_are_sound(self) -> bool:
        """Whether every byte that was kept can be read, so that facts can be derived from them."""
        return all(one.is_repaired or one.code == "facts" for one in self.damage)


class Segment(NamedTuple):
    """A stretch of a version, and whose it is."""

    id: int
    version_id: int
    number: int
    start: int
    length: int
    sha256: bytes
    base_id: int | None
    depth: int
    machine: str
    home: str
    path: str


@dataclass(frozen=True, slots=True)
class _Version:
    id: int
    number: int
    kept: int
    head: bytes
    tail: bytes
    is_current: bool
    machine: str
    home: str
    path: str


def verify(
    archive: Archive,
    homes: Sequence[Home] = (),
    *,
    repair: bool = False,
    progress: Progress = lambda _done, _all: None,
) -> Report:
    """Look at everything that was kept; with `repair`, put back what can be had elsewhere."""
    report = Report()
    roots = [str(home.root) for home in homes]
    with _one_moment(archive.database, is_wanted=not repair):
        _check_file(archive.database, report)
        try:
            _check_references(archive.database, report)
            _check_segments(archive.database, roots, report, progress, repair=repair)
            _check_ranges(archive.database, roots, report, repair=repair)
            _check_facts(archive, report)
        except sqlite3.DatabaseError as error:
            report.damage.append(Damage("sqlite", f"nothing more can be read: {error}"))
    return report


def verify_deeply(
    archive: Archive,
    report: Report,
    *,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
) -> None:
    """Build all facts once more beside the archive, and compare them table by table with what is there."""
    if not report.is_sound:
        report.notes.append("The facts were not compared with new ones: first the damage has to be repaired.")
        return
    if not facts.are_current(archive.database):
        return  # there is a note already
    with tempfile.TemporaryDirectory(prefix="pollux-") as folder:
        before = _data_version(archive.database)
        new = _attached(archive, Path(folder, "facts.db"))
        try:
            facts.reset(new)
            beside = Archive(new, archive.path, is_writable=True)
            rederive(beside, memory=memory, progress=progress)
            found = [one for table in facts.TABLES for one in _differences(archive.database, new, table)]
        finally:
            new.close()
    if found and _data_version(archive.database) != before:
        report.notes.append("The archive grew while its facts were compared; do it again when nobody writes to it.")
    else:
        report.damage += found


def rebuild(
    archive: Archive,
    *,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
) -> None:
    """Throw the facts away and derive them anew; what is stopped in between is gone on with by the next refresh."""
    with transaction(archive.database):
        facts.reset(archive.database)
    rederive(archive, memory=memory, progress=progress)


def rederive(
    archive: Archive,
    *,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
) -> None:
    """Bring the facts up to date with bytes that did not come from a refresh."""
    derive(archive, reader_of(archive.database, memory), Refreshed(locate(())), progress)


def segment(database: sqlite3.Connection, segment_id: int) -> Segment:
    """Look a segment up; whose it is stays open where the reference dangles."""
    return Segment(
        *database.execute(
            """
            SELECT segments.id, segments.version_id, coalesce(number, 0), start, length, sha256, base_id, depth,
                coalesce(machine, ''), coalesce(home, ''), coalesce(path, '')
            FROM segments LEFT JOIN versions ON versions.id = segments.version_id
            LEFT JOIN files ON files.id = file_id
            WHERE segments.id = ?
            """,
            (segment_id,),
        ).fetchone()
    )


def fault(database: sqlite3.Connection, one: Segment) -> str | None:
    """Say what is wrong with a segment, if anything is."""
    try:
        if one.base_id is not None and not _leans_well(database, one):
            return "what they lean on is missing"
        stored = database.execute("SELECT data FROM segments WHERE id = ?", (one.id,)).fetchone()[0]
        if zstandard.frame_content_size(stored) > one.length:
            return "they cannot be unpacked"
        data = raw.content(database, one.id)
    except UNPACKING:
        return "they cannot be unpacked"
    if len(data) != one.length or hashlib.sha256(data).digest() != one.sha256:
        return "they are not what their hash says"
    return None


def packed(data: bytes) -> bytes:
    """Compress bytes that lean on nothing."""
    return zstandard.ZstdCompressor(_LEVEL).compress(data)


@contextmanager
def _one_moment(database: sqlite3.Connection, *, is_wanted: bool) -> Iterator[None]:
    """See the archive as it is now, whatever somebody else writes meanwhile."""
    if is_wanted:
        database.execute("BEGIN")
    try:
        yield
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


def _check_file(database: sqlite3.Connection, report: Report) -> None:
    try:
        rows = [row[0] for row in database.execute("PRAGMA integrity_check(20)")]
    except sqlite3.DatabaseError as error:
        rows = [str(error)]
    found = [line for row in rows if row != "ok" for line in row.split("\n")]
    report.damage += [Damage("sqlite", f"SQLite: {line}") for line in found]


_REFERENCES = {
    "versions belong to a file that is missing": "versions WHERE file_id NOT IN (SELECT id FROM files)",
    "segments belong to a version that is missing": "segments WHERE version_id NOT IN (SELECT id FROM versions)",
    "files name a version that is missing": (
        "files WHERE version_id IS NOT NULL "
        "AND version_id NOT IN (SELECT id FROM versions WHERE versions.file_id = files.id)"
    ),
    "forgotten files still have bytes": (
        "files WHERE forgotten_us IS NOT NULL AND id IN (SELECT file_id FROM versions WHERE kept > 0)"
    ),
}


def _check_references(database: sqlite3.Connection, report: Report) -> None:
    for words, condition in _REFERENCES.items():
        ids = [str(row[0]) for row in database.execute(f"SELECT id FROM {condition} ORDER BY id")]  # noqa: S608
        if ids:
            shown = ", ".join(ids[:_NAMED]) + (" …" if len(ids) > _NAMED else "")
            report.damage.append(Damage("dangling", f"{len(ids)} {words} (rows {shown})"))


def _check_segments(
    database: sqlite3.Connection, roots: Sequence[str], report: Report, progress: Progress, *, repair: bool
) -> None:
    """Unpack every segment; what others lean on comes first, so that its repair is theirs too."""
    ids = [row[0] for row in database.execute("SELECT id FROM segments ORDER BY depth, id")]
    n_bytes = database.execute("SELECT coalesce(sum(length), 0) FROM segments").fetchone()[0]
    damaged: set[int] = set()
    for segment_id in ids:
        try:
            one = segment(database, segment_id)
        except sqlite3.DatabaseError as error:
            report.damage.append(Damage("bytes", f"segment {segment_id} cannot be read: {error}"))
            continue
        report.n_segments += 1
        report.n_bytes += one.length
        wrong = "what they lean on is damaged" if one.base_id in damaged else fault(database, one)
        if wrong:
            found = _mended(database, one, wrong, roots, repair=repair)
            report.damage.append(found)
            if not found.is_repaired:
                damaged.add(one.id)
        progress(report.n_bytes, n_bytes)


def _leans_well(database: sqlite3.Connection, one: Segment) -> bool:
    """Tell whether what a segment leans on is there, and does not lean on the segment itself."""
    base = database.execute("SELECT depth FROM segments WHERE id = ?", (one.base_id,)).fetchone()
    return base is not None and base[0] < one.depth <= _DEEPEST


def _mended(database: sqlite3.Connection, one: Segment, wrong: str, roots: Sequence[str], *, repair: bool) -> Damage:
    damage = _damage("bytes", wrong, one, one.number, one.start, one.start + one.length)
    for name, read in _elsewhere(database, one, one.version_id, roots, digest=one.sha256):
        data = _tried(read, one.start, one.start + one.length)
        if data is None or hashlib.sha256(data).digest() != one.sha256:
            continue
        if repair:
            with transaction(database):
                database.execute(
                    "UPDATE segments SET data = ?, base_id = NULL, depth = 0 WHERE id = ?", (packed(data), one.id)
                )
        return replace(damage, source=name, is_repaired=repair)
    return damage


_Read = Callable[[int, int], bytes]


def _elsewhere(
    database: sqlite3.Connection,
    lost: Segment | _Version,
    version_id: int,
    roots: Sequence[str],
    *,
    digest: bytes | None = None,
) -> Iterator[tuple[str, _Read]]:
    """Name everything that may have the same bytes: the file itself, its copies, other versions."""
    here = [place_of(lost.home, lost.path)] if lost.machine == platform.node() else []
    for place in dict.fromkeys([*here, *(place_of(root, lost.path) for root in roots)]):
        yield str(place), _from_disk(place)
    if digest is not None:
        rows = database.execute("SELECT id, start FROM segments WHERE sha256 = ? AND id <> ?", (digest, lost.id))
        for segment_id, start in rows.fetchall():
            twin = segment(database, segment_id)
            name = f"version {twin.number} of {place_of(twin.home, twin.path)}, bytes {start}–{start + twin.length}"
            yield name, lambda _start, _end, found=segment_id: raw.content(database, found)  # type: ignore[misc]
    rows = database.execute(
        "SELECT versions.id, number, machine, home, path FROM versions JOIN files ON files.id = file_id "
        "WHERE (path = ? OR path LIKE ?) AND versions.id <> ? ORDER BY number DESC",
        (lost.path, f"%/{lost.path.rpartition('/')[2]}", version_id),
    )
    for other_id, number, machine, home, path in rows.fetchall():
        place = place_of(home, path)
        if machine == platform.node():
            yield str(place), _from_disk(place)
        yield f"version {number} of {place}", raw.reader(database, other_id)


def _from_disk(place: Path) -> _Read:
    def read(start: int, end: int) -> bytes:
        with place.open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    return read


def _tried(read: _Read, start: int, end: int) -> bytes | None:
    try:
        return read(start, end)
    except (OSError, *UNPACKING):
        return None


def _check_ranges(database: sqlite3.Connection, roots: Sequence[str], report: Report, *, repair: bool) -> None:
    """See that the segments of each version stand side by side, from its first byte to its last."""
    rows = database.execute(
        "SELECT versions.id, number, kept, head, tail, versions.id IS files.version_id, machine, home, path "
        "FROM versions JOIN files ON files.id = file_id ORDER BY versions.id"
    )
    for row in rows.fetchall():
        version = _Version(*row)
        position = 0
        segments = database.execute(
            "SELECT start, length FROM segments WHERE version_id = ? ORDER BY start", (version.id,)
        ).fetchall()
        for start, length in segments:
            if start > position:
                report.damage.append(_filled(database, version, position, start, roots, repair=repair))
            elif start < position:
                end = min(position, start + length)
                report.damage.append(_damage("overlap", "they are there twice", version, version.number, start, end))
            position = max(position, start + length)
        if position < version.kept:
            report.damage.append(_filled(database, version, position, version.kept, roots, repair=repair))
        elif position > version.kept:
            words = f"they are there, but only {version.kept} were noted"
            report.damage.append(_damage("length", words, version, version.number, version.kept, position))


def _filled(
    database: sqlite3.Connection, version: _Version, start: int, end: int, roots: Sequence[str], *, repair: bool
) -> Damage:
    """Fill a gap. Its own hash is lost with it: only the hashes of the beginning and the end of a version prove it."""
    damage = _damage("gap", "they are missing", version, version.number, start, end)
    for name, read in _elsewhere(database, version, version.id, roots):
        if data := _proven(version, read, start, end):
            if repair:
                with transaction(database):
                    database.execute(
                        "INSERT INTO segments (version_id, start, length, sha256, base_id, depth, data) "
                        "VALUES (?, ?, ?, ?, NULL, 0, ?)",
                        (version.id, start, end - start, hashlib.sha256(data).digest(), packed(data)),
                    )
            return replace(damage, source=name, is_repaired=repair)
    place = place_of(version.home, version.path)
    if version.is_current and version.machine == platform.node() and place.is_file():
        if repair:
            _take_anew(database, version.id)
        return replace(damage, source=f"{place}, which cannot be proven to be the same; taken in as a new version")
    return damage


def _proven(version: _Version, read: _Read, start: int, end: int) -> bytes | None:
    for first, last, digest in (
        (0, min(_PROBE, version.kept), version.head),
        (max(0, version.kept - _PROBE), version.kept, version.tail),
    ):
        if first <= start and end <= last:
            data = _tried(read, first, last)
            if data is not None and len(data) == last - first and hashlib.sha256(data).digest() == digest:
                return data[start - first : end - first]
    return None


def _take_anew(database: sqlite3.Connection, version_id: int) -> None:
    """Make the next refresh look at the file again, and see that it is not what was kept."""
    with transaction(database):
        database.execute("UPDATE versions SET head = x'' WHERE id = ?", (version_id,))
        database.execute("UPDATE files SET size = -1 WHERE version_id = ?", (version_id,))
        if facts.are_current(database):
            database.execute("UPDATE readings SET is_superseded = 1 WHERE version_id = ?", (version_id,))


def _damage(code: str, words: str, whose: Segment | _Version, number: int, start: int, end: int) -> Damage:
    place = str(place_of(whose.home, whose.path)) if whose.path else "a file that is missing"
    message = f"bytes {start}–{end} of version {number}: {words}"
    return Damage(code, message, whose.machine or None, place, number, start, end)


def _check_facts(archive: Archive, report: Report) -> None:
    """Hold the facts against the bytes, as far as counting tells."""
    database = archive.database
    if not facts.are_current(database):
        report.notes.append("The facts were made by another version of Pollux; the next `pollux sync` makes them anew.")
        return
    behind = [*_behind(database)]
    if behind and is_written(archive):
        report.notes.append(f"{len(behind)} files are just being read by {WriterLock(archive.path).owner()}.")
        behind = []
    report.damage += behind
    for table in facts.TABLES:
        names = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        for column in names & {"file_version_id", "version_id"}:
            report.damage += _strays(database, table, column, "versions", "id", "version")
        if "session_id" in names and table != "sessions":
            report.damage += _strays(database, table, "session_id", "sessions", "session_id", "session")
    report.damage += _miscounted(database)


def is_written(archive: Archive) -> bool:
    """Tell whether somebody else is writing to an archive; whoever does has put their name into the lock."""
    lock = WriterLock(archive.path)
    try:
        if archive.is_writable or not lock.path.stat().st_size:
            return False
        is_free = lock.take()
    except OSError:
        return False
    if is_free:
        lock.release()
    return not is_free


def _behind(database: sqlite3.Connection) -> Iterator[Damage]:
    rows = database.execute(
        """
        SELECT machine, home, path, number, versions.kept, readings.kept
        FROM files JOIN versions ON versions.id = files.version_id
        LEFT JOIN readings ON readings.version_id = versions.id
        WHERE path LIKE 'tmp/%/chats/%.json%' AND forgotten_us IS NULL AND readings.kept IS NOT versions.kept
        ORDER BY home, path
        """
    )
    for machine, home, path, number, kept, read in rows:
        if _is_session(path):
            words = f"the facts know {read or 0} of {kept} bytes of version {number}"
            yield Damage("facts", words, machine, str(place_of(home, path)), number, read or 0, kept)


def _is_session(path: str) -> bool:
    _, _, _, *rest = path.split("/")
    return path.endswith((".json", ".jsonl")) and (
        len(rest) == 2 or (len(rest) == 1 and rest[0].startswith("session-"))  # noqa: PLR2004  a subagent below its parent
    )


def _strays(database: sqlite3.Connection, table: str, column: str, other: str, key: str, noun: str) -> Iterator[Damage]:
    rows = database.execute(
        f"SELECT {column}, count(*) FROM {table} WHERE {column} NOT IN (SELECT {key} FROM {other}) "  # noqa: S608
        f"GROUP BY {column}"
    )
    for one, number in rows:
        yield Damage("facts", f"{number} rows of {table} belong to {noun} {one}, which is missing")


_COUNTED = ("tool_calls", "messages", "session_files")


def _miscounted(database: sqlite3.Connection) -> Iterator[Damage]:
    """Compare what a session says of itself with the rows it has."""
    counts = {
        table: dict(database.execute(f"SELECT session_id, count(*) FROM {table} GROUP BY session_id").fetchall())  # noqa: S608
        for table in _COUNTED
    }
    for session_id, body in database.execute("SELECT session_id, body FROM sessions ORDER BY session_id"):
        said = _decoded(body)
        expected = {
            "tool_calls": said.get("tool_calls", 0),
            "messages": sum(said.get("fates", {}).values()),
            "session_files": len(said.get("files", ())),
        }
        for table, number in expected.items():
            there = counts[table].get(session_id, 0)
            if there != number:
                yield Damage("facts", f"session {session_id} has {there} of {number} rows of {table}")
    yield from _without_session(database)


def _without_session(database: sqlite3.Connection) -> Iterator[Damage]:
    """Find files that were read and led to nothing, though nobody asked to forget their session."""
    rows = database.execute(
        """
        SELECT machine, home, path, number FROM files JOIN versions ON versions.id = files.version_id
        JOIN readings ON readings.version_id = versions.id
        WHERE forgotten_us IS NULL AND is_superseded = 0
            AND versions.id NOT IN (SELECT file_version_id FROM session_files)
        ORDER BY home, path
        """
    ).fetchall()
    forgotten = [row[0] for row in database.execute("SELECT session_id FROM tombstones")]
    for machine, home, path, number in rows:
        if not any(one[:8] in path for one in forgotten):
            yield Damage("facts", "no session is known of this file", machine, str(place_of(home, path)), number)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.msgpack.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _data_version(database: sqlite3.Connection) -> int:
    found = database.execute("PRAGMA data_version").fetchone()[0]
    assert isinstance(found, int)
    return found


def _attached(archive: Archive, place: Path) -> sqlite3.Connection:
    """Make a database for new facts that sees the bytes of an archive and cannot change them."""
    database = sqlite3.connect(f"{place.as_uri()}", uri=True, isolation_level=None)
    try:
        database.execute("ATTACH ? AS kept", (f"{archive.path.resolve().as_uri()}?mode=ro",))
        database.execute("SELECT count(*) FROM kept.files")
    except sqlite3.OperationalError:
        with suppress(sqlite3.OperationalError):
            database.execute("DETACH kept")
        database.execute("ATTACH ? AS kept", (f"{archive.path.resolve().as_uri()}?mode=ro&immutable=1",))
    database.execute("CREATE TABLE main.facts_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    for table in facts.TABLES:  # so that no name means the archive's own
        database.execute(f"CREATE TABLE main.{table} (placeholder)")
    return database


def _differences(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> Iterator[Damage]:
    """Name the first rows of a table that are not as a rebuild makes them."""
    columns = [row[1] for row in old.execute(f"PRAGMA table_info({table})")]
    keys = [row[0] for row in old.execute(f"PRAGMA table_info({table})") if row[5]]
    n_found = 0
    for key, there, rebuilt in _side_by_side(facts.rows(old, table), facts.rows(new, table), keys):
        if there is not None and rebuilt is not None:
            pairs = zip(_comparable(table, columns, there), _comparable(table, columns, rebuilt), strict=True)
            which = [name for name, (one, other) in zip(columns, pairs, strict=True) if one != other]
            words = f"differs from a rebuild in {', '.join(which)}" if which else ""
        else:
            words = "is in no rebuild" if rebuilt is None else "is missing"
        n_found += bool(words)
        if words and n_found <= _NAMED:
            yield Damage("facts", f"{table} {' '.join(map(str, key))}: {words}")
    if n_found > _NAMED:
        yield Damage("facts", f"{table}: {n_found - _NAMED} more rows are not as a rebuild makes them")


_Row = tuple[Any, ...]


def _side_by_side(
    old: Iterator[_Row], new: Iterator[_Row], keys: Sequence[int]
) -> Iterator[tuple[_Row, _Row | None, _Row | None]]:
    def key(row: _Row) -> _Row:
        return tuple(row[place] for place in keys)

    one, other = next(old, None), next(new, None)
    while one is not None or other is not None:
        if other is None or (one is not None and key(one) < key(other)):
            assert one is not None
            yield key(one), one, None
            one = next(old, None)
        elif one is None or key(other) < key(one):
            yield key(other), None, other
            other = next(new, None)
        else:
            yield key(one), one, other
            one, other = next(old, None), next(new, None)


def _comparable(table: str, columns: Sequence[str], row: _Row) -> _Row:
    """Leave out what the archive does not hold itself, and what has more than one right form."""
    left_out = _NOT_COMPARED.get(table, ())
    return tuple(
        None if name in left_out else _without_project(value) if (table, name) == ("sessions", "body") else value
        for name, value in zip(columns, row, strict=True)
    )


def _without_project(body: bytes) -> dict[str, Any]:
    return {key: value for key, value in _decoded(body).items() if key != "project"}
