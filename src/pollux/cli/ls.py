"""`pollux ls`: list sessions, newest first."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click
import msgspec

from pollux.cli import output
from pollux.cli.context import Context, options
from pollux.cli.search import QueryCommand, explained_query, query_argument
from pollux.library.values import Page


@click.command(cls=QueryCommand)
@query_argument
@click.option("--all", "everything", is_flag=True, help="Include subagents and empty sessions.")
@click.option("--saved", is_flag=True, help="List the conversations stored with /chat save instead.")
@output.limit_option("List at most N sessions.")
@output.link_option
@output.table_options
@options(strict=True)
def command(
    scope: Context,
    query: str,
    *,
    everything: bool,
    saved: bool,
    limit: int | None,
    link: bool,
    table: output.TableOptions,
) -> None:
    """List sessions, newest first: all of them, or those that match a query of `pollux search`.

    A word before a title: `due` or `2d left` if the client will delete the session, `deleted` if it has and only the
    archive still has it, `empty` if it has no messages, `!` if its files have problems. In a pipe there is a
    tab-separated line per session; the cost is in US dollars.

    \b
      pollux ls --last 7d
      pollux ls --project skywatch --model pro
      pollux ls timeout in:prompt
      pollux ls 'file:alerts.py cost:>0.50'
      pollux ls --saved
      pollux ls --no-header | cut -f 1
      pollux ls --json | jq '.sessions[].title'
    """
    if saved and link:
        raise click.UsageError("Saved conversations have no page in the viewer: leave out --link.")
    address = scope.link(is_wanted=link)
    if saved and query.strip():
        raise click.UsageError("--saved lists all saved conversations: leave out the query.")
    if saved:
        _list_saved(scope, limit, table)
        return
    chosen = msgspec.structs.replace(scope.wanted, subagents=everything, empty=everything)
    with explained_query():
        page = scope.library.sessions(chosen, Page(limit), query)
    scope.note_freshness()
    if scope.as_json:
        output.print_json(page)
    else:
        from pollux.render.terminal import sessions

        output.print_table(
            page.rows,
            lambda: [
                sessions.session_table(
                    page.rows,
                    now=output.now(),
                    deletions=scope.library.deletions(),
                    projects=scope.library.project_names(row.project for row in page.rows),
                    link=address,
                )
            ],
            lambda: sessions.session_lines(page.rows, header=table.header, link=address),
            table,
        )
        for note in page.notes:
            output.note(note)
        if not page.rows:
            output.note(page.hint)
    scope.finish(page.problems, found=bool(page.rows))


def _list_saved(scope: Context, limit: int | None, table: output.TableOptions) -> None:
    page = scope.library.saved(scope.wanted, limit)
    if scope.as_json:
        output.print_json(page)
    else:
        from pollux.render.terminal import sessions

        output.print_table(
            page.rows,
            lambda: [sessions.saved_table(page.rows, now=output.now())],
            lambda: sessions.saved_lines(page.rows, header=table.header),
            table,
        )
        if page.rows and output.is_terminal():
            output.note("`pollux show TAG` shows one of them.")
        elif not page.rows:
            output.note("No saved conversation matches. `/chat save TAG` in Gemini CLI stores one.")
    scope.finish(page.problems, found=bool(page.rows))
