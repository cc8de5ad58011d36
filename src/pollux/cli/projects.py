"""`pollux projects`: list the folders in which sessions were started."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from pollux.cli import output
from pollux.cli.context import Context, options

if TYPE_CHECKING:
    from pollux.library.values import ProjectList


@click.command()
@click.option("--scan", is_flag=True, help="Search likely folders for projects that are known only by a hash.")
@output.limit_option("List at most N projects.")
@output.table_options
@options()
def command(scope: Context, *, scan: bool, limit: int | None, table: output.TableOptions) -> None:
    """List projects, the last used first, and how their paths are known.

    A path is proven if its SHA-256 is the project hash of the session; a question mark follows one that is not. Pollux
    remembers proven paths. In a pipe there is a tab-separated line per project.

    \b
      pollux projects
      pollux projects --scan
    """
    projects = scope.library.projects(scope.wanted, scan=scan)
    projects = msgspec.structs.replace(projects, rows=projects.rows[:limit])
    scope.note_freshness()
    if scan:
        output.note(f"Found the paths of {projects.n_found} of {projects.n_unknown} unknown projects.")
        output.print_problems(projects.problems)
    if scope.as_json:
        output.print_json(projects)
    else:
        from pollux.render.terminal.sessions import project_lines, project_table

        output.print_table(
            projects.rows,
            lambda: [project_table(projects.rows, now=output.now())],
            lambda: project_lines(projects.rows, header=table.header),
            table,
        )
        if output.is_terminal():
            _print_hints(projects)
    if not projects.rows:
        output.note("No projects here. `pollux doctor` lists the folders that were searched.")
        click.get_current_context().exit(1)


def _print_hints(projects: ProjectList) -> None:
    if any(row.project.path is None for row in projects.rows):
        output.note("Some projects are known only by their hash; `pollux projects --scan` searches for their folders.")
    for path, target in projects.moved.items():
        output.note(f"{path} does not exist any more; it may have moved to {target}")
