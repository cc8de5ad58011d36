"""What checking a proof found: what does not match, who signed, what the proof says, and what nothing proves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pollux.proofs.public import PublicKey, Trust, shown, uri

What: TypeAlias = Literal[
    "envelope", "payload", "header", "claims", "metadata", "key", "signature", "seal", "chain", "leaf", "file", "field"
]
_LISTED = 5
_WHY = {
    Trust.OWN: "your own key",
    Trust.FOLDER: "another person's key in your folder of keys",
    Trust.GIVEN: "given with --key",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that does not match."""

    what: What
    message: str
    """One sentence without its full stop: what was found, and what should have been there."""
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Unproven:
    """Something that a file says and that no signature or seal covers."""

    names: tuple[str, ...]
    sentence: str
    """One sentence without its full stop, which names them and says why."""


@dataclass(frozen=True, slots=True)
class Signer:
    """Whose signature is on an envelope, as far as the keys here tell."""

    of: str
    """`signature`, or `seal` with its number."""
    key_id: bytes | None
    """The key that the envelope names."""
    key: PublicKey | None
    """The same key, if it is known here."""
    issuer: str | None
    """The name in the envelope; whoever holds the key chose it."""
    is_verified: bool
    """Whether that key did sign."""

    @property
    def is_issuer_proven(self) -> bool:
        """Whether the issuer is the key itself; every other name is a claim."""
        return self.is_verified and self.key is not None and self.issuer == self.key.uri

    @property
    def trust(self) -> str:
        """Why the key is believed, as one word."""
        return self.key.trust if self.key else "unknown"

    @property
    def file(self) -> str | None:
        """The file that the key was read from."""
        return str(self.key.path) if self.key and self.key.path else None

    @property
    def words(self) -> str:
        """Name the key, why it is believed, and the name that it claims."""
        name = self.key.path.name if self.key and self.key.path else "a key"
        if self.key is None:
            who = "an unknown key"
        elif self.is_verified:
            who = f"{name} ({_WHY[self.key.trust]})"
        else:
            who = f"nobody: it does not fit {name} ({_WHY[self.key.trust]})"
        is_name = self.issuer is not None and not (self.key_id and self.issuer == uri(self.key_id))
        return f"{who}, claiming to be '{self.issuer}'" if is_name else who

    @property
    def thumbprint(self) -> str | None:
        """The thumbprint of the key, as text."""
        key_id = self.key.id if self.key else self.key_id
        return shown(key_id) if key_id else None


@dataclass(slots=True)
class Verdict:
    """What was checked, and what was found."""

    kind: str
    """`signature`, `seal`, `proof`, `continuation`, `redacted record` or `archive`."""
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is no fault, but has to be known to read the proof correctly."""
    unproven: list[Unproven] = field(default_factory=list)
    signers: list[Signer] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    """What the signer or the sealer says; it counts only where there is no fault."""
    digests: list[tuple[str, int, str]] = field(default_factory=list)
    """SHA-256, length and path of what is proven."""

    @property
    def is_good(self) -> bool:
        """Whether everything that can be checked matches."""
        return not self.faults

    @property
    def is_plainly_good(self) -> bool:
        """Whether everything matches and nothing is left unproven."""
        return not self.faults and not self.unproven

    def fault(self, what: What, message: str, file: str | None = None) -> None:
        """Add something that does not match."""
        self.faults.append(Fault(what, message, file))

    def leave_unproven(self, names: Sequence[str], sentence: str) -> None:
        """Add something that nothing proves."""
        self.unproven.append(Unproven(tuple(names), sentence))

    def take(self, other: Verdict) -> None:
        """Add what another check found."""
        self.faults += other.faults
        self.notes += other.notes
        self.unproven += other.unproven
        self.signers += other.signers
        self.facts |= other.facts
        self.digests += other.digests


def listed(names: Sequence[str]) -> str:
    """Return names as one text, cut after the first few."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
