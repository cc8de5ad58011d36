"""Check an archive: every byte against its SHA-256, every reference, the rows of each session against their digest.

Damage is reported as a range of bytes, with the place where the same bytes still exist. `verify_facts` checks whether
the facts follow from the bytes, by deriving all of them again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext

import msgspec

from pollux.archive import dependents, raw, row_digests, schema
from pollux.archive.damage import (
    Damage,
    StoredVersion,
    VerifyReport,
    archive_again,
    damage_of,
    repair_gap,
    repair_segment,
    segment_fault,
    stored_segment,
)
from pollux.archive.ingest import derive_pending
from pollux.archive.inventory import original_path
from pollux.archive.lock import ForeignLockError, WriterLock
from pollux.archive.migrations import transaction
from pollux.archive.refresh import RefreshResult
from pollux.archive.store import Archive, read_transaction
from pollux.sessions.locate import Home, locate
from pollux.sessions.reader import Progress

MAX_NAMED = 5
"""Number of damaged rows of a table that the report names."""
PROVEN_BY_BYTES = "the facts (sessions, messages, calls) with the bytes they are derived from"
_NEVER_COMPARED = "prices and project paths, which are looked up elsewhere"


def verify(
    archive: Archive, homes: Sequence[Home] = (), *, repair: bool = False, progress: Progress = lambda _done, _all: None
) -> VerifyReport:
    """Check all archived bytes and rows; with `repair`, restore bytes that still exist elsewhere."""
    report = VerifyReport(not_compared=[PROVEN_BY_BYTES, _NEVER_COMPARED])
    roots = [str(home.root) for home in homes]
    with nullcontext() if repair else read_transaction(archive.database):
        _check_file(archive.database, report)
        try:
            _check_types(archive.database, report)
            _check_references(archive.database, report)
            _check_segments(archive, roots, report, progress, repair=repair)
            _check_ranges(archive, roots, report, repair=repair)
            _check_disk(archive, report, repair=repair)
            _check_facts(archive, report)
        except sqlite3.DatabaseError as error:
            report.damage.append(Damage("sqlite", f"the rest cannot be read: {error}"))
    return report


def damage_of_rows(archive: Archive) -> Damage | None:
    """Return the first damaged row, or None; archived bytes are not checked."""
    report = VerifyReport()
    try:
        _check_types(archive.database, report)
        _check_references(archive.database, report)
        _check_facts(archive, report)
    except sqlite3.DatabaseError as error:
        return Damage("sqlite", str(error))
    return report.damage[0] if report.damage else None


def rebuild(archive: Archive, *, memory: Mapping[str, str], progress: Progress = lambda _done, _all: None) -> None:
    """Drop the facts and derive them again; the next refresh continues an interrupted rebuild."""
    with transaction(archive.database):
        schema.reset(archive.database)
    rederive(archive, memory=memory, progress=progress)


def rederive(archive: Archive, *, memory: Mapping[str, str], progress: Progress = lambda _done, _all: None) -> None:
    """Derive facts from bytes that were archived without a refresh."""
    derive_pending(archive, RefreshResult(locate(())), memory=memory, progress=progress)


def _check_file(database: sqlite3.Connection, report: VerifyReport) -> None:
    try:
        rows = [row[0] for row in database.execute("PRAGMA integrity_check(20)")]
    except sqlite3.DatabaseError as error:
        rows = [str(error)]
    for row in rows:
        if row != "ok":
            report.damage += [Damage("sqlite", f"SQLite: {line}") for line in row.split("\n")]


_RAW_TABLES = ("files", "versions", "segments")
_STORED_AS = {"INTEGER": "integer", "TEXT": "text", "BLOB": "blob"}


def _check_types(database: sqlite3.Connection, report: VerifyReport) -> None:
    """Report rows with a value of another type than their column; Pollux never writes such rows."""
    for table in _RAW_TABLES:
        report.damage += _mistyped(database, table, "types", "id")
    if schema.are_current(database):
        for table in schema.TABLES:
            report.damage += _mistyped(database, table, "facts", None)


def _mistyped(database: sqlite3.Connection, table: str, code: str, key: str | None) -> Iterator[Damage]:
    wrong = _wrong_types(database, table)
    rows = database.execute(f"SELECT {key or 'NULL'} FROM {table} WHERE {wrong}").fetchall()  # noqa: S608
    if rows:
        message = f"{len(rows)} rows of {table} hold a value of the wrong type"
        yield Damage(code, f"{message} ({_row_list(rows)})" if key else message)


def _row_list(rows: Sequence[tuple[object, ...]]) -> str:
    return f"rows {', '.join(str(row[0]) for row in rows[:MAX_NAMED])}{' …' if len(rows) > MAX_NAMED else ''}"


def _wrong_types(database: sqlite3.Connection, table: str) -> str:
    """Return the SQL condition for rows with a value of another type than their column."""
    conditions = []
    for _, name, declared, is_required, _, is_key in database.execute(f"PRAGMA table_info({table})"):
        if (table, name) == ("segments", "data"):
            continue  # reported as damaged bytes, which can be repaired
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
        "files WHERE forgotten_us IS NOT NULL AND id IN (SELECT file_id FROM versions WHERE archived_bytes > 0)"
    ),
}


def _check_references(database: sqlite3.Connection, report: VerifyReport) -> None:
    for message, condition in _REFERENCES.items():
        rows = database.execute(f"SELECT id FROM {condition} ORDER BY id").fetchall()  # noqa: S608  ours
        if rows:
            report.damage.append(Damage("dangling", f"{len(rows)} {message} ({_row_list(rows)})"))


def _check_segments(
    archive: Archive, roots: Sequence[str], report: VerifyReport, progress: Progress, *, repair: bool
) -> None:
    """Decompress every segment, base segments first, so that repairing one also repairs those that depend on it."""
    database = archive.database
    is_valid = f"NOT ({_wrong_types(database, 'segments')})"
    ids = [row[0] for row in database.execute(f"SELECT id FROM segments WHERE {is_valid} ORDER BY depth, id")]  # noqa: S608
    n_bytes = database.execute(f"SELECT coalesce(sum(length), 0) FROM segments WHERE {is_valid}").fetchone()[0]  # noqa: S608
    damaged: set[int] = set()
    for segment_id in ids:
        try:
            segment = stored_segment(database, segment_id)
        except sqlite3.DatabaseError as error:
            report.damage.append(Damage("bytes", f"segment {segment_id} cannot be read: {error}"))
            continue
        report.n_segments += 1
        report.n_bytes += segment.length
        if segment.base_id in damaged:
            fault: str | None = "what they are compressed against is damaged"
        else:
            fault = segment_fault(database, segment)
        if fault:
            damage = repair_segment(archive, segment, fault, roots, repair=repair)
            report.damage.append(damage)
            if not damage.is_repaired:
                damaged.add(segment.id)
        progress(report.n_bytes, n_bytes)


def _check_ranges(archive: Archive, roots: Sequence[str], report: VerifyReport, *, repair: bool) -> None:
    """Check that the segments of each version cover it without gap or overlap."""
    database = archive.database
    rows = database.execute(
        f"""
        SELECT versions.id, number, archived_bytes, head, tail, versions.id IS files.version_id, machine, home, path
        FROM versions JOIN files ON files.id = file_id
        WHERE NOT ({_wrong_types(database, "versions")}) AND NOT ({_wrong_types(database, "files")})
        ORDER BY versions.id
        """  # noqa: S608  names of our own
    )
    of_version = f"version_id = ? AND NOT ({_wrong_types(database, 'segments')})"
    for row in rows.fetchall():
        version = StoredVersion(*row)
        position = 0
        segments = database.execute(
            f"SELECT start, length FROM segments WHERE {of_version} ORDER BY start",  # noqa: S608
            (version.id,),
        ).fetchall()
        for start, length in segments:
            if start > position:
                report.damage.append(repair_gap(archive, version, position, start, roots, repair=repair))
            elif start < position:
                end = min(position, start + length)
                report.damage.append(damage_of("overlap", "they are stored twice", version, version.number, start, end))
            position = max(position, start + length)
        if position < version.length:
            report.damage.append(repair_gap(archive, version, position, version.length, roots, repair=repair))
        elif position > version.length:
            fault = f"they are stored, but the version has only {version.length} bytes"
            report.damage.append(damage_of("length", fault, version, version.number, version.length, position))


def _check_disk(archive: Archive, report: VerifyReport, *, repair: bool) -> None:
    """Compare large files on disk with their archived bytes, since a refresh compares only some segments each time.

    Files whose status has changed since the last refresh are left to the next refresh.
    """
    database = archive.database
    if not any(row[1] == "ctime_ns" for row in database.execute("PRAGMA table_info(files)")):
        return  # last written by an older Pollux
    rows = database.execute(
        f"""
        SELECT version_id, number, home, path, size, files.mtime_ns, inode, ctime_ns
        FROM files JOIN versions ON versions.id = version_id
        WHERE machine = ? AND deleted_us IS NULL AND archived_bytes > ?
            AND NOT ({_wrong_types(database, "versions")}) AND NOT ({_wrong_types(database, "files")})
        """,  # noqa: S608  names of our own
        (archive.machine, raw.COMPARED_WHOLE),
    )
    for version_id, number, home, relative_path, *known_status in rows.fetchall():
        path = original_path(home, relative_path)
        try:
            stat = path.stat()
            status = [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns]
            if status != known_status or not raw.differs_from_disk(database, version_id, str(path)):
                continue
        except OSError:
            continue  # deleted or unreadable; its archived bytes were checked above
        if repair:
            archive_again(database, version_id)
        message = f"the file was edited inside the bytes that are archived as version {number}"
        source = f"{path}; archived as a new version"
        report.damage.append(Damage("edited", message, archive.machine, str(path), number, source=source))


def _check_facts(archive: Archive, report: VerifyReport) -> None:
    """Check references between fact tables, and the rows of each session against their digest."""
    database = archive.database
    if not schema.are_current(database):
        report.notes.append("The facts were made by another version of Pollux; the next `pollux sync` rebuilds them.")
        return
    if n_behind := _n_behind(database):
        files = "1 file is" if n_behind == 1 else f"{n_behind} files are"
        if is_written(archive):
            report.notes.append(f"{files} being read by {WriterLock(archive.path).owner()} at the moment.")
        else:
            report.notes.append(f"{files} archived but not read yet; run `pollux sync` to read them.")
    for table in schema.TABLES:
        names = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        for column in names & {"file_version_id", "version_id"}:
            report.damage += _strays(database, table, column, "versions", "id", "version")
        if "session_id" in names and table != "sessions":
            report.damage += _strays(database, table, "session_id", "sessions", "session_id", "session")
    report.damage += _miscounted(database)
    report.damage += _altered(database)


def is_written(archive: Archive) -> bool:
    """Return whether another process is writing to an archive; only then is its lock file not empty."""
    lock = WriterLock(archive.path)
    try:
        if archive.is_writable or not lock.path.stat().st_size:
            return False
        is_free = lock.take()
    except (OSError, ForeignLockError):  # there is no lock file, or it is another file
        return False
    if is_free:
        lock.release()
    return not is_free


def _n_behind(database: sqlite3.Connection) -> int:
    """Return the number of session files that are archived but not derived, because a refresh was interrupted."""
    rows = database.execute(f"SELECT DISTINCT CAST(files.path AS TEXT) {schema.UNREAD}")
    return sum(_is_session(path) for (path,) in rows)


def _is_session(path: str) -> bool:
    _, _, _, *names = path.split("/")
    return path.endswith((".json", ".jsonl")) and (
        len(names) == 2 or (len(names) == 1 and names[0].startswith("session-"))  # noqa: PLR2004  a subagent's file
    )


def _strays(database: sqlite3.Connection, table: str, column: str, other: str, key: str, noun: str) -> Iterator[Damage]:
    rows = database.execute(
        f"SELECT {column}, count(*) FROM {table} WHERE {column} NOT IN (SELECT {key} FROM {other}) "  # noqa: S608
        f"GROUP BY {column}"
    )
    for missing_id, number in rows:
        yield Damage("facts", f"{number} rows of {table} belong to {noun} {missing_id}, which is missing")


def _altered(database: sqlite3.Connection) -> Iterator[Damage]:
    """Yield the first sessions whose rows were changed after they were derived."""
    altered = [*row_digests.altered(database), *dependents.sessions_with_wrong_sums(database)]
    sessions = list(dict.fromkeys(altered))
    for session_id in sessions[:MAX_NAMED]:
        yield Damage("facts", f"the rows of session {session_id} are not those that were derived")
    if len(sessions) > MAX_NAMED:
        yield Damage("facts", f"nor are those of {len(sessions) - MAX_NAMED} more sessions")


_COUNTED = ("messages", "session_files")
_OWN_TOOL_CALLS = """
    SELECT session_id, count(*) FROM tool_calls JOIN messages USING (session_id, message_id)
    WHERE is_own GROUP BY session_id
"""
"""A session does not count the calls in messages that it has taken over from another one."""


class _Counts(msgspec.Struct, frozen=True):
    """How many rows of other tables a session should have, according to its own row."""

    tool_calls: int = 0
    fates: dict[str, int] = {}
    files: tuple[msgspec.Raw, ...] = ()


_decode_counts = msgspec.msgpack.Decoder(_Counts).decode


def _miscounted(database: sqlite3.Connection) -> Iterator[Damage]:
    """Compare the number of rows of each session with the counts in its own row."""
    counts = {}
    for table in _COUNTED:
        rows = database.execute(f"SELECT session_id, count(*) FROM {table} GROUP BY session_id")  # noqa: S608  ours
        counts[table] = dict(rows.fetchall())
    counts["tool_calls"] = dict(database.execute(_OWN_TOOL_CALLS).fetchall())
    for session_id, extra in database.execute("SELECT session_id, extra FROM sessions ORDER BY session_id"):
        try:
            session = _decode_counts(extra)
        except (ValueError, TypeError):
            yield Damage("facts", f"the row of session {session_id} cannot be read")
            continue
        expected = {
            "tool_calls": session.tool_calls,
            "messages": sum(session.fates.values()),
            "session_files": len(session.files),
        }
        for table, number in expected.items():
            n_rows = counts[table].get(session_id, 0)
            if n_rows != number:
                yield Damage("facts", f"session {session_id} has {n_rows} of {number} rows of {table}")
    yield from _without_session(database)


def _without_session(database: sqlite3.Connection) -> Iterator[Damage]:
    """Yield files that were read but belong to no session, although their session was not forgotten."""
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
        if not any(session_id[:8] in path for session_id in forgotten):
            yield Damage("facts", "no session refers to this file", machine, str(original_path(home, path)), number)
