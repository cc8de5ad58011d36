"""`pollux statusline`: one short line for a prompt."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options
from pollux.cli.usage import facts, price_table, read_files, zone_of
from pollux.library import folders

if TYPE_CHECKING:
    from pollux.model import Project

_USUAL = "{tokens} tokens {cost}"
_NAMES = ("calls", "cost", "input", "kept", "output", "project", "tokens")


@click.command()
@options(json=False, filters=False)
@click.option(
    "--format",
    "-f",
    "pattern",
    default=_USUAL,
    show_default=True,
    help=f"What to say, with {', '.join(f'{{{name}}}' for name in _NAMES)} in it.",
)
@click.option("--everything", is_flag=True, help="Of all projects, not only of the one you are in.")
@click.option("--timezone", "-z", metavar="ZONE", help="Whose day: Europe/Berlin, UTC.  [default: yours]")
def command(scope: Scope, pattern: str, *, everything: bool, timezone: str | None) -> None:
    """Say in one short line what the project you are in has used today, for a prompt or a status bar.

    \b
      PS1='$(pollux statusline) $ '
      set -g status-right '#(pollux statusline --everything -f "{tokens} {cost}")'
    """
    from pollux.archive.memory import session_projects
    from pollux.render.terminal.text import line
    from pollux.render.terminal.usage import cost_of
    from pollux.reports import usage, usage_sql
    from pollux.reports.periods import start_of_day
    from pollux.text.amounts import count
    from pollux.text.money import Currency

    today = start_of_day(output.now(), zone_of(timezone)[0])
    prices = price_table()
    with facts(scope, prices, partial(read_files, prices=prices), quiet=True) as found:
        known = {} if everything else _here(session_projects(found.database, found.memory))
        parts = [one for one in usage_sql.parts(found.database, today) if everything or one.session_id in known]
    total, kept = usage.billed_and_kept(parts)
    values = {
        "calls": str(total.calls),
        "cost": cost_of(total, Currency()),
        "input": count(total.tokens.input),
        "kept": count(kept.tokens.total),
        "output": count(total.tokens.output),
        "project": next((one.name for one in known.values() if one.path), "" if everything else folders.current().name),
        "tokens": count(total.tokens.total),
    }
    try:
        said = pattern.format(**values)
    except (AttributeError, IndexError, KeyError, ValueError):
        raise click.UsageError(f"--format '{pattern}' is not understood; the names are {', '.join(_NAMES)}.") from None
    click.echo(line(said, 1000))


def _here(projects: dict[str, Project]) -> dict[str, Project]:
    """Keep the sessions of the project that the current folder is in; one that only a hash tells of is told by that."""
    from pollux.sessions.projects import search
    from pollux.sessions.projects.paths import project_hash, spellings

    here = folders.current()
    fitting = set(search.find(tuple(dict.fromkeys(projects.values())), ".", here, Path.home()))
    digests = {project_hash(spelling) for spelling in spellings(os.path.realpath(here))}
    return {one: of for one, of in projects.items() if of in fitting or of.hash in digests}
