"""Sessions forgotten for good, with all that is kept of them.

They are destroyed in one transaction, and only then is the file written anew without them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pollux.archive import dependents, raw, schema
from pollux.archive.inventory import belongs_to, place_of
from pollux.archive.maintenance import written_anew
from pollux.archive.migrations import transaction
from pollux.archive.segments import UNPACKING, packed
from pollux.archive.store import Archive
from pollux.archive.verify import rederive
from pollux.errors import PolluxError
from pollux.sessions.family import find_children, walk
from pollux.sessions.reader import Progress

_NO_FILES: Mapping[int, str] = {}


@dataclass(slots=True)
class Forgotten:
    """What is no longer there."""

    sessions: list[str]
    files: list[str] = field(default_factory=list)
    n_versions: int = 0
    n_bytes: int = 0
    mentions: list[str] = field(default_factory=list)
    """Files that are kept and still name the session: all of a project write into them."""
    repeats: list[str] = field(default_factory=list)
    """Sessions that were made from it and hold some of the same messages."""
    shared: dict[str, list[str]] = field(default_factory=dict)
    """Files whose bytes stay because they also hold other sessions, with the IDs of those."""
    is_clean: bool = True


def forget(
    archive: Archive,
    ids: Sequence[str],
    more_files: Mapping[int, str] = _NO_FILES,
    *,
    now_us: int,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
) -> Forgotten:
    """Remove sessions with all that is archived of them, so that no refresh brings them back and no byte is left.

    A file that also holds another session keeps its bytes until that one is forgotten too (`Forgotten.shared`).

    Args:
        archive: to remove them from.
        ids: of the sessions.
        more_files: files of sessions that Pollux fails to read, by their number in the archive.
        now_us: the time.
        memory: paths of projects that were proven before.
        progress: is told how far it is.

    """
    database = archive.database
    database.execute("PRAGMA secure_delete = ON")
    whole = family(database, ids)
    files = files_of(database, whole) | dict(more_files)
    result = Forgotten(
        whole,
        mentions=_mentions(database, whole, files),
        repeats=_repeats(database, whole),
        shared=shared_files(database, whole),
    )
    with transaction(database):
        touched = _relatives(database, whole, files)
        _remove_files(database, list(files), now_us, result)
        _remove_facts(database, whole)
        for one in whole:
            database.execute("INSERT OR IGNORE INTO tombstones VALUES (?, ?)", (one, now_us))
        database.executemany("DELETE FROM readings WHERE version_id = ?", [(one,) for one in touched])
    rederive(archive, memory=memory, progress=progress)
    result.is_clean = written_anew(database)
    return result


def family(database: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Return sessions with all their subagents, and theirs."""
    parents = dict(database.execute("SELECT session_id, parent_session_id FROM sessions").fetchall())
    children = find_children(parents)
    return [*walk(ids, lambda id_: children.get(id_, ()))]


def files_of(database: sqlite3.Connection, ids: Sequence[str]) -> dict[int, str]:
    """Return what is kept of some sessions, by the file's number: their own files, outputs, plans, activity logs."""
    owners = _owners(database)
    paths = dict(database.execute("SELECT id, path FROM files WHERE forgotten_us IS NULL").fetchall())
    found = {
        file_id: path
        for file_id, path in paths.items()
        if (owners[file_id] <= set(ids) if file_id in owners else belongs_to(path, ids))
    }
    return found | _named_outputs(database, found, paths)


def shared_files(database: sqlite3.Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the files of some sessions that also hold others, each with the IDs of those."""
    places = {
        file_id: str(place_of(home, path))
        for file_id, home, path in database.execute("SELECT id, home, path FROM files WHERE forgotten_us IS NULL")
    }
    own = set(ids)
    shared = {}
    for file_id, owners in _owners(database).items():
        if file_id in places and owners & own and owners - own:
            shared[places[file_id]] = sorted(owners - own)
    return shared


def _owners(database: sqlite3.Connection) -> dict[int, set[str]]:
    """Return the sessions that each file holds."""
    owners: dict[int, set[str]] = {}
    rows = database.execute(
        "SELECT file_id, session_id FROM session_files JOIN versions ON versions.id = file_version_id"
    )
    for file_id, owner in rows:
        owners.setdefault(file_id, set()).add(owner)
    return owners


def _named_outputs(database: sqlite3.Connection, own: Mapping[int, str], paths: Mapping[int, str]) -> dict[int, str]:
    """Find outputs that older clients put beside everything else: the session names their files."""
    folders = {_folder(path) for path in own.values()}
    loose = {
        file_id: path
        for file_id, path in paths.items()
        if file_id not in own and _folder(path) in folders and _is_loose_output(path)
    }
    names = {path.rpartition("/")[2].encode(): file_id for file_id, path in loose.items()}
    found = _said(database, own if names else (), lambda data: {name for name in names if name in data})
    return {names[name]: loose[names[name]] for name in found}


def _folder(path: str) -> str:
    return "/".join(path.split("/")[:2])


def _is_loose_output(path: str) -> bool:
    _, _, *parts = path.split("/")
    return path.endswith((".txt", ".output")) and (
        len(parts) == 1 or (len(parts) == 2 and parts[0] in ("tool_output", "tool-outputs"))  # noqa: PLR2004
    )


def _said(database: sqlite3.Connection, files: Iterable[int], look: Callable[[bytes], set[bytes]]) -> set[bytes]:
    """Look through all that is kept of some files, a segment at a time; what cannot be read says nothing."""
    found: set[bytes] = set()
    for file_id in files:
        rows = database.execute(
            "SELECT segments.id FROM segments JOIN versions ON versions.id = version_id WHERE file_id = ?", (file_id,)
        )
        for (segment_id,) in rows.fetchall():
            try:
                found |= look(raw.content(database, segment_id))
            except UNPACKING:
                continue
    return found


def _mentions(database: sqlite3.Connection, ids: Sequence[str], files: Mapping[int, str]) -> list[str]:
    """Name the files beside the sessions, shared by all of a project, that still speak of them."""
    folders = {_folder(path) for path in files.values()}
    words = [one.encode() for one in ids]
    rows = database.execute("SELECT id, home, path FROM files WHERE version_id IS NOT NULL ORDER BY home, path")
    return [
        str(place_of(home, path))
        for file_id, home, path in rows.fetchall()
        if file_id not in files
        and _folder(path) in folders
        and "/chats/" not in path
        and _said(database, [file_id], lambda data: {one for one in words if one in data})
    ]


def _relatives(database: sqlite3.Connection, ids: Sequence[str], files: Mapping[int, str]) -> list[int]:
    """Return the versions of other sessions whose facts say something of these: parents, copies, neighbours."""
    marks = ", ".join("?" * len(ids))
    rows = database.execute(
        f"""
        SELECT DISTINCT file_version_id, file_id FROM session_files JOIN versions ON versions.id = file_version_id
        WHERE session_id IN (
            SELECT parent_session_id FROM sessions WHERE session_id IN ({marks})
            UNION SELECT session_id FROM model_calls WHERE copy_of IN ({marks})
            UNION SELECT session_id FROM sessions
                WHERE bundle IN (SELECT bundle FROM sessions WHERE session_id IN ({marks}))
        )
        """,  # noqa: S608
        (*ids, *ids, *ids),
    ).fetchall()
    return [version_id for version_id, file_id in rows if file_id not in files]


def _repeats(database: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
    """Name the other sessions that hold answers of these: what was imported or loaded from them."""
    marks = ", ".join("?" * len(ids))
    rows = database.execute(
        f"""
        SELECT DISTINCT session_id FROM messages WHERE session_id NOT IN ({marks}) AND message_id IN
            (SELECT message_id FROM messages WHERE kind = 'gemini' AND session_id IN ({marks}))
        ORDER BY session_id
        """,  # noqa: S608
        (*ids, *ids),
    )
    return [row[0] for row in rows]


def _remove_files(database: sqlite3.Connection, files: Sequence[int], now_us: int, result: Forgotten) -> None:
    """Take all bytes of some files away and leave only their names, so that no refresh takes them in again."""
    versions: list[int] = []
    for file_id in files:
        home, path = database.execute("SELECT home, path FROM files WHERE id = ?", (file_id,)).fetchone()
        result.files.append(str(place_of(home, path)))
        versions += [row[0] for row in database.execute("SELECT id FROM versions WHERE file_id = ?", (file_id,))]
        database.execute("UPDATE files SET version_id = NULL, forgotten_us = ? WHERE id = ?", (now_us, file_id))
    result.n_versions = len(versions)
    for version_id in versions:
        _stand_alone(database, version_id, set(versions))
    database.executemany("UPDATE segments SET base_id = NULL WHERE version_id = ?", [(one,) for one in versions])
    for version_id in versions:
        n_bytes = database.execute("SELECT sum(length) FROM segments WHERE version_id = ?", (version_id,)).fetchone()[0]
        result.n_bytes += n_bytes or 0
        database.execute("DELETE FROM segments WHERE version_id = ?", (version_id,))
        for table, column in _version_columns():
            database.execute(f"DELETE FROM {table} WHERE {column} = ?", (version_id,))  # noqa: S608
        database.execute("DELETE FROM versions WHERE id = ?", (version_id,))


def _stand_alone(database: sqlite3.Connection, version_id: int, going: set[int]) -> None:
    """Pack anew what leans on a version's bytes and stays."""
    rows = database.execute(
        "SELECT id, version_id FROM segments WHERE base_id IN (SELECT id FROM segments WHERE version_id = ?)",
        (version_id,),
    ).fetchall()
    for segment_id, owner in rows:
        if owner not in going:
            data = packed(_content(database, segment_id))
            database.execute("UPDATE segments SET data = ?, base_id = NULL, depth = 0 WHERE id = ?", (data, segment_id))


def _content(database: sqlite3.Connection, segment_id: int) -> bytes:
    try:
        return raw.content(database, segment_id)
    except UNPACKING:
        raise PolluxError(
            "What would be left is damaged, so nothing was removed; `pollux verify --repair` may mend it."
        ) from None


def _version_columns() -> list[tuple[str, str]]:
    """Return the derived tables that speak of versions, each with the column in which they do."""
    columns = []
    for table in schema.TABLES.values():
        columns += [(table.name, name) for name in table.names if name in ("version_id", "file_version_id")]
    return columns


def _remove_facts(database: sqlite3.Connection, ids: Sequence[str]) -> None:
    schema.forget_sessions(database, ids)
    database.executemany("UPDATE model_calls SET copy_of = NULL WHERE copy_of = ?", [(one,) for one in ids])
    schema.throw_away_reports(database)
    dependents.update(database)
    database.execute(
        "DELETE FROM projects WHERE project_hash NOT IN (SELECT project_hash FROM sessions WHERE project_hash NOTNULL)"
    )
