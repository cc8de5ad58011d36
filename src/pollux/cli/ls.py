"""`pollux ls`: the sessions, newest first."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from pollux.cli import output
from pollux.cli.scope import Scope, options
from pollux.library.values import Page

if TYPE_CHECKING:
    from pollux.library.values import SessionPage, SessionRow
    from pollux.model import Problem


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
    wanted = msgspec.structs.replace(scope.wanted, subagents=everything, empty=everything)
    page = scope.library.sessions(wanted, Page(limit))
    scope.note_freshness()
    if scope.as_json:
        output.print_json(page)
    elif output.is_terminal() and page.rows:
        _print_table(scope, page)
    else:
        print_lines(page.rows)
    if not scope.as_json:
        if not page.rows:
            output.words(page.hint)
        say_count(page.problems)
    click.get_current_context().exit(1 if page.problems or not page.rows else 0)


def _list_saved(scope: Scope, limit: int | None) -> None:
    """List saved conversations; `show TAG` reads one."""
    from pollux.render.terminal.tables import saved_lines, saved_table

    page = scope.library.saved(scope.wanted, limit)
    if scope.as_json:
        output.print_json(page)
    elif output.is_terminal() and page.rows:
        output.console().print(saved_table(page.rows, now=output.now(), width=output.width()))
        output.words("`pollux show TAG` reads one.")
    else:
        output.write(line.encode("utf-8", "replace") for line in saved_lines(page.rows))
    if not scope.as_json:
        if not page.rows:
            output.words("No saved conversation matches; `/chat save TAG` in Gemini CLI stores one.")
        say_count(page.problems)
    click.get_current_context().exit(1 if page.problems or not page.rows else 0)


def print_lines(rows: Sequence[SessionRow]) -> None:
    """Print one line per session, for other programs."""
    from pollux.render.terminal.tables import session_lines

    output.write(line.encode("utf-8", "replace") for line in session_lines(rows))


def _print_table(scope: Scope, page: SessionPage) -> None:
    from pollux.render.terminal.tables import session_table

    deletions = scope.library.deletions()
    output.console().print(session_table(page.rows, now=output.now(), width=output.width(), deletions=deletions))


def say_count(problems: Sequence[Problem]) -> None:
    """Say how many files were not read as they should."""
    n_files = len({problem.file for problem in problems})
    if n_files:
        output.words(f"{n_files} file{'s' * (n_files != 1)} with problems; `pollux doctor` lists them.")
