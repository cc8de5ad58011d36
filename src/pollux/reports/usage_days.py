"""The sums of all model calls by day and model, which an archive stores and renews for the days that have changed.

Triggers on the calls (`archive.schema`) record the quarters of an hour that have changed since the sums were stored.
Only the days of these quarters are added up again. A day is one in the user's time zone; each row says by its first
quarter which day it is, so rows can be folded like those of quarters.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

import msgspec

from pollux.archive.schema import NO_TIME, SUMS, clear_sums
from pollux.prices import Prices
from pollux.reports.periods import QUARTER_US, local
from pollux.text.times import microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000
_LEVEL = 1
"""Of compression: rows are written about as often as they are read."""
_FUNCTION = "pollux_day"
_QUARTER = f"at_us - at_us % {QUARTER_US}"
_FRESH = "max(tok_input - tok_cached, 0) + tok_tool"


class DaySum(NamedTuple):
    """The sums of the calls of a day, or of a quarter of an hour, with one model and at one price."""

    quarter_us: int | None
    """The first quarter of an hour with such a call; None for calls without a time."""
    model: str | None
    is_active: int
    is_priced: int
    price_id: str | None
    tier: int
    """Which of the `tier_limits` the prompt exceeds, from 1; 0 for none."""
    fresh: int
    """Input that was not cached."""
    calls: int
    input: int
    cached: int
    output: int
    thoughts: int
    tool: int
    total: int
    cost_nanousd: int
    inconsistent: int
    last_us: int | None


class Days(NamedTuple):
    """What the stored sums depend on besides the calls."""

    prices: Prices
    zone: tzinfo | None
    zone_name: str

    @property
    def name(self) -> str:
        """The name under which the sums are stored."""
        return f"{SUMS}{self.prices.version} {self.zone_name} {_statement(self.prices)}"


def tier_limits(prices: Prices) -> list[int]:
    """Return the lengths of prompts above which some price has a higher rate."""
    return sorted({tier.above for price in (*prices.rows, *prices.overrides) for tier in price.tiers if tier.above})


def update_day_sums(database: sqlite3.Connection, days: Days) -> None:
    """Store the sums of an archive that is open for writing, unless they are up to date."""
    stored = database.execute("SELECT 1 FROM reports WHERE name = ?", (days.name,)).fetchone()
    if stored is None or database.execute("SELECT 1 FROM changed_quarters LIMIT 1").fetchone() is not None:
        day_sums(database, days)


def day_sums(database: sqlite3.Connection, days: Days) -> list[DaySum]:
    """Return the sums of all calls of an archive by day: stored ones, and new ones for days that have changed."""
    if database.in_transaction:  # of a reader, which cannot store rows
        return _current_rows(database, days)[0]
    database.execute("BEGIN")  # one snapshot, although other processes may write
    try:
        rows, is_new = _current_rows(database, days)
        if is_new:
            _store(database, days.name, rows)
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")
    return rows


def sums_of_sessions(
    database: sqlite3.Connection,
    prices: Prices,
    which: tuple[str, Collection[object]],
    window: tuple[datetime | None, datetime | None],
    model: str | None = None,
) -> list[DaySum]:
    """Return the sums by quarter of an hour of the calls of some sessions within a window, read from the calls.

    `which` is a condition on `model_calls` with its values.
    """
    condition, values = which
    conditions, all_values = [condition], [*values]
    since, until = window
    if since:
        conditions.append("at_us >= ?")
        all_values.append(microseconds(since))
    if until:
        conditions.append("at_us < ?")
        all_values.append(microseconds(until))
    if model is not None:
        conditions.append("instr(lower(coalesce(model, '')), ?)")
        all_values.append(model.lower())
    sql = _statement(prices, " AND ".join(conditions), _QUARTER)
    return [DaySum._make(row) for row in database.execute(sql, all_values)]


def _statement(prices: Prices, which: str = "1", key: str = f"{_FUNCTION}({_QUARTER})") -> str:
    prompt = f"{_FRESH} + tok_cached"
    tier = " + ".join(f"({prompt} > {limit})" for limit in tier_limits(prices)) or "0"
    keys = f"model, fate = 'active', cost_nanousd IS NOT NULL, price_id, {tier}"
    return f"""
        SELECT min({_QUARTER}), {keys}, sum({_FRESH}), count(*), sum(tok_input), sum(tok_cached), sum(tok_output),
            sum(tok_thoughts), sum(tok_tool), sum(tok_total), sum(coalesce(cost_nanousd, 0)), sum(NOT tok_consistent),
            max(at_us)
        FROM model_calls WHERE owner_session_id IS NULL AND {which} GROUP BY {key}, {keys}
    """  # noqa: S608  ours


def _current_rows(database: sqlite3.Connection, days: Days) -> tuple[list[DaySum], bool]:
    """Return the sums, and whether they differ from the stored ones."""
    day_of = _day_finder(days.zone)
    stored = _stored_rows(database, days.name)
    if stored is None or (days.zone is None and not _are_days(stored, day_of)):
        return _added_up(database, days, day_of), True
    changed = [row[0] for row in database.execute("SELECT quarter_us FROM changed_quarters")]
    if not changed:
        return stored, False
    changed_days = {day_of(None if quarter_us == NO_TIME else quarter_us) for quarter_us in changed}
    rows = [row for row in stored if day_of(row.quarter_us) not in changed_days]
    return rows + _added_up(database, days, day_of, changed_days, changed), True


def _added_up(
    database: sqlite3.Connection,
    days: Days,
    day_of: Callable[[int | None], int | None],
    only: Collection[int | None] = (),
    quarters: Iterable[int] = (),
) -> list[DaySum]:
    """Return the sums of all days, or of some, of which quarters are given so that only calls near them are read."""
    database.create_function(_FUNCTION, 1, day_of, deterministic=True)
    which, values = "1", list[object]()
    if only:
        timed = [quarter_us for quarter_us in quarters if quarter_us != NO_TIME]
        near = "0"
        if timed:
            near = "at_us >= ? AND at_us < ?"
            values += [min(timed) - 2 * _DAY_US, max(timed) + 2 * _DAY_US]
        values.append(msgspec.json.encode([day for day in only if day is not None]).decode())
        near = f"({near} AND {_FUNCTION}({_QUARTER}) IN (SELECT value FROM json_each(?)))"  # noqa: S608  ours
        if None in only:
            which = f"({near} OR at_us IS NULL)"
        else:
            which = f"session_id IN (SELECT session_id FROM sessions WHERE last_used_us >= ?) AND {near}"  # noqa: S608
            values.insert(0, min(timed) - 2 * _DAY_US)
    rows = [DaySum._make(row) for row in database.execute(_statement(days.prices, which), values)]
    database.create_function(_FUNCTION, 1, None)  # it holds on to a number for each quarter
    return rows


def _day_finder(zone: tzinfo | None) -> Callable[[int | None], int | None]:
    """Return a function that returns the number of the day of a quarter of an hour; None for no time."""
    days: dict[int | None, int | None] = {None: None}

    def day_of(quarter_us: int | None) -> int | None:
        if quarter_us not in days:
            days[quarter_us] = local(_EPOCH + timedelta(microseconds=quarter_us or 0), zone).toordinal()
        return days[quarter_us]

    return day_of


def _are_days(rows: Iterable[DaySum], day_of: Callable[[int | None], int | None]) -> bool:
    """Return whether each row is of one day; the system's zone has no name by which to notice that it has changed."""
    for row in rows:
        last = None if row.last_us is None else row.last_us - row.last_us % QUARTER_US
        if day_of(row.quarter_us) != day_of(last):
            return False
    return True


def _stored_rows(database: sqlite3.Connection, name: str) -> list[DaySum] | None:
    """Return the stored rows, or None if there are none or they are damaged."""
    row = database.execute("SELECT body FROM reports WHERE name = ?", (name,)).fetchone()
    try:
        return msgspec.msgpack.decode(zlib.decompress(row[0]), type=list[DaySum]) if row else None
    except (zlib.error, msgspec.DecodeError):
        return None


def _store(database: sqlite3.Connection, name: str, rows: list[DaySum]) -> None:
    """Replace the stored rows by these."""
    with suppress(sqlite3.OperationalError):  # read-only, or another process is writing
        clear_sums(database)
        body = zlib.compress(msgspec.msgpack.encode(rows), _LEVEL)
        database.execute("INSERT INTO reports VALUES (?, ?)", (name, body))
        database.execute("COMMIT")
