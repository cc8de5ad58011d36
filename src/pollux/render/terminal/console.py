"""A console that leaves it to its caller what a closed pipe means."""

from __future__ import annotations

from typing import NoReturn

from rich import console


class Console(console.Console):
    """Rich's own ends the whole program."""

    def on_broken_pipe(self) -> NoReturn:
        """Say that nobody reads any more."""
        raise BrokenPipeError
