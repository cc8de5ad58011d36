"""`pollux watch`: copy session files into the archive as the client writes them."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.context import Context, options
from pollux.cli.signals import ended_by_signals

if TYPE_CHECKING:
    from pollux.library.services import Service
    from pollux.library.values import SyncReport
    from pollux.model import Problem


@click.command()
@click.option("--quiet", "-q", is_flag=True, help="Print only problems, not what is archived.")
@click.option("--poll", is_flag=True, help="Check for changes at intervals; automatic on network folders.")
@click.option("--install", "action", flag_value="install", help="Start `pollux watch` at every login.")
@click.option("--uninstall", "action", flag_value="uninstall", help="Remove the service that --install wrote.")
@click.option("--yes", "-y", is_flag=True, help="Write the service file without asking.")
@options(filters=None, all_homes=False)
def command(scope: Context, *, quiet: bool, poll: bool, action: str | None, yes: bool) -> None:
    """Copy session files into the archive as soon as Gemini CLI writes them, until you press Ctrl-C.

    Each turn is archived within a second, even if the client deletes the session a moment later. If archiving fails,
    for example because the disk is full, the error is printed once and archiving is tried again.

    \b
      pollux watch
      pollux watch --quiet --home /mnt/alice --home /mnt/bob
      pollux watch --install      write a service for systemd or launchd
    """
    from pollux.library import services

    if action:
        service = services.watch_service(scope.library.config, sys.executable, poll=poll)
        if action == "install":
            _install(scope, service, yes=yes)
        else:
            _uninstall(service)
        return
    with ended_by_signals():
        _watch(scope, poll=poll, quiet=quiet)


def _watch(scope: Context, *, poll: bool, quiet: bool) -> None:
    printed: set[Problem] = set()
    is_first = True
    for report in scope.library.watch(poll=poll, tell=output.note):
        output.print_problems(problem for problem in report.problems if problem not in printed)
        printed.update(report.problems)
        if not quiet:
            _print(scope, report, is_first=is_first)
        is_first = False


def _print(scope: Context, report: SyncReport, *, is_first: bool) -> None:
    from pollux.render.terminal.archive import sync_line, watch_line

    if scope.as_json:
        if is_first or report.n_bytes or report.n_deleted:
            output.print_json(report)
    elif is_first:
        click.echo(sync_line(report, output.short))
        output.note("Watching for changes. Press Ctrl-C to stop.")
    elif line := watch_line(report, output.now(), output.width()):
        click.echo(line)


def _install(scope: Context, service: Service, *, yes: bool) -> None:
    from pollux.library import services

    scope.library.outputs.check(service.path)
    click.echo(service.text, nl=False)
    path = output.short(service.path)
    if not yes and not output.can_prompt():
        output.note(f"Nothing was written: cannot ask for confirmation without a terminal. Pass --yes to write {path}.")
        return
    if not yes and not click.confirm(f"Write this to {path}?", err=True):
        output.note("Nothing was written.")
        return
    services.install(service)
    output.note("\n".join([f"Wrote {path}. Now run:", *(f"  {line}" for line in service.to_enable)]))


def _uninstall(service: Service) -> None:
    from pollux.library import services

    path = output.short(service.path)
    if not services.uninstall(service):
        raise click.ClickException(f"{path} does not exist, so there is no service to remove.")
    output.note("\n".join([f"Removed {path}. Now run:", *(f"  {line}" for line in service.to_disable)]))
