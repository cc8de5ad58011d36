"""The facts of one bundle, derived from the bytes that were kept.

A bundle is whatever may belong to the same session. Of a file that grew only what is new is read; all the rest comes
from the replay that was set aside.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from pollux.archive import fact_rows, failures, raw, row_digests, schema
from pollux.archive.inventory import place_of
from pollux.archive.joins import joined, shared_with
from pollux.archive.migrations import savepoint
from pollux.archive.readings import compare_versions, read_on, source_of, taken_up
from pollux.errors import DamagedArchiveError
from pollux.formats.source import HEAD
from pollux.model import Problem, Session
from pollux.sessions import retention
from pollux.sessions.grouping import Group, Placed, id8_inside, put_together
from pollux.sessions.locate import Home, SessionFile, id8_in, session_file_kind
from pollux.sessions.projects.claims import Known, known_from_files
from pollux.sessions.reader import LOGS, Reader, claims
from pollux.sessions.replay.reading import Reading, cannot_derive, reason_of


class File(msgspec.Struct, frozen=True):
    """A session file in the archive."""

    session_file: SessionFile
    file_id: int
    version_id: int
    kept: int
    read: int | None
    """How much of it the facts have seen; nothing yet if there is no number."""

    @property
    def is_pending(self) -> bool:
        """Whether some of it is still to be read."""
        return self.read != self.kept


_IMPORT = "import"
"""What says of a home that a session file in it came from another archive."""
_FEW = 16
"""Bundles that are looked for by their names."""
_DIGIT, _LETTER = "[0-9]", r"[^./\]"
_DATE = f"{_DIGIT * 4}-{_DIGIT * 2}-{_DIGIT * 2}T{_DIGIT * 2}-{_DIGIT * 2}"
_STEM = f"*/chats/session-{_DATE}-{_LETTER * 8}"
_NAMED = (f"{_STEM}.json", f"{_STEM}.jsonl")
"""Files whose bundle is surely in their name (`locate.id8_in`); there are others whose is."""
_encode_look = msgspec.msgpack.encode


class Told(NamedTuple):
    """What came of a bundle."""

    sessions: set[str]
    """Ids whose facts were written."""
    problems: list[Problem]
    shared: frozenset[tuple[str, str]] = frozenset()
    """Bundles that hold files of one session, and so have to be read together."""


def reader_of(database: sqlite3.Connection, memory: Mapping[str, str]) -> Reader:
    """Return a reader that looks for claims and logged prompts among the bytes that were kept, not on the disk."""

    def known(home: Home) -> Known:
        which = "(path LIKE '%/.project_root' OR path NOT LIKE '%/%')"
        files, problems = _current(database, home, which)
        found = claims(home.root, lambda: known_from_files(str(home.root), files))
        return msgspec.structs.replace(found, problems=(*found.problems, *problems))

    def logs(file: SessionFile) -> bytes | None:
        path = f"tmp/{file.folder}/{LOGS}"
        files, _ = _current(database, file.home, "path = ?", path)
        return files.get(path)

    return Reader(memory, known, logs)


def _current(
    database: sqlite3.Connection, home: Home, which: str, *values: str
) -> tuple[dict[str, bytes], list[Problem]]:
    """Return the newest version of some files of a home by their paths, and which of them are damaged.

    Sessions that this machine has read itself never go by imported files; imported sessions go by both, where a file
    of this machine comes before an import of the same path.
    """
    root = str(home.root)
    is_import = "version_id IN (SELECT version_id FROM imported)"
    rows = database.execute(
        f"SELECT path, version_id FROM files WHERE home = ? AND version_id IS NOT NULL AND {which} "  # noqa: S608
        f"AND (? OR NOT {is_import}) ORDER BY {is_import} DESC, machine",
        (root, *values, home.how == _IMPORT),
    ).fetchall()
    found, problems = {}, []
    for path, version_id in rows:
        read = raw.reader(database, version_id)
        try:
            found[path] = read(0, read.size)
        except DamagedArchiveError as error:
            problems.append(Problem("damaged-archive", str(error), str(place_of(root, path))))
    return found, problems


def pending(database: sqlite3.Connection) -> dict[str, list[File]]:
    """Return the bundles in which a file has bytes that the facts have not seen, with all their files."""
    rows = database.execute(f"SELECT files.path, versions.id {schema.UNREAD}").fetchall()
    known = joined(database)
    names = {known.get(name, name) for name in (_bundle(database, path, version_id) for path, version_id in rows)}
    found: dict[str, list[File]] = defaultdict(list)
    for name, one in _session_files(database, names, known) if names else ():
        found[name].append(one)
    return found


def bundle_name(path: str) -> str | None:
    """Name the bundle of a file by its path alone, as `bundle_of` does, where that tells."""
    *_, above, name = path.split("/")
    return id8_in(name) if above == "chats" else above[:8]


def _bundle(database: sqlite3.Connection, path: str, version_id: int) -> str:
    name = bundle_name(path)
    if name:
        return name
    try:
        read = raw.reader(database, version_id)
        return id8_inside(read(0, min(read.size, HEAD))) or path
    except DamagedArchiveError:
        return path  # told when it is read


def _session_files(
    database: sqlite3.Connection, names: set[str], known: Mapping[str, str]
) -> Iterator[tuple[str, File]]:
    """Yield the files of some bundles."""
    is_import = "versions.id IN (SELECT version_id FROM imported)"
    columns = (
        f"files.home, files.path, files.mtime_ns, {is_import}, files.id, versions.id, versions.kept, readings.kept"
    )
    few = [*names, *(name for name, bundle in known.items() if bundle in names)]
    few = few if len(few) <= _FEW else []
    is_named = "(files.path GLOB ? OR files.path GLOB ?)"
    which = f"AND (NOT {is_named} {'OR instr(files.path, ?) ' * len(few)})" if few else ""
    rows = database.execute(
        f"SELECT {columns} {schema.VERSIONS} {which} ORDER BY files.machine, files.home, files.path, versions.number",
        (*_NAMED, *few) if few else (),
    ).fetchall()
    for home, path, mtime_ns, is_imported, *ids in rows:
        name = _bundle(database, path, ids[1])
        name = known.get(name, name)
        if name in names and (session_file := _session_file(home, path, ids[2], mtime_ns, is_imported)):
            yield name, File(session_file, *ids)


def _session_file(home: str, path: str, size: int, mtime_ns: int, is_import: int) -> SessionFile | None:
    _, folder, _, *rest = path.split("/")
    if len(rest) > 2 or not rest:  # noqa: PLR2004  a session, or a subagent below its parent
        return None
    what = session_file_kind(rest[-1], is_nested=len(rest) > 1)
    if what is None:
        return None
    root = place_of(home, "")
    parent = rest[0] if len(rest) > 1 else None
    how = _IMPORT if is_import else "archive"
    return SessionFile(
        str(place_of(home, path)), Home(root, root / "tmp", how), folder, parent, size, mtime_ns, 0, what
    )


def derive_bundle(database: sqlite3.Connection, reader: Reader, name: str, files: list[File]) -> Told:
    """Read what is new in a bundle and write the facts of its sessions.

    Whatever error this raises becomes a problem of the bundle, and nothing of it is written: other bundles must not
    suffer. Errors of the database as a whole are passed on.
    """
    try:
        with savepoint(database):
            return _derived(database, reader, name, files)
    except Exception as error:  # noqa: BLE001  re-raised where it concerns more than this bundle
        problems = _failed(database, files, error)
        if failures.is_lasting(error):
            schema.forget_sessions(database, _sessions_of(database, name))
        return Told(set(), problems)


def _derived(database: sqlite3.Connection, reader: Reader, name: str, files: list[File]) -> Told:
    failures.clear(database, [one.version_id for one in files])
    problems: list[Problem] = []
    versions: dict[int, list[Placed]] = defaultdict(list)
    for one in files:
        try:
            reading = _read(database, one)
        except DamagedArchiveError as error:
            problems.append(Problem("damaged-archive", str(error), str(one.session_file.path)))
        except Exception as error:  # noqa: BLE001  re-raised where it concerns more than this file
            problems += _failed(database, [one], error)
        else:
            versions[one.file_id].append(Placed(reading, one.session_file, version_id=one.version_id))
    placed = [one for found in versions.values() for one in _current_versions(database, found)]
    forgotten = {row[0] for row in database.execute("SELECT session_id FROM tombstones")}
    written, shared = set(), set()
    summed_up = reader.summed_up(put_together(placed, reader.full_id))
    for group, session in summed_up:
        if session.id in forgotten:
            continue
        shared |= shared_with(database, session.id, name)
        if len(summed_up) == 1:  # most are: what goes wrong with one is undone with its bundle
            fact_rows.write(database, group, session, name)
            row_digests.write(database, session.id)
        elif failed := _write(database, group, session, name, files):
            problems += failed
            continue
        written.add(session.id)
    schema.forget_sessions(database, _sessions_of(database, name) - written)
    return Told(written, problems, frozenset(shared))


def _write(
    database: sqlite3.Connection, group: Group, session: Session, bundle: str, files: list[File]
) -> list[Problem]:
    """Write the facts of one session; return the problems of its files if that raises an error."""
    try:
        with savepoint(database):
            fact_rows.write(database, group, session, bundle)
            row_digests.write(database, session.id)
    except Exception as error:  # noqa: BLE001  re-raised where it concerns more than this session
        own = {one.version_id for one in group.files}
        return _failed(database, [one for one in files if one.version_id in own], error)
    return []


def _failed(database: sqlite3.Connection, files: list[File], error: Exception) -> list[Problem]:
    """Record that files cannot be derived, and return their problems; raise what concerns the whole database."""
    if failures.concerns_everybody(error):
        raise error
    if failures.is_lasting(error):
        failures.record(database, [(one.version_id, one.kept) for one in files], error)
    return [cannot_derive(one.session_file.path, reason_of(error)) for one in files]


def _sessions_of(database: sqlite3.Connection, bundle: str) -> set[str]:
    """Return the sessions whose facts were written for a bundle, or for one that has become part of it."""
    rows = database.execute(
        "SELECT session_id FROM sessions WHERE bundle = ?1 OR bundle IN (SELECT name FROM joined WHERE bundle = ?1)",
        (bundle,),
    )
    return {row[0] for row in rows}


def _read(database: sqlite3.Connection, file: File) -> Reading:
    before = database.execute("SELECT snapshot FROM readings WHERE version_id = ?", (file.version_id,)).fetchone()
    source = source_of(database, file.version_id)
    if before and not file.is_pending:
        return taken_up(source, before[0])
    reading, aside = read_on(source, before[0] if before else None)
    is_session = file.session_file.what == "session"  # subagents go with theirs, and leftovers never
    look = _encode_look(retention.look(reading)) if is_session else b""
    if before and before[0] == aside:  # which is large, and need not be written again
        database.execute(
            "UPDATE readings SET kept = ?, look = ? WHERE version_id = ?", (file.kept, look, file.version_id)
        )
    else:
        database.execute(schema.TABLES["readings"].insert, (file.version_id, file.kept, False, look, aside))
    fact_rows.write_problems(database, file.version_id, reading.replay.problems)
    return reading


def _current_versions(database: sqlite3.Connection, versions: list[Placed]) -> list[Placed]:
    """Return the versions of one file that still matter, and note those that a later version contains completely."""
    current = []
    is_superseded = compare_versions([version.reading for version in versions])
    for version, superseded in zip(versions, is_superseded, strict=True):
        if superseded:
            database.execute("UPDATE readings SET is_superseded = 1 WHERE version_id = ?", (version.version_id,))
        else:
            current.append(version)
    return current
