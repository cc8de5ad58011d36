"""`pollux record create`: a session as a verifiable agent record."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.library.select import meant

if TYPE_CHECKING:
    from pollux.model import Json, Session

PROFILES = ("vac-00", "seed")


@click.command()
@click.argument("wanted", metavar="[ID|FILE]", default="latest", shell_complete=session_ids)
@options(json=False)
@click.option("--output", "-o", "target", default="-", show_default=True, help="A file, or - for stdout.")
@click.option("--format", "-f", "name", type=click.Choice(["json", "cbor"]), default="json", show_default=True)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default=PROFILES[0],
    show_default=True,
    help="With seed, only the fields of the draft's translation document.",
)
@click.option(
    "--branches",
    type=click.Choice(["active", "all"]),
    default="active",
    show_default=True,
    help="With all, what was rewound, rolled back or compressed is kept too.",
)
@click.option("--created", metavar="WHEN", help="Say when the record was made: now, or a time.")
@click.option("--vcs", "looks_at_vcs", is_flag=True, help="Say what the project's folder has checked out now.")
def command(
    scope: Scope,
    wanted: str,
    *,
    target: str,
    name: str,
    profile: str,
    branches: str,
    created: str | None,
    looks_at_vcs: bool,
) -> None:
    """Write a session as a verifiable agent record, to be signed and checked by others.

    The same session gives the same bytes, unless --created or --vcs put in what only this moment knows.

    \b
      pollux record create latest -o session.json
      pollux record create a82545c4 --branches all --format cbor -o session.cbor
    """
    from pollux.exports.source import Wanted, subject
    from pollux.exports.vac.encode import cbor_pieces, json_pieces
    from pollux.exports.vac.record import record
    from pollux.exports.vac.seed_profile import seed_record
    from pollux.views.transcript import Branches

    if profile == "seed" and (created or looks_at_vcs or branches == "all"):
        raise click.UsageError("--profile seed has no place for --created, --vcs or --branches all: leave them out.")
    if name == "cbor" and target == "-" and output.is_terminal():
        raise click.UsageError("CBOR is not for the eye: give a file with `-o`.")
    moment = _moment(created)
    session, group, by_id = meant(scope, wanted)
    made = subject(session, group, by_id, scope.opened, wanted=Wanted(branches=Branches(branches)))
    vcs = _vcs(session) if looks_at_vcs else None
    value = record(made, created=moment, vcs=vcs)
    if profile == "seed":
        value = seed_record(value, made.losses)
    pieces = {"json": json_pieces, "cbor": cbor_pieces}[name](value)
    if target == "-":
        output.write(pieces)
    else:
        _write(Path(target), pieces)
    for words, count in sorted(made.losses.items()):
        output.words(f"{words}: {count:,} ×")
    click.get_current_context().exit(output.say_problems(session.problems))


def _moment(created: str | None) -> datetime | None:
    from pollux.reports import filters

    if created is None:
        return None
    found = output.now() if created == "now" else filters.moment("--created", created, now=output.now())
    return found.astimezone(UTC)


def _vcs(session: Session) -> dict[str, Json] | None:
    """Look at the project's folder, if it is known for certain and still there."""
    from pollux.exports.vac.vcs import observed

    project = session.project
    if not project.proven or project.path is None:
        output.words("--vcs: the project's folder is not known for certain, so nothing is said of it.")
        return None
    found = observed(Path(project.path))
    if found is None:
        output.words(f"--vcs: {project.path} is in no git repository here, so nothing is said of it.")
    return found


def _write(target: Path, pieces: Iterable[bytes]) -> None:
    from pollux.library.export_folder import write

    try:
        write(target, pieces)
    except OSError as error:
        reason = f"{target} cannot be written: {error.strerror}; give another place with `-o`."
        raise click.ClickException(reason) from None
