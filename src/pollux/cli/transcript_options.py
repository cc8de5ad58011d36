"""The options that say how much of a session a transcript shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pollux.views.transcript import Options

_Function = TypeVar("_Function", bound=Callable[..., Any])
_DETAILS = ("prompts", "dialogue", "normal", "full")
_BRANCHES = ("active", "all")


def transcript_options(function: _Function) -> _Function:
    """Add the options of a transcript to a command; an option that is not used is None."""
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


def options_from(detail: str | None, branches: str | None, *, thoughts: bool | None) -> Options:
    """Return what a transcript shows, with the usual for options that are not used."""
    from pollux.views.transcript import Branches, Detail, Options  # noqa: PLC0415  completion needs the options alone

    return Options(Detail(detail or Detail.NORMAL), Branches(branches or Branches.ACTIVE), thoughts)
