"""Check an archive: every byte against its SHA-256, every reference, the rows of each session against their digest.

Damage is named to the byte, with the place that still has the same bytes. Whether the facts follow from the bytes is
another check, which derives all of them once more (`compare`).
"""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from pollux.archive import dependents, raw, row_digests, schema
from pollux.archive.damage import Damage, VerifyReport, damage_of
from pollux.archive.ingest import derive
from pollux.archive.inventory import place_of
from pollux.archive.lock import ForeignLockError, WriterLock
from pollux.archive.migrations import transaction
from pollux.archive.refresh import Refreshed
from pollux.archive.repair import filled, mended, take_anew
from pollux.archive.segments import Version, fault, segment
from pollux.archive.store import Archive
from pollux.sessions.locate import Home, locate
from pollux.sessions.reader import Progress

NAMED = 5
"""Rows that are named of each table."""
PROVEN_BY_BYTES = "the facts (sessions, messages, calls) with the bytes they are derived from"
_NEVER_COMPARED = "prices and project paths, which are looked up elsewhere"


def verify(
    archive: Archive,
    homes: Sequence[Home] = (),
    *,
    repair: bool = False,
    progress: Progress = lambda _done, _all: None,
) -> VerifyReport:
    """Check all that is archived; with `repair`, put back what can be had elsewhere."""
    report = VerifyReport(not_compared=[PROVEN_BY_BYTES, _NEVER_COMPARED])
    roots = [str(home.root) for home in homes]
    with _one_moment(archive.database, is_wanted=not repair):
        _check_file(archive.database, report)
        try:
            _check_types(archive.database, report)
            _check_references(archive.database, report)
            _check_segments(archive.database, roots, report, progress, repair=repair)
            _check_ranges(archive.database, roots, report, repair=repair)
            _check_disk(archive.database, report, repair=repair)
            _check_facts(archive, report)
        except sqlite3.DatabaseError as error:
            report.damage.append(Damage("sqlite", f"nothing more can be read: {error}"))
    return report


def damage_of_rows(archive: Archive) -> Damage | None:
    """Return the first damage of the rows, if there is any; unpacks no bytes of files."""
    report = VerifyReport()
    try:
        _check_types(archive.database, report)
        _check_references(archive.database, report)
        _check_facts(archive, report)
    except sqlite3.DatabaseError as error:
        return Damage("sqlite", str(error))
    return report.damage[0] if report.damage else None


def rebuild(
    archive: Archive,
    *,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
) -> None:
    """Throw the facts away and derive them anew; what is stopped in between is gone on with by the next refresh."""
    with transaction(archive.database):
        schema.reset(archive.database)
    rederive(archive, memory=memory, progress=progress)


def rederive(
    archive: Archive,
    *,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
) -> None:
    """Bring the facts up to date with bytes that did not come from a refresh."""
    derive(archive, Refreshed(locate(())), memory=memory, progress=progress)


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


def _check_file(database: sqlite3.Connection, report: VerifyReport) -> None:
    try:
        rows = [row[0] for row in database.execute("PRAGMA integrity_check(20)")]
    except sqlite3.DatabaseError as error:
        rows = [str(error)]
    found = [line for row in rows if row != "ok" for line in row.split("\n")]
    report.damage += [Damage("sqlite", f"SQLite: {line}") for line in found]


_RAW_TABLES = ("files", "versions", "segments")
_STORED_AS = {"INTEGER": "integer", "TEXT": "text", "BLOB": "blob"}


def _check_types(database: sqlite3.Connection, report: VerifyReport) -> None:
    """Name the rows that hold a value of another type than their column has: nothing that we write does."""
    for table in _RAW_TABLES:
        report.damage += _mistyped(database, table, "types", "id")
    if schema.are_current(database):
        for table in schema.TABLES:
            report.damage += _mistyped(database, table, "facts", None)


def _mistyped(database: sqlite3.Connection, table: str, code: str, key: str | None) -> Iterator[Damage]:
    wrong = _wrong_types(database, table)
    rows = database.execute(f"SELECT {key or 'NULL'} FROM {table} WHERE {wrong}").fetchall()  # noqa: S608
    if rows:
        shown = ", ".join(str(row[0]) for row in rows[:NAMED]) + (" …" if len(rows) > NAMED else "")
        words = f"{len(rows)} rows of {table} hold a value of the wrong type"
        yield Damage(code, f"{words} (rows {shown})" if key else words)


def _wrong_types(database: sqlite3.Connection, table: str) -> str:
    """Return the condition that holds for rows with a value of another type than the column has."""
    conditions = []
    for _, name, declared, is_required, _, is_key in database.execute(f"PRAGMA table_info({table})"):
        if (table, name) == ("segments", "data"):
            continue  # whatever it holds cannot be unpacked, and may be had elsewhere
        allowed = [_STORED_AS[declared], *(() if is_required or is_key else ("null",))]
        conditions.append(f"typeof({table}.{name}) NOT IN ({', '.join(map(repr, allowed))})")
    return " OR ".join(conditions)


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


def _check_references(database: sqlite3.Connection, report: VerifyReport) -> None:
    for words, condition in _REFERENCES.items():
        ids = [str(row[0]) for row in database.execute(f"SELECT id FROM {condition} ORDER BY id")]  # noqa: S608
        if ids:
            shown = ", ".join(ids[:NAMED]) + (" …" if len(ids) > NAMED else "")
            report.damage.append(Damage("dangling", f"{len(ids)} {words} (rows {shown})"))


def _check_segments(
    database: sqlite3.Connection, roots: Sequence[str], report: VerifyReport, progress: Progress, *, repair: bool
) -> None:
    """Unpack every segment; what others lean on comes first, so that its repair is theirs too."""
    sound = f"NOT ({_wrong_types(database, 'segments')})"
    ids = [row[0] for row in database.execute(f"SELECT id FROM segments WHERE {sound} ORDER BY depth, id")]  # noqa: S608
    n_bytes = database.execute(f"SELECT coalesce(sum(length), 0) FROM segments WHERE {sound}").fetchone()[0]  # noqa: S608
    damaged: set[int] = set()
    for segment_id in ids:
        try:
            one = segment(database, segment_id)
        except sqlite3.DatabaseError as error:
            report.damage.append(Damage("bytes", f"segment {segment_id} cannot be read: {error}"))
            continue
        report.n_segments += 1
        report.n_bytes += one.length
        wrong = "what they are compressed against is damaged" if one.base_id in damaged else fault(database, one)
        if wrong:
            found = mended(database, one, wrong, roots, repair=repair)
            report.damage.append(found)
            if not found.is_repaired:
                damaged.add(one.id)
        progress(report.n_bytes, n_bytes)


def _check_ranges(database: sqlite3.Connection, roots: Sequence[str], report: VerifyReport, *, repair: bool) -> None:
    """Check that the segments of each version stand side by side, from its first byte to its last."""
    rows = database.execute(
        f"""
        SELECT versions.id, number, kept, head, tail, versions.id IS files.version_id, machine, home, path
        FROM versions JOIN files ON files.id = file_id
        WHERE NOT ({_wrong_types(database, "versions")}) AND NOT ({_wrong_types(database, "files")})
        ORDER BY versions.id
        """  # noqa: S608  names of our own
    )
    of_version = f"version_id = ? AND NOT ({_wrong_types(database, 'segments')})"
    for row in rows.fetchall():
        version = Version(*row)
        position = 0
        segments = database.execute(
            f"SELECT start, length FROM segments WHERE {of_version} ORDER BY start",  # noqa: S608
            (version.id,),
        ).fetchall()
        for start, length in segments:
            if start > position:
                report.damage.append(filled(database, version, position, start, roots, repair=repair))
            elif start < position:
                end = min(position, start + length)
                report.damage.append(damage_of("overlap", "they are there twice", version, version.number, start, end))
            position = max(position, start + length)
        if position < version.kept:
            report.damage.append(filled(database, version, position, version.kept, roots, repair=repair))
        elif position > version.kept:
            words = f"they are there, but only {version.kept} were noted"
            report.damage.append(damage_of("length", words, version, version.number, version.kept, position))


def _check_disk(database: sqlite3.Connection, report: VerifyReport, *, repair: bool) -> None:
    """Compare large files on the disk with what is archived of them: a refresh compares only some segments each time.

    A file whose status is not the one that was noted has changed since, which is for the next refresh to see.
    """
    if not any(row[1] == "ctime_ns" for row in database.execute("PRAGMA table_info(files)")):
        return  # last written by an older Pollux
    rows = database.execute(
        f"""
        SELECT version_id, number, home, path, size, files.mtime_ns, inode, ctime_ns
        FROM files JOIN versions ON versions.id = version_id
        WHERE machine = ? AND gone_us IS NULL AND kept > ?
            AND NOT ({_wrong_types(database, "versions")}) AND NOT ({_wrong_types(database, "files")})
        """,  # noqa: S608  names of our own
        (platform.node(), raw.COMPARED_WHOLE),
    )
    for version_id, number, home, path, *noted in rows.fetchall():
        place = place_of(home, path)
        try:
            status = place.stat()
            now = [status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns]
            if now != noted or not raw.differs_from_disk(database, version_id, str(place)):
                continue
        except OSError:
            continue  # gone or out of reach: what is archived of it is checked all the same
        if repair:
            take_anew(database, version_id)
        words = f"the file was edited inside the bytes that are archived as version {number}"
        source = f"{place}; taken in as a new version"
        report.damage.append(Damage("edited", words, platform.node(), str(place), number, source=source))


def _check_facts(archive: Archive, report: VerifyReport) -> None:
    """Check that the facts belong together, and that the rows of each session are those that were written."""
    database = archive.database
    if not schema.are_current(database):
        report.notes.append("The facts were made by another version of Pollux; the next `pollux sync` makes them anew.")
        return
    if n_behind := _n_behind(database):
        files = "1 file is" if n_behind == 1 else f"{n_behind} files are"
        is_now = is_written(archive)
        who = f"just being read by {WriterLock(archive.path).owner()}" if is_now else "kept and not read yet"
        report.notes.append(f"{files} {who}{'.' if is_now else '; the next `pollux sync` does it.'}")
    for table in schema.TABLES:
        names = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        for column in names & {"file_version_id", "version_id"}:
            report.damage += _strays(database, table, column, "versions", "id", "version")
        if "session_id" in names and table != "sessions":
            report.damage += _strays(database, table, "session_id", "sessions", "session_id", "session")
    report.damage += _miscounted(database)
    report.damage += _altered(database)


def is_written(archive: Archive) -> bool:
    """Tell whether somebody else is writing to an archive; whoever does has put their name into the lock."""
    lock = WriterLock(archive.path)
    try:
        if archive.is_writable or not lock.path.stat().st_size:
            return False
        is_free = lock.take()
    except (OSError, ForeignLockError):  # no lock can be there, or something else is: nobody has it
        return False
    if is_free:
        lock.release()
    return not is_free


def _n_behind(database: sqlite3.Connection) -> int:
    """Count the files that were kept before somebody was stopped, and are not read yet."""
    rows = database.execute(f"SELECT DISTINCT CAST(files.path AS TEXT) {schema.UNREAD}")
    return sum(_is_session(path) for (path,) in rows)


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


def _altered(database: sqlite3.Connection) -> Iterator[Damage]:
    """Name the first sessions whose rows somebody has changed."""
    altered = [*row_digests.altered(database), *dependents.sessions_with_wrong_sums(database)]
    sessions = list(dict.fromkeys(altered))
    for session_id in sessions[:NAMED]:
        yield Damage("facts", f"the rows of session {session_id} are not those that were derived")
    if len(sessions) > NAMED:
        yield Damage("facts", f"so are those of {len(sessions) - NAMED} more sessions")


_COUNTED = ("tool_calls", "messages", "session_files")


class _Counts(msgspec.Struct, frozen=True):
    """What the row of a session says of its other rows."""

    tool_calls: int = 0
    fates: dict[str, int] = {}
    files: tuple[msgspec.Raw, ...] = ()


_decode_counts = msgspec.msgpack.Decoder(_Counts).decode


def _miscounted(database: sqlite3.Connection) -> Iterator[Damage]:
    """Compare what a session says of itself with the rows it has."""
    counts = {
        table: dict(database.execute(f"SELECT session_id, count(*) FROM {table} GROUP BY session_id").fetchall())  # noqa: S608
        for table in _COUNTED
    }
    for session_id, body in database.execute("SELECT session_id, body FROM sessions ORDER BY session_id"):
        try:
            session = _decode_counts(body)
        except (ValueError, TypeError):
            yield Damage("facts", f"the row of session {session_id} cannot be read")
            continue
        expected = {
            "tool_calls": session.tool_calls,
            "messages": sum(session.fates.values()),
            "session_files": len(session.files),
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
        SELECT machine, CAST(home AS TEXT), CAST(path AS TEXT), number
        FROM files JOIN versions ON versions.id = files.version_id JOIN readings ON readings.version_id = versions.id
        WHERE forgotten_us IS NULL AND is_superseded = 0
            AND versions.id NOT IN (SELECT file_version_id FROM session_files)
        ORDER BY home, path
        """
    ).fetchall()
    forgotten = [str(row[0]) for row in database.execute("SELECT session_id FROM tombstones")]
    for machine, home, path, number in rows:
        if not any(one[:8] in path for one in forgotten):
            yield Damage("facts", "no session is known of this file", machine, str(place_of(home, path)), number)
