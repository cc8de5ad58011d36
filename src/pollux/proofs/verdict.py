"""What came out of looking at a proof: every single check, in words, and what the proof says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

What: TypeAlias = Literal[
    "envelope", "payload", "header", "claims", "metadata", "key", "signature", "seal", "chain", "leaf", "file", "field"
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that does not match."""

    what: What
    message: str
    """One sentence without its full stop: what was found, and what should have been there."""
    file: str | None = None


@dataclass(slots=True)
class Verdict:
    """What was looked at, and what was found."""

    kind: str
    """`signature`, `seal`, `proof`, `continuation`, `redacted record` or `archive`."""
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is no fault, but has to be known to read the proof rightly."""
    facts: dict[str, str] = field(default_factory=dict)
    """What the proof says, to be believed as far as nothing is wrong."""
    digests: list[tuple[str, int, str]] = field(default_factory=list)
    """SHA-256, length and path of what is proven."""

    @property
    def is_good(self) -> bool:
        """Whether everything matches."""
        return not self.faults

    def fault(self, what: What, message: str, file: str | None = None) -> None:
        """Note what does not match."""
        self.faults.append(Fault(what, message, file))

    def take(self, other: Verdict) -> None:
        """Take over what another look has found."""
        self.faults += other.faults
        self.notes += other.notes
        self.facts |= other.facts
        self.digests += other.digests
