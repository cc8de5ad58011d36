"""`pollux usage`: tokens and money."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pollux.cli import output
from pollux.cli.call_filters import Asked, call_filters, chosen_sessions
from pollux.cli.scope import Scope, options, progress, say_files_alone, say_unfinished
from pollux.library import project_memory as memory

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection
    from datetime import tzinfo

    from rich.console import RenderableType

    from pollux.archive.store import Archive
    from pollux.model import Problem, Project
    from pollux.prices import Prices
    from pollux.render.terminal.console import Console
    from pollux.reports.filters import Filter
    from pollux.reports.usage import Report, Row
    from pollux.reports.usage_sql import Part, TimePart, ToolPart
    from pollux.sessions.locate import Located
    from pollux.sessions.reader import Progress
    from pollux.text.money import Currency

_REPORTS = ("hour", "day", "week", "month", "session", "project", "model", "tool")
_LOCALTIME = Path("/etc/localtime")
_NOT_COUNTED = "split-by-newer-node"
_PAUSE = 1.0
"""Seconds between two looks at a running session."""


class Facts(msgspec.Struct):
    """What reports are made of, and what came up while it was read."""

    database: sqlite3.Connection
    located: Located
    problems: list[tuple[str | None, Problem]]
    """Each with its session, if it has one."""
    only: Collection[str] | None
    """The sessions of the homes that were named."""
    memory: dict[str, str] = msgspec.field(default_factory=dict)
    is_archived: bool = False


class Question(msgspec.Struct, frozen=True):
    """What somebody wants to know."""

    scope: Scope
    wanted: Filter
    by: str
    zone: tzinfo | None
    timezone: str
    prices: Prices
    apart: bool = False


@click.command()
@options(filters=False)  # its own say the same of calls, and read dates in the zone that is asked for
@click.option("--by", type=click.Choice(_REPORTS), help="What to add up by.  [default: day]")
@call_filters(counts="calls", model="calls of such a model")
@click.option(
    "--subagents",
    type=click.Choice(("together", "apart")),
    default="together",
    show_default=True,
    help="By session: count subagents with the session that started them, or list them by themselves.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Every number, as CSV.")
@click.option("--currency", default="USD", show_default=True, metavar="CODE", help="Show money in this; needs --rate.")
@click.option("--rate", metavar="NUMBER", help="What a dollar is worth in it.")
@click.option(
    "--prices", "price_file", type=click.Path(path_type=Path), help="Your own prices, which go before the table's."
)
@click.option("--live", is_flag=True, help="Look again every second, until Ctrl-C.")
def command(scope: Scope, *, asked: Asked, **given: Any) -> None:  # noqa: ANN401  click's
    """Count tokens and money, every model call once.

    Billed is all that was ever recorded; kept is what is still part of the conversations. The difference was rewound,
    rolled back or compressed. Calls of subagents are in both. A model without a price is named, and in no amount.

    \b
      pollux usage --last 30d
      pollux usage --by session --project .
      pollux usage --by month --timezone UTC --csv
    """
    if given["as_csv"] and scope.as_json:
        raise click.UsageError("--csv and --json both say how to write it: give one of them.")
    money = _money(given["currency"], given["rate"])
    question = _question(scope, asked, given)
    if question.apart and question.by != "session":
        raise click.UsageError("--subagents apart lists sessions: it goes with --by session.")
    if given["live"]:
        _follow(question, money)
        return
    found = report(question)
    if scope.as_json:
        _print_json(found)
    else:
        _print(found, money, as_csv=given["as_csv"])
    click.get_current_context().exit(_status(found, scope))


def price_table(given: Path | None = None) -> Prices:
    """Load the prices, and a user's own: from the file given, from `POLLUX_PRICES`, or from the settings folder."""
    from pollux import prices
    from pollux.library import folders

    said = os.environ.get("POLLUX_PRICES")
    own = given or (Path(said) if said else None)
    usual = folders.config() / "prices.toml"
    return prices.load(own or (usual if usual.is_file() else None))


def zone_of(name: str | None) -> tuple[tzinfo | None, str]:
    """Find a time zone by its name, or the system's own; one without a known name is left to the system."""
    from zoneinfo import ZoneInfo

    for one in (name,) if name else (os.environ.get("TZ", "").lstrip(":"), _linked_zone()):
        try:
            if one:
                return ZoneInfo(one), one
        except (KeyError, OSError, ValueError):  # a name that is none
            if name:
                raise _no_zone(name) from None
    return None, output.now().astimezone().tzname() or "local"


def _no_zone(name: str) -> Exception:
    """Say what to write instead; where nobody knows of any time zone, where to get them."""
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    from pollux.errors import BadFilterError

    known = available_timezones()
    if not known:
        return click.ClickException(
            f"--timezone '{name}' cannot be looked up, since there are no time zones on this system; "
            "`pip install tzdata` adds them."
        )
    cities = [one for one in sorted(known) if one.rpartition("/")[2].casefold() == name.casefold()]
    near = cities or get_close_matches(name, sorted(known), 3)
    return BadFilterError("--timezone", name, " or ".join(near) or "Europe/Berlin, America/New_York or UTC")


def facts(
    scope: Scope, prices: Prices, read: Callable[[Scope], AbstractContextManager[Facts]], *, quiet: bool = False
) -> AbstractContextManager[Facts]:
    """Take in what changed, price it, and give the tables; without an archive, what reading the files gives."""
    return (
        read(scope) if scope.archive_path is None else _archived(scope, scope.archive_path, prices, read, quiet=quiet)
    )


def report(question: Question, *, quiet: bool = False) -> Report:
    """Answer a question."""
    from pollux.reports import usage

    asks_no_session = question.by in usage.BY_TIME and question.wanted.project is None
    if asks_no_session and question.scope.archive_path is None:
        calls, rows, problems = _counted(question)
    else:
        calls, rows, problems = _looked_up(question, quiet=quiet)
    return usage.Report(
        question.by,
        question.timezone,
        question.prices.table,
        question.prices.date,
        rows,
        *usage.billed_and_kept(calls),
        usage.unpriced_models(calls),
        _counted_problems(problems),
    )


def _counted_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems that may change a sum, in order; lines that only the client loses do not."""
    relevant = (problem for problem in problems if problem.code != _NOT_COUNTED)
    return tuple(sorted(relevant, key=lambda problem: (problem.file or "", problem.line or 0, problem.code)))


def _looked_up(question: Question, *, quiet: bool) -> tuple[Sequence[Part | TimePart], tuple[Row, ...], list[Problem]]:
    """Answer by the tables, whatever is asked."""
    from pollux.archive.memory import session_projects

    is_tool = question.by == "tool"
    read = partial(read_files, prices=question.prices, with_tools=is_tool)
    with facts(question.scope, question.prices, read, quiet=quiet) as found:
        asks_projects = question.by == "project" or question.wanted.project
        known = session_projects(found.database, found.memory) if asks_projects else {}
        only = chosen_sessions(question.scope, question.wanted.project, found, known)
        calls, rows = _calls(question, found, known, only)
        if is_tool:
            rows = _tools(question, found.database, only)
        return calls, rows, [problem for one, problem in found.problems if one is None or only is None or one in only]


def _question(scope: Scope, asked: Asked, given: dict[str, Any]) -> Question:
    zone, timezone = zone_of(asked.timezone)
    by = given["by"] or ("session" if given["live"] else "day")
    apart = given["subagents"] == "apart"
    return Question(scope, asked.filter(zone), by, zone, timezone, price_table(given["price_file"]), apart)


def _money(code: str, rate: str | None) -> tuple[str, Decimal]:
    """Read in which currency money is to be shown, and what a dollar is worth in it."""
    if rate is None:
        if code.upper() != "USD":
            raise click.UsageError(f"--currency {code} needs a --rate: what a dollar is worth in it, such as 0.92.")
        return "USD", Decimal(1)
    try:
        value = Decimal(rate)
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or value <= 0:
        raise click.UsageError(f"--rate '{rate}' is not understood; give what a dollar is worth, such as 0.92.")
    if code.upper() == "USD":
        raise click.UsageError(f"--rate {rate} is of which money? Name it, as in --currency EUR --rate {rate}.")
    return code.upper(), value


def _linked_zone() -> str:
    """Read the name of the system's time zone off the place that its file is linked to."""
    _, _, name = os.path.realpath(_LOCALTIME).partition("/zoneinfo/")
    return name


@contextmanager
def read_files(scope: Scope, *, prices: Prices, with_tools: bool = False) -> Iterator[Facts]:
    """Read all files, and store nothing."""
    from pollux.archive.memory import in_memory
    from pollux.archive.pricing import price_calls

    found = scope.history()
    failed: list[Problem] = []
    database = in_memory(found.sessions, failed, scope.opened if with_tools else None)
    problems: list[tuple[str | None, Problem]] = [(None, one) for one in (*found.problems, *failed)]
    problems += [(session.id, one) for session in found.sessions for one in session.problems]
    with closing(database):
        price_calls(database, prices)
        yield Facts(database, found.located, problems, None, memory.known_here())


def _counted(question: Question) -> tuple[Sequence[Part | TimePart], tuple[Row, ...], list[Problem]]:
    """Count the calls in all files, and read no more of them than that takes."""
    from pollux.archive.memory import times_of
    from pollux.archive.pricing import priced
    from pollux.reports import usage
    from pollux.reports.usage_quick import counts

    wanted = question.wanted
    add_up = partial(times_of, since=wanted.since, until=wanted.until)
    with progress("reading") as tell:
        found = counts(
            question.scope.places(), partial(priced, question.prices), add_up, memory=memory.known_here(), progress=tell
        )
    calls = [one for one in found.sums if _fits(one, wanted.model)]
    return calls, usage.time_rows(question.by, calls, zone=question.zone), found.problems


@contextmanager
def _archived(
    scope: Scope,
    path: Path,
    prices: Prices,
    read: Callable[[Scope], AbstractContextManager[Facts]],
    *,
    quiet: bool,
) -> Iterator[Facts]:
    """Bring the archive up to date; of all that it holds, only the sums are read."""
    from pollux.archive import failures, store
    from pollux.archive.memory import file_problems
    from pollux.archive.pricing import price_calls
    from pollux.archive.refresh import refresh_to_read
    from pollux.archive.schema import are_behind
    from pollux.errors import UnfinishedArchiveError

    known, places = memory.recalled(), scope.places()
    of_files = msgspec.structs.replace(scope, archive_path=None)
    try:
        opened = store.opened(path)
    except UnfinishedArchiveError as error:
        say_unfinished(error)
        with read(of_files) as found:
            yield found
        return
    with opened as archive:
        with _silence() if quiet else progress("reading") as tell:
            result = refresh_to_read(archive, places, memory=known, progress=tell)
        if not archive.is_writable and not _is_of_use(archive, result.located):
            say_files_alone(archive)
            with read(of_files) as found:
                yield found
            return
        price_calls(archive.database, prices)
        if archive.lock:
            archive.lock.release()
        elif archive.lock_is_taken and not quiet and are_behind(archive.database):
            output.words(f"The archive does not hold everything yet: {archive.why_not}.")
        elif not archive.lock_is_taken and not quiet:
            output.words(f"The archive cannot be written ({archive.why_not}): this is what it holds so far.")
        problems: list[tuple[str | None, Problem]] = [(None, one) for one in result.problems]
        problems += file_problems(archive.database)
        only = scope.sessions_in_homes(archive, result.located.homes)
        homes = None if only is None else [str(home.root) for home in result.located.homes]
        problems += [(None, one) for one in failures.problems(archive.database, homes)]
        problems = [*dict.fromkeys(problems)]
        yield Facts(archive.database, result.located, problems, only, memory.known_here(), is_archived=True)


def _is_of_use(archive: Archive, located: Located) -> bool:
    """Return whether an archive that cannot be brought up to date answers better than the files on the disk."""
    from pollux.archive.refresh import files_say_more
    from pollux.archive.schema import are_current, are_empty

    if not are_current(archive.database):
        return False
    if archive.lock_is_taken:  # somebody else is filling it
        return not are_empty(archive.database)
    return not files_say_more(archive.database, located)


@contextmanager
def _silence() -> Iterator[Progress]:
    yield lambda _done, _all: None


def _calls(
    question: Question, tables: Facts, known: dict[str, Project], only: Collection[str] | None
) -> tuple[Sequence[Part | TimePart], tuple[Row, ...]]:
    """Return the model calls meant, and the rows that they make; sessions are only looked at where they matter."""
    from pollux.reports import usage, usage_sql

    wanted, by, zone, database = question.wanted, question.by, question.zone, tables.database
    if by in usage.BY_TIME and only is None:
        if tables.is_archived and not (wanted.since or wanted.until):
            parts = usage_sql.kept_time_parts(database, question.prices.version)
        else:
            parts = usage_sql.time_parts(database, wanted.since, wanted.until)
        timed = [one for one in parts if _fits(one, wanted.model)]
        return timed, usage.time_rows(by, timed, zone=zone)
    found = [
        one
        for one in usage_sql.parts(database, wanted.since, wanted.until)
        if (only is None or one.session_id in only) and _fits(one, wanted.model)
    ]
    rows = () if by == "tool" else usage.call_rows(by, found, zone=zone, projects=known, apart=question.apart)
    return found, rows


def _tools(question: Question, database: sqlite3.Connection, only: Collection[str] | None) -> tuple[Row, ...]:
    from pollux.reports import usage, usage_sql

    wanted = question.wanted
    return usage.tool_rows(
        one
        for one in usage_sql.tool_parts(database, wanted.since, wanted.until)
        if (only is None or one.session_id in only) and _fits(one, wanted.model)
    )


def _fits(one: Part | TimePart | ToolPart, model: str | None) -> bool:
    return model is None or model.lower() in (one.model or "").lower()


def _print_json(found: Report) -> None:
    from pollux.reports.usage import report_json

    output.print_json(report_json(found))


def _print(found: Report, money: tuple[str, Decimal], *, as_csv: bool) -> None:
    from pollux.render.terminal import usage
    from pollux.text.money import Currency

    currency = Currency(*money)
    if as_csv:
        output.write(one.encode() for one in usage.usage_csv(found))
    elif output.is_terminal() and found.rows:
        console = output.console()
        console.print(_screen(found, currency, console.encoding))
    else:
        output.write(one.encode("utf-8", "replace") for one in usage.usage_lines(found))
        for words in usage.notes(found, currency) if found.rows else ():
            output.words(words)


def _screen(found: Report, currency: Currency, encoding: str, *words: str) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from pollux.render.terminal.usage import notes, totals, usage_table

    table = usage_table(found, currency, width=output.width(), encoding=encoding)
    notes_ = (Text(one, "dim") for one in (*words, *notes(found, currency)))
    return Group(table, Text(""), *totals(found, currency), Text(""), *notes_)


def _follow(question: Question, money: tuple[str, Decimal]) -> None:
    """Draw the report again and again, until somebody has seen enough; what was seen last stays there."""
    from rich.live import Live

    from pollux.text.money import Currency

    if question.scope.as_json or not output.is_terminal():
        raise click.UsageError("--live draws on a terminal; for other programs run `pollux usage --json` again.")
    if question.scope.archive_path is None:
        raise click.UsageError(
            "--live reads on from where it stopped: that needs the archive, so leave --no-archive out."
        )
    found, currency, console = report(question), Currency(*money), output.console()
    # A screen of its own: lines that wrapped anew when a window was resized could not be drawn over.
    with suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(_that_fits(found, currency, console), refresh=True)
            time.sleep(_PAUSE)
            found = report(question, quiet=True)
    console.print(_that_fits(found, currency, console))


def _that_fits(found: Report, currency: Currency, console: Console) -> RenderableType:
    """Draw the newest rows that a screen has room for."""
    import msgspec

    around = _screen(msgspec.structs.replace(found, rows=()), currency, console.encoding, "more")
    room = max(1, console.height - len(console.render_lines(around, pad=False)))
    rows = found.rows[-room:] if found.by in _REPORTS[:4] else found.rows[:room]
    n_more = len(found.rows) - len(rows)
    words = [f"{n_more} more are in the sums, and not shown."] if n_more else []
    words += ["No model call fits yet."] if not rows else []
    return _screen(msgspec.structs.replace(found, rows=rows), currency, console.encoding, *words)


def _status(found: Report, scope: Scope) -> int:
    from pollux.cli.ls import say_count

    if not scope.as_json:
        if not found.rows:
            output.words("No model call fits; `pollux ls` lists the sessions there are.")
        say_count(found.problems)
    return 1 if found.problems or not found.rows else 0
