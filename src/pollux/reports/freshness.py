"""How complete an answer is: whether it comes from an up-to-date archive."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pollux.model import Problem


class FreshnessState(StrEnum):
    """Where an answer comes from."""

    CURRENT = "current"
    """The archive, which has all files on disk."""
    BEHIND = "behind"
    """The archive, which lacks something that is on the disk."""
    COMBINED = "archive-and-files"
    """A read-only archive, and the session files that it lacks."""
    FILES = "files-only"
    """The session files, without an archive."""


class Freshness(msgspec.Struct, frozen=True):
    """How complete an answer is, and why."""

    state: FreshnessState
    reason: str = ""
    """Why the archive is behind or not used; empty if the user did not want one."""
    is_locked: bool = False
    """Whether another process is writing to the archive."""
    new_files: int = 0
    new_bytes: int = 0
    deleted_files: int = 0
    problems: tuple[Problem, ...] = ()
    is_filling: bool = False
    """Whether another process reads all files for the first time, so that nobody else should read them as well."""

    @property
    def note(self) -> str:
        """One sentence for the user, or an empty text if the answer is complete."""
        match self.state:
            case FreshnessState.BEHIND if self.is_locked:
                return f"The archive is incomplete: {self.reason}."
            case FreshnessState.BEHIND:
                return f"The archive cannot be written ({self.reason}); newer changes are missing."
            case FreshnessState.COMBINED:
                return f"The archive cannot be written ({self.reason}); new session files are read directly."
            case FreshnessState.FILES if self.reason:
                return f"{self.reason}; reading session files directly."
            case _:
                return ""
