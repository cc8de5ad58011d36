"""`pollux tail`: follow a running session in the terminal."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.following import Following, until_stopped
from pollux.cli.scope import Scope, options
from pollux.cli.transcript_options import transcript_options
from pollux.cli.watch import homes_of
from pollux.library.select import in_file, in_history, named_file
from pollux.text.shell import quoted

if TYPE_CHECKING:
    from pollux.model import Json, Session
    from pollux.sessions.grouping import Group
    from pollux.views.transcript import Block, Options

_Item = TypeVar("_Item")
_TITLE = 60
"""Characters of a title."""


class _Told(Protocol[_Item]):
    """What has been told of one session so far."""

    def is_in_doubt(self, group: Group) -> bool:
        """Tell whether it is better to look again in a moment."""

    def first(self, group: Group, count: int) -> list[_Item]:
        """Give its end."""

    def next(self, group: Group) -> list[_Item]:
        """Give what is new."""


@click.command()
@click.argument("wanted", metavar="[ID|FILE]", default="latest", shell_complete=session_ids)
@options()
@transcript_options
@click.option(
    "--blocks",
    "-n",
    "count",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Begin with so many of the last prompts, answers and tool calls.",
)
def command(
    scope: Scope, wanted: str, *, detail: str | None, branches: str | None, thoughts: bool | None, count: int
) -> None:
    """Follow a running session and its subagents until Ctrl-C: the newest, unless another is named.

    Prompts, answers and tool calls are shown as soon as Gemini CLI has written them; a line tells what was rewound or
    compressed. Where there is no session yet, one is waited for. With --json, every message is an object on a line of
    its own, and comes again when it has changed.

    \b
      pollux tail
      pollux tail --project . -n 3
      pollux tail a82545c4 --detail full
      pollux tail --json | jq -r .text
    """
    from pollux.views.transcript import Branches, Detail, Options

    chosen = Options(Detail(detail or "normal"), Branches(branches or "active"), thoughts)
    with until_stopped():
        following = _following(scope, wanted)
        _say_what(following.session)
        if scope.as_json:
            for row in _rows(following, count):
                output.print_json(row)
        else:
            _print(following, chosen, count)


def _following(scope: Scope, wanted: str) -> Following:
    """Choose the session; where the newest is wanted and there is none, wait for it."""
    if file := named_file(wanted):
        return Following(scope, in_file(file)[0], file)
    if wanted != "latest":
        return Following(scope, in_history(scope, scope.history(), wanted))
    return Following(scope, next(_awaited(scope)))


def _awaited(scope: Scope) -> Iterator[Session]:
    """Yield the newest session, as soon as there is one."""
    from pollux.archive.watch import changes
    from pollux.sessions.locate import locate

    before: object = None
    is_told = False
    homes = homes_of(scope)
    for _ in changes(homes, tell=output.words):
        now = [(file.path, file.size, file.mtime_ns) for file in locate(homes()).files]
        if now != before:
            before = now
            yield from _newest(scope)[:1]
        if not is_told:
            output.words("No session here yet; waiting for one to begin. Ctrl-C ends it.")
            is_told = True


def _newest(scope: Scope) -> tuple[Session, ...]:
    from pollux.errors import NoSuchProjectError

    if scope.archive:
        scope.archive.close()  # of the last look
    found = scope.history()
    try:
        return scope.sessions(found)
    except NoSuchProjectError:
        if os.path.isdir(os.path.expanduser(scope.wanted.project or "")):  # noqa: PTH111, PTH112  which never fail
            return ()  # nothing was done in that folder yet
        raise


def _say_what(session: Session) -> None:
    from pollux.sessions.reader import short_id

    title = session.title or session.first_prompt
    words = f': "{title[:_TITLE]}"' if title else "."
    output.words(f"Following {short_id(session)} in {session.project.name}{words} Ctrl-C ends it.")


def _print(following: Following, chosen: Options, count: int) -> None:
    from pollux.render.terminal.transcript import transcript

    with output.paged(wanted=False) as console:
        for renderable in transcript(_blocks(following, chosen, count), encoding=console.encoding):
            console.print(renderable)


def _blocks(following: Following, chosen: Options, count: int) -> Iterator[Block]:
    """Yield the blocks to show, and a line where somebody else goes on."""
    import msgspec

    from pollux.library.follow import News

    main = speaking = following.session.id
    options = msgspec.structs.replace(chosen, root=following.session.project.path)
    for session, found in _news(following, count, lambda: News(options)):
        if session.id != speaking:
            yield _heading(session, is_main=session.id == main)
            speaking = session.id
        yield from found


def _rows(following: Following, count: int) -> Iterator[dict[str, Json]]:
    from pollux.library.follow import Rows

    for _, found in _news(following, count, Rows):
        yield from found


def _news(following: Following, count: int, begin: Callable[[], _Told[_Item]]) -> Iterator[tuple[Session, list[_Item]]]:
    """Yield the end of the session, and then all that is new in it and in its subagents."""
    told: dict[str, _Told[_Item]] = {}
    is_first = True
    for members, others in following.looks(lambda group: group.id in told and told[group.id].is_in_doubt(group)):
        for id8, folder in others.items():
            output.words(f"Session {id8} in {folder} is written to as well; `pollux tail {quoted(id8)}` follows it.")
        for session, group in members:
            one = told.setdefault(session.id, begin())
            n_last = count if session.id == following.session.id else 0
            found = one.first(group, n_last) if is_first else one.next(group)
            if found:
                yield session, found
        is_first = is_first and not members


def _heading(session: Session, *, is_main: bool) -> Block:
    from pollux.model import Fate, Kind
    from pollux.views.excerpts import Excerpt
    from pollux.views.transcript import Notice

    own = session.id.rpartition(":")[2]  # of old releases, the name of its file
    words = "back in the session" if is_main else f"in subagent {own if own != session.id else own[:8]}"
    return Notice("", None, Fate.ACTIVE, Kind.INFO, Excerpt(words))
