"""`pollux completion`: the completion script of a shell."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS), metavar=f"{{{'|'.join(_SHELLS)}}}", required=False)
def command(shell: str | None) -> None:
    """Print the completion script of a shell.

    \b
      pollux completion bash > ~/.local/share/bash-completion/completions/pollux
      pollux completion zsh > ~/.zfunc/_pollux
      pollux completion fish > ~/.config/fish/completions/pollux.fish
    """
    from pollux.cli import pollux

    if shell is None:
        raise click.UsageError(f"Say for which shell: {', '.join(_SHELLS)}.")
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(pollux, {}, "pollux", "_POLLUX_COMPLETE").source())
