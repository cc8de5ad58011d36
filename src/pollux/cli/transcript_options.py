"""The options that say how much of a session a transcript shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])
_DETAILS = ("prompts", "dialogue", "normal", "full")
_BRANCHES = ("active", "all")


def transcript_options(function: _Function) -> _Function:
    """Give a command the options of a transcript; what was not said is None."""
    for option in (
        click.option(
            "--thoughts/--no-thoughts", default=None, help="The model's reasoning; by default in full detail."
        ),
        click.option(
            "--branches",
            type=click.Choice(_BRANCHES),
            help="Whether to show what was rewound, rolled back or compressed; by default only the active one.",
        ),
        click.option(
            "--detail",
            type=click.Choice(_DETAILS),
            help="How much: only prompts, the dialogue, tool calls in brief (the default), or everything.",
        ),
    ):
        function = option(function)
    return function
