"""The input of every export: a session with its messages, subagents and options.

If there is a redactor, everything that a format reads from here is redacted already; values that a format reads from
the session files itself must go through `clean`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pollux.model import Fate, Json, Message, Session
from pollux.prices import Prices as Prices  # noqa: PLC0414  callers pass it on
from pollux.sessions.family import children
from pollux.sessions.grouping import OpenSession
from pollux.views import transcript

if TYPE_CHECKING:
    from pollux.redaction.redactor import Redactor

SideFileWriter = Callable[[str, bytes], str]
"""Writes a file next to the export, and returns the path to refer to it."""
RETRACTED = (Fate.REWOUND, Fate.ROLLED_BACK, Fate.REPLACED)
"""Fates of messages that the user or the client took back. A compressed message was part of the conversation."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How to export a session; each format uses the options that it supports."""

    detail: transcript.Detail = transcript.Detail.NORMAL
    branches: transcript.Branches = transcript.Branches.ACTIVE
    thoughts: bool | None = None
    include: frozenset[str] = frozenset()
    """What a format leaves out by default."""
    split: int | None = None
    """Prompts per file; None for a single file."""
    semconv: str = "1.41"
    """The version of OpenTelemetry's conventions."""
    folds: bool = False
    """Whether readers can unfold text: then hidden text and, unless redacted, dropped messages are exported too."""


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A session to export."""

    session: Session
    group: OpenSession
    by_id: Mapping[str, Session]
    """All known sessions, to look up subagents."""
    open_session: Callable[[Session], OpenSession]
    prices: Prices
    export_options: ExportOptions = ExportOptions()
    redactor: Redactor | None = None
    write_side_file: SideFileWriter | None = None
    """None if the export is a single stream; then attachments are embedded or lost."""
    name: str = ""
    """The name of the exported file, if it is one."""
    index_page: str = ""
    """The page in the same folder that lists all sessions, if there is one."""
    losses: Counter[str] = field(default_factory=Counter)
    """What the format cannot represent, and how often; renderers add to it."""

    def messages(self) -> Iterator[Message]:
        """Yield the timeline."""
        messages = self.group.messages()
        return map(self.redactor.message, messages) if self.redactor else messages

    def shown_messages(self) -> Iterator[Message]:
        """Yield the timeline for display, with very long texts cut, except for a redactor, which needs all text."""
        return self.messages() if self.redactor else self.group.messages(shortened=True)

    def clean(self, value: Json) -> Json:
        """Return a value from a session file, redacted if there is a redactor."""
        return self.redactor.json(value) if self.redactor else value

    def children(self) -> Iterator[ExportSource]:
        """Yield the subagents."""
        for session in children(self.session, self.by_id):
            redacted = self.redactor.session(session) if self.redactor else session
            yield replace(self, session=redacted, group=self.open_session(session))

    def sources(self) -> list[dict[str, Json]]:
        """Return the session files with the SHA-256 of their bytes."""
        return [
            {
                "path": self.clean(str(file.reading.path)),
                "role": file.role,
                "sha256": file.reading.original.sha256(),
            }
            for file in self.group.files
        ]

    @property
    def options(self) -> transcript.TranscriptOptions:
        """The options of a transcript."""
        options, path = self.export_options, self.session.project.path
        folds_dropped = options.folds and self.redactor is None
        return transcript.TranscriptOptions(
            options.detail, options.branches, options.thoughts, path, options.folds, folds_dropped
        )


def export_source(  # noqa: PLR0913  the fields of a source
    session: Session,
    group: OpenSession,
    by_id: Mapping[str, Session],
    open_session: Callable[[Session], OpenSession],
    prices: Prices,
    *,
    options: ExportOptions | None = None,
    redactor: Redactor | None = None,
    write_side_file: SideFileWriter | None = None,
    name: str = "",
    index_page: str = "",
) -> ExportSource:
    """Return the source of a session, redacted if there is a redactor."""
    return ExportSource(
        session=redactor.session(session) if redactor else session,
        group=group,
        by_id=by_id,
        open_session=open_session,
        prices=prices,
        export_options=options or ExportOptions(),
        redactor=redactor,
        write_side_file=write_side_file,
        name=name,
        index_page=index_page,
    )


def side_folder(name: str) -> str:
    """Return the name of the folder for the side files of an exported file."""
    return f"{name.rpartition('.')[0] or name}_files"
