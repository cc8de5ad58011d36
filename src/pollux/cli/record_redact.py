"""`pollux record redact`: hide parts of a record and prove the rest."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.cli.targets import write_data

if TYPE_CHECKING:
    from pollux.library.export_values import Secrets


@click.command(short_help="Hide parts of a record, provably.")
@click.argument("wanted", metavar="ID", shell_complete=session_ids)
@click.option(
    "--hide",
    "names",
    metavar="NAME|/POINTER",
    multiple=True,
    help="Members of that name with all in them, but not counts; repeatable.",
)
@click.option("--hide-text", "pattern", metavar="REGEX", help="Every text in which this is found.")
@click.option(
    "--secrets", "hides_secrets", is_flag=True, help="Every value in which a key, token or password is found."
)
@click.option("--output", "-o", "target", default="-", show_default=True, help="A file, or - for stdout.")
@options(json=False, filters=None)
def command(
    scope: Scope, wanted: str, *, names: tuple[str, ...], pattern: str | None, hides_secrets: bool, target: str
) -> None:
    """Write the record of a sealed session with `[redacted]` in place of what you hide.

    `pollux record verify` proves that the rest is what was sealed, and that nothing else was left out, moved or
    renamed. Of a hidden value only a salted hash is left. The result can be signed like any record.

    --secrets hides every value in which the rules of redaction find a secret; e-mail addresses and names are not
    secrets. At the end the command prints what it found, and what it could not look into.

    \b
      pollux record redact latest --secrets -o redacted.json
      pollux record redact latest --hide output --hide input -o redacted.json
      pollux record redact latest --hide '/session/entries/3/*'
      pollux record redact latest --hide-text 'secret|token'
    """
    from pollux.library.records import field_chooser, redact_record

    if not names and pattern is None and not hides_secrets:
        raise click.UsageError("Say what to hide: --secrets, --hide output, --hide content, --hide-text REGEX.")
    is_hidden = field_chooser(names, pattern)
    scope.note_freshness()
    redacted = redact_record(scope.library, wanted, is_hidden, hide_secrets=hides_secrets)
    write_data(scope, target, redacted.data)
    if redacted.secrets:
        print_secrets(redacted.secrets)


def print_secrets(secrets: Secrets) -> None:
    """Print what was found, and what could not be looked into."""
    counts = ", ".join(f"{count} × {what}" for what, count in secrets.counts.most_common())
    n_values = f"{len(secrets.places)} value{'s' * (len(secrets.places) != 1)}"
    output.words(f"Secrets hidden, with {n_values} that held them: {counts}." if counts else "No secret was found.")
    for what, count in sorted(secrets.unread.items()):
        output.words(f"Not looked into: {count} × {what}; check them yourself.")
