"""`pollux completion`, and the values that a shell offers for sessions and projects."""
# ruff: noqa: PLC0415  imported when the command runs or a shell completes

from __future__ import annotations

import os
import re

import click
from click.shell_completion import CompletionItem, get_completion_class

_SHELLS = ("bash", "zsh", "fish")
_FIELD_BEFORE_COLON = re.compile(r"(\w+) ?:$", re.ASCII)
_LAST_WORD = re.compile(r"(\w+)$", re.ASCII)


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS), metavar=f"{{{'|'.join(_SHELLS)}}}", required=False)
def command(shell: str | None) -> None:
    """Print a script that completes commands, options, sessions and projects in a shell.

    \b
      pollux completion bash > ~/.local/share/bash-completion/completions/pollux
      pollux completion zsh > ~/.zfunc/_pollux
      pollux completion fish > ~/.config/fish/completions/pollux.fish
    """
    from pollux.cli import pollux

    if shell is None:
        raise click.UsageError(f"Name a shell: {', '.join(_SHELLS)}.")
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(pollux, {}, "pollux", "_POLLUX_COMPLETE").source())


def session_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return short session IDs, newest first, with date and project; files once a path is begun."""
    del param
    if os.sep in incomplete or incomplete.startswith((".", "~")):
        return [CompletionItem(incomplete, type="file")]
    from pollux.library.completion import offered_sessions

    sessions = offered_sessions(ctx.params.get("home") or ())
    items = [
        CompletionItem("latest", help="the newest session"),
        *(CompletionItem(session.id8, help=f"{session.day}  {session.folder}".strip()) for session in sessions),
    ]
    return [item for item in items if item.value.startswith(incomplete)]


def project_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of project folders."""
    del param
    from pollux.library.completion import offered_projects

    names = offered_projects(ctx.params.get("home") or ())
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def query_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the fields of the query language that begin with a word, or the values of the field in it."""
    del param
    from pollux.library.completion import offered_query_words

    before = str(ctx.params.get("query") or "")
    # Bash makes three words of `in:pro` and replaces the last one; other shells replace the whole word.
    typed, done = incomplete, ""
    if incomplete == ":" and (field := _LAST_WORD.search(before)):
        typed = done = f"{field[1]}:"
    elif ":" not in incomplete and (field := _FIELD_BEFORE_COLON.search(before)):
        done = f"{field[1]}:"
        typed = done + incomplete
    words = offered_query_words(ctx.params.get("home") or (), typed)
    return [CompletionItem(word.text.removeprefix(done), help=word.help) for word in words]
