"""Derive the facts of one bundle of files from their archived bytes.

A bundle contains all files that may belong to the same session. Of a file that grew, only the new bytes are read; the
rest comes from the stored snapshot of its replay (`readings.py`).

A bundle is named after the paths of its files. When a session turns out to have files in two bundles, because a copy
has another name, the bundles are merged and read again together.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from pollux.archive import fact_rows, failures, raw, row_digests, schema
from pollux.archive.inventory import original_path
from pollux.archive.migrations import savepoint
from pollux.archive.readings import compare_versions, continue_reading, load_reading, source_of
from pollux.errors import DamagedArchiveError
from pollux.formats.source import HEAD
from pollux.model import Problem, Session
from pollux.sessions import retention
from pollux.sessions.grouping import LocatedReading, OpenSession, find_id8, group_readings
from pollux.sessions.locate import Home, SessionFile, id8_in, session_file_kind
from pollux.sessions.projects.resolve import ProjectClaims, claims_from_files
from pollux.sessions.reader import LOGS, SessionReader, claims
from pollux.sessions.replay.reading import FileReading, cannot_derive, reason_of


class BundleFile(msgspec.Struct, frozen=True):
    """A version of an archived session file."""

    session_file: SessionFile
    file_id: int
    version_id: int
    length: int
    n_read: int | None
    """Number of bytes that facts were derived from; None before the first time."""

    @property
    def is_pending(self) -> bool:
        """Whether it has bytes that are not derived yet."""
        return self.n_read != self.length


_IMPORT = "import"
"""How the home of an imported session file is known."""
_FEW = 16
"""Up to this many bundles are selected by name."""
_DIGIT, _LETTER = "[0-9]", r"[^./\]"
_DATE = f"{_DIGIT * 4}-{_DIGIT * 2}-{_DIGIT * 2}T{_DIGIT * 2}-{_DIGIT * 2}"
_STEM = f"*/chats/session-{_DATE}-{_LETTER * 8}"
_NAMED = (f"{_STEM}.json", f"{_STEM}.jsonl")
"""Patterns of files whose name certainly contains their bundle (`locate.id8_in`)."""


class DerivedBundle(NamedTuple):
    """The sessions that were derived from a bundle."""

    sessions: set[str]
    """The IDs of the sessions whose facts were written."""
    problems: list[Problem]
    shared: frozenset[tuple[str, str]] = frozenset()
    """Pairs of bundles with files of the same session, which have to be merged."""


def archive_reader(database: sqlite3.Connection, memory: Mapping[str, str]) -> SessionReader:
    """Return a reader that takes project claims and logged prompts from archived files instead of the disk."""

    def known(home: Home) -> ProjectClaims:
        which = "(path LIKE '%/.project_root' OR path NOT LIKE '%/%')"
        files, problems = _newest_files(database, home, which)
        project_claims = claims(home.root, lambda: claims_from_files(str(home.root), files))
        return msgspec.structs.replace(project_claims, problems=(*project_claims.problems, *problems))

    def logs(file: SessionFile) -> bytes | None:
        path = f"tmp/{file.folder}/{LOGS}"
        files, _ = _newest_files(database, file.home, "path = ?", path)
        return files.get(path)

    return SessionReader(memory, known, logs)


def _newest_files(
    database: sqlite3.Connection, home: Home, which: str, *values: str
) -> tuple[dict[str, bytes], list[Problem]]:
    """Return the newest bytes of some files of a home by path, and problems for damaged ones.

    Imported files are used only for imported sessions; a file of this machine takes precedence over an imported one.
    """
    root = str(home.root)
    is_import = "version_id IN (SELECT version_id FROM imported)"
    rows = database.execute(
        f"SELECT path, version_id FROM files WHERE home = ? AND version_id IS NOT NULL AND {which} "  # noqa: S608
        f"AND (? OR NOT {is_import}) ORDER BY {is_import} DESC, machine",
        (root, *values, home.source == _IMPORT),
    ).fetchall()
    files, problems = {}, []
    for path, version_id in rows:
        read = raw.reader(database, version_id)
        try:
            files[path] = read(0, read.size)
        except DamagedArchiveError as error:
            problems.append(Problem("damaged-archive", str(error), str(original_path(root, path))))
    return files, problems


def pending(database: sqlite3.Connection) -> dict[str, list[BundleFile]]:
    """Return the bundles with bytes that are not derived yet, each with all its files."""
    rows = database.execute(f"SELECT files.path, versions.id {schema.UNREAD}").fetchall()
    merged = merged_bundles(database)
    names = set()
    for path, version_id in rows:
        name = _bundle(database, path, version_id)
        names.add(merged.get(name, name))
    bundles: dict[str, list[BundleFile]] = defaultdict(list)
    for name, file in _session_files(database, names, merged) if names else ():
        bundles[name].append(file)
    return bundles


def bundle_name(path: str) -> str | None:
    """Return the bundle of a file if its path contains the name."""
    *_, parent, name = path.split("/")
    return id8_in(name) if parent == "chats" else parent[:8]


def merged_bundles(database: sqlite3.Connection) -> dict[str, str]:
    """Return each bundle that became part of another one, with the name of that one."""
    return dict(database.execute("SELECT name, bundle FROM merged_bundles").fetchall())


def other_bundles(database: sqlite3.Connection, session_id: str, bundle: str) -> set[tuple[str, str]]:
    """Return the pair of this bundle and another one that already has a session with this ID."""
    rows = database.execute("SELECT bundle FROM sessions WHERE session_id = ? AND bundle != ?", (session_id, bundle))
    return {(bundle, row[0]) for row in rows}


def merge_bundles(database: sqlite3.Connection, first: str, second: str) -> None:
    """Merge two bundles under the name that sorts first, and mark their files as pending."""
    merged = merged_bundles(database)
    target, source = sorted((merged.get(first, first), merged.get(second, second)))
    if target == source:
        return
    members = [source, *(name for name, bundle in merged.items() if bundle == source)]
    database.executemany("INSERT OR REPLACE INTO merged_bundles VALUES (?, ?)", [(name, target) for name in members])
    database.execute("UPDATE sessions SET bundle = ? WHERE bundle = ?", (target, source))
    database.execute(
        """
        UPDATE readings SET n_bytes = -1 WHERE version_id IN (
            SELECT file_version_id FROM session_files JOIN sessions USING (session_id) WHERE bundle = ?
        )
        """,
        (target,),
    )


def _bundle(database: sqlite3.Connection, path: str, version_id: int) -> str:
    name = bundle_name(path)
    if name:
        return name
    try:
        read = raw.reader(database, version_id)
        return find_id8(read(0, min(read.size, HEAD))) or path
    except DamagedArchiveError:
        return path  # the damage is reported when the file is read


def _session_files(
    database: sqlite3.Connection, names: set[str], merged: Mapping[str, str]
) -> Iterator[tuple[str, BundleFile]]:
    is_import = "versions.id IN (SELECT version_id FROM imported)"
    columns = (
        f"files.home, files.path, files.mtime_ns, {is_import}, files.id, versions.id, versions.archived_bytes, "
        "readings.n_bytes"
    )
    few = [*names, *(name for name, bundle in merged.items() if bundle in names)]
    few = few if len(few) <= _FEW else []
    is_named = "(files.path GLOB ? OR files.path GLOB ?)"
    which = f"AND (NOT {is_named} {'OR instr(files.path, ?) ' * len(few)})" if few else ""
    rows = database.execute(
        f"SELECT {columns} {schema.VERSIONS} {which} ORDER BY files.machine, files.home, files.path, versions.number",
        (*_NAMED, *few) if few else (),
    ).fetchall()
    for home, path, mtime_ns, is_imported, *ids in rows:
        name = _bundle(database, path, ids[1])
        name = merged.get(name, name)
        if name in names and (session_file := _session_file(home, path, ids[2], mtime_ns, is_imported)):
            yield name, BundleFile(session_file, *ids)


def _session_file(home: str, path: str, size: int, mtime_ns: int, is_import: int) -> SessionFile | None:
    _, folder, _, *names = path.split("/")
    if len(names) > 2 or not names:  # noqa: PLR2004  a session's file, or that of a subagent in a folder
        return None
    what = session_file_kind(names[-1], is_nested=len(names) > 1)
    if what is None:
        return None
    root = original_path(home, "")
    parent = names[0] if len(names) > 1 else None
    how = _IMPORT if is_import else "archive"
    return SessionFile(
        str(original_path(home, path)), Home(root, root / "tmp", how), folder, parent, size, mtime_ns, 0, what
    )


def derive_bundle(
    database: sqlite3.Connection, reader: SessionReader, name: str, files: list[BundleFile]
) -> DerivedBundle:
    """Read the new bytes of a bundle and write the facts of its sessions.

    An exception becomes a problem of the bundle, of which nothing is written then, so that the other bundles are still
    derived. Only errors that concern the whole database are raised.
    """
    try:
        with savepoint(database):
            return _derived(database, reader, name, files)
    except Exception as error:  # noqa: BLE001  re-raised where it concerns more than this bundle
        problems = _failed(database, files, error)
        if failures.is_lasting(error):
            schema.forget_sessions(database, _sessions_of(database, name))
        return DerivedBundle(set(), problems)


def _derived(database: sqlite3.Connection, reader: SessionReader, name: str, files: list[BundleFile]) -> DerivedBundle:
    failures.clear(database, [file.version_id for file in files])
    problems: list[Problem] = []
    versions: dict[int, list[LocatedReading]] = defaultdict(list)
    for file in files:
        try:
            reading = _read(database, file)
        except DamagedArchiveError as error:
            problems.append(Problem("damaged-archive", str(error), str(file.session_file.path)))
        except Exception as error:  # noqa: BLE001  re-raised where it concerns more than this file
            problems += _failed(database, [file], error)
        else:
            versions[file.file_id].append(LocatedReading(reading, file.session_file, version_id=file.version_id))
    placed = [version for each in versions.values() for version in _current_versions(database, each)]
    forgotten = {row[0] for row in database.execute("SELECT session_id FROM tombstones")}
    written, shared = set(), set()
    sessions = reader.summarize(group_readings(placed, reader.full_id))
    for group, session in sessions:
        if session.id in forgotten:
            continue
        shared |= other_bundles(database, session.id, name)
        if len(sessions) == 1:  # the usual case: an error undoes the whole bundle
            fact_rows.write(database, group, session, name)
            row_digests.write(database, session.id)
        elif failed := _write(database, group, session, name, files):
            problems += failed
            continue
        written.add(session.id)
    schema.forget_sessions(database, _sessions_of(database, name) - written)
    return DerivedBundle(written, problems, frozenset(shared))


def _write(
    database: sqlite3.Connection, group: OpenSession, session: Session, bundle: str, files: list[BundleFile]
) -> list[Problem]:
    """Write the facts of one session; return the problems of its files if that fails."""
    try:
        with savepoint(database):
            fact_rows.write(database, group, session, bundle)
            row_digests.write(database, session.id)
    except Exception as error:  # noqa: BLE001  re-raised where it concerns more than this session
        own = {placed.version_id for placed in group.files}
        return _failed(database, [file for file in files if file.version_id in own], error)
    return []


def _failed(database: sqlite3.Connection, files: list[BundleFile], error: Exception) -> list[Problem]:
    """Record that files cannot be derived and return their problems. Raises errors of the whole database."""
    if failures.concerns_database(error):
        raise error
    if failures.is_lasting(error):
        failures.record(database, [(file.version_id, file.length) for file in files], error)
    return [cannot_derive(file.session_file.path, reason_of(error)) for file in files]


def _sessions_of(database: sqlite3.Connection, bundle: str) -> set[str]:
    """Return the sessions with facts from a bundle, or from one that was merged into it."""
    rows = database.execute(
        "SELECT session_id FROM sessions WHERE bundle = ?1 "
        "OR bundle IN (SELECT name FROM merged_bundles WHERE bundle = ?1)",
        (bundle,),
    )
    return {row[0] for row in rows}


def _read(database: sqlite3.Connection, file: BundleFile) -> FileReading:
    before = database.execute("SELECT snapshot FROM readings WHERE version_id = ?", (file.version_id,)).fetchone()
    source = source_of(database, file.version_id)
    if before and not file.is_pending:
        return load_reading(source, before[0])
    reading, snapshot = continue_reading(source, before[0] if before else None)
    is_session = file.session_file.what == "session"  # the client deletes subagents with their session
    traits = msgspec.msgpack.encode(retention.cleanup_traits(reading)) if is_session else b""
    if before and before[0] == snapshot:  # it may be large, so it is not written again
        database.execute(
            "UPDATE readings SET n_bytes = ?, cleanup_traits = ? WHERE version_id = ?",
            (file.length, traits, file.version_id),
        )
    else:
        database.execute(schema.TABLES["readings"].insert, (file.version_id, file.length, False, traits, snapshot))
    fact_rows.write_problems(database, file.version_id, reading.replay.problems)
    return reading


def _current_versions(database: sqlite3.Connection, versions: list[LocatedReading]) -> list[LocatedReading]:
    """Return the versions of a file without those that a later version contains completely, which are marked."""
    current = []
    is_superseded = compare_versions([version.reading for version in versions])
    for version, superseded in zip(versions, is_superseded, strict=True):
        if superseded:
            database.execute("UPDATE readings SET is_superseded = 1 WHERE version_id = ?", (version.version_id,))
        else:
            current.append(version)
    return current
