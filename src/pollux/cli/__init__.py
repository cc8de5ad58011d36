"""The command line: one module a command, loaded when called.

A command's module imports at its top only what its options need; the rest comes when it runs. So completion, which
asks for options alone, never waits for what reads or draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from pollux import __version__


class Command(NamedTuple):
    """Where a command is, and what the list of commands says of it."""

    module: str
    summary: str


COMMANDS = {
    "ls": Command("pollux.cli.ls", "List sessions, newest first."),
    "show": Command("pollux.cli.show", "Read a session."),
    "tail": Command("pollux.cli.tail", "Follow a running session."),
    "tree": Command("pollux.cli.tree", "Show a session's files and subagents."),
    "resume": Command("pollux.cli.resume", "Go on with a session in the client."),
    "raw": Command("pollux.cli.raw", "Print a session's file, byte for byte."),
    "usage": Command("pollux.cli.usage", "Count tokens and money."),
    "stats": Command("pollux.cli.stats", "Count sessions, prompts, tool calls, files and programs."),
    "audit": Command("pollux.cli.audit", "Show how a session's cost comes about."),
    "statusline": Command("pollux.cli.statusline", "Say today's usage in one line, for a prompt."),
    "export": Command("pollux.cli.export", "Hand sessions over to other programs."),
    "sync": Command("pollux.cli.sync", "Take in what is new, once."),
    "watch": Command("pollux.cli.watch", "Take in what is new, as it comes."),
    "restore": Command("pollux.cli.restore", "Give a deleted session back to the client."),
    "verify": Command("pollux.cli.verify", "Look at every byte that was kept, and mend what can be mended."),
    "forget": Command("pollux.cli.forget", "Remove sessions from the archive for good."),
    "archive": Command("pollux.cli.archive", "Look after the archive: info, backup, import, seal, prove …"),
    "record": Command("pollux.cli.record", "Make, sign, redact and check records of sessions."),
    "keys": Command("pollux.cli.keys", "Make and show the keys to sign with."),
    "status": Command("pollux.cli.status", "Say what the client will delete, and whether it is kept."),
    "projects": Command("pollux.cli.projects", "List projects, and how their paths are known."),
    "doctor": Command("pollux.cli.doctor", "Say what was found, and all that could not be read."),
    "demo": Command("pollux.cli.demo", "Try any command on invented sessions."),
    "completion": Command("pollux.cli.completion", "Print the completion script of a shell."),
}

_HELP = """Keeps, reads, counts, finds, exports and proves Gemini CLI history.

Without a command: an overview of what there is.

\b
  pollux                       what is here, and what is new
  pollux ls --project .        the sessions of this folder
  pollux show latest           read the newest one
  pollux show @2 --detail full
  pollux demo                  no sessions yet? look at invented ones
"""


@contextmanager
def _closed_pipes_passed_on() -> Iterator[None]:
    """Let a closed pipe be met by `pollux.__main__`: one that has a number Click takes for a fault, with status 1."""
    try:
        yield
    except BrokenPipeError as error:
        raise BrokenPipeError from error


class Group(click.Group):
    """Commands of its own, and a table of modules whose `command` is imported when it is called."""

    def __init__(self, *args: Any, modules: Mapping[str, str] | None = None, **options: Any) -> None:  # noqa: ANN401  click's
        """Take the table: the name of a command, and its module."""
        super().__init__(*args, **options)
        self._modules = modules or {}

    def modules(self) -> Mapping[str, str]:
        """Return the table."""
        return self._modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of its own commands in their order, then those of the table."""
        del ctx
        return [*self.commands, *self.modules()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in self.modules():
            return super().get_command(ctx, cmd_name)
        command = import_module(self.modules()[cmd_name]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the known commands when the given one is none of them."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"There is no command '{args[0]}'; the commands are {', '.join(known)}.")
        return super().resolve_command(ctx, args)


class _Commands(Group):
    """Reads the table above instead of importing every command."""

    def modules(self) -> Mapping[str, str]:
        """Return the modules of the table above."""
        return {name: command.module for name, command in COMMANDS.items()}

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401  as Click has it
    ) -> click.Context:
        """Read the options; `--help` and `--version` are answered here."""
        with _closed_pipes_passed_on():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        with _closed_pipes_passed_on():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without importing the commands."""
        return [*completed_command(incomplete), *click.Command.shell_complete(self, ctx, incomplete)]


def completed_command(incomplete: str) -> list[CompletionItem]:
    """Return the commands that begin with some characters."""
    return [
        CompletionItem(name, help=command.summary) for name, command in COMMANDS.items() if name.startswith(incomplete)
    ]


@click.group(
    cls=_Commands,
    help=_HELP,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="pollux %(version)s")
@click.pass_context
def pollux(ctx: click.Context) -> None:
    """Show the overview when no command is given."""
    if ctx.invoked_subcommand is None:
        overview = import_module("pollux.cli.overview").command
        ctx.invoke(overview)
