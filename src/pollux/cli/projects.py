"""`pollux projects`: where sessions were held, and how we know."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options

if TYPE_CHECKING:
    from pollux.library.values import ProjectList


@click.command()
@options()
@click.option("--scan", is_flag=True, help="Look through likely folders for projects that are known only by a hash.")
def command(scope: Scope, *, scan: bool) -> None:
    """List projects, the one last used first, and how their paths are known.

    A path is proven when its SHA-256 is the session's project hash; a question mark stands behind one that is not.
    What was proven once is remembered. In a pipe there is one line a project, with tabs between path, how it is known,
    sessions, tokens, prompts and the time of the last message.

    \b
      pollux projects
      pollux projects --scan
    """
    from pollux.render.terminal.tables import project_lines, project_table

    projects = scope.library.projects(scope.wanted, scan=scan)
    scope.note_freshness()
    if scan:
        output.words(f"{projects.n_found} of {projects.n_unknown} unknown projects found")
        output.say_problems(projects.problems)
    if scope.as_json:
        output.print_json(projects)
    elif output.is_terminal() and projects.rows:
        output.console().print(project_table(projects.rows, now=output.now(), width=output.width()))
        _print_hints(projects)
    else:
        output.write(line.encode("utf-8", "replace") for line in project_lines(projects.rows))
    if not projects.rows:
        output.words("No projects here; `pollux doctor` says where was looked.")
        click.get_current_context().exit(1)


def _print_hints(projects: ProjectList) -> None:
    if any(row.project.path is None for row in projects.rows):
        output.words("Some projects are known only by their hash: `pollux projects --scan` looks for them.")
    for path, target in projects.moved.items():
        output.words(f"{path} is gone; it may have moved to {target}")
