"""`pollux demo`: any command, on sessions that are invented."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from pollux.cli import completed_command, output

HOME = Path(__file__).parents[1] / "demo" / "home"


def _commands(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    del param
    return [] if ctx.params.get("rest") else completed_command(incomplete)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--if-empty", is_flag=True, help="Only when there are no sessions of your own; else show those.")
@click.option("--path", "only_path", is_flag=True, help="Only say where the invented sessions are.")
@click.argument("rest", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED, shell_complete=_commands)
def command(rest: tuple[str, ...], *, if_empty: bool, only_path: bool) -> object:
    """Try any command on invented sessions, which show every generation of the format and every feature.

    \b
      pollux demo
      pollux demo ls
      pollux demo show latest --detail full
    """
    from pollux.cli import pollux

    if only_path:
        click.echo(str(HOME))
        return 0
    if not if_empty or not _has_sessions():
        os.environ |= {"POLLUX_HOME": str(HOME), "POLLUX_ARCHIVE": "-"}  # nothing invented is kept
        if not rest:
            output.words("These sessions are invented: `pollux demo ls`, `pollux demo show latest` and so on.\n")
    return pollux.main(args=list(rest), prog_name="pollux demo", standalone_mode=False)


def _has_sessions() -> bool:
    from pollux.library.config import configure

    return configure().has_session_files()
