"""The facts in memory, for statistics on sessions that are in no archive: written by what writes an archive's."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

import msgspec

from pollux.archive import fact_rows, schema
from pollux.archive.failures import concerns_everybody, left_out
from pollux.archive.migrations import savepoint, supply_imported
from pollux.archive.owners import mark_copies
from pollux.errors import UnreadableFileError
from pollux.model import Problem, Session
from pollux.sessions.grouping import Group
from pollux.sessions.reader import Progress
from pollux.sessions.replay.reading import cannot_derive, reason_of


def in_memory(
    sessions: Sequence[Session], opened: Callable[[Session], Group], problems: list[Problem], progress: Progress
) -> sqlite3.Connection:
    """Open one session after the other, and keep the facts; arguments and bodies of calls are not among them."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.execute("CREATE TABLE facts_meta (key TEXT PRIMARY KEY, value TEXT)")
    schema.reset(database)
    supply_imported(database)
    database.execute("BEGIN")
    for number, one in enumerate(sessions, 1):
        try:
            with savepoint(database):
                problems += _write(database, one, opened(one))
        except UnreadableFileError as error:  # gone since it was listed
            problems.append(Problem("unreadable-file", str(error)))
        except Exception as error:
            if concerns_everybody(error):
                raise
            problems += [cannot_derive(ref.path, reason_of(error)) for ref in one.files]
        progress(number, len(sessions))
    mark_copies(database)
    database.execute("COMMIT")
    return database


def _write(database: sqlite3.Connection, session: Session, group: Group) -> list[Problem]:
    """Write the facts of one session; return the values that no column holds."""
    for version_id, placed in enumerate(group.files, 1):
        placed.version_id = version_id
    fact_rows.write(database, group, msgspec.structs.replace(session, calls=group.usage()), "")
    database.execute("UPDATE tool_calls SET args_json = '' WHERE session_id = ?", (session.id,))  # may be whole files
    rows = database.execute(
        "SELECT file_version_id, line, message FROM value_problems WHERE session_id = ? ORDER BY line, message_id, idx",
        (session.id,),
    )
    files = {placed.version_id: str(placed.reading.path) for placed in group.files}
    return [left_out(what, files[version_id], line) for version_id, line, what in rows]
