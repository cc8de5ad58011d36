"""`pollux keys`: what records and seals are signed with."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import Group, output
from pollux.cli.key_options import new_passphrase
from pollux.library.config import keys_folder

if TYPE_CHECKING:
    from pollux.library.export_values import Key

_json = click.option("--json", "as_json", is_flag=True, help="One JSON object instead of words.")


@click.group(cls=Group, modules={}, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Make and show the keys that records and seals are signed with. Alone it is `list`.

    A key is two files: NAME.pem is yours alone, NAME.pub is for everybody who is to believe you.

    \b
      pollux keys create
      pollux keys show > mara.pub
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command(short_help="Make a key.")
@click.argument("name", default="default")
@click.option("--passphrase", is_flag=True, help="Lock it; asked for, or taken from POLLUX_PASSPHRASE.")
def create(name: str, *, passphrase: bool) -> None:
    """Make an Ed25519 key, called `default` unless another NAME is given; none is ever overwritten.

    \b
      pollux keys create
      pollux keys create work --passphrase
    """
    from pollux.library.keys import create_key, thumbprint

    folder = keys_folder()
    public = create_key(folder, name, new_passphrase() if passphrase else None)
    own = output.short(folder / f"{name}.pem")
    output.words(f"{own} is yours alone: keep a copy in a safe place, and show it to nobody.")
    output.words(f"{output.short(folder / f'{name}.pub')} is for those who are to believe you.")
    click.echo(thumbprint(public))


@command.command(short_help="Print a public key.")
@click.argument("name", metavar="[NAME|FILE]", required=False)
@click.option(
    "--format", "-f", "form", type=click.Choice(["pem", "cose", "id"]), default="pem", show_default=True, help="How."
)
def show(name: str | None, *, form: str) -> None:
    """Print the public half of a key: as PEM, as a COSE_Key in CBOR, or only its thumbprint (RFC 9679).

    \b
      pollux keys show > mara.pub
      pollux keys show work --format id
    """
    from pollux.library.keys import find_public_key, thumbprint

    public = find_public_key(keys_folder(), name)
    forms = {"pem": public.pem, "cose": public.cose, "id": thumbprint(public).encode() + b"\n"}
    output.write([forms[form]])


@command.command("list", short_help="List the keys.")
@_json
def list_(*, as_json: bool = False) -> None:
    """List the keys there are: yours, and those of others whose `.pub` you have put beside them.

    \b
      pollux keys list
      pollux keys list --json | jq -r '.keys[].id'
    """
    from pollux.library.keys import known_keys, thumbprint
    from pollux.views.contracts.proofs import KeysDocument

    folder = keys_folder()
    known = known_keys(folder)
    if as_json:
        output.print_json(KeysDocument(folder, known))
    elif not known:
        output.words(f"There are no keys in {output.short(folder)} yet; `pollux keys create` makes one.")
    width = max((len(key.name) for key in known), default=0)
    for key in () if as_json else known:
        what = f"{_whose(key):<19}{thumbprint(key.public)}" if key.public else f"cannot be used: {key.fault}"
        click.echo(f"{key.name:<{width}}  {what}")
    click.get_current_context().exit(1 if any(key.fault for key in known) else 0)


def _whose(key: Key) -> str:
    if not key.is_own:
        return "of somebody else"
    return "yours, passphrase" if key.has_passphrase else "yours"
