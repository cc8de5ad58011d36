"""`pollux demo`: any command, on sessions that are invented."""

from __future__ import annotations

import os
from pathlib import Path

import click

from pollux.cli import output
from pollux.locate import locate
from pollux.sessions import homes

HOME = Path(__file__).parents[1] / "demo" / "home"

_VARIABLE = "POLLUX_HOME"


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--if-empty", is_flag=True, help="Only when there are no sessions of your own; else show those.")
@click.option("--path", "only_path", is_flag=True, help="Only say where the invented sessions are.")
@click.argument("rest", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
def command(rest: tuple[str, ...], *, if_empty: bool, only_path: bool) -> None:
    """Try any command on invented sessions, which show every generation of the format and every feature.

    \b
      pollux demo
      pollux demo ls
      pollux demo show latest --detail full
    """
    from pollux.cli import pollux  # noqa: PLC0415  the group that this command belongs to

    if only_path:
        click.echo(str(HOME))
        return
    if not if_empty or not _has_sessions():
        os.environ[_VARIABLE] = str(HOME)
        if not rest:
            output.words("These sessions are invented: `pollux demo ls`, `pollux demo show latest` and so on.\n")
    pollux.main(args=list(rest), prog_name="pollux demo", standalone_mode=False)


def _has_sessions() -> bool:
    return any(True for _ in locate(homes()).files)
