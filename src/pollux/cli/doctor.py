"""`pollux doctor`: what was found where, and all that could not be read."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options, progress

if TYPE_CHECKING:
    from pollux.formats.prompts import LoggedPrompt
    from pollux.model import Problem
    from pollux.reports.doctor import Health, Unknowns
    from pollux.sessions.reader import History


@click.command()
@options(filters=False)
def command(scope: Scope) -> None:
    """Say what was found, which variable decided where, and everything that could not be read or is unknown.

    \b
      pollux doctor
      pollux doctor --home /mnt/backup/alice
      pollux doctor --json | jq '.problems[]'
    """
    from pollux.reports.doctor import Health, health_json, lost

    found = scope.history()
    unknowns, failures = _unknowns(found)
    logged, log_problems = _logged(found)
    of_sessions = (problem for one in found.sessions for problem in one.problems)
    problems = [*dict.fromkeys([*found.problems, *failures, *log_problems, *of_sessions])]
    health = Health(found, unknowns, lost(logged, found.sessions, found.located.files), problems)
    if scope.as_json:
        output.print_json(health_json(health))
    else:
        _print(health)
    click.get_current_context().exit(1 if problems or not found.sessions else 0)


def _print(health: Health) -> None:
    from pollux.render.terminal.doctor import findings, fitted, plain

    is_terminal = output.is_terminal()
    for label, text in findings(health, output.short):
        click.echo(fitted(label, text, output.width()) if is_terminal else plain(label, text))


def _unknowns(found: History) -> tuple[Unknowns, list[Problem]]:
    """Count what no table knows, file by file; a file whose reading raises an error is a problem."""
    from pollux.reports.doctor import Unknowns, look_into
    from pollux.sessions.replay.reading import cannot_derive, reason_of

    unknowns = Unknowns()
    problems: list[Problem] = []
    files = list(found.located.files)
    n_bytes, done = sum(file.size for file in files), 0
    with progress("examining") as tell:
        for file in files:
            try:
                look_into(file, unknowns)
            except OSError:
                continue  # reported by the history already
            except Exception as error:  # noqa: BLE001  reported; the other files must be examined
                problems.append(cannot_derive(file.path, reason_of(error)))
            finally:
                done += file.size
                tell(done, n_bytes)
    return unknowns, problems


def _logged(found: History) -> tuple[list[LoggedPrompt], list[Problem]]:
    from pollux.disk.regular_files import PROMPT_LOG, problem_of, read_side_file
    from pollux.formats import prompts
    from pollux.model import Problem
    from pollux.sessions.replay.reading import cannot_derive, reason_of

    logged: list[LoggedPrompt] = []
    problems: list[Problem] = []
    for folder in found.located.folders:
        path = folder.logs
        if path is None:
            continue
        try:
            read = prompts.read(read_side_file(path, within=folder.home.tmp, limit=PROMPT_LOG))
        except OSError as error:
            problems.append(problem_of(error, path))
            continue
        except Exception as error:  # noqa: BLE001  reported; the other logs must be read
            problems.append(cannot_derive(path, reason_of(error)))
            continue
        logged += read.prompts
        problems += [Problem(one.code, one.message, str(path), one.line) for one in read.problems]
    return logged, problems
