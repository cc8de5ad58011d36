"""`pollux record create`: a session as a verifiable agent record."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli import output
from pollux.cli.arguments import reference_from_argument
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.cli.targets import file_sink

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
    from pollux.library.records import RecordOptions, creation_time, write_record
    from pollux.views.transcript import Branches

    if name == "cbor" and target == "-" and output.is_terminal():
        raise click.UsageError("CBOR is not for the eye: give a file with `-o`.")
    chosen = RecordOptions(
        profile=profile,
        format=name,
        branches=Branches(branches),
        created=creation_time(created, scope.library.config),
        vcs=looks_at_vcs,
    )
    reference = reference_from_argument(scope, wanted)
    result = write_record(scope.library, reference, file_sink(target), chosen, scope.wanted)
    for note in result.notes:
        output.words(note)
    for loss, count in result.losses.items():
        output.words(f"{loss}: {count:,} ×")
    click.get_current_context().exit(output.say_problems(result.problems))
