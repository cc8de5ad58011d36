"""List the files that tool calls touched and the commands that they ran, as far as they match a query.

The fields of a query choose the calls. Its words, phrases and patterns have to be in the path or the command itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from pollux.archive.load_sessions import ids_as_json
from pollux.errors import InvalidQueryError
from pollux.model import Project
from pollux.search import conditions, facts
from pollux.search.conditions import Condition
from pollux.search.facts import CONTENT, FactPlace
from pollux.search.fields import Level
from pollux.search.query import compile_regex
from pollux.search.terms import AllOf, AnyOf, FieldTest, Node, Not, Query, Regex, leaves
from pollux.search.values import CommandRun, TouchedFile
from pollux.text.times import from_microseconds

if TYPE_CHECKING:
    import regex

_REGEX_SECONDS = 0.2
_AMONG = "item.session_id IN (SELECT replace(value, char(65535), char(0)) FROM json_each(?))"
_EVERY_SESSION: Condition = ("1", [])


class _ListKind(NamedTuple):
    """Where the rows of a list come from."""

    option: str
    table: str
    text: str
    """The column in which words are searched."""
    columns: str
    key: str
    """The last column of the key of the table."""
    was_done: str
    """The condition on calls that had an effect."""
    contains: Callable[[str, str], Condition]


_FILES = _ListKind(
    "--files",
    "file_touches",
    "path",
    "item.path, item.op, item.lines_added, item.lines_removed",
    "path",
    "call.status = 'success'",
    conditions.path_contains,
)
_COMMANDS = _ListKind(
    "--commands",
    "shell_commands",
    "command",
    "item.command, item.program, call.exit_code, call.status",
    "n",
    "call.status <> 'cancelled'",
    conditions.contains,
)


class _RowPlace(NamedTuple):
    """Where a row comes from."""

    at: datetime | None
    session_id: str
    message_id: str
    number: int
    project: Project
    title: str


def touched_files(
    database: sqlite3.Connection,
    query: Query,
    place: FactPlace,
    *,
    ids: Collection[str] | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> tuple[tuple[TouchedFile, ...], int]:
    """Return the files that were touched, the latest first, and how many there are without the limit.

    Calls that did not succeed are left out, unless the query has a test of `status:`. Raises `InvalidQueryError` for
    tests that say nothing about files.

    Args:
        database: with the fact tables.
        query: which files to list; all if it is empty.
        place: for tests of projects.
        ids: sessions to which the list is limited, or None for all.
        limit: the number of files to return, or None for all.
        offset: the number of files to pass over.

    """
    files = []
    rows, total = _rows(database, _FILES, query, place, ids, limit, offset)
    for origin, fate, (path, op, added, removed) in rows:
        files.append(TouchedFile(path, op, *origin, added, removed, fate))
    return tuple(files), total


def commands_run(
    database: sqlite3.Connection,
    query: Query,
    place: FactPlace,
    *,
    ids: Collection[str] | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> tuple[tuple[CommandRun, ...], int]:
    """Return the commands that were run, the latest first, and how many there are without the limit.

    A line with several commands is several of them, each with the exit code of the line. Commands that the user
    cancelled are left out, unless the query has a test of `status:`. The arguments are those of `touched_files`. Raises
    `InvalidQueryError` for tests that say nothing about commands.
    """
    commands = []
    rows, total = _rows(database, _COMMANDS, query, place, ids, limit, offset)
    for origin, fate, (command, program, exit_code, status) in rows:
        commands.append(CommandRun(command, program, *origin, exit_code, status, fate))
    return tuple(commands), total


def _rows(
    database: sqlite3.Connection,
    kind: _ListKind,
    query: Query,
    place: FactPlace,
    ids: Collection[str] | None,
    limit: int | None,
    offset: int,
) -> tuple[list[tuple[_RowPlace, str, list[Any]]], int]:
    where, values = _Conditions(database, kind, query, place).of(query.node)
    ids = _in_use(database, query, place, ids)
    among, among_values = _EVERY_SESSION if ids is None else (_AMONG, [ids_as_json(ids)])
    was_done = "1" if _tests_status(query) else kind.was_done
    # The order of the joins is fixed, so that paths and commands are compared before calls and messages are looked up.
    source = f"""
        FROM {kind.table} AS item
        CROSS JOIN tool_calls AS call USING (session_id, message_id, idx)
        CROSS JOIN messages AS message USING (session_id, message_id)
        WHERE message.is_own AND {was_done} AND {among} AND {where}
    """
    columns = f"count(*) OVER (), message.at_us, session_id, message_id, message.seq, message.fate, {kind.columns}"
    order = f"message.at_us DESC, session_id, message.seq DESC, idx DESC, item.{kind.key} DESC"
    with _regex_function(database, query):
        rows = database.execute(
            f"SELECT {columns} {source} ORDER BY {order} LIMIT ? OFFSET ?",
            [*among_values, *values, -1 if limit is None else limit, offset],
        ).fetchall()
        total = rows[0][0] if rows else 0
        if offset and not rows:
            total = database.execute(f"SELECT count(*) {source}", [*among_values, *values]).fetchone()[0]
    titles = dict(database.execute("SELECT session_id, title FROM sessions")) if rows else {}
    placed = []
    for _, at_us, session_id, message_id, seq, fate, *own_columns in rows:
        project = place.projects.get(session_id, Project())
        origin = _RowPlace(from_microseconds(at_us), session_id, message_id, seq, project, titles.get(session_id, ""))
        placed.append((origin, fate, own_columns))
    return placed, total


def _in_use(
    database: sqlite3.Connection, query: Query, place: FactPlace, ids: Collection[str] | None
) -> Collection[str] | None:
    """Return the sessions that were in use at the times that a query names, so that others need not be searched."""
    for node in query.node.nodes:
        if isinstance(node, FieldTest) and node.name in facts.TIMES:
            used = facts.sessions_of(database, node, place) or set()
            ids = used if ids is None else used.intersection(ids)
    return ids


def _tests_status(query: Query) -> bool:
    return any(isinstance(leaf, FieldTest) and leaf.name == "status" for leaf, _ in leaves(query.node))


class _Conditions:
    """Turns the tree of a query into a condition on the rows of a list."""

    def __init__(self, database: sqlite3.Connection, kind: _ListKind, query: Query, place: FactPlace) -> None:
        self._database, self._kind, self._query, self._place = database, kind, query, place
        self._aliases = {kind.table: "item", "tool_calls": "call", "messages": "message"}

    def of(self, node: Node) -> Condition:
        match node:
            case AllOf(nodes):
                return self._joined(nodes, " AND ")
            case AnyOf(nodes):
                return self._joined(nodes, " OR ")
            case Not(inner):
                text, values = self.of(inner)
                return f"NOT coalesce({text}, 0)", values
            case Regex():
                return f"matches_regex(?, item.{self._kind.text})", [_regexes(self._query).index(node)]
            case FieldTest():
                return self._test(node)
            case _:
                return self._kind.contains(f"item.{self._kind.text}", node.text)

    def _joined(self, nodes: tuple[Node, ...], operator: str) -> Condition:
        texts, values = [], list[object]()
        for node in nodes:
            text, own_values = self.of(node)
            texts.append(text)
            values += own_values
        return f"({operator.join(texts) or '1'})", values

    def _test(self, test: FieldTest) -> Condition:
        level = facts.level(test)
        if level in {Level.PART, CONTENT}:
            text = f"{test.name}:{','.join(test.values)}"
            reason = f'"{text}" cannot be combined with {self._kind.option}'
            raise InvalidQueryError(reason, "Leave it out.", query=self._query.text, position=test.at)
        if level == Level.SESSION:
            ids = facts.sessions_of(self._database, test, self._place)
            return _AMONG, [ids_as_json(ids or ())]
        texts, values = [], list[object]()
        for table, where, own_values in facts.rows_of_messages(test):
            values += own_values
            if table in self._aliases:
                texts.append(where.format(row=self._aliases[table]))
            else:
                messages = f"SELECT session_id, message_id FROM {table} WHERE {where.format(row=table)}"  # noqa: S608  ours
                texts.append(f"(item.session_id, item.message_id) IN ({messages})")
        return f"({' OR '.join(texts)})", values


def _regexes(query: Query) -> list[Regex]:
    return [leaf for leaf, _ in leaves(query.node) if isinstance(leaf, Regex)]


@contextmanager
def _regex_function(database: sqlite3.Connection, query: Query) -> Iterator[None]:
    """Add the SQL function that matches the query's regular expressions. Raises `InvalidQueryError` for a slow one."""
    nodes = _regexes(query)
    if not nodes:
        yield
        return
    slow: list[Regex] = []
    patterns: Mapping[int, regex.Pattern[str]] = {number: compile_regex(node) for number, node in enumerate(nodes)}

    def matches(number: int, text: str) -> bool:
        try:
            return patterns[number].search(text, timeout=_REGEX_SECONDS) is not None
        except TimeoutError:
            slow.append(nodes[number])
            raise

    database.create_function("matches_regex", 2, matches)
    try:
        yield
    except sqlite3.OperationalError:
        if not slow:
            raise
        reason, advice = "this regular expression takes too long", "Use a simpler one."
        raise InvalidQueryError(reason, advice, query=query.text, position=slow[0].at) from None
    finally:
        database.create_function("matches_regex", 2, None)
