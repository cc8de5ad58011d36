"""`pollux demo`: any command, on invented sessions."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from pollux.cli import completed_command, output
from pollux.library.config import DEMO_HOME

HOME = DEMO_HOME


def _commands(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    del param
    return [] if ctx.params.get("words") else completed_command(incomplete)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--if-empty", is_flag=True, help="Show your own sessions instead, if there are any.")
@click.option("--path", "only_path", is_flag=True, help="Print the folder of the invented sessions.")
@click.argument("words", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED, shell_complete=_commands)
def command(words: tuple[str, ...], *, if_empty: bool, only_path: bool) -> object:
    """Try any command on invented sessions, which show every generation of the format and every feature.

    The demo uses a temporary archive and key, which are deleted when the command ends. Your sessions, archive and keys
    are neither read nor changed.

    \b
      pollux demo
      pollux demo show latest --detail full
      pollux demo verify
      pollux demo export --all -f parquet -o facts/
    """
    from pollux.cli import pollux

    if only_path:
        click.echo(str(HOME))
        return 0
    if if_empty and _has_sessions():
        return pollux.main(args=[*words], prog_name="pollux", standalone_mode=False)
    from pollux.errors import PolluxError
    from pollux.library.demo import running_demo

    with running_demo(words):
        if not words:
            output.note("These sessions are invented: `pollux demo ls`, `pollux demo show latest` and so on.\n")
        try:
            return pollux.main(args=[*words], prog_name="pollux demo", standalone_mode=False)
        except PolluxError as error:
            error.args = (output.with_program_name(str(error)),)
            raise
        except click.ClickException as error:
            vars(error)["message"] = output.with_program_name(error.message)
            raise


def _has_sessions() -> bool:
    from pollux.library.config import configure

    return configure().has_session_files()
