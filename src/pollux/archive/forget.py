"""Remove sessions from an archive permanently, with all their archived bytes.

They are deleted in one transaction; then the file is rewritten without them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pollux.archive import dependents, raw, schema
from pollux.archive.inventory import belongs_to, original_path
from pollux.archive.maintenance import vacuum
from pollux.archive.migrations import transaction
from pollux.archive.raw import UNPACKING, compress
from pollux.archive.store import Archive
from pollux.archive.undo import UndoCopy, store
from pollux.archive.verify import rederive
from pollux.errors import PolluxError
from pollux.sessions.family import find_children, walk
from pollux.sessions.reader import Progress

_NO_FILES: Mapping[int, str] = {}


@dataclass(slots=True)
class ForgetResult:
    """What was removed from the archive, and what still refers to it."""

    sessions: list[str]
    files: list[str] = field(default_factory=list)
    n_versions: int = 0
    n_bytes: int = 0
    mentions: list[str] = field(default_factory=list)
    """Archived files that still name the session; all sessions of a project write into them."""
    repeats: list[str] = field(default_factory=list)
    """Other sessions that contain some of the same messages, because they were started from it."""
    shared: dict[str, list[str]] = field(default_factory=dict)
    """Files whose bytes stay because they also contain other sessions, with the IDs of those."""
    remaining: list[str] = field(default_factory=list)
    """Files of the client that still exist on this disk."""
    undo: UndoCopy | None = None
    is_clean: bool = True


def forget(
    archive: Archive,
    ids: Sequence[str],
    more_files: Mapping[int, str] = _NO_FILES,
    *,
    now_us: int,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
    undo: bool = False,
) -> ForgetResult:
    """Remove sessions with their subagents and all archived bytes, and keep refreshes from archiving them again.

    A file that also contains another session keeps its bytes until that session is forgotten too.

    Args:
        archive: to remove them from.
        ids: the IDs of the sessions.
        more_files: files of sessions that Pollux fails to read, by their ID in the archive.
        now_us: the time that is stored with the removal.
        memory: project paths that were proven before.
        progress: called with the number of bytes done, and of all.
        undo: whether to write an undo copy first (`undo.py`).

    """
    database = archive.database
    database.execute("PRAGMA secure_delete = ON")
    sessions = family(database, ids)
    files = files_of(database, sessions) | dict(more_files)
    result = ForgetResult(
        sessions,
        mentions=_mentions(database, sessions, files),
        repeats=_repeats(database, sessions),
        shared=shared_files(database, sessions),
    )
    related = _related_versions(database, sessions, files)
    if undo:
        result.undo = store(archive, sessions, files, related, now_us=now_us)
    with transaction(database):
        _remove_files(database, list(files), now_us, result)
        _remove_facts(database, sessions)
        for session_id in sessions:
            database.execute("INSERT OR IGNORE INTO tombstones VALUES (?, ?)", (session_id, now_us))
        database.executemany("DELETE FROM readings WHERE version_id = ?", [(version_id,) for version_id in related])
    rederive(archive, memory=memory, progress=progress)
    result.remaining = [path for path in result.files if os.path.lexists(path)]
    result.is_clean = vacuum(database)
    return result


def family(database: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Return sessions with all their subagents, however deep."""
    parents = dict(database.execute("SELECT session_id, parent_session_id FROM sessions").fetchall())
    children = find_children(parents)
    return [*walk(ids, lambda id_: children.get(id_, ()))]


def files_of(database: sqlite3.Connection, ids: Sequence[str]) -> dict[int, str]:
    """Return the files of some sessions, by file ID: their own files, outputs, plans and activity logs."""
    owners = _owners(database)
    paths = dict(database.execute("SELECT id, path FROM files WHERE forgotten_us IS NULL").fetchall())
    own = set(ids)

    def is_own(file_id: int, path: str) -> bool:
        return owners[file_id] <= own if file_id in owners else belongs_to(path, ids)

    files = {file_id: path for file_id, path in paths.items() if is_own(file_id, path)}
    return files | _named_outputs(database, files, paths)


def shared_files(database: sqlite3.Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the files of some sessions that also contain others, each with the IDs of those."""
    rows = database.execute("SELECT id, home, path FROM files WHERE forgotten_us IS NULL")
    paths = {file_id: str(original_path(home, path)) for file_id, home, path in rows}
    own = set(ids)
    shared = {}
    for file_id, owners in _owners(database).items():
        if file_id in paths and owners & own and owners - own:
            shared[paths[file_id]] = sorted(owners - own)
    return shared


def _owners(database: sqlite3.Connection) -> dict[int, set[str]]:
    owners: dict[int, set[str]] = {}
    rows = database.execute(
        "SELECT file_id, session_id FROM session_files JOIN versions ON versions.id = file_version_id"
    )
    for file_id, owner in rows:
        owners.setdefault(file_id, set()).add(owner)
    return owners


def _named_outputs(database: sqlite3.Connection, own: Mapping[int, str], paths: Mapping[int, str]) -> dict[int, str]:
    """Return tool outputs of older clients, which are in no folder of the session but are named in its files."""
    folders = {_folder(path) for path in own.values()}
    loose = {
        file_id: path
        for file_id, path in paths.items()
        if file_id not in own and _folder(path) in folders and _is_loose_output(path)
    }
    names = {path.rpartition("/")[2].encode(): file_id for file_id, path in loose.items()}
    named = _contained(database, own, names) if names else set()
    return {names[name]: loose[names[name]] for name in named}


def _folder(path: str) -> str:
    return "/".join(path.split("/")[:2])


def _is_loose_output(path: str) -> bool:
    _, _, *parts = path.split("/")
    return path.endswith((".txt", ".output")) and (
        len(parts) == 1 or (len(parts) == 2 and parts[0] in ("tool_output", "tool-outputs"))  # noqa: PLR2004
    )


def _contained(database: sqlite3.Connection, files: Iterable[int], texts: Collection[bytes]) -> set[bytes]:
    """Return which texts occur in the archived bytes of some files, segment by segment; damaged ones are skipped."""
    contained: set[bytes] = set()
    for file_id in files:
        rows = database.execute(
            "SELECT segments.id FROM segments JOIN versions ON versions.id = version_id WHERE file_id = ?", (file_id,)
        )
        for (segment_id,) in rows.fetchall():
            try:
                data = raw.content(database, segment_id)
            except UNPACKING:
                continue
            contained.update(text for text in texts if text in data)
    return contained


def _mentions(database: sqlite3.Connection, ids: Sequence[str], files: Mapping[int, str]) -> list[str]:
    """Return the files that all sessions of a project share and that name one of these sessions."""
    folders = {_folder(path) for path in files.values()}
    texts = [session_id.encode() for session_id in ids]
    rows = database.execute("SELECT id, home, path FROM files WHERE version_id IS NOT NULL ORDER BY home, path")
    mentions = []
    for file_id, home, path in rows.fetchall():
        is_shared = file_id not in files and _folder(path) in folders and "/chats/" not in path
        if is_shared and _contained(database, [file_id], texts):
            mentions.append(str(original_path(home, path)))
    return mentions


def _related_versions(database: sqlite3.Connection, ids: Sequence[str], files: Mapping[int, str]) -> list[int]:
    """Return the versions of other sessions whose facts depend on these: parents, copies, members of their bundles."""
    marks = ", ".join("?" * len(ids))
    rows = database.execute(
        f"""
        SELECT DISTINCT file_version_id, file_id FROM session_files JOIN versions ON versions.id = file_version_id
        WHERE session_id IN (
            SELECT parent_session_id FROM sessions WHERE session_id IN ({marks})
            UNION SELECT session_id FROM model_calls WHERE owner_session_id IN ({marks})
            UNION SELECT session_id FROM sessions
                WHERE bundle IN (SELECT bundle FROM sessions WHERE session_id IN ({marks}))
        )
        """,  # noqa: S608
        (*ids, *ids, *ids),
    ).fetchall()
    return [version_id for version_id, file_id in rows if file_id not in files]


def _repeats(database: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
    """Return the other sessions that contain answers of these, because they were loaded from them."""
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


def _remove_files(database: sqlite3.Connection, files: Sequence[int], now_us: int, result: ForgetResult) -> None:
    """Delete all bytes of some files; only their names stay, so that no refresh archives them again."""
    versions: list[int] = []
    for file_id in files:
        home, path = database.execute("SELECT home, path FROM files WHERE id = ?", (file_id,)).fetchone()
        result.files.append(str(original_path(home, path)))
        versions += [row[0] for row in database.execute("SELECT id FROM versions WHERE file_id = ?", (file_id,))]
        database.execute("UPDATE files SET version_id = NULL, forgotten_us = ? WHERE id = ?", (now_us, file_id))
    result.n_versions = len(versions)
    for version_id in versions:
        _repack_dependents(database, version_id, set(versions))
    keys = [(version_id,) for version_id in versions]
    database.executemany("UPDATE segments SET base_id = NULL WHERE version_id = ?", keys)
    for version_id in versions:
        n_bytes = database.execute("SELECT sum(length) FROM segments WHERE version_id = ?", (version_id,)).fetchone()[0]
        result.n_bytes += n_bytes or 0
        database.execute("DELETE FROM segments WHERE version_id = ?", (version_id,))
        for table, column in _version_columns():
            database.execute(f"DELETE FROM {table} WHERE {column} = ?", (version_id,))  # noqa: S608
        database.execute("DELETE FROM versions WHERE id = ?", (version_id,))


def _repack_dependents(database: sqlite3.Connection, version_id: int, removed: set[int]) -> None:
    """Recompress remaining segments that are compressed against a version that is removed."""
    rows = database.execute(
        "SELECT id, version_id FROM segments WHERE base_id IN (SELECT id FROM segments WHERE version_id = ?)",
        (version_id,),
    ).fetchall()
    for segment_id, owner in rows:
        if owner not in removed:
            data = compress(_content(database, segment_id))
            database.execute("UPDATE segments SET data = ?, base_id = NULL, depth = 0 WHERE id = ?", (data, segment_id))


def _content(database: sqlite3.Connection, segment_id: int) -> bytes:
    try:
        return raw.content(database, segment_id)
    except UNPACKING:
        raise PolluxError(
            "Segments that would remain are damaged, so nothing was removed; run `pollux verify --repair` first."
        ) from None


def _version_columns() -> list[tuple[str, str]]:
    """Return each derived table with a column that refers to versions, and that column."""
    columns = []
    for table in schema.TABLES.values():
        columns += [(table.name, name) for name in table.names if name in ("version_id", "file_version_id")]
    return columns


def _remove_facts(database: sqlite3.Connection, ids: Sequence[str]) -> None:
    schema.forget_sessions(database, ids)
    database.executemany(
        "UPDATE model_calls SET owner_session_id = NULL WHERE owner_session_id = ?",
        [(session_id,) for session_id in ids],
    )
    schema.clear_sums(database)
    dependents.update(database)
    database.execute(
        "DELETE FROM projects WHERE project_hash NOT IN (SELECT project_hash FROM sessions WHERE project_hash NOTNULL)"
    )
