"""`pollux ls`: the sessions, newest first."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options

if TYPE_CHECKING:
    from pollux.model import Problem, Session
    from pollux.sessions.reader import History


@click.command()
@options()
@click.option("--all", "everything", is_flag=True, help="Also subagents, and stubs that hold nothing.")
@click.option("--saved", is_flag=True, help="List the conversations stored with /chat save instead.")
@click.option("--limit", "-n", type=click.IntRange(min=1), help="Only so many.")
def command(scope: Scope, *, everything: bool, saved: bool, limit: int | None) -> None:
    """List sessions, newest first.

    On a terminal a table; in a pipe one line a session, with tabs between id, time, project, title, prompts, tool
    calls and tokens. Marks before a title: `due` and `2d left` for what the client is about to delete, `gone` for
    what it has deleted, `!` for problems, `⑂` for messages that were taken back.

    \b
      pollux ls --last 7d
      pollux ls --project skywatch --model pro
      pollux ls --saved
      pollux ls --json | jq '.sessions[].title'
    """
    if saved:
        _list_saved(scope, limit)
        return
    found = scope.history()
    sessions = scope.sessions(found, everything=everything)[:limit]
    if scope.as_json:
        _print_json(found, sessions)
    elif output.is_terminal() and sessions:
        _print_table(scope, found, sessions)
    else:
        print_lines(found, sessions)
    click.get_current_context().exit(_status(scope, found, sessions))


def _list_saved(scope: Scope, limit: int | None) -> None:
    """List saved conversations; `show TAG` reads one."""
    from pollux.render.terminal.tables import saved_lines, saved_table

    found = scope.saved()
    conversations = scope.sessions(found, everything=True)[:limit]
    if scope.as_json:
        _print_json(found, conversations)
    elif output.is_terminal() and conversations:
        output.console().print(saved_table(conversations, now=output.now(), width=output.width()))
        output.words("`pollux show TAG` reads one.")
    else:
        output.write(line.encode("utf-8", "replace") for line in saved_lines(conversations))
    problems = _problems(found, conversations)
    if not scope.as_json:
        if not conversations:
            output.words("No saved conversation matches; `/chat save TAG` in Gemini CLI stores one.")
        say_count(problems)
    click.get_current_context().exit(1 if problems or not conversations else 0)


def print_lines(found: History, sessions: tuple[Session, ...]) -> None:
    """Print one line a session, for other programs."""
    from pollux.render.terminal.tables import session_lines

    by_id = {one.id: one for one in found.sessions}
    output.write(line.encode("utf-8", "replace") for line in session_lines(sessions, by_id))


def _print_json(found: History, sessions: tuple[Session, ...]) -> None:
    from pollux.cli.usage import price_table
    from pollux.views.contracts import SESSIONS, problem_row, session_row

    prices = price_table()
    by_id = {one.id: one for one in found.sessions}
    output.print_json(
        {
            "schema": SESSIONS,
            "sessions": [session_row(one, by_id, prices) for one in sessions],
            "problems": [problem_row(problem) for problem in _problems(found, sessions)],
        }
    )


def _print_table(scope: Scope, found: History, sessions: tuple[Session, ...]) -> None:
    from pollux.library.expiry import fates_of
    from pollux.render.terminal.tables import session_table
    from pollux.reports.status import risks

    by_id = {one.id: one for one in found.sessions}
    # the numbers by which `show @2` finds them, also in a list of only some
    numbers = {one.id: number for number, one in enumerate(found.main, 1)}
    now = output.now()
    threats = risks(fates_of(scope, found, now), now=now)
    table = session_table(sessions, by_id, numbers, now=now, width=output.width(), risks=threats)
    output.console().print(table)


def _status(scope: Scope, found: History, sessions: tuple[Session, ...]) -> int:
    problems = _problems(found, sessions)
    if scope.as_json:
        return 1 if problems or not sessions else 0
    if not sessions:
        output.words(output.NOTHING_FITS if found.main else scope.nothing_here())
    say_count(problems)
    return 1 if problems or not sessions else 0


def say_count(problems: Sequence[Problem]) -> None:
    """Say how many files were not read as they should."""
    n_files = len({problem.file for problem in problems})
    if n_files:
        output.words(f"{n_files} file{'s' * (n_files != 1)} with problems; `pollux doctor` lists them.")


def _problems(found: History, sessions: tuple[Session, ...]) -> list[Problem]:
    """Return the problems of the listed sessions, of files that hold no readable session, and of the homes."""
    listed = {session.id: session for session in (*sessions, *found.unreadable)}
    return [*found.problems, *(problem for session in listed.values() for problem in session.problems)]
