"""Open an archive from someone else for import, and check everything before it is used.

Such a file may be a backup, a damaged copy, or a trap. It is opened read-only with SQLite's protections enabled. Its
tables must be plain tables with the columns of an archive, because a view may never end. Each row must have valid types
and ranges, because rows of an archive are not checked again when they are read. Bytes are decompressed only up to the
length of their segment, and used only if they match its SHA-256. Errors name this file, not the importing archive.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import zstandard
from msgspec import Meta

from pollux.archive import raw, schema
from pollux.archive.inventory import original_path
from pollux.archive.migrations import OLD_COLUMNS, STEPS
from pollux.archive.raw import UNPACKING
from pollux.archive.store import check_size, has_journal
from pollux.disk.write import path_fault
from pollux.errors import ArchiveError
from pollux.model import Problem
from pollux.text.escape import printable

_Row = TypeVar("_Row", bound=msgspec.Struct)
_Id = Annotated[int, Meta(ge=1)]
_Time = Annotated[int, Meta(ge=0, le=253_402_300_799_999_999)]
"""Microseconds since 1970, up to the year 9999, the last one that `datetime` supports."""
_Count = Annotated[int, Meta(ge=0, le=1 << 50)]
_Text = Annotated[str, Meta(min_length=1, max_length=4096)]
_Probe = Annotated[bytes, Meta(max_length=32)]
"""A SHA-256, or empty if the file was written while it was read."""
_Body = Annotated[bytes, Meta(max_length=1 << 20)]
_FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises for a damaged file; its messages may quote bytes that are not UTF-8."""
_MAX_VALUE = 32 << 20
"""Maximum length of a value that SQLite may return; a segment is much shorter."""
_HEADER = 18
"""Maximum length of the header of a zstandard frame, which contains the decompressed size."""


class FileRow(msgspec.Struct, frozen=True):
    """A row of `files`."""

    id: _Id
    machine: Annotated[str, Meta(max_length=4096)]
    home: _Text
    path: _Text
    mtime_ns: int
    first_us: _Time
    last_us: _Time
    deleted_us: _Time | None
    version_id: _Id | None


class VersionRow(msgspec.Struct, frozen=True):
    """A row of `versions`."""

    id: _Id
    number: int
    archived_bytes: _Count
    head: _Probe
    tail: _Probe
    mtime_ns: int
    first_us: _Time


class SegmentRow(msgspec.Struct, frozen=True):
    """A row of `segments`, without the packed bytes."""

    id: _Id
    start: _Count
    length: Annotated[int, Meta(ge=1, le=raw.SEGMENT)]
    sha256: Annotated[bytes, Meta(min_length=32, max_length=32)]
    base_id: _Id | None
    depth: Annotated[int, Meta(ge=0, le=raw.MAX_CHAIN)]

    @property
    def key(self) -> tuple[int, int, bytes]:
        """Equal for two segments with the same bytes at the same position of a file."""
        return self.start, self.length, self.sha256


class _SealRow(msgspec.Struct, frozen=True):
    number: _Id
    body: _Body


class _EntryRow(msgspec.Struct, frozen=True):
    place: _Count
    body: _Body


class _OwnerRow(msgspec.Struct, frozen=True):
    file_version_id: _Id
    session_id: str


_NEEDED: Mapping[str, frozenset[str]] = {
    "files": frozenset({*FileRow.__struct_fields__, "forgotten_us"}),
    "versions": frozenset({*VersionRow.__struct_fields__, "file_id"}),
    "segments": frozenset({*SegmentRow.__struct_fields__, "version_id", "data"}),
    "facts_meta": frozenset({"key", "value"}),
}
_OPTIONAL: Mapping[str, frozenset[str]] = {
    "sealed": frozenset({"place", "body"}),
    "seals": frozenset({"number", "body"}),
    "session_files": frozenset({"session_id", "file_version_id"}),
}
"""Tables that an archive of an older Pollux may lack, or that can be rebuilt."""


class ForeignArchive:
    """One snapshot of an archive from someone else."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        """Wrap a connection that `open_foreign` has checked."""
        self.path = path
        self.database = database
        self.problems: list[Problem] = []
        """Invalid rows, which were skipped."""
        self._tables = {row[0] for row in self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        self._old_names = {table: self._find_old_names(table) for table in OLD_COLUMNS}

    def n_bytes(self) -> int:
        """Return the approximate number of archived bytes, for a progress bar."""
        total = next(self._rows("SELECT CAST(total(min(max(length, 0), ?)) AS INTEGER) FROM segments", raw.SEGMENT))[0]
        return total if isinstance(total, int) else 0

    def files(self) -> Iterator[FileRow]:
        """Yield all files that were not forgotten; invalid rows become problems."""
        for row in self._checked("files", FileRow, "WHERE forgotten_us IS NULL ORDER BY id"):
            fault = path_fault(row.path) or ("its home contains a NUL character" if "\0" in row.home else None)
            if fault:
                self._problem(f"row {row.id} of its table files: {fault}")
            else:
                yield row

    def versions(self, file: FileRow) -> list[VersionRow]:
        """Return the versions of a file, oldest first."""
        return [*self._checked("versions", VersionRow, "WHERE file_id = ? ORDER BY number, id", file.id, file=file)]

    def segments(self, version: VersionRow, file: FileRow) -> list[SegmentRow]:
        """Return the segments of a version, in order."""
        which = "WHERE version_id = ? ORDER BY start, id"
        return [*self._checked("segments", SegmentRow, which, version.id, file=file)]

    def content(self, segment: SegmentRow) -> bytes | None:
        """Return the bytes of a segment, or None if they do not match its SHA-256."""
        try:
            if not self._has_valid_chain(segment):
                return None
            return raw.content(self.database, segment.id)
        except UNPACKING:
            return None

    def packed(self, segment: SegmentRow) -> bytes:
        """Return the compressed bytes of a segment whose content was checked."""
        data: bytes = next(self._rows("SELECT data FROM segments WHERE id = ?", segment.id))[0]
        return data

    def reader(self, version: VersionRow, segments: list[SegmentRow]) -> raw.VersionReader:
        """Open checked segments of a version for random access."""
        ranges = [(segment.start, segment.length, segment.id) for segment in segments]
        return raw.VersionReader(self.database, version.id, ranges)

    def owners(self) -> dict[int, set[str]]:
        """Return the sessions that each file contains; empty if its facts are not those of this reader."""
        owners: dict[int, set[str]] = {}
        if "session_files" not in self._tables or not self._query(lambda: schema.are_current(self.database)):
            return owners
        files = {row[0]: row[1] for row in self._rows("SELECT id, file_id FROM versions")}
        for row in self._checked("session_files", _OwnerRow, ""):
            if row.file_version_id in files:
                owners.setdefault(files[row.file_version_id], set()).add(row.session_id)
        return owners

    def seals(self) -> list[tuple[int, bytes]]:
        """Return the seals with their numbers."""
        if not {"seals", "sealed"} <= self._tables:
            return []
        return [(row.number, row.body) for row in self._checked("seals", _SealRow, "ORDER BY number")]

    def entries(self) -> list[tuple[int, bytes]]:
        """Return the sealed entries with their numbers."""
        if not {"seals", "sealed"} <= self._tables:
            return []
        return [(row.place, row.body) for row in self._checked("sealed", _EntryRow, "ORDER BY place")]

    def _has_valid_chain(self, segment: SegmentRow) -> bool:
        """Return whether a segment and its bases name their lengths, and have decreasing depths."""
        while True:
            head = next(
                self._rows(
                    f"SELECT substr(data, 1, {_HEADER}), typeof(data) FROM segments WHERE id = ?",  # noqa: S608
                    segment.id,
                )
            )
            if head[1] != "blob" or zstandard.frame_content_size(head[0]) > segment.length:
                return False
            if segment.base_id is None:
                return True
            base = next(self._checked("segments", SegmentRow, "WHERE id = ?", segment.base_id), None)
            if base is None or base.depth >= segment.depth:
                return False
            segment = base

    def _checked(
        self, table: str, kind: type[_Row], which: str, *values: int, file: FileRow | None = None
    ) -> Iterator[_Row]:
        """Yield the valid rows of a table; those with wrong types or ranges become problems."""
        columns = kind.__struct_fields__
        old_names = self._old_names.get(table, {})
        selected = ", ".join(old_names.get(column, column) for column in columns)
        for row in self._rows(f"SELECT {selected} FROM {table} {which}", *values):  # noqa: S608  our names
            try:
                yield msgspec.convert(dict(zip(columns, row, strict=True)), kind, builtin_types=(bytes,))
            except msgspec.ValidationError as error:
                self._problem(f"row {row[0]!s:.40} of its table {table} is invalid ({error})", file)

    def _find_old_names(self, table: str) -> dict[str, str]:
        """Return the columns of a table that have their old names in this archive; old names by new ones."""
        columns = {row[1] for row in self._rows(f"PRAGMA table_info({table})")}
        return {new: old for old, new in OLD_COLUMNS[table].items() if new not in columns}

    def _rows(self, query: str, *values: int) -> Iterator[tuple[Any, ...]]:
        rows = self._query(lambda: self.database.execute(query, values))
        while (row := self._query(rows.fetchone)) is not None:
            yield row

    def _query(self, run: Callable[[], Any]) -> Any:  # noqa: ANN401  any result of SQLite
        try:
            return run()
        except _FAULTS as error:
            raise _refusal(self.path, error) from None

    def _problem(self, message: str, file: FileRow | None = None) -> None:
        path = str(original_path(file.home, file.path)) if file else str(self.path)
        self.problems.append(Problem("damaged-archive", f"left out: {printable(message)}", path))


@contextmanager
def open_foreign(path: Path) -> Iterator[ForeignArchive]:
    """Open an archive from someone else. Raises `ArchiveError` if it is not an archive, or not safe to read."""
    try:
        check_size(path)
        database = _connected(path)
    except (OSError, *_FAULTS) as error:
        raise _refusal(path, error) from None
    with closing(database):
        try:
            _check_format(database, path)
            _check_tables(database, path)
        except _FAULTS as error:
            raise _refusal(path, error) from None
        yield ForeignArchive(path, database)


def _connected(path: Path) -> sqlite3.Connection:
    """Connect read-only; on a read-only medium, where no journal can be created, as an immutable file."""
    last = sqlite3.OperationalError("unable to open database file")
    for options in ("mode=ro", "mode=ro&immutable=1"):
        if options != "mode=ro" and has_journal(path):
            break  # the newest part would be missing
        database = sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True, isolation_level=None)
        try:
            _guard(database)
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            database.close()
            last = error
        except BaseException:
            database.close()
            raise
        else:
            return database
    raise last


def _guard(database: sqlite3.Connection) -> None:
    """Keep SQLite from executing code in the schema and from trusting damaged pages."""
    database.text_factory = _text
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "ignore_check_constraints = ON", "mmap_size = 0"):
        database.execute(f"PRAGMA {pragma}")
    database.execute("PRAGMA query_only = ON")
    database.execute("BEGIN")  # one snapshot, although its owner may be writing


def _text(data: bytes) -> str | bytes:
    """Decode text; invalid UTF-8 stays bytes, which the checks of columns then refuse."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _check_format(database: sqlite3.Connection, path: Path) -> None:
    number = database.execute("PRAGMA user_version").fetchone()[0]
    if number > len(STEPS):
        raise ArchiveError(
            f"{path} was written by a newer Pollux (format {number}, this one knows {len(STEPS)}); update Pollux first."
        )


def _check_tables(database: sqlite3.Connection, path: Path) -> None:
    """Raise `ArchiveError` unless the tables are plain, have the columns of an archive, and are not damaged."""
    expected = {**_NEEDED, **_OPTIONAL}
    tables = set()
    for kind, name, table, statement in database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"):
        is_virtual = kind == "table" and " ".join(str(statement).upper().split()[:2]) == "CREATE VIRTUAL"
        is_strange_trigger = kind == "trigger" and table in expected and name not in schema.COUNTING_TRIGGERS
        if kind == "view" or is_virtual or is_strange_trigger:
            what = "virtual table" if is_virtual else kind
            raise _invalid(path, f"it has a {what} called {printable(str(name))[:80]}, which no archive has")
        if kind == "table":
            tables.add(name)
    for table, columns in expected.items():
        if table not in tables:
            if table in _NEEDED:
                raise _invalid(path, f"it has no table called {table}")
            continue
        shape = database.execute(f"PRAGMA table_xinfo({table})").fetchall()
        old_names = OLD_COLUMNS.get(table, {})
        missing = columns - {old_names.get(row[1], row[1]) for row in shape if row[6] == 0}
        if missing:
            raise _invalid(path, f"its table {table} has no plain column {min(missing)}")
        if "id" in columns and not any(row[1] == "id" and row[5] == 1 for row in shape):
            raise _invalid(path, f"its table {table} has no primary key id")
        for (message,) in database.execute(f"PRAGMA quick_check({table})"):
            if message != "ok":  # a cycle of pages would be read for ever
                raise _invalid(path, f"its table {table} is damaged ({_last_line(message)})")


def _last_line(text: str) -> str:
    """Return the last line of a message of SQLite, whose first line may only name the database."""
    return printable(text.strip().rpartition("\n")[2])[:200]


def _invalid(path: Path, reason: str) -> ArchiveError:
    return ArchiveError(f"{path} cannot be imported: {reason}; name an archive, or a backup of one.")


def _refusal(path: Path, error: Exception) -> ArchiveError:
    if isinstance(error, UnicodeDecodeError):
        reason = "its schema is damaged"
    else:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return ArchiveError(f"{path} cannot be imported ({printable(reason)}); name an archive, or a backup of one.")
