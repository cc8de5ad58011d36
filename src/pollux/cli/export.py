"""`pollux export`: hand sessions over."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pollux.cli import output
from pollux.cli.arguments import path_from_argument, reference_from_argument
from pollux.cli.complete import session_ids
from pollux.cli.redacting import print_findings, print_redaction, redaction_options
from pollux.cli.scope import Scope, options
from pollux.cli.targets import export_sink
from pollux.cli.transcript_options import transcript_options
from pollux.library.export_options import FORMATS, RedactionOptions

if TYPE_CHECKING:
    from pollux.library.export_values import ExportResult, Wanted

_HELP = """Write sessions in another form; several go into a folder, a file each, with stable names.

What is in the folder already and has not changed is not written again.

\b
{formats}
\b
  pollux export latest --format gemini -o session.json
  pollux export --all --project . --format jsonl -o exports/
"""


@click.command(help=_HELP.format(formats="\n".join(f"  {name:<12} {row.summary}" for name, row in FORMATS.items())))
@click.argument("wanted", metavar="[ID|FILE]...", nargs=-1, shell_complete=session_ids)
@options(json=False)
@click.option(
    "--format",
    "-f",
    "name",
    type=click.Choice(list(FORMATS)),
    default="json",
    show_default=True,
    metavar="FORMAT",
    help="One of the forms above.",
)
@click.option("--all", "everything", is_flag=True, help="All sessions that fit the other options.")
@click.option("--output", "-o", "target", default="-", show_default=True, help="A file, a folder, or - for stdout.")
@transcript_options
@click.option("--include", metavar="WHAT,…", help="What a form leaves out unless asked.")
@click.option("--split", type=click.IntRange(1), metavar="N", help="A file for every N prompts.")
@click.option("--semconv", type=click.Choice(["1.41", "dev"]), help="The version of OpenTelemetry's conventions.")
@redaction_options
@click.option("--follow", is_flag=True, help="Go on with what a running session adds, until Ctrl-C; for events.")
@click.option("--losses", "says_losses", is_flag=True, help="Say what the form could not hold.")
def command(
    scope: Scope,
    wanted: tuple[str, ...],
    *,
    name: str,
    everything: bool,
    target: str,
    follow: bool,
    says_losses: bool,
    redaction: RedactionOptions,
    **given: Any,  # noqa: ANN401  the options that only some forms heed
) -> None:
    """Choose the sessions, and hand them over."""
    from pollux.library.export import Selection
    from pollux.library.export_options import format_options

    if not wanted and not everything:
        raise click.UsageError("Say which sessions: some ids, files, `latest`, or --all.")
    chosen = format_options(name, given)
    if follow:
        if redaction.redact or redaction.share or redaction.dry_run:
            raise click.UsageError("--follow hands over all there is: leave --redact and --share out.")
        _follow(scope, wanted, name, target, chosen)
        return
    refs = tuple(path_from_argument(reference) or reference for reference in wanted)
    selection = Selection(refs, scope.wanted, everything)
    if selection.needs_history:
        scope.note_freshness()
    result = scope.library.export(selection, name, export_sink(target), chosen, redaction)
    _print_result(result, target)
    if says_losses and not redaction.dry_run:
        _print_losses(result)
    if result.redaction:
        print_redaction(result.redaction)
    problems = result.failed if redaction.dry_run else (*result.failed, *result.problems)
    click.get_current_context().exit(output.say_problems(problems))


def _follow(scope: Scope, wanted: tuple[str, ...], name: str, target: str, chosen: Wanted) -> None:
    """Write what there is of a session, and go on with what comes, until stopped."""
    from pollux.cli.signals import until_stopped

    if name != "events":
        raise click.UsageError(f"--follow means nothing for {name}; it is for events.")
    if len(wanted) != 1:
        raise click.UsageError("--follow needs one session: an id, a file or `latest`.")
    if target != "-":
        raise click.UsageError("--follow writes to stdout for as long as it runs; lead that into a file with `>`.")
    reference = reference_from_argument(scope, wanted[0])
    with until_stopped():
        for line in scope.library.follow(reference, scope.wanted).events(chosen):
            output.write([line])


def _print_result(result: ExportResult, target: str) -> None:
    """Print what was written where, and which sessions had nothing to write."""
    for page in result.foreign_pages:
        output.words(f"{page} was not written by Pollux and stays as it is.")
    if result.redaction and result.redaction.dry_run:
        print_findings(result.redaction.findings)
    elif FORMATS[result.format].is_of_archive:
        counts = ", ".join(_counted(table, count) for table, count in result.tables.items() if count)
        output.words(f"{counts or 'Empty tables'} written to {target}")
    elif result.path and (result.written or result.path.is_dir()):
        output.words(result.note)
    n_empty = len(result.empty)
    if n_empty:
        who = f"{n_empty} of {result.n_chosen} sessions {'have' if n_empty > 1 else 'has'}"
        who = f"Session {result.empty[0]} has" if result.n_chosen == 1 else who
        output.words(f"{who} nothing for {result.format}: {FORMATS[result.format].lacks}.")


def _print_losses(result: ExportResult) -> None:
    if not result.losses:
        output.words(f"Nothing is lost in {result.format}.")
    for loss, count in result.losses.items():
        output.words(f"lost in {result.format}: {loss}, {count:,} ×")


def _counted(table: str, count: int) -> str:
    """Return how many rows a table has: 1 session file, 2 session files."""
    nouns = table.replace("_", " ")
    return f"1 {nouns.removesuffix('es' if nouns.endswith('ches') else 's')}" if count == 1 else f"{count:,} {nouns}"
