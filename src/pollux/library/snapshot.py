"""A snapshot: one consistent state of the facts, from which one result is computed.

The facts come from the archive, or from tables of the same shape in memory that were filled from session files.
"""
# ruff: noqa: PLC0415  imported when an archive or the files are read

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from pollux.model import Problem, Project, Session

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from pollux.archive.store import Archive
    from pollux.library.config import Config
    from pollux.library.freshness import Refresh
    from pollux.reports.freshness import Freshness
    from pollux.reports.projects import KnownProjects
    from pollux.reports.status import FolderPolicy
    from pollux.sessions.grouping import OpenSession
    from pollux.sessions.locate import HomeScan
    from pollux.sessions.reader import History


_Result = TypeVar("_Result")


class SessionSource(Protocol):
    """Loads sessions by ID, and opens them."""

    def load(self, ids: Collection[str] | None, *, with_calls: bool = True) -> list[Session]:
        """Return sessions in the order of their IDs, or all of them; without model calls if those are not needed."""

    def open(self, session: Session) -> OpenSession:
        """Open a session so that its messages can be read."""

    def with_file(self, reference: str) -> list[str]:
        """Return the IDs of the sessions with a file of this path, name or stem."""

    def content_key(self, session: Session) -> object:
        """Return a value that changes whenever the bytes of a session change."""

    def problems(self) -> list[Problem]:
        """Return the problems that belong to no session."""

    def problems_by_session(self) -> list[tuple[str, Problem]]:
        """Return the problems of all sessions."""


class ArchivedSessions:
    """Sessions of an archive."""

    def __init__(self, database: sqlite3.Connection, memory: Mapping[str, str], homes: Collection[str] | None) -> None:
        """Store the archive, project paths proven since it was written, and the homes to read; None for all."""
        self._database, self._memory, self._homes = database, memory, homes
        self._contents: dict[str, list[tuple[int, int]]] | None = None
        self._damage: dict[Problem, None] = {}

    def load(self, ids: Collection[str] | None, *, with_calls: bool = True) -> list[Session]:
        """Return sessions in the order of their IDs, or all of them; without model calls if those are not needed."""
        from pollux.archive.load_sessions import load_sessions

        loaded = load_sessions(self._database, ids, self._memory, with_calls=with_calls)
        self._damage.update(dict.fromkeys(loaded.problems))
        return list(loaded.sessions)

    def open(self, session: Session) -> OpenSession:
        """Open an archived session."""
        from pollux.archive import open_session

        return open_session.open_session(self._database, session)

    def with_file(self, reference: str) -> list[str]:
        """Return the IDs of the sessions with a file of this path, name or stem."""
        from pollux.archive.load_sessions import sessions_with_file

        return sessions_with_file(self._database, reference)

    def content_key(self, session: Session) -> object:
        """Return the versions of the session's files, and their lengths."""
        from pollux.archive import open_session

        if self._contents is None:
            self._contents = open_session.contents(self._database)
        return self._contents.get(session.id)

    def problems(self) -> list[Problem]:
        """Return the problems of damaged rows, and of files whose facts cannot be derived."""
        from pollux.archive import failures

        homes = None if self._homes is None else list(self._homes)
        return [*self._damage, *failures.problems(self._database, homes)]

    def problems_by_session(self) -> list[tuple[str, Problem]]:
        """Return the problems of each session's files, and of values that fit no column."""
        from pollux.archive.load_sessions import file_problems

        return file_problems(self._database)


class SessionFiles:
    """Sessions read from their files."""

    def __init__(self, history: History, failures: Iterable[Problem] = ()) -> None:
        """Store the sessions, and the problems that occurred after they were read."""
        self._history = history
        self._by_id = {session.id: session for session in history.sessions}
        self._failures = list(failures)

    def load(self, ids: Collection[str] | None, *, with_calls: bool = True) -> list[Session]:  # noqa: ARG002  as above
        """Return sessions in the order of their IDs, or all of them, always with their model calls."""
        if ids is None:
            return list(self._history.sessions)
        return [self._by_id[session_id] for session_id in ids if session_id in self._by_id]

    def open(self, session: Session) -> OpenSession:
        """Read the files of a session again."""
        from pollux.sessions.reader import opened

        return opened(session)

    def with_file(self, reference: str) -> list[str]:
        """Return the IDs of the sessions with a file of this path, name or stem."""
        return [session.id for session in self._history.sessions if _has_file(session, reference)]

    def content_key(self, session: Session) -> object:
        """Return the size and modification time of each file."""
        return [size_and_time(str(ref.path)) for ref in session.files]

    def problems(self) -> list[Problem]:
        """Return the problems that belong to no session."""
        return [*self._history.problems, *self._failures]

    def problems_by_session(self) -> list[tuple[str, Problem]]:
        """Return the problems of all sessions."""
        pairs = []
        for session in self._history.sessions:
            pairs += [(session.id, problem) for problem in session.problems]
        return pairs


class Snapshot(msgspec.Struct):
    """One state of the facts, and what else a report needs."""

    config: Config
    database: sqlite3.Connection
    sessions: SessionSource
    scan: HomeScan
    """Homes and project folders; `located` has their session files, too."""
    freshness: Freshness
    memory: Mapping[str, str]
    archive: Archive | None = None
    """The archive; None if the facts were read from session files."""
    ids: Collection[str] | None = None
    """The sessions of the selected homes; None for all in the database."""
    elsewhere: int = 0
    """Number of archived sessions of other homes."""
    remember: Callable[[Snapshot, Hashable, Callable[[], Any]], Any] | None = None
    """Returns the result of an earlier call with the same key, or else of a function."""
    state: Hashable = None
    """Changes whenever the archive does; None until it is needed."""
    files_left_out: int | None = None
    """The number of session files, if `scan` leaves them out."""
    policies: list[FolderPolicy] | None = None
    """What the client's settings say about deletion; None until it is needed."""
    _projects: dict[str, Project] | None = None
    _located: HomeScan | None = None

    @property
    def located(self) -> HomeScan:
        """The project folders with their session files; a long-running process lists the folders again."""
        from pollux.sessions.locate import locate

        if self._located is None:
            self._located = self.scan if self.files_left_out is None else locate(self.config.homes)
        return self._located

    @property
    def n_files(self) -> int:
        """The number of session files in the homes."""
        if self.files_left_out is not None:
            return self.files_left_out
        return sum(len(folder.files) for folder in self.scan.folders)

    def once(self, key: Hashable, make: Callable[[], _Result]) -> _Result:
        """Return the result of a function; a long-running process calls it again only when the archive has changed."""
        if self.remember is None:
            return make()
        result: _Result = self.remember(self, key, make)
        return result

    @property
    def is_archived(self) -> bool:
        """Whether the facts come from an archive."""
        return self.archive is not None

    def projects(self) -> dict[str, Project]:
        """Return the project of each session, with paths proven since the facts were written."""
        from pollux.archive.load_sessions import session_projects

        if self._projects is None:
            self._projects = session_projects(self.database, self.memory)
        return self._projects

    def projects_of(self, ids: Collection[str]) -> dict[str, Project]:
        """Return the projects of some sessions."""
        from pollux.archive.load_sessions import session_projects

        return session_projects(self.database, self.memory, ids)

    def known_projects(self) -> KnownProjects:
        """Return the projects of all sessions, without reading these one by one."""
        from pollux.archive.load_sessions import lone_projects, projects_by_hash
        from pollux.reports.projects import KnownProjects

        by_hash, lone = projects_by_hash(self.database, self.memory), lone_projects(self.database, self.memory)
        for session_id, project in ({} if self._projects is None else self._projects).items():
            if project.proven:  # perhaps by this call
                if project.hash:
                    by_hash[project.hash] = project
                else:
                    lone[session_id] = project
        return KnownProjects(by_hash, lone)

    def learn(self, projects: Mapping[str, Project]) -> None:
        """Add project paths that were proven by this call."""
        self.projects().update(projects)

    def with_learned_paths(self, sessions: Iterable[Session]) -> list[Session]:
        """Return sessions with the project paths that this call has proven."""
        if self._projects is None:
            return list(sessions)
        updated = []
        for session in sessions:
            project = self._projects.get(session.id, session.project)
            is_better = project.proven and not session.project.proven
            updated.append(msgspec.structs.replace(session, project=project) if is_better else session)
        return updated

    def problems(self, ids: Collection[str] | None = None) -> list[Problem]:
        """Return the problems of some sessions, and those that belong to no session."""
        ids = self.ids if ids is None else ids
        problems = [*self.freshness.problems, *self.sessions.problems()]
        for session_id, problem in self.sessions.problems_by_session():
            if ids is None or session_id in ids:
                problems.append(problem)
        return [*dict.fromkeys(problems)]


class _Connection(msgspec.Struct, eq=False):
    """A connection of a thread."""

    archive: Archive
    file: object
    n_uses: int = 0
    is_dropped: bool = False


class ThreadConnections:
    """Read-only connections to an archive, one per thread."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._lock = threading.Lock()
        self._connections: dict[threading.Thread, _Connection] = {}

    @contextmanager
    def reading(self, path: Path) -> Iterator[Archive]:
        """Yield this thread's connection, which stays open in the block even if `close` is called meanwhile.

        A file that has taken the archive's place, such as a backup or a compacted copy, is opened anew.
        """
        connection = self._take(path)
        try:
            yield connection.archive
        finally:
            with self._lock:
                connection.n_uses -= 1
                self._close_if_done(connection)

    def _take(self, path: Path) -> _Connection:
        """Return this thread's connection, counted as in use; opening one closes those of threads that have ended."""
        from pollux.archive import store

        thread, file = threading.current_thread(), file_identity(str(path))
        with self._lock:
            connection = self._connections.get(thread)
            if connection is not None and connection.archive.path == path and connection.file == file:
                connection.n_uses += 1
                return connection
        connection = _Connection(store.open_archive(path, write=False), file, n_uses=1)
        with self._lock:
            self._drop([other for other in self._connections if other is thread or not other.is_alive()])
            self._connections[thread] = connection
        return connection

    def close(self) -> None:
        """Close the connections of all threads; one that is in use is closed by its thread."""
        with self._lock:
            self._drop([*self._connections])

    def _drop(self, threads: Iterable[threading.Thread]) -> None:
        for thread in threads:
            connection = self._connections.pop(thread)
            connection.is_dropped = True
            self._close_if_done(connection)

    def _close_if_done(self, connection: _Connection) -> None:
        """Close a connection that nobody uses any more; SQLite crashes if it is closed during a query."""
        if connection.is_dropped and not connection.n_uses:
            connection.archive.close()


def archived_snapshot(config: Config, archive: Archive, state: Refresh) -> Snapshot:
    """Return a snapshot of an open archive, limited to the selected homes."""
    from pollux.archive import schema
    from pollux.library import project_memory
    from pollux.reports.sessions import unproven_hashes

    database = archive.database
    roots = [str(home.root) for home in config.homes]
    ids = None
    if not config.all_homes:
        ids = schema.sessions_of_homes(database, roots, with_imports=config.is_own_history)
    memory = project_memory.with_current_folder(config)
    project_memory.learn(config, unproven_hashes(database, memory), memory)
    return Snapshot(
        config,
        database,
        ArchivedSessions(database, memory, None if ids is None else roots),
        state.located,
        state.freshness,
        memory,
        archive=archive,
        ids=ids,
        elsewhere=0 if ids is None else schema.count_sessions(database) - len(ids),
        files_left_out=state.n_files,
    )


def _has_file(session: Session, reference: str) -> bool:
    return any(reference in (ref.path.stem, ref.path.name, str(ref.path)) for ref in session.files)


def size_and_time(path: str) -> tuple[int, int] | None:
    """Return size and modification time of a file; None if it does not exist, which its reader reports."""
    import os

    try:
        status = os.stat(path)  # noqa: PTH116  faster than a Path
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def file_identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another one that takes its name later; None if it does not exist."""
    import os

    try:
        status = os.stat(path)  # noqa: PTH116  as above
    except OSError:
        return None
    return status.st_dev, status.st_ino
