"""`pollux completion`: the completion script of a shell."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
      pollux completion bash > ~/.local/share/bash-completion/completions/pollux
      pollux completion zsh > ~/.zfunc/_pollux
      pollux completion fish > ~/.config/fish/completions/pollux.fish
    """
    from pollux.cli import pollux

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(pollux, {}, "pollux", "_POLLUX_COMPLETE").source())
