"""`pollux projects`: where sessions were held, and how we know."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options
from pollux.library import project_memory

if TYPE_CHECKING:
    from pollux.model import Session
    from pollux.reports.projects import ProjectRow


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
    from pollux.reports.projects import PROJECTS, project_json, project_rows

    found = scope.history()
    sessions = scope.sessions(found, everything=True)
    if scan:
        sessions = _scanned(sessions, remember=scope.archive_path is not None)
    rows = [row for row in project_rows(sessions) if row.n_sessions]
    if scope.as_json:
        output.print_json({"schema": PROJECTS, "projects": [project_json(row) for row in rows]})
    elif output.is_terminal() and rows:
        output.console().print(project_table(rows, now=output.now(), width=output.width()))
        _hints(rows)
    else:
        output.write(line.encode("utf-8", "replace") for line in project_lines(rows))
    if not rows:
        output.words("No projects here; `pollux doctor` says where was looked.")
        click.get_current_context().exit(1)


def _scanned(sessions: tuple[Session, ...], *, remember: bool) -> tuple[Session, ...]:
    """Compare the hashes of likely folders with the projects that have no path, and store the matches."""
    from pollux.sessions.projects import search

    n_unknown = len(project_memory.unproven(sessions))
    better = project_memory.proven(sessions, search.likely_roots(Path.home()))
    n_found = n_unknown - len(project_memory.unproven(better))
    output.words(f"{n_found} of {n_unknown} unknown projects found")
    problem = project_memory.remember(better, project_memory.recalled()) if remember else None
    output.say_problems([problem] if problem else [])
    return better


def _hints(rows: list[ProjectRow]) -> None:
    from pollux.sessions.projects import search

    if any(row.project.path is None for row in rows):
        output.words("Some projects are known only by their hash: `pollux projects --scan` looks for them.")
    paths = [row.project.path for row in rows if row.project.path]
    for row in rows:
        moved = search.moved_to(row.project, paths, lambda path: Path(path).is_dir())
        if moved:
            output.words(f"{row.project.path} is gone; it may have moved to {moved}")
