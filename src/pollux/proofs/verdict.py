"""The result of checking a proof: errors, signers, claims, and what nothing proves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pollux.proofs.public import PublicKey, Trust, thumbprint_text, thumbprint_uri

What: TypeAlias = Literal[
    "envelope", "payload", "header", "claims", "metadata", "key", "signature", "seal", "chain", "leaf", "file", "field"
]
_MAX_LISTED = 5
_WHY = {
    Trust.OWN: "your own key",
    Trust.FOLDER: "another person's key in your folder of keys",
    Trust.GIVEN: "given with --key",
}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An error: one thing that does not match."""

    what: What
    message: str
    """One sentence without its full stop: what is wrong, and what was expected."""
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Unproven:
    """Something in a file that no signature or seal covers."""

    names: tuple[str, ...]
    sentence: str
    """One sentence without its full stop that names them and the reason."""


@dataclass(frozen=True, slots=True)
class Signer:
    """The signer of an envelope."""

    of: str
    """`signature`, or `seal` with its number."""
    key_id: bytes | None
    """The key that the envelope names."""
    key: PublicKey | None
    """The same key, if it is among the trusted keys."""
    issuer: str | None
    """The name in the envelope, which the owner of the key chose."""
    is_verified: bool
    """Whether the signature matches that key."""

    @property
    def is_issuer_proven(self) -> bool:
        """Whether the issuer is the key's own thumbprint; every other name is only a claim."""
        return self.is_verified and self.key is not None and self.issuer == self.key.uri

    @property
    def trust(self) -> str:
        """Why the key is trusted, as one word."""
        return self.key.trust if self.key else "unknown"

    @property
    def file(self) -> str | None:
        """The file that the key was read from."""
        return str(self.key.path) if self.key and self.key.path else None

    @property
    def description(self) -> str:
        """The key, why it is trusted, and the name that it claims."""
        name = self.key.path.name if self.key and self.key.path else "a key"
        if self.key is None:
            who = "an unknown key"
        elif self.is_verified:
            who = f"{name} ({_WHY[self.key.trust]})"
        else:
            who = f"unknown: the signature does not match {name} ({_WHY[self.key.trust]})"
        is_name = self.issuer is not None and not (self.key_id and self.issuer == thumbprint_uri(self.key_id))
        return f"{who}, claiming to be '{self.issuer}'" if is_name else who

    @property
    def thumbprint(self) -> str | None:
        """The thumbprint of the key as text."""
        key_id = self.key.id if self.key else self.key_id
        return thumbprint_text(key_id) if key_id else None


@dataclass(slots=True)
class Verdict:
    """The result of checking one file or archive."""

    kind: str
    """`signature`, `seal`, `proof`, `continuation`, `redacted record` or `archive`."""
    errors: list[Mismatch] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Remarks that a reader of the proof must know, but that are not errors."""
    unproven: list[Unproven] = field(default_factory=list)
    signers: list[Signer] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    """Claims of the signer or sealer, valid only without errors."""
    digests: list[tuple[str, int, str]] = field(default_factory=list)
    """SHA-256, length and path of the proven files."""

    @property
    def is_ok(self) -> bool:
        """Whether everything that can be checked matches."""
        return not self.errors

    @property
    def is_fully_proven(self) -> bool:
        """Whether everything matches and nothing is left unproven."""
        return not self.errors and not self.unproven

    def add_error(self, what: What, message: str, file: str | None = None) -> None:
        """Record something that does not match."""
        self.errors.append(Mismatch(what, message, file))

    def leave_unproven(self, names: Sequence[str], sentence: str) -> None:
        """Record something that nothing proves."""
        self.unproven.append(Unproven(tuple(names), sentence))

    def merge(self, other: Verdict) -> None:
        """Add the result of another check."""
        self.errors += other.errors
        self.notes += other.notes
        self.unproven += other.unproven
        self.signers += other.signers
        self.facts |= other.facts
        self.digests += other.digests


def join_names(names: Sequence[str]) -> str:
    """Return the first few names as one text, and the number of the others."""
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(names[:_MAX_LISTED]) + more
