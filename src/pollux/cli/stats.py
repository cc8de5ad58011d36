"""`pollux stats`: what was asked, answered and done."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.call_filters import Asked, call_filters, chosen_sessions
from pollux.cli.scope import Scope, options, progress
from pollux.library import project_memory

if TYPE_CHECKING:
    from datetime import tzinfo

    from pollux.cli.usage import Facts
    from pollux.model import Problem
    from pollux.reports.filters import Filter
    from pollux.reports.stats import Statistics

_SECTIONS = ("tool", "model", "project", "session", "day", "week", "month", "filetype", "program")


@click.command()
@options(filters=False)  # its own say the same of what happened, and read dates in the zone that is asked for
@click.option("--by", type=click.Choice(_SECTIONS), help="One table, whole, instead of all in brief.")
@call_filters(counts="what happened", model="sessions in which such a model answered")
@click.option("--csv", "as_csv", is_flag=True, help="Every number of a table, as CSV; needs --by.")
def command(scope: Scope, *, asked: Asked, by: str | None, as_csv: bool) -> None:
    """Count sessions, prompts, answers, tool calls and what came of them, files and programs.

    All that ever happened is counted once, also what was rewound later. Active is the time between messages, without
    pauses of a quarter of an hour and more. Money is the business of `pollux usage`.

    \b
      pollux stats --last 30d
      pollux stats --by tool --project .
      pollux stats --json | jq '.totals'
    """
    from pollux.cli.usage import zone_of

    if as_csv and (scope.as_json or by is None):
        raise click.UsageError("--csv writes one table: say which with --by, and leave --json out.")
    zone, name = zone_of(asked.timezone)
    found = _statistics(scope, asked.filter(zone), by, zone, name)
    _print(found, scope, as_csv=as_csv)
    click.get_current_context().exit(_status(found, scope))


def _statistics(scope: Scope, wanted: Filter, by: str | None, zone: tzinfo | None, timezone: str) -> Statistics:
    from pollux.archive.memory import session_projects
    from pollux.reports.stats import SECTIONS, USUAL, statistics
    from pollux.reports.stats_sql import EVERYTHING, read

    with _facts(scope) as found:
        projects = session_projects(found.database, found.memory)
        only = chosen_sessions(scope, wanted.project, found, projects)
        needs = SECTIONS[by].needs if by else EVERYTHING
        parts = read(found.database, wanted.since, wanted.until, needs=needs, only=only, model=wanted.model)
        problems = [problem for one, problem in found.problems if one is None or only is None or one in only]
    problems.sort(key=lambda one: (one.file or "", one.line or 0, one.code))  # the same whoever has found them
    others = USUAL if scope.as_json or output.is_terminal() else ()  # in a pipe there are only sums
    return statistics(parts, projects, by, others=others, zone=zone, timezone=timezone, problems=tuple(problems))


def _facts(scope: Scope) -> AbstractContextManager[Facts]:
    from pollux.cli.usage import facts, price_table

    return facts(scope, price_table(), _read)


@contextmanager
def _read(scope: Scope) -> Iterator[Facts]:
    """Read all files, and store nothing."""
    from pollux.archive.memory_tools import in_memory
    from pollux.cli.usage import Facts

    history = scope.history()
    gone: list[Problem] = []
    with progress("counting") as tell:
        database = in_memory(history.sessions, scope.opened, gone, tell)
    problems: list[tuple[str | None, Problem]] = [(None, one) for one in (*history.problems, *gone)]
    problems += [(session.id, one) for session in history.sessions for one in session.problems]
    with closing(database):
        yield Facts(database, history.located, problems, None, project_memory.known_here())


def _print(found: Statistics, scope: Scope, *, as_csv: bool) -> None:
    from pollux.render.terminal import stats
    from pollux.reports.stats import statistics_json

    if scope.as_json:
        output.print_json(statistics_json(found))
    elif as_csv or not output.is_terminal():
        lines = stats.section_csv(found.sections[0]) if as_csv else stats.lines(found)
        output.write(one.encode("utf-8", "replace") for one in lines)
    elif not found.is_empty:
        console = output.console()
        for one in stats.screen(found, width=output.width(), encoding=console.encoding):
            console.print(one)


def _status(found: Statistics, scope: Scope) -> int:
    from pollux.cli.ls import say_count

    if not scope.as_json:
        if found.is_empty:
            output.words("Nothing happened that fits; `pollux ls` lists the sessions there are.")
        say_count(found.problems)
    return 1 if found.problems or found.is_empty else 0
