"""`pollux keys`: what records and seals are signed with."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pollux.cli import output
from pollux.cli.groups import Group
from pollux.library import keys as keyring

if TYPE_CHECKING:
    from pollux.proofs.keys import Key

SCHEMA = "pollux.keys/1"
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
    from pollux.proofs import keys
    from pollux.proofs.public import shown

    made = keys.create(keyring.folder(), name, keyring.new_passphrase() if passphrase else None)
    own = output.short(keyring.folder() / f"{name}.pem")
    output.words(f"{own} is yours alone: keep a copy in a safe place, and show it to nobody.")
    output.words(f"{output.short(keyring.folder() / f'{name}.pub')} is for those who are to believe you.")
    click.echo(shown(made.id))


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
    from pollux.proofs.public import shown

    public = keyring.believed([name or _only()])[0]
    forms = {"pem": public.pem, "cose": public.cose, "id": shown(public.id).encode() + b"\n"}
    output.write([forms[form]])


@command.command("list", short_help="List the keys.")
@_json
def list_(*, as_json: bool = False) -> None:
    """List the keys there are: yours, and those of others whose `.pub` you have put beside them.

    \b
      pollux keys list
      pollux keys list --json | jq -r '.keys[].id'
    """
    from pollux.proofs import keys
    from pollux.proofs.public import shown

    folder = keyring.folder()
    found = keys.known(folder)
    if as_json:
        output.print_json({"schema": SCHEMA, "folder": str(folder), "keys": [_row(one) for one in found]})
    elif not found:
        output.words(f"There are no keys in {output.short(folder)} yet; `pollux keys create` makes one.")
    width = max((len(one.name) for one in found), default=0)
    for one in () if as_json else found:
        what = f"{_whose(one):<19}{shown(one.public.id)}" if one.public else f"cannot be used: {one.fault}"
        click.echo(f"{one.name:<{width}}  {what}")
    click.get_current_context().exit(1 if any(one.fault for one in found) else 0)


def _only() -> str:
    """Name the key that is meant when none is named."""
    from pollux.proofs import keys

    own = [one.name for one in keys.known(keyring.folder()) if one.is_own]
    if keys.DEFAULT in own or not own:
        return keys.DEFAULT
    if len(own) > 1:
        raise click.UsageError(f"Say which key: {', '.join(own)}.")
    return own[0]


def _whose(one: Key) -> str:
    if not one.is_own:
        return "of somebody else"
    return "yours, passphrase" if one.has_passphrase else "yours"


def _row(one: Key) -> dict[str, Any]:
    from pollux.proofs.public import shown

    return {
        "name": one.name,
        "id": shown(one.public.id) if one.public else None,
        "own": one.is_own,
        "passphrase": one.has_passphrase,
        "fault": one.fault,
    }
