"""`pollux statusline`: today's usage in one line."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli.context import Context, options

_DEFAULT = "{tokens} tokens {cost}"
_NAMES = ("active", "calls", "cost", "input", "output", "project", "tokens")


@click.command()
@options(json=False, filters=None, timezone=True)
@click.option(
    "--format",
    "-f",
    "pattern",
    default=_DEFAULT,
    show_default=True,
    help=f"Format of the line. Fields: {', '.join(f'{{{name}}}' for name in _NAMES)}.",
)
@click.option("--all-projects", is_flag=True, help="Count all projects, not only the one of the current folder.")
def command(scope: Context, pattern: str, *, all_projects: bool) -> None:
    """Print today's usage of the current project in one line, for a shell prompt or a status bar.

    \b
      PS1='$(pollux statusline) $ '
      set -g status-right '#(pollux statusline --all-projects -f "{cost}")'
    """
    from pollux.render.terminal.screen import line
    from pollux.render.terminal.usage import cost_of
    from pollux.text.numbers import Currency, count

    today = scope.library.today(everywhere=all_projects)
    if scope.library.freshness().state == "files-only":  # a prompt need not repeat that a watch is writing
        scope.note_freshness()
    values = {
        "active": count(today.active.tokens.total),
        "calls": str(today.billed.calls),
        "cost": cost_of(today.billed, Currency()),
        "input": count(today.billed.tokens.input),
        "output": count(today.billed.tokens.output),
        "project": today.project,
        "tokens": count(today.billed.tokens.total),
    }
    try:
        text = pattern.format(**values)
    except (AttributeError, IndexError, KeyError, ValueError):
        raise click.UsageError(f"Invalid --format '{pattern}'; the fields are {', '.join(_NAMES)}.") from None
    click.echo(line(text, 1000))
