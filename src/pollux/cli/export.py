"""`pollux export`: write sessions in another format."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollux.cli import output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.cli.options import (
    export_sink,
    path_from_argument,
    reference_from_argument,
    refuse_binary,
    transcript_options,
)
from pollux.cli.redacting import print_findings, print_redaction, redaction_options
from pollux.library.export_options import FORMATS, RedactionOptions

if TYPE_CHECKING:
    from pollux.library.export_values import ExportOptions, ExportResult

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # not generic before Click 8.2

_ALIASES = {"md": "markdown"}
_HELP = """Write sessions in another format.

On a terminal, a session is written to a new file in the current folder, named after its project, date and ID; in a
pipe, to standard output. Several sessions are written to a folder, one file each, under names that stay the same;
sessions that have not changed since are not written again.

\b
{formats}
\b
  pollux export latest --format md
  pollux export latest --format html --open
  pollux export --all --project . --format html -o site/
  pollux export latest --format gemini | jq .
"""


class _FormatChoice(_Choice):
    """The names of formats; also `md`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        return super().convert(_ALIASES.get(value, value), param, ctx)


@click.command(help=_HELP.format(formats="\n".join(f"  {name:<12} {row.summary}" for name, row in FORMATS.items())))
@click.argument("references", metavar="[SESSION]...", nargs=-1, shell_complete=session_ids)
@click.option(
    "--format",
    "-f",
    "name",
    type=_FormatChoice(list(FORMATS)),
    default="json",
    show_default=True,
    metavar="FORMAT",
    help="One of the formats above.",
)
@click.option("--all", "everything", is_flag=True, help="Export all sessions that match the other options.")
@click.option(
    "--output",
    "-o",
    "target",
    metavar="PATH",
    help="File, folder, or - for stdout.  [default: a new file on a terminal, stdout in a pipe]",
)
@click.option("--open", "opens", is_flag=True, help="Open the file or page that was written.")
@transcript_options
@click.option(
    "--include",
    metavar="ITEM,…",
    help="Add text, thoughts, usage, notices, fates (events); content, openinference (otlp); argument-objects (chat).",
)
@click.option("--split", type=click.IntRange(1), metavar="N", help="Write a file for every N prompts.")
@click.option("--semconv", type=click.Choice(["1.41", "dev"]), help="Version of OpenTelemetry's semantic conventions.")
@redaction_options
@click.option("--follow", is_flag=True, help="Continue with new events of a running session until Ctrl-C.")
@click.option("--losses", "prints_losses", is_flag=True, help="List data that the format cannot represent.")
@options(json=False, strict=True)
def command(
    scope: Context,
    references: tuple[str, ...],
    *,
    name: str,
    everything: bool,
    target: str | None,
    opens: bool,
    follow: bool,
    prints_losses: bool,
    redaction: RedactionOptions,
    **given: Any,  # noqa: ANN401  options of some formats
) -> None:
    """Select the sessions and write them; `_HELP` is the help of the command."""
    from pollux.library.export import Selection
    from pollux.library.export_options import format_options

    if not references and not everything:
        raise click.UsageError("Name the sessions to export: IDs, files or `latest`, or pass --all.")
    if opens and (target == "-" or follow):
        raise click.UsageError("--open needs a file to open: omit `-o -` and --follow.")
    chosen = format_options(name, given)
    if follow:
        if redaction.is_requested:
            raise click.UsageError("--follow cannot redact: omit --redact and --share.")
        _follow(scope, references, name, target, chosen)
        return
    if target == "-" and FORMATS[name].media_type == "application/cbor":
        refuse_binary(target)
    selection = Selection(tuple(path_from_argument(item) or item for item in references), scope.wanted, everything)
    if selection.needs_history:
        scope.note_freshness()
    result = scope.library.export(selection, name, export_sink(target, opens=opens), chosen, redaction)
    _print_result(result)
    if prints_losses and not redaction.dry_run:
        _print_losses(result)
    if result.redaction:
        print_redaction(result.redaction)
    if opens and result.path:
        _open(result.path / FORMATS[name].index_page if result.path.is_dir() else result.path)
    problems = () if redaction.dry_run else result.problems
    scope.finish(problems if everything else (), asked=(*result.failed, *(() if everything else problems)))


def _follow(scope: Context, references: tuple[str, ...], name: str, target: str | None, chosen: ExportOptions) -> None:
    """Write the events of a session, then each new one as it happens, until stopped."""
    from pollux.cli.signals import until_stopped

    if name != "events":
        raise click.UsageError(f"--follow has no effect on {name}. Use it with `--format events`.")
    if len(references) != 1:
        raise click.UsageError("--follow needs exactly one session: an ID, a file or `latest`.")
    if target not in (None, "-"):
        raise click.UsageError("--follow writes to stdout until it is stopped. Redirect it with `>` instead of -o.")
    reference = reference_from_argument(scope, references[0])
    with until_stopped():
        for line in scope.library.follow(reference, scope.wanted).events(chosen):
            output.write([line])


def _open(path: Path) -> None:
    import webbrowser

    path = path.absolute()
    is_opened = webbrowser.open(path.as_uri()) if path.suffix == ".html" else click.launch(str(path)) == 0
    if not is_opened:
        output.note(f"Cannot open {path.name} on this system. Open it yourself.")


def _print_result(result: ExportResult) -> None:
    """Note what was written where, and which sessions had nothing to write."""
    for page in result.foreign_pages:
        output.note(f"{page} was not replaced, because Pollux did not write it.")
    if result.redaction and result.redaction.dry_run:
        print_findings(result.redaction.findings)
    elif FORMATS[result.format].reads_archive:
        counts = ", ".join(_plural(table, count) for table, count in result.tables.items() if count)
        output.note(f"{counts or 'Empty tables'} written to {result.path}")
    elif result.path and (result.written or result.path.is_dir()):
        output.note(result.note)
    n_empty = len(result.empty)
    if n_empty:
        which = f"{n_empty} of {result.n_chosen} sessions {'have' if n_empty > 1 else 'has'}"
        which = f"Session {result.empty[0]} has" if result.n_chosen == 1 else which
        output.note(f"{which} nothing for {result.format}: {FORMATS[result.format].empty_reason}.")


def _print_losses(result: ExportResult) -> None:
    if not result.losses:
        output.note(f"{result.format} represents everything in these sessions.")
    for loss, count in result.losses.items():
        output.note(f"lost in {result.format}: {loss}, {count:,} ×")


def _plural(table: str, count: int) -> str:
    """Return the number of rows of a table: 1 session file, 2 session files."""
    nouns = table.replace("_", " ")
    return f"1 {nouns.removesuffix('es' if nouns.endswith('ches') else 's')}" if count == 1 else f"{count:,} {nouns}"
