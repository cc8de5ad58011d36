"""`pollux watch`: take in what is new, until stopped."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options, progress
from pollux.cli.sync import archive_path, row, say_who_writes, summary
from pollux.library import project_memory

if TYPE_CHECKING:
    from pollux.archive.watch import Captured
    from pollux.cli.services import Service
    from pollux.model import Problem
    from pollux.sessions.locate import Home

_HANDED_ON = ("POLLUX_HOME", "GEMINI_CLI_HOME", "GEMINI_DIR", "GEMINI_SESSIONS_DIR")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command()
@options(filters=False, all_homes=False)
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
    archive = archive_path(scope)
    if action:
        service = _service(scope, archive, poll=poll)
        _uninstall(service) if action == "uninstall" else _install(service, yes=yes)
        return
    with ended_by_signals():
        _watch(scope, archive, poll=poll, quiet=quiet)


def _watch(scope: Scope, archive: Path, *, poll: bool, quiet: bool) -> None:
    from pollux.archive.watch import capture, watch

    places = homes_of(scope)
    said: set[Problem] = set()
    is_first = True

    def take_in() -> None:
        nonlocal is_first
        with progress("taking in") as tell:
            found = capture(archive, places(), memory=project_memory.recalled(), progress=tell, waiting=say_who_writes)
        output.say_problems(one for one in found.result.problems if one not in said)
        said.update(found.result.problems)
        if not quiet:
            _say(scope, found, archive, is_first=is_first)
        is_first = False

    watch(places, take_in, poll=poll, tell=output.words)


def homes_of(scope: Scope) -> Callable[[], tuple[Home, ...]]:
    """Return a function that looks for the homes anew; one that is no longer there is waited for."""
    from pollux.sessions import reader

    known = scope.places()

    def places() -> tuple[Home, ...]:
        nonlocal known
        with suppress(FileNotFoundError):
            known = reader.homes(*scope.homes)
        return known

    return places


def _say(scope: Scope, found: Captured, archive: Path, *, is_first: bool) -> None:
    if scope.as_json:
        if is_first or found.result.n_bytes or found.result.n_gone:
            output.print_json(row(found.result, archive))
    elif is_first:
        click.echo(summary(found.result, archive))
        output.words("Watching; Ctrl-C ends it.")
    elif line := _line(found):
        click.echo(line)


def _line(found: Captured) -> str:
    """Say what was captured, in one line; nothing, if nothing was."""
    from pollux.render.terminal.tables import counted
    from pollux.render.terminal.text import cut
    from pollux.text.amounts import size
    from pollux.text.escape import clean

    result = found.result
    words = [f"+{size(result.n_bytes)}"] if result.n_bytes else []
    if result.n_gone:
        words.append(f"{counted(result.n_gone, 'file')} gone, kept here")
    if not words:
        return ""
    names = [f"{one[:8]} {title}".rstrip() for one, title in found.titles.items()]
    more = len(result.sessions) - len(names)
    text = ", ".join([*words, *names, *([f"{more} more"] if more else [])])
    return cut(f"{output.now().astimezone():%H:%M:%S}  {clean(text)}".replace("\n", " "), output.width())


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End in good order, with status 0, on Ctrl-C and when told to terminate; a second signal changes nothing."""

    def stop(*_: object) -> None:
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = [(one, signal.signal(one, stop)) for one in _SIGNALS]
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        for one, old in before:
            signal.signal(one, old)


def _service(scope: Scope, archive: Path, *, poll: bool) -> Service:
    import platformdirs

    from pollux.cli import services

    words = [sys.executable, "-m", "pollux", "watch", "--quiet"]
    words += [word for one in scope.homes for word in ("--home", str(one.expanduser().absolute()))]
    words += ["--archive", str(archive), *(["--poll"] if poll else [])]
    environ = {name: _absolute(os.environ[name]) for name in _HANDED_ON if os.environ.get(name)}
    if sys.platform == "darwin":
        return services.launchd(words, environ, user_home=Path.home())
    if sys.platform == "win32":
        raise click.ClickException(
            f"There is no service file for Windows; let the Task Scheduler run `{' '.join(words)}` at logon."
        )
    return services.systemd(words, environ, config=platformdirs.user_config_path())


def _absolute(paths: str) -> str:
    """Make paths mean the same wherever the service runs."""
    return os.pathsep.join(str(Path(one).expanduser().absolute()) for one in paths.split(os.pathsep) if one)


def _install(service: Service, *, yes: bool) -> None:
    from pollux.cli.output_guard import check_output
    from pollux.disk.private_files import make_private_folder, write_private

    check_output(service.path)
    click.echo(service.text, nl=False)
    place = output.short(service.path)
    if not yes and not output.is_anybody_there():
        output.words(f"Nothing is written yet: with --yes this goes to {place}.")
        return
    if not yes and not click.confirm(f"Write this to {place}?", err=True):
        output.words("Nothing was written.")
        return
    make_private_folder(service.path.parent)
    write_private(service.path, [service.text.encode()])
    output.words("\n".join([f"Written to {place}. Now run:", *(f"  {one}" for one in service.to_enable)]))


def _uninstall(service: Service) -> None:
    place = output.short(service.path)
    if not service.path.exists():
        raise click.ClickException(f"There is no {place}; nothing to remove.")
    for one in (service.path, *service.links):
        one.unlink(missing_ok=True)
    output.words("\n".join([f"{place} is removed. Now run:", *(f"  {one}" for one in service.to_disable)]))
