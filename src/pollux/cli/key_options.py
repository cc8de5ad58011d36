"""The options that name keys, and the prompts for their passphrases."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.library.config import PASSPHRASE, keys_folder, stored_passphrase

if TYPE_CHECKING:
    from pollux.library.export_values import PublicKey, SigningKey

signing_key = click.option(
    "--key", "-k", "key", metavar="NAME|FILE", help="The key to sign with, if there are several."
)
believed_keys = click.option(
    "--key",
    "-k",
    "keys",
    metavar="NAME|FILE",
    multiple=True,
    help="The public key to believe, instead of all in your folder; repeatable.",
)


def own_key(wanted: str | None) -> SigningKey:
    """Return the key to sign with; asks for its passphrase if it has one."""
    from pollux.library import keys

    return keys.signing_key(keys_folder(), wanted, _ask_passphrase)


def believed(wanted: Sequence[str]) -> list[PublicKey]:
    """Return the public keys to check signatures with, and print which files are no usable keys."""
    from pollux.library import keys

    found = keys.believed_keys(keys_folder(), wanted)
    for fault in found.faults:
        output.words(fault)
    return found.keys


def new_passphrase() -> bytes:
    """Ask for a passphrase, twice."""
    passphrase = stored_passphrase()
    if passphrase is None:
        _check_person()
        passphrase = str(click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True))
    if not passphrase:
        raise click.UsageError("An empty passphrase protects nothing; leave --passphrase out instead.")
    return passphrase.encode()


def _ask_passphrase(name: str) -> bytes:
    passphrase = stored_passphrase()
    if passphrase is None:
        _check_person()
        passphrase = str(click.prompt(f"Passphrase of the key {name}", hide_input=True, err=True))
    return passphrase.encode()


def _check_person() -> None:
    if not output.is_anybody_there():
        raise click.UsageError(f"Nobody is here to be asked for a passphrase; put it into {PASSPHRASE}.")
