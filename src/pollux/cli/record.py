"""`pollux record`: sessions as records that can be proven."""

from __future__ import annotations

import click

from pollux.cli import Group

MODULES = {
    "create": "pollux.cli.record_create",
    "sign": "pollux.cli.record_sign",
    "redact": "pollux.cli.record_redact",
    "verify": "pollux.cli.record_verify",
}


@click.group(cls=Group, modules=MODULES)
def command() -> None:
    """Make records of sessions, sign them, hide parts of them, and look at those of others.

    \b
      pollux record create latest -o session.json
      pollux record sign session.json
      pollux record verify session.sig.cbor --key mara.pub
    """
