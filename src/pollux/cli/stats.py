"""`pollux stats`: what was asked, answered and done."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from pollux.cli import memory, output
from pollux.cli.complete import project_names
from pollux.cli.scope import Scope, options, progress

if TYPE_CHECKING:
    from datetime import tzinfo

    from pollux.cli.usage import Facts
    from pollux.filters import Filter
    from pollux.model import Problem, Project
    from pollux.views.stats import Statistics

_SECTIONS = ("tool", "model", "project", "session", "day", "week", "month", "filetype", "program")


@click.command()
@options(filters=False)  # its own say the same of what happened, and read dates in the zone that is asked for
@click.option("--by", type=click.Choice(_SECTIONS), help="One table, whole, instead of all in brief.")
@click.option(
    "--project",
    "-p",
    "of_project",
    metavar="NAME|PATH|.",
    shell_complete=project_names,
    help="Only sessions of this project.",
)
@click.option("--since", "after", metavar="WHEN", help="Only what happened after this: 2026-11-01, yesterday, 7d.")
@click.option("--until", "before", metavar="WHEN", help="Only what happened before this.")
@click.option("--last", "span", metavar="SPAN", help="Only the last 7d, 12h, 2w.")
@click.option("--model", "of_model", metavar="NAME", help="Only sessions in which such a model answered.")
@click.option("--timezone", "-z", metavar="ZONE", help="Whose days: Europe/Berlin, UTC.  [default: yours]")
@click.option("--csv", "as_csv", is_flag=True, help="Every number of a table, as CSV; needs --by.")
def command(scope: Scope, *, by: str | None, as_csv: bool, timezone: str | None, **given: Any) -> None:  # noqa: ANN401  click's
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
    zone, name = zone_of(timezone)
    found = _statistics(scope, _filter(given, zone), by, zone, name)
    _print(found, scope, as_csv=as_csv)
    click.get_current_context().exit(_status(found, scope))


def _filter(given: dict[str, Any], zone: tzinfo | None) -> Filter:
    from pollux import filters

    since, until, last = given["after"], given["before"], given["span"]
    if since and last:
        raise click.UsageError("--since and --last both say where to begin: give one of them.")
    now = output.now()
    start = filters.moment("--since", since, now=now, zone=zone) if since else None
    start = filters.before("--last", last, now=now) if last else start
    end = filters.moment("--until", until, now=now, zone=zone) if until else None
    return filters.Filter(given["of_project"], start, end, given["of_model"])


def _statistics(scope: Scope, wanted: Filter, by: str | None, zone: tzinfo | None, timezone: str) -> Statistics:
    from pollux.views.stats import SECTIONS, USUAL, statistics
    from pollux.views.stats_parts import EVERYTHING, read
    from pollux.views.usage_facts import session_projects

    with _facts(scope) as found:
        projects = session_projects(found.database, found.memory)
        only = _sessions(scope, wanted, found, projects)
        needs = SECTIONS[by].needs if by else EVERYTHING
        parts = read(found.database, wanted.since, wanted.until, needs=needs, only=only, model=wanted.model)
        problems = [problem for one, problem in found.problems if one is None or only is None or one in only]
    problems.sort(key=lambda one: (one.file or "", one.line or 0, one.code))  # the same whoever has found them
    others = USUAL if scope.as_json or output.is_terminal() else ()  # in a pipe there are only sums
    return statistics(parts, projects, by, others=others, zone=zone, timezone=timezone, problems=tuple(problems))


def _facts(scope: Scope) -> AbstractContextManager[Facts]:
    from pollux.cli.usage import facts, price_table

    return facts(scope, price_table()) if scope.archive_path else _read(scope)


@contextmanager
def _read(scope: Scope) -> Iterator[Facts]:
    """Read all files, and store nothing."""
    from pollux.cli.usage import Facts
    from pollux.views.stats_facts import in_memory

    history = scope.history()
    gone: list[Problem] = []
    with progress("counting") as tell:
        database = in_memory(history.sessions, scope.opened, gone, tell)
    problems: list[tuple[str | None, Problem]] = [(None, one) for one in (*history.problems, *gone)]
    problems += [(session.id, one) for session in history.sessions for one in session.problems]
    with closing(database):
        yield Facts(database, history.located, problems, None, memory.recalled())


def _sessions(scope: Scope, wanted: Filter, found: Facts, projects: dict[str, Project]) -> Collection[str] | None:
    """Return the sessions meant; nothing if that is all of them."""
    from pollux.filters import Filter
    from pollux.model import Session
    from pollux.sessions import History

    if wanted.project is None:
        return found.only
    known = tuple(Session(id=one, kind="main", project=project) for one, project in projects.items())
    chosen = replace(scope, wanted=Filter(wanted.project)).sessions(History(found.located, known), everything=True)
    projects.update((one.id, one.project) for one in chosen)
    ids = {one.id for one in chosen}
    return ids if found.only is None else ids & set(found.only)


def _print(found: Statistics, scope: Scope, *, as_csv: bool) -> None:
    from pollux.terminal import stats
    from pollux.views.stats import statistics_json

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
