"""`pollux ls`: the sessions, newest first."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options
from pollux.model import Problem, Session
from pollux.sessions import History
from pollux.terminal.listing import session_lines, session_table
from pollux.views.listing import SESSIONS, problem_row, session_row

_HINT = "No sessions here. `pollux doctor` says where was looked; `pollux demo` shows invented ones."


@click.command()
@options()
@click.option("--all", "everything", is_flag=True, help="Also subagents, and stubs that hold nothing.")
@click.option("--limit", "-n", type=click.IntRange(min=1), help="Only so many.")
def command(scope: Scope, *, everything: bool, limit: int | None) -> None:
    """List sessions, newest first.

    On a terminal a table; in a pipe one line a session, with tabs between id, time, project, title, prompts, tool
    calls and tokens.

    \b
      pollux ls --last 7d
      pollux ls --project skywatch --model pro
      pollux ls --json | jq '.sessions[].title'
    """
    found = scope.history()
    sessions = scope.sessions(found, everything=everything)[:limit]
    by_id = {one.id: one for one in found.sessions}
    if scope.as_json:
        output.print_json(
            {
                "schema": SESSIONS,
                "sessions": [session_row(one, by_id) for one in sessions],
                "problems": [problem_row(one) for one in (*found.problems, *_problems(sessions))],
            }
        )
    elif output.is_terminal() and sessions:
        output.console().print(session_table(sessions, by_id, now=datetime.now(UTC)))
    else:
        output.write(line.encode("utf-8", "replace") for line in session_lines(sessions, by_id))
    click.get_current_context().exit(_status(scope, found, sessions))


def _status(scope: Scope, found: History, sessions: tuple[Session, ...]) -> int:
    if not sessions and not scope.as_json:
        output.words("No session fits." if found.main else _HINT)
    problems = (*found.problems, *_problems(sessions))
    if problems and not scope.as_json:
        n_files = len({problem.file for problem in problems})
        output.words(f"{n_files} file(s) with problems; `pollux doctor` lists them.")
    return 1 if problems or not sessions else 0


def _problems(sessions: tuple[Session, ...]) -> list[Problem]:
    return [problem for one in sessions for problem in one.problems]
