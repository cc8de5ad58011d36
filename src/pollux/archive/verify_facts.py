"""Compare the facts of an archive with those that a rebuild derives, and with the messages that `show` reads."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from pollux.archive import open_session, schema
from pollux.archive.damage import Damage, VerifyReport
from pollux.archive.migrations import supply_columns, supply_imported
from pollux.archive.store import Archive
from pollux.archive.verify import MAX_NAMED, PROVEN_BY_BYTES, rederive
from pollux.errors import PolluxError
from pollux.model import Session
from pollux.sessions.grouping import OpenSession
from pollux.sessions.locate import locate
from pollux.sessions.reader import Progress

_NOT_COMPARED = {
    "readings": ("snapshot",),
    "sessions": ("bundle",),
    "projects": ("path", "slug", "source", "proven", "git_remote"),
    "session_usage": tuple(
        name for name in schema.TABLES["session_usage"].names if name.startswith(("cost_", "unpriced_"))
    ),
    "model_calls": ("cost_nanousd", "price_id"),
    "session_digests": ("sha256",),
}
"""Columns with several valid forms, values that come from elsewhere and may change, or values filled in later."""
_Row = tuple[Any, ...]
_Values = Mapping[str, Any]
"""The compared values of a message or a call, by the name that a report uses."""


def verify_deeply(
    archive: Archive, report: VerifyReport, *, memory: Mapping[str, str], progress: Progress = lambda _done, _all: None
) -> None:
    """Rebuild all facts in a temporary database and compare them table by table; then compare each timeline."""
    if not report.bytes_are_ok:
        report.notes.append("The facts were not compared with rebuilt ones; repair the damage first.")
        return
    if not schema.are_current(archive.database):
        return  # `verify` has added a note
    with tempfile.TemporaryDirectory(prefix="pollux-") as folder:
        before = _data_version(archive.database)
        new = _attached(archive, Path(folder, "facts.db"))
        try:
            schema.reset(new)
            rebuilt = Archive(new, archive.path, is_writable=True, machine=archive.machine)
            rederive(rebuilt, memory=memory, progress=progress)
            damage = [
                difference for table in schema.TABLES for difference in _differences(archive.database, new, table)
            ]
        finally:
            new.close()
    damage += timeline_differences(archive.database)
    if damage and _data_version(archive.database) != before:
        report.notes.append("Another process wrote to the archive during the comparison; run it again afterwards.")
        return
    report.damage += damage
    report.not_compared = [what for what in report.not_compared if what != PROVEN_BY_BYTES]


def timeline_differences(database: sqlite3.Connection) -> list[Damage]:
    """Return the differences between the messages that `show` reads from the archived bytes and the fact tables."""
    damage: list[Damage] = []
    for session in open_session.history(database, locate(())).sessions:
        try:
            differences = _differences_from_rows(database, session)
        except PolluxError as error:
            differences = [str(error)]
        damage += [Damage("facts", f"session {session.id}: {difference}") for difference in differences[:MAX_NAMED]]
        if len(differences) > MAX_NAMED:
            n_more = len(differences) - MAX_NAMED
            damage.append(Damage("facts", f"session {session.id}: {n_more} more differences from what `show` reads"))
    return damage


def _differences_from_rows(database: sqlite3.Connection, session: Session) -> list[str]:
    """Return a sentence for each difference between the timeline of a session and its rows."""
    group = open_session.open_session(database, session)
    messages = _unequal("message", _shown_messages(group), _message_rows(database, session.id))
    calls = _unequal("model call", _shown_calls(group), _call_rows(database, session.id))
    return [*messages, *calls]


def _unequal(what: str, shown: Mapping[str, _Values], rows: Mapping[str, _Values]) -> Iterator[str]:
    for id_ in dict.fromkeys([*shown, *rows]):
        if id_ not in shown:
            yield f"{what} {id_} is in the rows, but not in what `show` reads from the bytes"
        elif id_ not in rows:
            yield f"{what} {id_} is in what `show` reads from the bytes, but not in the rows"
        elif names := [name for name, value in shown[id_].items() if value != rows[id_][name]]:
            yield f"{what} {id_}: `show` and the rows differ in {', '.join(names)}"


def _shown_messages(group: OpenSession) -> dict[str, _Values]:
    return {
        entry.id: {"order": seq, "kind": entry.kind, "fate": entry.fate, "number of tool calls": len(entry.tool_calls)}
        for seq, entry in enumerate(group.entries)
    }


def _message_rows(database: sqlite3.Connection, session_id: str) -> dict[str, _Values]:
    rows = database.execute(
        "SELECT message_id, seq, kind, fate, (SELECT count(*) FROM tool_calls WHERE "
        "tool_calls.session_id = messages.session_id AND tool_calls.message_id = messages.message_id) "
        "FROM messages WHERE session_id = ? ORDER BY seq",
        (session_id,),
    )
    return {
        message_id: {"order": seq, "kind": kind, "fate": fate, "number of tool calls": n_calls}
        for message_id, seq, kind, fate, n_calls in rows
    }


def _shown_calls(group: OpenSession) -> dict[str, _Values]:
    return {
        call.message_id: {"fate": call.fate, "tokens": msgspec.structs.astuple(call.tokens)} for call in group.usage()
    }


def _call_rows(database: sqlite3.Connection, session_id: str) -> dict[str, _Values]:
    rows = database.execute(
        "SELECT message_id, fate, tok_input, tok_cached, tok_output, tok_thoughts, tok_tool, tok_total "
        "FROM model_calls WHERE session_id = ?",
        (session_id,),
    )
    return {message_id: {"fate": fate, "tokens": tuple(counts)} for message_id, fate, *counts in rows}


def comparable(table: str, columns: Sequence[str], row: _Row) -> _Row:
    """Return a row without the values that may differ from those of a rebuild."""
    left_out = _NOT_COMPARED.get(table, ())
    values: list[Any] = []
    for name, value in zip(columns, row, strict=True):
        if name in left_out:
            values.append(None)
        else:
            values.append(_without_project(value) if (table, name) == ("sessions", "extra") else value)
    return tuple(values)


def _data_version(database: sqlite3.Connection) -> int:
    version: int = database.execute("PRAGMA data_version").fetchone()[0]
    return version


def _attached(archive: Archive, path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.as_uri()}", uri=True, isolation_level=None)
    try:
        database.execute("ATTACH ? AS archive", (f"{archive.path.resolve().as_uri()}?mode=ro",))
        database.execute("SELECT count(*) FROM archive.files")
    except sqlite3.OperationalError:
        with suppress(sqlite3.OperationalError):
            database.execute("DETACH archive")
        database.execute("ATTACH ? AS archive", (f"{archive.path.resolve().as_uri()}?mode=ro&immutable=1",))
    supply_columns(database, "archive")
    supply_imported(database)
    database.execute("CREATE TABLE main.facts_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    for table in schema.TABLES:  # so that no name refers to the archive's table
        database.execute(f"CREATE TABLE main.{table} (placeholder)")
    return database


def _differences(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> Iterator[Damage]:
    """Yield the first rows of a table that differ from a rebuild."""
    columns = [row[1] for row in old.execute(f"PRAGMA table_info({table})")]
    keys = [row[0] for row in old.execute(f"PRAGMA table_info({table})") if row[5]]
    n_different = 0
    for key, stored, rebuilt in _paired(schema.rows(old, table), schema.rows(new, table), keys):
        if stored is not None and rebuilt is not None:
            pairs = zip(comparable(table, columns, stored), comparable(table, columns, rebuilt), strict=True)
            names = [
                name for name, (old_value, new_value) in zip(columns, pairs, strict=True) if old_value != new_value
            ]
            difference = f"differs from a rebuild in {', '.join(names)}" if names else ""
        else:
            difference = "is in no rebuild" if rebuilt is None else "is missing"
        n_different += bool(difference)
        if difference and n_different <= MAX_NAMED:
            yield Damage("facts", f"{table} {' '.join(map(str, key))}: {difference}")
    if n_different > MAX_NAMED:
        yield Damage("facts", f"{table}: {n_different - MAX_NAMED} more rows differ from a rebuild")


def _paired(
    old: Iterator[_Row], new: Iterator[_Row], keys: Sequence[int]
) -> Iterator[tuple[_Row, _Row | None, _Row | None]]:
    """Yield each key with its row in two sorted tables, or None where a table has no such row."""

    def key(row: _Row) -> _Row:
        return tuple(row[index] for index in keys)

    first, second = next(old, None), next(new, None)
    while first is not None or second is not None:
        if first is not None and (second is None or _order(key(first)) < _order(key(second))):
            yield key(first), first, None
            first = next(old, None)
        elif second is not None and (first is None or _order(key(second)) < _order(key(first))):
            yield key(second), None, second
            second = next(new, None)
        elif first is not None:
            yield key(first), first, second
            first, second = next(old, None), next(new, None)


def _order(key: _Row) -> tuple[tuple[int, Any], ...]:
    """Return a sort key that orders values as SQLite does: numbers before text, text before blobs."""
    return tuple((_RANKS.get(type(value), 1), value) for value in key)


_RANKS: dict[type, int] = {type(None): 0, str: 2, bytes: 3}


def _without_project(extra: bytes) -> object:
    """Return the packed fields of a session without its project; unchanged if they are damaged."""
    try:
        values = msgspec.msgpack.decode(extra)
    except (ValueError, TypeError):
        return extra
    return {key: value for key, value in values.items() if key != "project"} if isinstance(values, dict) else extra
