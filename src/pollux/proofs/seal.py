"""Seal an archive: sign a Merkle root over everything archived, and chain it to the previous seal.

All entries are in one list that only grows, as in a transparency log. A seal is a signed statement of the length of the
list, the root over it, and the previous seal. So the last seal covers everything: removing or changing any entry
changes the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pollux import __version__
from pollux.archive import seals
from pollux.archive.inventory import original_path
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.model import Json, Problem
from pollux.proofs import cose, merkle
from pollux.proofs.canonical import json_bytes, sha256
from pollux.proofs.commitment import Salts, commitment
from pollux.proofs.entries import TREE, Entry, FileEntry, ForgottenEntry, SessionEntry, entry_bytes, entry_from
from pollux.proofs.public import public_from_private
from pollux.sessions.reader import Progress
from pollux.text.times import client_timestamp

SCHEMA = "pollux.seal/1"
SUBJECT = "pollux archive"
"""The CWT subject of every seal, which tells it from other signatures of the same key."""
PROFILE = "vac-00"
"""The profile of the records that seals commit to."""
BY = f"pollux {__version__}"


class Seal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The signed statement."""

    schema: str
    number: int
    at: str
    size: int
    """Number of entries."""
    root: str
    previous: str | None
    """SHA-256 of the previous seal, including its envelope."""


@dataclass(slots=True)
class PendingEntries:
    """What the next seal adds."""

    entries: list[Entry] = field(default_factory=list)
    n_files: int = 0
    n_bytes: int = 0
    n_sessions: int = 0
    forgotten: list[str] = field(default_factory=list)
    """Files that were forgotten since the last seal."""
    problems: list[Problem] = field(default_factory=list)
    """Files and sessions that cannot be sealed."""


@dataclass(frozen=True, slots=True)
class SealOutcome:
    """The newest seal, and what it added."""

    seal: Seal | None
    data: bytes
    """The envelope of the seal."""
    new: PendingEntries
    is_new: bool = False
    """Whether the seal was made just now; without new entries there is no new seal."""


def seal(
    archive: Archive,
    private: Ed25519PrivateKey,
    *,
    at: datetime,
    record_of: Callable[[str], Mapping[str, Json]],
    again: Sequence[str] = (),
    issuer: str | None = None,
    progress: Progress = lambda _done, _all: None,
) -> SealOutcome:
    """Seal what is new since the last seal: versions of files, and the records of the sessions in them.

    Args:
        archive: a writable archive.
        private: the key to sign with.
        at: the current time.
        record_of: returns the record of a session.
        again: sessions to commit to even if none of their files changed.
        issuer: name of the signer; defaults to the key's thumbprint.
        progress: called with bytes first, then with sessions.

    """
    database = archive.database
    stored = seals.entries(database)
    last = _last_seal(stored, seals.seals(database))
    sealed = [entry for entry in (entry_from(body) for _, body in stored) if entry]
    new = find_pending(archive, sealed, record_of, again=again, progress=progress)
    if not new.entries:
        return SealOutcome(last[0] if last else None, last[1] if last else b"", new)
    bodies = [*enumerate((entry_bytes(entry) for entry in new.entries), len(stored))]
    hashes = [merkle.leaf_hash(body) for _, body in (*stored, *bodies)]
    statement = Seal(
        SCHEMA,
        last[0].number + 1 if last else 1,
        client_timestamp(at),
        len(hashes),
        merkle.root(hashes).hex(),
        sha256(last[1]).hex() if last else None,
    )
    data = _sign(statement, private, at, issuer)
    seals.append(database, bodies, statement.number, data)
    return SealOutcome(statement, data, new, is_new=True)


def seal_from(data: bytes) -> tuple[Seal, cose.Envelope]:
    """Parse a seal without checking its signature. Raises `PolluxError` if the bytes are not a seal."""
    envelope = cose.open_envelope(data)
    try:
        statement = msgspec.json.decode(envelope.payload or b"", type=Seal)
    except ValueError:  # includes msgspec's errors
        raise PolluxError("This is a signature, but not the seal of an archive.") from None
    if statement.schema != SCHEMA:
        raise PolluxError(f"This Pollux cannot read seals of the form {statement.schema}; please update Pollux.")
    return statement, envelope


def find_pending(
    archive: Archive,
    sealed: Sequence[Entry],
    record_of: Callable[[str], Mapping[str, Json]],
    *,
    again: Sequence[str] = (),
    progress: Progress = lambda _done, _all: None,
) -> PendingEntries:
    """Return entries for everything in the archive that the sealed entries do not cover."""
    pending = PendingEntries()
    pending.entries += _new_files(archive, sealed, pending, progress)
    pending.entries += _new_sessions(archive, [*sealed, *pending.entries], pending, record_of, again, progress)
    pending.entries += _newly_forgotten(archive, sealed, pending)
    return pending


def _last_seal(entries: Sequence[tuple[int, bytes]], stored: Sequence[tuple[int, bytes]]) -> tuple[Seal, bytes] | None:
    """Return the last seal. Raises `PolluxError` if the entries do not match it: a new seal must not hide tampering."""
    if not stored:
        if entries:
            raise PolluxError("There are sealed entries without a seal. Run `pollux verify --seal` for details.")
        return None
    data = stored[-1][1]
    statement, _ = seal_from(data)
    hashes = [merkle.leaf_hash(body) for _, body in entries]
    if len(hashes) != statement.size or merkle.root(hashes).hex() != statement.root:
        raise PolluxError(
            "The last seal does not match the sealed entries, so no new seal was made. "
            "Run `pollux verify --seal` for details."
        )
    return statement, data


def _sign(statement: Seal, private: Ed25519PrivateKey, at: datetime, issuer: str | None) -> bytes:
    claims: dict[int | str, object] = {
        cose.ISSUER: issuer or public_from_private(private).uri,
        cose.SUBJECT: SUBJECT,
        cose.ISSUED_AT: int(at.timestamp()),
    }
    payload = json_bytes(msgspec.to_builtins(statement))
    return cose.sign(payload, private, content_type="application/json", claims=claims)


def _new_files(
    archive: Archive, sealed: Sequence[Entry], pending: PendingEntries, progress: Progress
) -> Iterator[FileEntry]:
    """Yield an entry for each version that is new, or has grown since it was sealed."""
    covered = {(entry.name, entry.first_seen_us, entry.length) for entry in sealed if isinstance(entry, FileEntry)}
    versions = seals.versions(archive.database)
    new = [version for version in versions if (version.name, version.first_us, version.length) not in covered]
    n_bytes = sum(version.length for version in new)
    for version in new:
        prefixes = seals.prefixes(archive.database, version.id, [version.length])
        digest = prefixes.digests.get(version.length)
        if digest is None:
            message = f"not sealed: {prefixes.fault}; run `pollux verify` for details"
            pending.problems.append(Problem("damaged-archive", message, str(original_path(*version.name[1:]))))
            continue
        pending.n_files += 1
        pending.n_bytes += version.length
        progress(pending.n_bytes, n_bytes)
        yield FileEntry(*version.name, version.first_us, version.length, digest.hex())


def _new_sessions(
    archive: Archive,
    sealed: Sequence[Entry],
    pending: PendingEntries,
    record_of: Callable[[str], Mapping[str, Json]],
    again: Sequence[str],
    progress: Progress,
) -> Iterator[SessionEntry]:
    """Yield an entry for each session with new bytes, or whose record was made by another version of Pollux."""
    last: dict[str, SessionEntry] = {}
    digest_of_bytes: dict[object, str] = {}
    for entry in sealed:
        if isinstance(entry, SessionEntry):
            last[entry.session] = entry
        elif isinstance(entry, FileEntry):
            digest_of_bytes[entry.name, entry.first_seen_us, entry.length] = entry.sha256
    digest_of_version = {
        version.id: digest_of_bytes.get((version.name, version.first_us, version.length))
        for version in seals.versions(archive.database)
    }
    secret = seals.secret(archive.database)
    sources = seals.sources(archive.database)
    for done, (session, versions) in enumerate(sources.items(), 1):
        progress(done, len(sources))
        digests = sorted({digest for version in versions if (digest := digest_of_version.get(version))})
        before = last.get(session)
        if not digests:
            continue
        if before and session not in again and (before.by, before.form, [*before.files]) == (BY, TREE, digests):
            continue
        try:
            root, n_fields = commitment(record_of(session), Salts(secret, session))
        except PolluxError as error:
            pending.problems.append(Problem("not-sealed", f"the record of session {session} is not sealed: {error}"))
            continue
        entry = SessionEntry(session, PROFILE, BY, n_fields, root.hex(), digests, TREE)
        if entry != before:
            pending.n_sessions += 1
            yield entry


def _newly_forgotten(archive: Archive, sealed: Sequence[Entry], pending: PendingEntries) -> Iterator[ForgottenEntry]:
    """Yield an entry for each sealed file that the user forgot since."""
    already = {entry.name for entry in sealed if isinstance(entry, ForgottenEntry)}
    candidates = {entry.name for entry in sealed if isinstance(entry, FileEntry)} - already
    for name, at_us in sorted(seals.files(archive.database).items()):
        if at_us is not None and name in candidates:
            pending.forgotten.append(str(original_path(*name[1:])))
            yield ForgottenEntry(*name, at_us)
