"""Find the sessions and messages that pass the test of a field, with SQL on the fact tables."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from pollux.archive.load_sessions import AMONG, ids_as_json
from pollux.formats.tools import TOOLS, ToolInfo
from pollux.model import Attachment, Fate, Message
from pollux.search.conditions import Condition, command_matches, has_text, matches, path_matches
from pollux.search.fields import DROPPED, Level, field_named
from pollux.search.ranges import Bounds
from pollux.search.session_facts import (
    FactPlace,
    sessions_of_projects,
    sessions_with_id,
    sessions_with_model,
    sessions_with_sum,
)
from pollux.search.terms import FieldTest

__all__ = [
    "CONTENT",
    "TIMES",
    "FactPlace",
    "FactRows",
    "has_image",
    "is_computed",
    "is_tool_named",
    "level",
    "messages_of",
    "passing_messages",
    "present_rows",
    "rows_of_messages",
    "sessions_of",
]

CONTENT = "content"
"""The level of a test that needs the message itself, because no fact knows the answer."""
TIMES = frozenset({"on", "after", "before", "last"})
_COMPUTED = frozenset({"project", "dir", "cost", "tokens", "id", "model"})
_SESSION_TRAITS = frozenset({"subagent", "problem", "gone"})
_KNOWN_TOOLS = ", ".join(f"'{name}'" for name in TOOLS)
_OTHER_TOOLS = f"""
    WITH RECURSIVE names(name) AS (
        SELECT min(raw_name) FROM tool_calls
        UNION ALL SELECT (SELECT min(raw_name) FROM tool_calls WHERE raw_name > name) FROM names WHERE name IS NOT NULL
    )
    SELECT name FROM names WHERE name NOT IN ({_KNOWN_TOOLS})
"""  # noqa: S608  ours
"""The names of called tools that are not in our table, each found by one step in an index."""


class FactRows(NamedTuple):
    """Rows of a fact table that belong to messages which pass a test."""

    table: str
    where: str
    """A condition, with `{row}` for the name of the row."""
    values: list[object]


_UNSUCCESSFUL, _DROPPED = "{row}.status <> 'success'", "{row}.fate <> 'active'"
"""The conditions of two indexes; a statement has to repeat them."""
_FAILED_CALLS = (FactRows("tool_calls", f"({_UNSUCCESSFUL} AND {{row}}.status = 'error')", []),)
_COUNTS = {"gemini": "n_gemini", "error": "n_error", "rewound": "n_rewound", "compressed": "n_compressed"}
"""Columns of `sessions` that count the messages of a kind or fate."""


def level(test: FieldTest) -> str:
    """Return what has to pass a test: `part`, `message`, `session`, or the `content` of a message (`has_image`)."""
    if test.name == "has":
        if test.values[0] == "image":
            return CONTENT
        return Level.SESSION if test.values[0] in _SESSION_TRAITS else Level.MESSAGE
    field = field_named(test.name)
    assert field is not None  # the parser has no other tests
    return field.level


def has_image(message: Message) -> bool:
    """Return whether a message, or a result of one of its tool calls, contains an image."""
    attachments: list[Attachment] = [*message.attachments]
    for call in message.tool_calls:
        attachments += call.attachments
    return any(attachment.media_type.lower().startswith("image/") for attachment in attachments)


def is_computed(test: FieldTest) -> bool:
    """Return whether the sessions that pass a test are computed from all sessions, and not selected by SQL."""
    return test.name in _COMPUTED


def sessions_of(
    database: sqlite3.Connection,
    test: FieldTest,
    place: FactPlace,
    *,
    among: Collection[str] | None = None,
    most: int | None = None,
) -> set[str] | None:
    """Return the IDs of the sessions that pass a test, or that have a message which passes it.

    None if no fact knows the answer (`has:image`), or if the test is about parts (`in:`). A test of a time is passed by
    a session that was in use at that time, as in a list with `--since` and `--until`.

    Args:
        database: with the fact tables.
        test: of a field.
        place: for tests of projects.
        among: the sessions to test, or None for all.
        most: the number of sessions after which to stop, or None for no limit; ignored if they are computed.

    """
    if is_computed(test):
        ids = _computed_sessions(database, test, place)
        return ids if among is None else ids.intersection(among)
    if level(test) in {CONTENT, Level.PART}:
        return None
    ids = set()
    for table, where, values in _rows_of_sessions(test):
        condition = where.format(row=table)
        which, which_values = "1", list[object]()
        if among is not None:
            which, which_values = f"sessions.{AMONG}", [ids_as_json(set(among) - ids)]
        if table == "sessions":
            sql = f"SELECT session_id FROM sessions WHERE {which} AND {condition}"  # noqa: S608  ours
        elif table == "messages" or among is not None:  # most sessions have an early message that passes
            own = f"{table}.session_id = sessions.session_id AND {condition}"
            exists = f"EXISTS (SELECT 1 FROM {table} WHERE {own})"  # noqa: S608  ours
            sql = f"SELECT session_id FROM sessions WHERE {which} AND {exists}"  # noqa: S608  ours
        else:
            sql = f"SELECT DISTINCT session_id FROM {table} WHERE {which} AND {condition}"  # noqa: S608  ours
        rows = database.execute(f"{sql} LIMIT ?", [*which_values, *values, -1 if most is None else most])
        ids.update([session_id for (session_id,) in rows.fetchall()])
        if (most is not None and len(ids) >= most) or (among is not None and len(ids) == len(among)):
            break
    return ids


def _computed_sessions(database: sqlite3.Connection, test: FieldTest, place: FactPlace) -> set[str]:
    match test.name:
        case "project" | "dir":
            return sessions_of_projects(test, place)
        case "id":
            return sessions_with_id(database, test)
        case "model":
            return sessions_with_model(database, test)
    return sessions_with_sum(database, test)


def messages_of(database: sqlite3.Connection, test: FieldTest, session_ids: Collection[str]) -> dict[str, set[int]]:
    """Return the messages of some sessions that pass a test of messages, by their positions in the timelines."""
    positions: dict[str, set[int]] = defaultdict(set)
    ids = ids_as_json(session_ids)
    for table, where, values in _by_table(rows_of_messages(test)):
        condition = where.format(row=table)
        if table == "messages":
            sql = f"SELECT session_id, seq FROM messages WHERE {AMONG} AND {condition}"  # noqa: S608  ours
        else:
            sql = f"""
                SELECT session_id, seq FROM messages
                JOIN (SELECT DISTINCT session_id, message_id FROM {table} WHERE {AMONG} AND {condition})
                USING (session_id, message_id)
            """  # noqa: S608  ours
        for session_id, seq in database.execute(sql, [ids, *values]):
            positions[session_id].add(seq)
    return dict(positions)


def passing_messages(
    database: sqlite3.Connection, rows: Iterable[FactRows], session_id: str, positions: Collection[int]
) -> set[int]:
    """Return the positions of those of some messages of a session that have one of some rows of facts."""
    passing: set[int] = set()
    candidates = "session_id = ? AND seq IN (SELECT value FROM json_each(?))"
    for table, where, values in rows:
        condition = where.format(row=table)
        if table != "messages":
            own = f"{table}.session_id = messages.session_id AND {table}.message_id = messages.message_id"
            condition = f"EXISTS (SELECT 1 FROM {table} WHERE {own} AND {condition})"  # noqa: S608  ours
        sql = f"SELECT seq FROM messages WHERE {candidates} AND {condition}"  # noqa: S608  ours
        matching = database.execute(sql, [session_id, msgspec.json.encode(sorted(positions)).decode(), *values])
        passing.update(seq for (seq,) in matching)
    return passing


def present_rows(database: sqlite3.Connection, test: FieldTest) -> list[FactRows]:
    """Return the rows of facts whose messages pass a test, without alternatives that no row of the archive satisfies.

    That is worth a look if many sessions are tested one by one: most archives have no tools that we do not know.
    """
    alternatives = rows_of_messages(test)
    if len(alternatives) == 1:
        return alternatives
    present = []
    for rows in alternatives:
        sql = f"SELECT 1 FROM {rows.table} WHERE {rows.where.format(row=rows.table)} LIMIT 1"  # noqa: S608  ours
        if database.execute(sql, rows.values).fetchone():
            present.append(rows)
    return _by_table(present)


def _by_table(rows: Iterable[FactRows]) -> list[FactRows]:
    """Return rows of facts with one condition for each table, which takes one walk over the rows of a few sessions."""
    by_table: dict[str, list[Condition]] = {}
    for table, where, values in rows:
        by_table.setdefault(table, []).append((where, values))
    return [_either(table, conditions) for table, conditions in by_table.items()]


def rows_of_messages(test: FieldTest) -> list[FactRows]:
    """Return the rows of facts whose messages pass a test of messages; a message needs one of them."""
    match test.name:
        case "role":
            return [_choices("messages", "kind", test.values)]
        case "status":
            return [_statuses(test.values)]
        case "fate":
            return [_fates(test.values)]
        case "file":
            return [_either("file_touches", map(path_matches, test.values))]
        case "cmd":
            return [_either("shell_commands", map(command_matches, test.values))]
        case "tool":
            return [rows for value in test.values for rows in _calls_of_tool(value)]
        case "has" if test.values[0] == "diff":
            return [FactRows("file_touches", "{row}.evidence = 'display'", [])]
        case "has" if test.values[0] == "dropped":
            return [_fates((DROPPED,))]
        case "has" if test.values[0] == "error":
            return [FactRows("messages", "{row}.kind = 'error'", []), *_FAILED_CALLS]
        case name if name in TIMES:
            return [_either("messages", (_between("{row}.at_us", "{row}.at_us", bounds) for bounds in test.bounds))]
    raise ValueError(test)


def _rows_of_sessions(test: FieldTest) -> list[FactRows]:
    match test.name:
        case "kind":
            return [_choices("sessions", "kind", test.values)]
        case "role" | "fate" if _COUNTS.keys() >= set(test.values):
            counts = [f"{{row}}.{_COUNTS[value]} > 0" for value in test.values]
            return [FactRows("sessions", f"({' OR '.join(counts)})", [])]
        case "has" if test.values[0] == "error":
            return [FactRows("sessions", "{row}.n_error > 0", []), *_FAILED_CALLS]
        case "has" if test.values[0] == "problem":
            values = FactRows("value_problems", "{row}.message <> ''", [])
            return [FactRows("session_files", "{row}.problems > 0", []), values]
        case "has" if test.values[0] == "gone":
            return [FactRows("sessions", "{row}.is_deleted", [])]
        case "has" if test.values[0] == "subagent":
            children = "SELECT parent_session_id FROM sessions AS child WHERE child.root_session_id <> child.session_id"
            return [FactRows("sessions", f"{{row}}.session_id IN ({children})", [])]
        case name if name in TIMES:
            start, end = "{row}.started_us", "{row}.ended_us"
            used = (f"coalesce({end}, {start})", f"coalesce({start}, {end})")
            return [_either("sessions", (_between(*used, bounds) for bounds in test.bounds))]
    return rows_of_messages(test)


def _either(table: str, conditions: Iterable[Condition]) -> FactRows:
    texts, values = [], list[object]()
    for text, own_values in conditions:
        texts.append(text)
        values += own_values
    return FactRows(table, f"({' OR '.join(texts)})", values)


def _choices(table: str, column: str, choices: Sequence[str]) -> FactRows:
    return FactRows(table, _is_among(column, choices), [*choices])


def _is_among(column: str, choices: Sequence[str]) -> str:
    return f"{{row}}.{column} IN ({', '.join('?' * len(choices))})"


def _statuses(choices: Sequence[str]) -> FactRows:
    rows = _choices("tool_calls", "status", choices)
    return rows if "success" in choices else rows._replace(where=f"({_UNSUCCESSFUL} AND {rows.where})")


def _fates(choices: Sequence[str]) -> FactRows:
    fates = [*choices]
    if DROPPED in fates:
        fates += [fate for fate in Fate if fate is not Fate.ACTIVE]
    rows = _choices("messages", "fate", fates)
    return rows if Fate.ACTIVE in fates else rows._replace(where=f"({_DROPPED} AND {rows.where})")


def _between(last: str, first: str, bounds: Bounds) -> Condition:
    """Return the condition for something that lasts from one column to another: it overlaps the bounds."""
    texts, values = ["1"], list[object]()
    if bounds.low is not None:
        texts.append(f"{last} >= ?")
        values.append(bounds.low)
    if bounds.high is not None:
        texts.append(f"{first} < ?")
        values.append(bounds.high)
    return f"({' AND '.join(texts)})", values


def _calls_of_tool(value: str) -> list[FactRows]:
    """Return the calls of tools with a name: as recorded, as displayed, in statistics, or of the MCP server.

    Known names are compared here, once. An index lists the names that the facts contain, so only the calls of tools
    that are not in our table are compared one by one.
    """
    names = [name for name, info in TOOLS.items() if _is_tool(info, value)]
    texts, values = [], list[object]()
    for column in ("raw_name", "canonical", "label"):
        text, own_values = matches(f"{{row}}.{column}", value)
        texts.append(text)
        values += own_values
    server, server_values = matches("{row}.mcp_server", value)
    return [
        FactRows("tool_calls", _is_among("raw_name", names), [*names]),
        FactRows("tool_calls", f"({{row}}.raw_name IN ({_OTHER_TOOLS}) AND ({' OR '.join(texts)}))", values),
        FactRows("tool_calls", f"({{row}}.mcp_server IS NOT NULL AND {server})", server_values),
    ]


def is_tool_named(name: str, value: str) -> bool:
    """Return whether `tool:` with a value finds the calls of a tool with a recorded name."""
    return _is_tool(TOOLS[name], value) if name in TOOLS else has_text(name, value)


def _is_tool(info: ToolInfo, value: str) -> bool:
    return any(has_text(name, value) for name in (info.name, info.canonical, info.label, info.display))
