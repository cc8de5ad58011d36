"""Which keys a command uses: the folder they are in, the one to sign with, and those that are believed."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.library import project_memory

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from pollux.proofs.public import PublicKey

_PASSPHRASE = "POLLUX_PASSPHRASE"  # noqa: S105  the name of a variable

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


def folder() -> Path:
    """Return where keys are kept: where `POLLUX_KEYS` says, else in the user's data folder."""
    said = os.environ.get("POLLUX_KEYS")
    return Path(said).expanduser().absolute() if said else project_memory.memory_path().with_name("keys")


def own_key(wanted: str | None) -> tuple[Ed25519PrivateKey, str]:
    """Return the key to sign with, and its name: the one wanted, else the default one, else the only one."""
    from pollux.proofs import keys

    path = _private_path(wanted)
    return keys.unlocked(path, lambda: asked_passphrase(path.stem)), path.stem


def believed(wanted: Sequence[str]) -> list[PublicKey]:
    """Return the public keys to check signatures with: those given with `--key`, else all usable ones in the folder."""
    from dataclasses import replace

    from pollux.cli import output
    from pollux.proofs import keys, public

    if wanted:
        return [public.public_key(_public_path(one)) for one in wanted]
    found = keys.known(folder())
    for one in found:
        if one.fault:
            output.words(one.fault)
    trust = {True: public.Trust.OWN, False: public.Trust.FOLDER}
    return [replace(one.public, trust=trust[one.is_own]) for one in found if one.public]


def new_passphrase() -> bytes:
    """Ask for a passphrase, twice."""
    said = os.environ.get(_PASSPHRASE)
    if said is None:
        _need_somebody()
        said = str(click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True))
    if not said:
        raise click.UsageError("An empty passphrase protects nothing; leave --passphrase out instead.")
    return said.encode()


def asked_passphrase(name: str) -> bytes:
    """Ask for the passphrase of a key."""
    said = os.environ.get(_PASSPHRASE)
    if said is None:
        _need_somebody()
        said = str(click.prompt(f"Passphrase of the key {name}", hide_input=True, err=True))
    return said.encode()


def _need_somebody() -> None:
    if not output.is_anybody_there():
        raise click.UsageError(f"Nobody is here to be asked for a passphrase; put it into {_PASSPHRASE}.")


def _private_path(wanted: str | None) -> Path:
    from pollux.proofs import keys

    own = [one.name for one in keys.known(folder()) if one.is_own]
    if wanted and wanted not in own and (os.sep in wanted or Path(wanted).is_file()):
        return Path(wanted)
    name = wanted or (keys.DEFAULT if keys.DEFAULT in own or len(own) != 1 else own[0])
    if name in own:
        return folder() / f"{name}.pem"
    if not own:
        raise click.ClickException("There is no key to sign with yet; `pollux keys create` makes one.")
    if wanted is None:
        raise click.UsageError(f"Say with --key which key to sign with: {', '.join(own)}.")
    raise click.UsageError(f"There is no key '{name}' of yours; the keys are {', '.join(own)}.")


def _public_path(wanted: str) -> Path:
    for suffix in (".pub", ".pem") if os.sep not in wanted else ():
        if (folder() / f"{wanted}{suffix}").exists():
            return folder() / f"{wanted}{suffix}"
    if os.sep in wanted or Path(wanted).is_file():
        return Path(wanted)
    raise click.UsageError(f"There is no key '{wanted}', neither as a file nor in {folder()}; see `pollux keys list`.")
