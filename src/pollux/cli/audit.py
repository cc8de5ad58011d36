"""`pollux audit`: how a session's cost comes about."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli import output
from pollux.cli.arguments import reference_from_argument
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options


@click.command()
@click.argument("wanted", metavar="[ID|FILE]", default="latest", shell_complete=session_ids)
@options(prices=True)
@click.option("--pager/--no-pager", default=True, help="Scroll on a terminal.")
def command(scope: Scope, wanted: str, *, pager: bool) -> None:
    """Show how the cost of a session comes about: each call, where it stands, what of it goes at which price.

    Subagents follow the session that started them. Every other place where a call is recorded is named too: lines that
    the client wrote again, checkpoints, copies of files, imports. So the total can be recomputed by hand.

    \b
      pollux audit latest
      pollux audit a82545c4 --json | jq '.calls[] | [.file, .line, .cost_nanousd]'
    """
    from pollux.render.terminal.usage import audit_lines

    report = scope.library.audit(reference_from_argument(scope, wanted), scope.wanted)
    if scope.as_json:
        output.print_json(report)
        click.get_current_context().exit(1 if report.problems else 0)
    with output.paged(wanted=pager) as console:
        for text in audit_lines(report):
            console.print(text, soft_wrap=True)
    click.get_current_context().exit(output.say_problems(report.problems))
