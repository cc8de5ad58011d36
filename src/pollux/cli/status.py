"""`pollux status`: what the client will delete, when and why, and what is kept of it."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options
from pollux.library.expiry import Cleanup, cleanup

if TYPE_CHECKING:
    from pollux.model import Session
    from pollux.reports.status import Row
    from pollux.sessions.reader import History

_HASH = re.compile(r"[0-9a-f]{64}")
_UNREAD = frozenset({"unreadable-file", "unreadable-folder"})


@click.command()
@options()
@click.option("--all", "everything", is_flag=True, help="Also what goes later, what stays, and empty stubs.")
def command(scope: Scope, *, everything: bool) -> None:
    """Say what the client will delete at its next start, and whether it is kept.

    Gemini CLI deletes sessions at every start in their project: after 30 days unless its settings say otherwise, and
    much earlier what it cannot use. Ends with status 1 if something goes within a week that is not in the archive, or
    cannot be read.

    \b
      pollux status
      pollux status --project . --all
      pollux status --json | jq '.sessions[] | select(.at_risk)'
    """
    from pollux.reports.status import status_json, status_rows
    from pollux.sessions.reader import History

    now = output.now()
    found = scope.history()
    sessions = (*found.sessions, *_only_on_disk(scope, found))
    archive = scope.archive or scope.unused_archive
    look = cleanup(found.located, archive, now)
    chosen = scope.sessions(History(found.located, sessions), everything=True)
    rows = status_rows(chosen, look.fates, look.live, now=now)
    if scope.as_json:
        place = archive.path if archive else None
        output.print_json(status_json(rows, look.policies, found.problems, archive=place, now=now))
    else:
        _print([row for row in rows if everything or _is_telling(row)], rows, look, now)
        _say(rows, look)
    unread = {one.file for one in found.problems if one.code in _UNREAD}
    if unread and not scope.as_json:
        where = f"{len(unread)} place{'s' * (len(unread) > 1)}"
        output.words(f"Not everything can be read: what is in {where} may not be kept; `pollux doctor` says where.")
    click.get_current_context().exit(1 if unread or any(row.is_at_risk for row in rows) else 0)


def _only_on_disk(scope: Scope, found: History) -> list[Session]:
    """Return what an archive that cannot be written has never seen."""
    from pollux.sessions.reader import history

    if scope.archive is None or scope.archive.is_writable:
        return []
    known = {one.id for one in found.sessions}
    return [one for one in history(scope.places()).sessions if one.id not in known]


def _is_telling(row: Row) -> bool:
    return row.turn in ("next", "soon", "gone") and not row.session.is_stub


def _print(shown: Sequence[Row], rows: Sequence[Row], look: Cleanup, now: datetime) -> None:
    from pollux.render.terminal.status import status_lines, status_tables, summary

    if not output.is_terminal():
        output.write(one.encode("utf-8", "replace") for one in status_lines(shown, look.policies, now=now))
        return
    console = output.console()
    for title, table in status_tables(shown, look.policies, now=now, width=output.width()):
        console.print(title, style="bold")
        console.print(table)
        console.print()
    console.print(summary(rows))


def _say(rows: Sequence[Row], look: Cleanup) -> None:
    from pollux.render.terminal.status import remarks, summary
    from pollux.sessions.retention import CLIENT

    if not output.is_terminal():
        output.words(summary(rows))
    for text in dict.fromkeys(text for one in look.policies for text in remarks(one)):
        output.words(text)
    output.words(f"By the rules of Gemini CLI {CLIENT}, the newest known: older releases delete less.")
    if not all(row.is_kept for row in rows):
        output.words("`pollux sync` keeps what is not kept yet.")
