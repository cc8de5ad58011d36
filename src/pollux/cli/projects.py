"""`pollux projects`: where sessions were held, and how we know."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from rich.table import Table
from rich.text import Text

from pollux import projects
from pollux.cli import output
from pollux.cli.scope import Scope, memory_path, options
from pollux.model import Session
from pollux.terminal.text import ago, clean, count, line
from pollux.views.projects import PROJECTS, ProjectRow, project_json, project_rows


@click.command()
@options()
@click.option("--scan", is_flag=True, help="Look through likely folders for projects that are known only by a hash.")
def command(scope: Scope, *, scan: bool) -> None:
    """List projects, the one last used first, and how their paths are known.

    A path is proven when its SHA-256 is the session's project hash. What was proven once is remembered.

    \b
      pollux projects
      pollux projects --scan
    """
    found = scope.history()
    sessions = scope.sessions(found, everything=True)
    if scan:
        sessions = _scanned(sessions)
    rows = [row for row in project_rows(sessions) if row.n_sessions]
    if scope.as_json:
        output.print_json({"schema": PROJECTS, "projects": [project_json(row) for row in rows]})
    elif output.is_terminal() and rows:
        output.console().print(_table(rows))
        _hints(rows)
    else:
        for row in rows:
            fields = (row.project.path or row.project.name, row.project.how or "", row.n_sessions, row.tokens.total)
            click.echo("\t".join(clean(str(field)) for field in fields))
    if not rows:
        output.words("No projects here; `pollux doctor` says where was looked.")
        click.get_current_context().exit(1)


def _scanned(sessions: tuple[Session, ...]) -> tuple[Session, ...]:
    """Try the hashes of likely folders on projects without a path, and remember what fits."""
    wanted = {one.project.hash for one in sessions if one.project.hash and not one.project.proven}
    paths = projects.scan(projects.likely_roots(Path.home()), wanted)
    if paths:
        projects.remember(memory_path(), paths)
    output.words(f"{len(paths)} of {len(wanted)} unknown project(s) found")
    return tuple(_with_path(one, paths) for one in sessions)


def _with_path(session: Session, paths: dict[str, str]) -> Session:
    path = paths.get(session.project.hash or "")
    if not path:
        return session
    project = msgspec.structs.replace(session.project, path=path, how="scan", proven=True)
    return msgspec.structs.replace(session, project=project)


def _table(rows: list[ProjectRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("project", style="green", no_wrap=True, max_width=20, overflow="ellipsis")
    table.add_column("path", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("known by", no_wrap=True)
    table.add_column("sessions", justify="right")
    table.add_column("tokens", justify="right")
    table.add_column("last used", no_wrap=True)
    now = datetime.now(UTC)
    for row in rows:
        how = row.project.how or "hash only"
        table.add_row(
            line(row.project.name, 40),
            Text(line(row.project.path or row.project.hash or "", 300), "" if row.project.path else "dim"),
            Text(how if row.project.proven or not row.project.path else f"{how}?", "" if row.project.proven else "dim"),
            str(row.n_sessions),
            count(row.tokens.total),
            ago(row.last, now) if row.last else "",
        )
    return table


def _hints(rows: list[ProjectRow]) -> None:
    if any(row.project.path is None for row in rows):
        output.words("Some projects are known only by their hash: `pollux projects --scan` looks for them.")
    paths = [row.project.path for row in rows if row.project.path]
    for row in rows:
        moved = projects.moved_to(row.project, paths, lambda path: Path(path).is_dir())
        if moved:
            output.words(f"{row.project.path} is gone; it may have moved to {moved}")
