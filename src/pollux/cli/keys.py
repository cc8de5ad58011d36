"""`pollux keys`, and the key options and passphrase prompts of the commands that sign or check signatures."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from pollux.cli import CommandGroup, output
from pollux.cli.options import refuse_binary
from pollux.library.config import PASSPHRASE, keys_folder, stored_passphrase

if TYPE_CHECKING:
    from pollux.library.export_values import KeyInfo, PublicKey, SigningKey

signing_key = click.option(
    "--key", "-k", "key", metavar="NAME|FILE", help="Key to sign with; needed only if you have several."
)
issuer_option = click.option(
    "--issuer", metavar="NAME", help="Name to sign under; nothing proves it.  [default: the key's thumbprint]"
)
trusted_keys = click.option(
    "--key",
    "-k",
    "keys",
    metavar="NAME|FILE",
    multiple=True,
    help="Public key to trust instead of all in your key folder. Repeatable.",
)


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Create, list and print the keys that sign records and seals. Without a subcommand: `list`.

    A key is two files: NAME.pem is private, NAME.pub is for everyone who checks your signatures.

    \b
      pollux keys create
      pollux keys show > mara.pub
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command(short_help="Create a key.")
@click.argument("name", default="default")
@click.option("--passphrase", is_flag=True, help="Encrypt the key; the passphrase is asked for, or POLLUX_PASSPHRASE.")
def create(name: str, *, passphrase: bool) -> None:
    """Create an Ed25519 key named NAME (`default` if omitted). Existing keys are never overwritten.

    \b
      pollux keys create
      pollux keys create work --passphrase
    """
    from pollux.library.keys import create_key, thumbprint

    folder = keys_folder()
    public = create_key(folder, name, _new_passphrase() if passphrase else None)
    output.note(f"{output.short(folder / f'{name}.pem')} is private: keep a backup in a safe place and never share it.")
    output.note(f"{output.short(folder / f'{name}.pub')} is public: give it to those who check your signatures.")
    click.echo(thumbprint(public))


@command.command(short_help="Print a public key.")
@click.argument("name", metavar="[NAME|FILE]", required=False)
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["pem", "cose", "id"]),
    default="pem",
    show_default=True,
    help="PEM, COSE_Key in CBOR, or the thumbprint (RFC 9679).",
)
def show(name: str | None, *, form: str) -> None:
    """Print the public half of a key.

    \b
      pollux keys show > mara.pub
      pollux keys show work --format id
    """
    from pollux.library.keys import find_public_key, thumbprint

    if form == "cose":
        refuse_binary("-", "redirect it, as in `pollux keys show --format cose > mara.cose`")
    public = find_public_key(keys_folder(), name)
    forms = {"pem": public.pem, "cose": public.cose, "id": thumbprint(public).encode() + b"\n"}
    output.write([forms[form]])


@command.command("list", short_help="List keys.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(*, as_json: bool = False) -> None:
    """List your keys, and the public keys of others that you have copied into the key folder.

    \b
      pollux keys list
      pollux keys list --json | jq -r '.keys[].id'
    """
    from pollux.library.keys import known_keys, thumbprint
    from pollux.views.contracts.proofs import KeysDocument

    folder = keys_folder()
    keys = known_keys(folder)
    if as_json:
        output.print_json(KeysDocument(folder, keys))
    elif not keys:
        output.note(f"No keys in {output.short(folder)}. Run `pollux keys create` to create one.")
    else:
        width = max(len(key.name) for key in keys)
        for key in keys:
            line = f"{_owner(key):<19}{thumbprint(key.public)}" if key.public else f"cannot be used: {key.error}"
            click.echo(f"{key.name:<{width}}  {line}")
    click.get_current_context().exit(1 if any(key.error for key in keys) else 0)


def _owner(key: KeyInfo) -> str:
    if not key.is_own:
        return "someone else's"
    return "yours, passphrase" if key.has_passphrase else "yours"


def load_signing_key(name: str | None) -> SigningKey:
    """Return the key to sign with, after asking for its passphrase if it has one."""
    from pollux.library import keys

    return keys.signing_key(keys_folder(), name, _ask_passphrase)


def load_trusted_keys(names: Sequence[str]) -> list[PublicKey]:
    """Return the public keys to check signatures with, and note each file that is not a usable key."""
    from pollux.library import keys

    trusted = keys.believed_keys(keys_folder(), names)
    for fault in trusted.faults:
        output.note(fault)
    return trusted.keys


def _new_passphrase() -> bytes:
    passphrase = stored_passphrase()
    if passphrase is None:
        _check_terminal()
        passphrase = str(click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True))
    if not passphrase:
        raise click.UsageError("The passphrase is empty. Enter one, or omit --passphrase for a key without one.")
    return passphrase.encode()


def _ask_passphrase(name: str) -> bytes:
    passphrase = stored_passphrase()
    if passphrase is None:
        _check_terminal()
        passphrase = str(click.prompt(f"Passphrase of the key {name}", hide_input=True, err=True))
    return passphrase.encode()


def _check_terminal() -> None:
    if not output.can_prompt():
        raise click.UsageError(f"Cannot ask for a passphrase without a terminal. Set {PASSPHRASE} instead.")
