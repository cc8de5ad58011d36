"""Compare the facts of an archive with those that a rebuild makes, and with the messages that `show` reads."""

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
from pollux.archive.migrations import supply_imported
from pollux.archive.store import Archive
from pollux.archive.verify import NAMED, PROVEN_BY_BYTES, rederive
from pollux.errors import PolluxError
from pollux.model import Session
from pollux.sessions.grouping import Group
from pollux.sessions.locate import locate
from pollux.sessions.reader import Progress

_NOT_COMPARED = {
    "readings": ("snapshot",),
    "sessions": ("bundle",),
    "projects": ("path", "slug", "how_known", "proven", "git_remote"),
    "session_usage": tuple(
        name for name in schema.TABLES["session_usage"].names if name.startswith(("cost_", "unpriced_"))
    ),
    "model_calls": ("cost_nanousd", "price_id"),
    "session_digests": ("sha256",),
}
"""What has more than one right form, is known from elsewhere and may change, or is looked up later."""
_Row = tuple[Any, ...]
_Values = Mapping[str, Any]
"""What is compared of a message or a call, by the name that a report has for it."""


def verify_deeply(
    archive: Archive,
    report: VerifyReport,
    *,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
) -> None:
    """Build all facts once more beside the archive and compare them table by table; then compare each timeline."""
    if not report.bytes_are_sound:
        report.notes.append("The facts were not compared with new ones: first the damage has to be repaired.")
        return
    if not schema.are_current(archive.database):
        return  # there is a note already
    with tempfile.TemporaryDirectory(prefix="pollux-") as folder:
        before = _data_version(archive.database)
        new = _attached(archive, Path(folder, "facts.db"))
        try:
            schema.reset(new)
            beside = Archive(new, archive.path, is_writable=True)
            rederive(beside, memory=memory, progress=progress)
            found = [one for table in schema.TABLES for one in _differences(archive.database, new, table)]
        finally:
            new.close()
    found += timeline_differences(archive.database)
    if found and _data_version(archive.database) != before:
        report.notes.append("The archive grew while its facts were compared; do it again when nobody writes to it.")
        return
    report.damage += found
    report.not_compared = [one for one in report.not_compared if one != PROVEN_BY_BYTES]


def timeline_differences(database: sqlite3.Connection) -> list[Damage]:
    """Return where the messages that `show` reads from the archived bytes differ from the rows of their session."""
    damage: list[Damage] = []
    for session in open_session.history(database, locate(())).sessions:
        try:
            differences = _differences_from_rows(database, session)
        except PolluxError as error:
            differences = [str(error)]
        damage += [Damage("facts", f"session {session.id}: {words}") for words in differences[:NAMED]]
        if len(differences) > NAMED:
            n_more = len(differences) - NAMED
            damage.append(Damage("facts", f"session {session.id}: {n_more} more differences from what `show` reads"))
    return damage


def _differences_from_rows(database: sqlite3.Connection, session: Session) -> list[str]:
    """Return what differs between the timeline of a session and its rows, one sentence for each difference."""
    group = open_session.opened(database, session)
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


def _shown_messages(group: Group) -> dict[str, _Values]:
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


def _shown_calls(group: Group) -> dict[str, _Values]:
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
    """Leave out what the archive does not hold itself, and what has more than one right form."""
    left_out = _NOT_COMPARED.get(table, ())
    return tuple(
        None if name in left_out else _without_project(value) if (table, name) == ("sessions", "body") else value
        for name, value in zip(columns, row, strict=True)
    )


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
    supply_imported(database)
    database.execute("CREATE TABLE main.facts_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    for table in schema.TABLES:  # so that no name means the archive's own
        database.execute(f"CREATE TABLE main.{table} (placeholder)")
    return database


def _differences(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> Iterator[Damage]:
    """Name the first rows of a table that are not as a rebuild makes them."""
    columns = [row[1] for row in old.execute(f"PRAGMA table_info({table})")]
    keys = [row[0] for row in old.execute(f"PRAGMA table_info({table})") if row[5]]
    n_found = 0
    for key, there, rebuilt in _side_by_side(schema.rows(old, table), schema.rows(new, table), keys):
        if there is not None and rebuilt is not None:
            pairs = zip(comparable(table, columns, there), comparable(table, columns, rebuilt), strict=True)
            which = [name for name, (one, other) in zip(columns, pairs, strict=True) if one != other]
            words = f"differs from a rebuild in {', '.join(which)}" if which else ""
        else:
            words = "is in no rebuild" if rebuilt is None else "is missing"
        n_found += bool(words)
        if words and n_found <= NAMED:
            yield Damage("facts", f"{table} {' '.join(map(str, key))}: {words}")
    if n_found > NAMED:
        yield Damage("facts", f"{table}: {n_found - NAMED} more rows are not as a rebuild makes them")


def _side_by_side(
    old: Iterator[_Row], new: Iterator[_Row], keys: Sequence[int]
) -> Iterator[tuple[_Row, _Row | None, _Row | None]]:
    def key(row: _Row) -> _Row:
        return tuple(row[place] for place in keys)

    one, other = next(old, None), next(new, None)
    while one is not None or other is not None:
        if one is not None and (other is None or _order(key(one)) < _order(key(other))):
            yield key(one), one, None
            one = next(old, None)
        elif other is not None and (one is None or _order(key(other)) < _order(key(one))):
            yield key(other), None, other
            other = next(new, None)
        elif one is not None:
            yield key(one), one, other
            one, other = next(old, None), next(new, None)


def _order(key: _Row) -> tuple[tuple[int, Any], ...]:
    """Return what orders keys as SQLite does, which puts numbers before text, and text before other bytes."""
    return tuple((_RANKS.get(type(value), 1), value) for value in key)


_RANKS: dict[type, int] = {type(None): 0, str: 2, bytes: 3}


def _without_project(body: bytes) -> object:
    """Return what a session's row says of it, but for its project; the body itself where it is damaged."""
    try:
        values = msgspec.msgpack.decode(body)
    except (ValueError, TypeError):
        return body
    return {key: value for key, value in values.items() if key != "project"} if isinstance(values, dict) else body
