"""Exceptions that callers must handle. Faults in session files are `Problem`s, never exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_MOST_NAMED = 5


class PolluxError(Exception):
    """The base class; the text is a sentence for the user that names the next step."""

    status = 1
    """Exit status of the command: 1 for missing or damaged data, 2 for wrong usage."""


class SessionNotFoundError(PolluxError):
    """No session matches a reference."""

    def __init__(self, reference: str, n_sessions: int) -> None:
        """Build the message from the reference and the number of sessions searched."""
        searched = f"{n_sessions} searched" if n_sessions else "there are no sessions"
        super().__init__(f"No session matches '{reference}' ({searched}). Run `pollux ls --all` to list sessions.")


class FailedSessionError(PolluxError):
    """A reference names files that Pollux fails to read."""

    def __init__(self, files: Sequence[Path], message: str) -> None:
        """Build the message from the first file and its problem."""
        self.files = tuple(files)
        super().__init__(f"{files[0]}: {message}.")


class AmbiguousSessionError(PolluxError):
    """Several sessions match a reference."""

    status = 2

    def __init__(self, reference: str, ids: Sequence[str], lines: Sequence[str] = ()) -> None:
        """Build the message; `lines` has the ID, date and title of the first few sessions."""
        self.ids = tuple(ids)
        if lines:
            more = [f"… and {len(ids) - len(lines)} more."] if len(lines) < len(ids) else []
            listed = "\n".join(["", *lines, *more])
            message = f"'{reference}' matches {len(ids)} sessions. Give more characters of the session ID:{listed}"
        else:
            message = (
                f"'{reference}' matches {len(ids)} sessions ({_first(ids)}). Give more characters of the session ID."
            )
        super().__init__(message)


class MessageNotFoundError(PolluxError):
    """A session has no message that matches the part of a reference after `#`."""

    def __init__(self, session: str, reference: str, n_messages: int) -> None:
        """Build the message from the session, what the user typed after `#`, and the number of messages."""
        numbers = f"a number from 1 to {n_messages}" if n_messages > 1 else "1"
        usable = f"use {numbers}, a message ID or the beginning of one" if n_messages else "it has no messages"
        super().__init__(f"Session {session} has no message '{reference}': {usable}.")


class AmbiguousMessageError(PolluxError):
    """Several messages of a session match the part of a reference after `#`."""

    status = 2

    def __init__(self, session: str, reference: str, ids: Sequence[str]) -> None:
        """Build the message from the session, what the user typed after `#`, and the IDs that begin with it."""
        super().__init__(
            f"'{reference}' matches {len(ids)} messages of session {session} ({_first(ids)}). "
            "Give more characters of the message ID."
        )


class ProjectNotFoundError(PolluxError):
    """No project matches a query."""

    def __init__(self, query: str) -> None:
        """Build the message from the query."""
        super().__init__(f"No project matches '{query}'. Run `pollux projects` to list projects with sessions.")


class AmbiguousProjectError(ProjectNotFoundError):
    """No project matches a query, which may abbreviate several names."""

    status = 2

    def __init__(self, query: str, names: Sequence[str]) -> None:
        """Build the message from the query and the first names."""
        PolluxError.__init__(
            self, f"No project is named '{query}'. It may stand for {_first(names)}: give more of the name."
        )


class InvalidFilterError(PolluxError):
    """An option has a value that cannot be parsed, such as a date."""

    status = 2

    def __init__(self, option: str, value: str, examples: str) -> None:
        """Build the message from the option, its value and valid examples."""
        super().__init__(f"Invalid value for {option}: '{value}'. Use {examples}.")
        self.option, self.value, self.examples = option, value, examples


class InvalidCursorError(PolluxError):
    """A place in a list was changed, or belongs to another list."""

    status = 2

    def __init__(self, reason: str) -> None:
        """Build the message from the reason."""
        super().__init__(f"The cursor {reason}: pass the cursor of the previous page with the same query and options.")


class InvalidQueryError(PolluxError):
    """A search query cannot be parsed."""

    status = 2

    def __init__(self, reason: str, advice: str, *, query: str, position: int) -> None:
        """Build the message.

        Args:
            reason: why it is invalid, as a sentence without its capital letter and its full stop.
            advice: what to write instead, in whole sentences.
            query: as typed.
            position: of the fault in the query; the first character is 0.

        """
        self.query, self.position = query, position
        super().__init__(f"Invalid query at character {position + 1}: {reason}. {advice}")


class UnreadableFileError(PolluxError):
    """A file cannot be opened."""

    def __init__(self, path: object, reason: str | None) -> None:
        """Build the message from the path and the system's reason."""
        super().__init__(f"Cannot read {path}: {reason or 'unknown reason'}.")


class DamagedArchiveError(PolluxError):
    """Archived bytes or their metadata are damaged and must not be used."""

    def __init__(self, reason: str, file: object = "One of its files", archive: object = "in use") -> None:
        """Build the message from the reason, the file and the archive."""
        self.reason = reason
        super().__init__(
            f"{file} is damaged in the archive {archive} ({reason}). Run `pollux verify --repair` to restore it from "
            "the disk while the client's file exists, otherwise restore the archive from a backup."
        )


class ArchiveError(PolluxError):
    """The archive cannot be used in its current state."""

    status = 2


class UnfinishedArchiveError(ArchiveError):
    """Another process is creating the archive, which cannot be read until that is done."""

    def __init__(self, path: object, reason: str) -> None:
        """Build the message from the path and what the other process is doing."""
        self.reason = reason
        super().__init__(f"The archive {path} is not ready: {reason}. Try again when that is done.")


class MissingArchiveError(ArchiveError):
    """There is no archive, and none can be created."""

    def __init__(self, path: object, reason: str) -> None:
        """Name the path and the error of the system."""
        self.reason = reason
        super().__init__(f"There is no archive at {path} yet ({reason}); name another with --archive.")


class InvalidArchiveError(ArchiveError):
    """A file is not a valid archive."""

    def __init__(self, path: object, reason: object) -> None:
        """Build the message from the path and the reason."""
        self.what = f"{path} is not a valid archive ({reason})"
        super().__init__(f"{self.what}. Move it away or replace it by a backup, then run `pollux sync`.")


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
