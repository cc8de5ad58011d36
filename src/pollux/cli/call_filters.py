"""The options of commands that count what happened: by project, time and model, with days in a zone of one's choice."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
import msgspec

from pollux.cli.complete import project_names
from pollux.cli.scope import filter_of

if TYPE_CHECKING:
    from datetime import tzinfo

    from pollux.cli.scope import Scope
    from pollux.cli.usage import Facts
    from pollux.model import Project
    from pollux.reports.filters import Filter

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Asked(NamedTuple):
    """What to count, as it was typed."""

    project: str | None
    since: str | None
    until: str | None
    last: str | None
    model: str | None
    timezone: str | None

    def filter(self, zone: tzinfo | None) -> Filter:
        """Read it, dates by the days of a zone."""
        project, since, until, last, model, _ = self
        return filter_of(project=project, since=since, until=until, last=last, model=model, zone=zone)


def call_filters(*, counts: str, model: str) -> Callable[[_Function], _Function]:
    """Give a command the options; it gets them as one `asked`. The words say what is counted, and what of a model."""

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapped(**given: Any) -> object:  # noqa: ANN401  click's
            asked = Asked(*(given.pop(f"asked_{name}") for name in Asked._fields))
            return function(asked=asked, **given)

        for option in (
            click.option(
                "--timezone",
                "-z",
                "asked_timezone",
                metavar="ZONE",
                help="Whose days: Europe/Berlin, UTC.  [default: yours]",
            ),
            click.option("--model", "asked_model", metavar="NAME", help=f"Only {model}."),
            click.option("--last", "asked_last", metavar="SPAN", help="Only the last 7d, 12h, 2w."),
            click.option("--until", "asked_until", metavar="WHEN", help=f"Only {counts} before this."),
            click.option(
                "--since",
                "asked_since",
                metavar="WHEN",
                help=f"Only {counts} after this: 2026-11-01, yesterday, 7d.",
            ),
            click.option(
                "--project",
                "-p",
                "asked_project",
                metavar="NAME|PATH|.",
                shell_complete=project_names,
                help="Only sessions of this project.",
            ),
        ):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[return-value]

    return decorate


def chosen_sessions(
    scope: Scope, project: str | None, found: Facts, known: dict[str, Project]
) -> Collection[str] | None:
    """Return the sessions of a project; nothing if all are meant. What is learned about projects goes into `known`."""
    if project is None:
        return found.only
    from pollux.model import Session
    from pollux.reports.filters import Filter
    from pollux.sessions.reader import History

    sessions = tuple(Session(id=one, kind="main", project=of) for one, of in known.items())
    chosen = msgspec.structs.replace(scope, wanted=Filter(project)).sessions(
        History(found.located, sessions), everything=True
    )
    known.update((one.id, one.project) for one in chosen)
    ids = {one.id for one in chosen}
    return ids if found.only is None else ids & set(found.only)
