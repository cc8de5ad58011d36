"""Bare `pollux`: an overview a person is glad to see; in a pipe, the session list."""

from __future__ import annotations

from datetime import UTC, datetime

import click
from rich.console import Console
from rich.text import Text

from pollux.cli import output
from pollux.cli.scope import Scope
from pollux.filters import Filter
from pollux.locate import Home
from pollux.sessions import History
from pollux.terminal.listing import session_lines, session_table
from pollux.terminal.text import count, line
from pollux.views.overview import Overview, overview

_NEWEST = 8
_BARS = " ▁▂▃▄▅▆▇█"


@click.command()
def command() -> None:
    """Say what there is, what is new, and what the client is going to delete."""
    found = Scope((), Filter()).history()
    by_id = {one.id: one for one in found.sessions}
    if not output.is_terminal():
        output.write(text.encode("utf-8", "replace") for text in session_lines(found.main, by_id))
        return
    now = datetime.now(UTC)
    n_problems = len(found.problems) + sum(len(one.problems) for one in found.sessions)
    console = output.console()
    _print(console, found, overview(found.sessions, n_problems, now=now))
    if found.main:
        console.print(session_table(found.main[:_NEWEST], by_id, now=now))
        console.print(Text("\npollux show @1 reads the first · pollux ls lists all · pollux --help", "dim"))


def _print(console: Console, found: History, view: Overview) -> None:
    homes = ", ".join(_home(home) for home in found.located.homes)
    if not view.n_sessions:
        console.print(Text(f"No Gemini CLI sessions in {homes}.", "bold"))
        console.print("`pollux demo` shows invented ones; `pollux doctor` says where was looked and why.")
        return
    console.print(
        Text.assemble(
            (f"{view.n_sessions} sessions", "bold"),
            f" in {view.n_projects} projects, {view.n_prompts} prompts, {view.n_subagents} subagents",
            (f"   {line(homes, 60)}", "dim"),
        )
    )
    console.print(
        Text.assemble(
            (f"{count(view.tokens.total)} tokens", "bold"),
            f" in {view.n_calls} model calls",
            f" since {view.first:%-d %B %Y}" if view.first else "",
        )
    )
    _print_days(console, view)
    if view.due or view.soon:
        console.print(
            Text(
                f"{view.due} sessions are older than 30 days: the client deletes them at its next start, "
                f"unless its settings say otherwise; {view.soon} more within a week.",
                "yellow",
            )
        )
    if view.n_problems:
        console.print(Text(f"{view.n_problems} problems while reading: `pollux doctor` lists them.", "yellow"))
    console.print()


def _print_days(console: Console, view: Overview) -> None:
    most = max(tokens for _, tokens in view.days)
    if not most:
        return
    bars = "".join(_BARS[-(-tokens * (len(_BARS) - 1) // most)] for _, tokens in view.days)
    first, last = view.days[0][0], view.days[-1][0]
    console.print(
        Text.assemble(
            (f"{first.day} {first:%b} ", "dim"),
            (bars, "cyan"),
            (f" {last.day} {last:%b}", "dim"),
            f"   {count(sum(tokens for _, tokens in view.days))} tokens in {len(view.days)} days",
        )
    )


def _home(home: Home) -> str:
    return str(home.root)
