"""`pollux watch`: copy what is new into the archive as it comes, until stopped."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options
from pollux.cli.signals import ended_by_signals

if TYPE_CHECKING:
    from pollux.library.services import Service
    from pollux.library.values import SyncReport
    from pollux.model import Problem


@click.command()
@options(filters=None, all_homes=False)
@click.option("--quiet", "-q", is_flag=True, help="Say nothing of what is taken in, only of trouble.")
@click.option("--poll", is_flag=True, help="Look for changes instead of being told; automatic on network folders.")
@click.option("--install", "action", flag_value="install", help="Have the system start this at every login.")
@click.option("--uninstall", "action", flag_value="uninstall", help="Undo that.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before writing the service file.")
def command(scope: Scope, *, quiet: bool, poll: bool, action: str | None, yes: bool) -> None:
    """Take everything new into the archive as soon as Gemini CLI writes it, until stopped with Ctrl-C.

    A turn is kept within a second; a session that the client deletes a moment later is kept too. What fails, a full
    disk for example, is said once and tried again.

    \b
      pollux watch
      pollux watch --quiet --home /mnt/alice --home /mnt/bob
      pollux watch --install      a service file for systemd or launchd
    """
    from pollux.library import services

    if action:
        service = services.watch_service(scope.library.config, sys.executable, poll=poll)
        _uninstall(service) if action == "uninstall" else _install(scope, service, yes=yes)
        return
    with ended_by_signals():
        _watch(scope, poll=poll, quiet=quiet)


def _watch(scope: Scope, *, poll: bool, quiet: bool) -> None:
    known: set[Problem] = set()
    is_first = True
    for report in scope.library.watch(poll=poll, tell=output.words):
        output.say_problems(problem for problem in report.problems if problem not in known)
        known.update(report.problems)
        if not quiet:
            _print(scope, report, is_first=is_first)
        is_first = False


def _print(scope: Scope, report: SyncReport, *, is_first: bool) -> None:
    from pollux.render.terminal.archive import sync_line, watch_line

    if scope.as_json:
        if is_first or report.n_bytes or report.n_deleted:
            output.print_json(report)
    elif is_first:
        click.echo(sync_line(report, output.short))
        output.words("Watching; Ctrl-C ends it.")
    elif line := watch_line(report, output.now(), output.width()):
        click.echo(line)


def _install(scope: Scope, service: Service, *, yes: bool) -> None:
    from pollux.library import services

    scope.library.outputs.check(service.path)
    click.echo(service.text, nl=False)
    place = output.short(service.path)
    if not yes and not output.is_anybody_there():
        output.words(f"Nothing is written yet: with --yes this goes to {place}.")
        return
    if not yes and not click.confirm(f"Write this to {place}?", err=True):
        output.words("Nothing was written.")
        return
    services.install(service)
    output.words("\n".join([f"Written to {place}. Now run:", *(f"  {line}" for line in service.to_enable)]))


def _uninstall(service: Service) -> None:
    from pollux.library import services

    place = output.short(service.path)
    if not services.uninstall(service):
        raise click.ClickException(f"There is no {place}; nothing to remove.")
    output.words("\n".join([f"{place} is removed. Now run:", *(f"  {line}" for line in service.to_disable)]))
