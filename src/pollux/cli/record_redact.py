"""`pollux record redact`: hide parts of a record and prove the rest."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.archive_prove import hand_over
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.library.records import record_of, whole
from pollux.library.select import in_history

if TYPE_CHECKING:
    from pollux.proofs.fields import Field
    from pollux.proofs.secrets import Secrets

_ALWAYS = "content-hash"
"""Hashes of single lines, from which hidden ones could be guessed."""


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
@options(json=False, filters=False)
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
    from pollux.proofs.canonical import json_bytes
    from pollux.proofs.disclosure import redacted
    from pollux.proofs.redacted import prove_record
    from pollux.proofs.secrets import secrets

    if not names and pattern is None and not hides_secrets:
        raise click.UsageError("Say what to hide: --secrets, --hide output, --hide content, --hide-text REGEX.")
    is_chosen = chooser(names, pattern)
    found = scope.history()
    if scope.archive is None:
        raise click.UsageError("Seals are in the archive alone: leave --no-archive and POLLUX_ARCHIVE=- out.")
    session = in_history(scope, found, wanted)
    original = whole(record_of(scope, {one.id: one for one in found.sessions})(session.id))
    seen = secrets(original) if hides_secrets else None
    places = seen.places if seen else frozenset()
    shown = redacted(original, lambda field: field.path in places or is_chosen(field))
    hand_over(json_bytes(prove_record(scope.archive.database, session.id, original, shown)), target)
    if seen:
        say(seen)


def chooser(names: tuple[str, ...], pattern: str | None) -> Callable[[Field], bool]:
    """Make what tells which values are hidden: by their name, their pointer, their text, or the names in them."""
    try:
        text = re.compile(pattern) if pattern is not None else None
    except re.error as error:
        raise click.UsageError(f"--hide-text '{pattern}' is no regular expression: {error}.") from None
    members = {_ALWAYS, *(one for one in names if not one.startswith("/"))}
    pointers = [one for one in names if one.startswith("/")]

    def is_hidden(field: Field) -> bool:
        is_count = isinstance(field.value, int | float)
        if (field.path[-1] in members and not is_count) or any(fnmatchcase(field.pointer, one) for one in pointers):
            return True
        said = [field.value] if isinstance(field.value, str) else field.value if isinstance(field.value, dict) else ()
        return text is not None and any(text.search(one) for one in said)

    return is_hidden


def say(found: Secrets) -> None:
    """Say what was found, and what could not be looked into."""
    counts = ", ".join(f"{count} × {what}" for what, count in found.counts.most_common())
    n_values = f"{len(found.places)} value{'s' * (len(found.places) != 1)}"
    output.words(f"Secrets hidden, with {n_values} that held them: {counts}." if counts else "No secret was found.")
    for what, count in sorted(found.unread.items()):
        output.words(f"Not looked into: {count} × {what}; check them yourself.")
