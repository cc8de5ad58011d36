"""What is handed over: a session with its messages, its subagents and the options, behind which nothing secret is left.

A format takes everything from its subject. Where a redactor is at work, whatever comes out of here is redacted already;
what a format takes from the files themselves goes through `clean` first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pollux.model import Json, Message, Session
from pollux.prices import Prices as Prices  # noqa: PLC0414  callers make subjects with it
from pollux.sessions.family import children
from pollux.sessions.grouping import Group
from pollux.views import transcript

Beside = Callable[[str, bytes], str]
"""Puts a file next to the one that is being written, and returns how to refer to it."""


class Redactor(Protocol):
    """Takes secrets and names out of what it is given."""

    def json(self, value: Json) -> Json:
        """Redact all texts of a decoded value."""

    def message(self, message: Message) -> Message:
        """Redact a message."""

    def session(self, session: Session) -> Session:
        """Redact what a list says of a session."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a session is to be handed over; each format takes what concerns it."""

    detail: transcript.Detail = transcript.Detail.NORMAL
    branches: transcript.Branches = transcript.Branches.ACTIVE
    thoughts: bool | None = None
    include: frozenset[str] = frozenset()
    """What a format leaves out unless asked."""
    split: int | None = None
    """Prompts in a file; without it, one file."""
    semconv: str = "1.41"
    """The version of OpenTelemetry's conventions."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A session to hand over, with all that a format may ask for."""

    session: Session
    group: Group
    by_id: Mapping[str, Session]
    """All sessions that are known, to look subagents up."""
    opened: Callable[[Session], Group]
    prices: Prices
    wanted: Wanted = Wanted()
    redactor: Redactor | None = None
    beside: Beside | None = None
    """Without it there is one place only, and what does not fit in is lost or put in."""
    name: str = ""
    """What its file is called, where it has one."""
    index_page: str = ""
    """The page beside it that leads to all sessions, where there is one."""
    losses: Counter[str] = field(default_factory=Counter)
    """What the form cannot hold, in words, and how often; renderers count as they go."""

    def messages(self) -> Iterator[Message]:
        """Yield the timeline, one whole message at a time."""
        found = self.group.messages()
        return map(self.redactor.message, found) if self.redactor else found

    def shown_messages(self) -> Iterator[Message]:
        """Yield the same for people to read, with very long texts cut; whole ones to a redactor, which needs them."""
        return self.messages() if self.redactor else self.group.messages(shortened=True)

    def clean(self, value: Json) -> Json:
        """Give back what may be told of a value that comes from a file."""
        return self.redactor.json(value) if self.redactor else value

    def children(self) -> Iterator[Subject]:
        """Yield the subagents, each as a subject of its own."""
        for session in children(self.session, self.by_id):
            yield replace(self, session=self._told(session), group=self.opened(session))

    def sources(self) -> list[dict[str, Json]]:
        """Say which files this comes from, with the digests of their bytes."""
        return [
            {
                "path": self.clean(str(one.reading.path)),
                "role": one.role,
                "sha256": one.reading.original.sha256(),
            }
            for one in self.group.files
        ]

    @property
    def options(self) -> transcript.Options:
        """The options of a transcript."""
        wanted = self.wanted
        return transcript.Options(wanted.detail, wanted.branches, wanted.thoughts, self.session.project.path)

    def _told(self, session: Session) -> Session:
        return self.redactor.session(session) if self.redactor else session


def subject(  # noqa: PLR0913  all that a subject is made of
    session: Session,
    group: Group,
    by_id: Mapping[str, Session],
    opened: Callable[[Session], Group],
    prices: Prices,
    *,
    wanted: Wanted | None = None,
    redactor: Redactor | None = None,
    beside: Beside | None = None,
    name: str = "",
    index_page: str = "",
) -> Subject:
    """Make a subject of a session."""
    told = redactor.session(session) if redactor else session
    return Subject(told, group, by_id, opened, prices, wanted or Wanted(), redactor, beside, name, index_page)


def folder_beside(name: str) -> str:
    """Name the folder for what belongs to a file, which stands beside it."""
    return f"{name.rpartition('.')[0] or name}_files"
