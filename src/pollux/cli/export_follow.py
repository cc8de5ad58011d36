"""`pollux export --follow`: the events of a running session, each as soon as it is written."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.following import Following, until_stopped
from pollux.library.select import in_file, in_history, named_file

if TYPE_CHECKING:
    from pollux.cli.scope import Scope
    from pollux.exports.source import Subject
    from pollux.model import Session
    from pollux.sessions.grouping import Group

_Opened = Callable[["Session", "Group"], "Subject"]


def follow_one(
    scope: Scope, wanted: tuple[str, ...], name: str, target: str, subject: _Opened, by_id: dict[str, Session]
) -> None:
    """Write what there is of a session, and go on with what comes, until stopped.

    Args:
        scope: where to look.
        wanted: what was named.
        name: of the form.
        target: where to write.
        subject: makes a subject of a session.
        by_id: the sessions that subjects know of; those that are met go in there.

    """
    if name != "events":
        raise click.UsageError(f"--follow means nothing for {name}; it is for events.")
    if len(wanted) != 1:
        raise click.UsageError("--follow needs one session: an id, a file or `latest`.")
    if target != "-":
        raise click.UsageError("--follow writes to stdout for as long as it runs; lead that into a file with `>`.")
    file = named_file(wanted[0])
    session = in_file(file)[0] if file else in_history(scope, scope.history(), wanted[0])
    with until_stopped():
        for line in _lines(Following(scope, session, file), subject, by_id):
            output.write([line])


def _lines(following: Following, subject: _Opened, by_id: dict[str, Session]) -> Iterator[bytes]:
    from pollux.exports.events import Follower
    from pollux.sessions.changes import Memory

    followers: dict[str, Follower] = {}

    def is_in_doubt(group: Group) -> bool:
        if group.id in followers:
            return followers[group.id].is_in_doubt(group)
        return Memory().is_in_doubt(group.timeline)  # the first look may meet the client at it

    for members, _ in following.looks(is_in_doubt):
        by_id.update((session.id, session) for session, _ in members)
        for session, group in members:
            made = subject(session, group)
            if session.id not in followers:
                followers[session.id] = Follower(made)
            yield from followers[session.id].lines(made)
