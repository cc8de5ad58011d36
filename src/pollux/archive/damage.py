"""What is not as it should be in an archive, named to the byte."""

from __future__ import annotations

from dataclasses import dataclass, field

from pollux.archive.inventory import place_of
from pollux.archive.segments import Segment, Version


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is not as it should be."""

    code: str
    message: str
    machine: str | None = None
    file: str | None = None
    version: int | None = None
    start: int | None = None
    end: int | None = None
    source: str | None = None
    """Where the same bytes are to be had."""
    is_repaired: bool = False


@dataclass(slots=True)
class VerifyReport:
    """What was looked at, and what was found."""

    n_segments: int = 0
    n_bytes: int = 0
    damage: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is no damage, but left something out."""
    not_compared: list[str] = field(default_factory=list)
    """What this check does not prove."""

    @property
    def is_sound(self) -> bool:
        """Whether everything is as it should be, by now."""
        return all(one.is_repaired for one in self.damage)

    @property
    def bytes_are_sound(self) -> bool:
        """Whether every byte that was kept can be read, so that facts can be derived from them."""
        return all(one.is_repaired or one.code in ("facts", "edited") for one in self.damage)


def damage_of(code: str, words: str, whose: Segment | Version, number: int, start: int, end: int) -> Damage:
    """Name a stretch of bytes."""
    place = str(place_of(whose.home, whose.path)) if whose.path else "a file that is missing"
    message = f"bytes {start}–{end} of version {number}: {words}"
    return Damage(code, message, whose.machine or None, place, number, start, end)
