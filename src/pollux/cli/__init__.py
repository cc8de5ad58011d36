"""The command line: one module per command, imported when the command is called.

A command's module imports at its top only what its options need, so that shell completion, which only asks for the
options, does not wait for the code that reads sessions and draws tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from pollux import __version__


class Command(NamedTuple):
    """A command's module, and its line in the list of commands."""

    module: str
    summary: str


COMMANDS = {
    "ls": Command("pollux.cli.ls", "List sessions, newest first."),
    "show": Command("pollux.cli.show", "Read a session."),
    "search": Command("pollux.cli.search", "Find messages, files and commands in all sessions."),
    "web": Command("pollux.cli.web", "Read, search and count your sessions in a browser."),
    "open": Command("pollux.cli.open", "Show a session in a browser."),
    "tail": Command("pollux.cli.tail", "Follow a running session."),
    "tree": Command("pollux.cli.tree", "Show the files and subagents of a session."),
    "resume": Command("pollux.cli.resume", "Continue a session in Gemini CLI."),
    "raw": Command("pollux.cli.raw", "Print the file of a session byte for byte."),
    "usage": Command("pollux.cli.usage", "Count tokens and cost by day, project, model …"),
    "stats": Command("pollux.cli.stats", "Count sessions, prompts, tool calls, files and programs."),
    "audit": Command("pollux.cli.audit", "Show the tokens and cost of each model call of a session."),
    "statusline": Command("pollux.cli.statusline", "Print today's usage in one line, for a shell prompt."),
    "export": Command("pollux.cli.export", "Write sessions as Markdown, HTML, JSON, CSV, Parquet …"),
    "sync": Command("pollux.cli.sync", "Copy new and changed session files into the archive."),
    "watch": Command("pollux.cli.watch", "Archive session files as Gemini CLI writes them."),
    "restore": Command("pollux.cli.restore", "Write a deleted session back for Gemini CLI."),
    "verify": Command("pollux.cli.verify", "Check archived bytes against their SHA-256 and repair damage."),
    "forget": Command("pollux.cli.forget", "Remove sessions from the archive."),
    "archive": Command("pollux.cli.archive", "Inspect, back up, import, compact and seal the archive."),
    "record": Command("pollux.cli.record", "Create, sign, redact and verify records of sessions."),
    "keys": Command("pollux.cli.keys", "Create and list the keys that sign records and seals."),
    "status": Command("pollux.cli.status", "Show which sessions Gemini CLI will delete, and when."),
    "projects": Command("pollux.cli.projects", "List projects and their paths."),
    "doctor": Command("pollux.cli.doctor", "Show which homes and files are read, and every problem in them."),
    "demo": Command("pollux.cli.demo", "Try any command on sample sessions."),
    "completion": Command("pollux.cli.completion", "Print a shell completion script."),
}
_ALIASES = {"list": "ls"}

_HELP = """Archive, read, search, count, export and prove Gemini CLI history.

Without a command, Pollux prints an overview: your sessions, their cost, and what is new.

\b
  pollux                       overview
  pollux ls --project .        sessions of the current folder
  pollux show latest           read the newest session
  pollux search timeout        find messages by their words
  pollux web                   all of it in your browser
  pollux usage --last 30d      tokens and cost of the last 30 days
  pollux demo                  try it on sample sessions

`pollux help COMMAND` prints the help of a command.
"""


@contextmanager
def _plain_broken_pipes() -> Iterator[None]:
    """Raise broken pipes again without an error number, or Click would end with status 1 before `pollux.__main__`."""
    try:
        yield
    except BrokenPipeError as error:
        raise BrokenPipeError from error


class CommandGroup(click.Group):
    """A group of commands that knows `help` and suggests a command for a misspelt one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were added."""
        del ctx
        return [*self.commands]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called, or fail with a suggestion."""
        if args[0] == "help" and args[0] not in self.list_commands(ctx):
            return "help", _help_command(self), args[1:]
        name = self.full_name(args[0])
        if name not in self.list_commands(ctx) and not name.startswith("-") and not ctx.resilient_parsing:
            from pollux.cli.suggestions import unknown_command  # noqa: PLC0415  needed for mistakes only

            ctx.fail(unknown_command(name, self.list_commands(ctx), ctx.command_path))
        return super().resolve_command(ctx, [name, *args[1:]])

    def full_name(self, name: str) -> str:
        """Return the command that an alias is for, or the name itself."""
        return name


class _Pollux(CommandGroup):
    """The commands of the table above, imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*COMMANDS]

    def full_name(self, name: str) -> str:
        return _ALIASES.get(name, name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = import_module(COMMANDS[cmd_name].module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "version":
            return "version", click.Command("version", callback=_print_version), args[1:]
        return super().resolve_command(ctx, args)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401  as in Click
    ) -> click.Context:
        with _plain_broken_pipes():  # `--help` and `--version` print here
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with _plain_broken_pipes():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing the commands."""
        return [*completed_command(incomplete), *click.Command.shell_complete(self, ctx, incomplete)]


def completed_command(incomplete: str) -> list[CompletionItem]:
    """Return the commands that begin with some characters."""
    return [
        CompletionItem(name, help=command.summary) for name, command in COMMANDS.items() if name.startswith(incomplete)
    ]


def _help_command(group: CommandGroup) -> click.Command:
    """Return the command that prints the help of a group, or of the command that its arguments name."""

    def print_help(names: tuple[str, ...]) -> None:
        context = click.get_current_context().parent
        assert context is not None
        command: click.Command = group
        for name in names:
            if not isinstance(command, CommandGroup):
                break
            resolved_name, resolved, _ = command.resolve_command(context, [name])
            assert resolved is not None
            command, context = resolved, click.Context(resolved, parent=context, info_name=resolved_name)
        click.echo(command.get_help(context))

    return click.Command("help", callback=print_help, params=[click.Argument(["names"], nargs=-1)])


def _print_version() -> None:
    click.echo(f"pollux {__version__}")


@click.group(
    cls=_Pollux,
    help=_HELP,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="pollux %(version)s")
@click.pass_context
def pollux(ctx: click.Context) -> None:
    """Print the overview if no command is named."""
    if ctx.invoked_subcommand is None:
        overview = import_module("pollux.cli.overview").command
        ctx.invoke(overview)
