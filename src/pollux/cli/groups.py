"""Groups of commands that are imported when they are called, like those of `pollux` itself."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class Group(click.Group):
    """Has commands of its own, and a table of modules whose `command` joins them."""

    def __init__(self, *args: Any, modules: Mapping[str, str], **more: Any) -> None:  # noqa: ANN401  click's
        """Take the table: the name of a command, and its module."""
        super().__init__(*args, **more)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name its own in their order, then those of the table."""
        del ctx
        return [*self.commands, *self._modules]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in self._modules:
            return super().get_command(ctx, cmd_name)
        found = import_module(self._modules[cmd_name]).command
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the known commands when the given one is none of them."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"There is no command '{args[0]}'; the commands are {', '.join(known)}.")
        return super().resolve_command(ctx, args)
