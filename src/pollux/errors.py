"""What callers must act on: wrong input of theirs, never a fault in a session file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class PolluxError(Exception):
    """The base of all: its text is one sentence for a person, with the next step in it."""

    status = 1
    """How the command ends: 1 for nothing found, 2 for wrong usage."""


class NoSuchSessionError(PolluxError):
    """Nothing fits the name somebody gave."""

    def __init__(self, wanted: str, n_sessions: int) -> None:
        """Say what was looked for and where to look."""
        sessions = f"{n_sessions} session{'s' * (n_sessions != 1)}"
        where = f"among {sessions}" if n_sessions else "and there are no sessions here at all"
        super().__init__(f"No session fits '{wanted}', {where}; `pollux ls --all` lists what there is.")


class FailedSessionError(PolluxError):
    """The name somebody gave is that of files which Pollux fails to read."""

    def __init__(self, files: Sequence[Path], message: str) -> None:
        """Name the first file, and say what can still be done with it."""
        self.files = tuple(files)
        super().__init__(f"{files[0]}: {message}.")


class AmbiguousSessionError(PolluxError):
    """Several sessions fit."""

    status = 2

    def __init__(self, wanted: str, ids: Sequence[str]) -> None:
        """Name the first few."""
        shown = ", ".join(ids[:5]) + (" …" if len(ids) > 5 else "")  # noqa: PLR2004
        super().__init__(f"'{wanted}' fits {len(ids)} sessions ({shown}); give more characters of the id.")


class NoSuchProjectError(PolluxError):
    """No project fits the name somebody gave."""

    def __init__(self, wanted: str) -> None:
        """Say what to do."""
        super().__init__(f"No project fits '{wanted}'; `pollux projects` lists those that have sessions.")


class AmbiguousProjectError(NoSuchProjectError):
    """No project has the name somebody gave, and it may be short for others."""

    status = 2

    def __init__(self, wanted: str, names: Sequence[str]) -> None:
        """Name the first few."""
        shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")  # noqa: PLR2004
        PolluxError.__init__(self, f"No project is called '{wanted}'; if you mean {shown}, give more of the name.")


class BadFilterError(PolluxError):
    """A date or a span of time that cannot be understood."""

    status = 2

    def __init__(self, option: str, value: str, examples: str) -> None:
        """Give examples."""
        super().__init__(f"{option} '{value}' is not understood; try {examples}.")


class UnreadableFileError(PolluxError):
    """A file that somebody named cannot be opened."""

    def __init__(self, path: object, reason: str | None) -> None:
        """Say why."""
        super().__init__(f"{path} cannot be read: {reason or 'unknown reason'}.")


class DamagedArchiveError(PolluxError):
    """Archived bytes, or the rows that lead to them, are damaged: nothing of them may be handed over."""

    def __init__(self, reason: str, file: object = "One of its files", archive: object = "in use") -> None:
        """Name the file, the archive and the next step."""
        self.reason = reason
        super().__init__(
            f"{file} is damaged in the archive {archive} ({reason}); `pollux verify --repair` takes the right bytes "
            "back from the disk while they are there, otherwise restore the archive from a backup."
        )


class ArchiveError(PolluxError):
    """The archive cannot be used as it is."""

    status = 2


class UnfinishedArchiveError(ArchiveError):
    """Another process is making the archive, which cannot be read before that is done."""

    def __init__(self, path: object, why: str) -> None:
        """Say who is making it."""
        self.why = why
        super().__init__(f"The archive {path} is not ready yet: {why}; try again when that is done.")


class NoArchiveError(ArchiveError):
    """A file that is no sound archive."""

    def __init__(self, path: object, reason: object) -> None:
        """Say what to do with one's own."""
        self.what = f"{path} is no sound archive ({reason})"
        super().__init__(f"{self.what}; move it away or put a backup in its place, then run `pollux sync`.")
