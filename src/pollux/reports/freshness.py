"""How complete an answer is."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pollux.model import Problem


class Source(StrEnum):
    """Where answers come from, and whether they are complete."""

    CURRENT = "current"
    """The archive, which has everything that is on the disk."""
    BEHIND = "behind"
    """The archive, which lacks something that is on the disk."""
    FILES = "files-only"
    """The session files alone."""


class Freshness(msgspec.Struct, frozen=True):
    """How complete an answer is, and why."""

    state: Source
    reason: str = ""
    """Why the archive is behind, or is not used; empty if it was not asked for."""
    is_locked: bool = False
    """Whether another process is writing to the archive."""
    new_files: int = 0
    new_bytes: int = 0
    deleted_files: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def note(self) -> str:
        """One sentence for the user, or nothing where all is well."""
        match self.state:
            case Source.BEHIND if self.is_locked:
                return f"The archive does not hold everything yet: {self.reason}."
            case Source.BEHIND:
                return f"The archive cannot be written ({self.reason}): this is what it holds so far."
            case Source.FILES if self.reason:
                return f"{self.reason}. These are the files alone."
            case _:
                return ""
