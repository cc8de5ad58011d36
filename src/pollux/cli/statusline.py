"""`pollux statusline`: one short line for a prompt."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli.scope import Scope, options

_USUAL = "{tokens} tokens {cost}"
_NAMES = ("calls", "cost", "input", "kept", "output", "project", "tokens")


@click.command()
@options(json=False, filters=None, timezone=True)
@click.option(
    "--format",
    "-f",
    "pattern",
    default=_USUAL,
    show_default=True,
    help=f"What to say, with {', '.join(f'{{{name}}}' for name in _NAMES)} in it.",
)
@click.option("--everything", is_flag=True, help="Of all projects, not only of the one you are in.")
def command(scope: Scope, pattern: str, *, everything: bool) -> None:
    """Say in one short line what the project you are in has used today, for a prompt or a status bar.

    \b
      PS1='$(pollux statusline) $ '
      set -g status-right '#(pollux statusline --everything -f "{tokens} {cost}")'
    """
    from pollux.render.terminal.text import line
    from pollux.render.terminal.usage import cost_of
    from pollux.text.numbers import Currency, count

    today = scope.library.today(everywhere=everything)
    values = {
        "calls": str(today.billed.calls),
        "cost": cost_of(today.billed, Currency()),
        "input": count(today.billed.tokens.input),
        "kept": count(today.active.tokens.total),
        "output": count(today.billed.tokens.output),
        "project": today.project,
        "tokens": count(today.billed.tokens.total),
    }
    try:
        said = pattern.format(**values)
    except (AttributeError, IndexError, KeyError, ValueError):
        raise click.UsageError(f"--format '{pattern}' is not understood; the names are {', '.join(_NAMES)}.") from None
    click.echo(line(said, 1000))
