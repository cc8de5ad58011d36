"""`pollux audit`: print the cost of a session call by call."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli import output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.cli.options import reference_from_argument


@click.command()
@click.argument("session", metavar="[SESSION]", default="latest", shell_complete=session_ids)
@output.pager_option
@options(prices=True)
def command(scope: Context, session: str, *, pager: bool) -> None:
    """Print the cost of a session call by call: file and line, tokens and prices.

    Subagents follow the session that started them. Every other place where a call is recorded is listed too (lines
    that the client wrote again, checkpoints, copies of files, imports), so that you can recompute the total by hand.

    \b
      pollux audit latest
      pollux audit a82545c4 --json | jq '.calls[] | [.file, .line, .cost_nanousd]'
    """
    report = scope.library.audit(reference_from_argument(scope, session), scope.wanted)
    if scope.as_json:
        output.print_json(report)
        scope.finish(asked=report.problems)
    from pollux.render.terminal.usage import audit_lines

    with output.paged(pager=pager) as console:
        for text in audit_lines(report):
            console.print(text, soft_wrap=True)
    scope.finish(asked=report.problems)
