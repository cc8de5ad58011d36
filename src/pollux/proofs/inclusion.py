"""Prove without the archive that a seal covers a session.

A proof holds a seal, entries of one session, and the hashes that lead from the entries to the root of the seal. It is a
JSON file, or a member of a redacted record (`redacted`); checking it needs only the public key of whoever sealed.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pollux.archive import forget, seals
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import merkle
from pollux.proofs.canonical import json_bytes, sha256
from pollux.proofs.chain import check_seal
from pollux.proofs.disclosure import Proof
from pollux.proofs.entries import Entry, FileEntry, ForgottenEntry, SessionEntry, entry_from
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import Seal, seal_from
from pollux.proofs.verdict import Verdict, listed

SCHEMA = "pollux.proof/1"


class _Included(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry, and the hashes that lead from it to the root."""

    entry: dict[str, Any]
    index: int
    path: tuple[str, ...]


class InclusionProof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entries that a seal covers."""

    schema: str
    session: str
    seal: str
    entries: tuple[_Included, ...]
    fields: tuple[Proof, ...] | None = None
    """How each field of a redacted record is proven."""
    checks: str | None = None
    """The first bytes of the digest of each field, to name the one that was changed."""


_decode = msgspec.json.Decoder(InclusionProof).decode


def prove(archive: Archive, session: str) -> dict[str, Json]:
    """Return the proof that the last seal covers a session and its files.

    Raises `PolluxError` where no seal covers what the session says: then nothing ties the files to it.
    """
    bodies = [body for _, body in seals.entries(archive.database)]
    entries = [entry_from(body) for body in bodies]
    own = [place for place, entry in enumerate(entries) if isinstance(entry, SessionEntry) and entry.session == session]
    if not own:
        raise PolluxError(
            f"Session {session} is not sealed yet; run `pollux archive seal`, which says why if it cannot seal it."
        )
    sealed = entries[own[-1]]
    assert isinstance(sealed, SessionEntry)
    names = seals.names(archive.database, forget.files_of(archive.database, forget.family(archive.database, [session])))
    read_from: dict[str, int] = {}
    newest: dict[object, int] = {}
    for place, entry in enumerate(entries):
        if isinstance(entry, FileEntry) and entry.sha256 in sealed.files:
            read_from[entry.sha256] = place
        if isinstance(entry, FileEntry) and entry.name in names:
            newest[entry.name, entry.first_seen_us] = place
    return proof_of(archive, session, bodies, sorted({own[-1], *read_from.values(), *newest.values()}))


def verify_proof(value: Mapping[str, Json], file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check a proof about files; `file`, if given, has to be one of them."""
    found = Verdict("proof")
    shown = opened(value, keys, found)
    if shown is None:
        return found
    proof, entries = shown
    if proof.fields is not None or proof.checks is not None:
        found.fault("envelope", "it has `fields` or `checks`, which belong to a redacted record")
    session = session_entry(proof, entries, found)
    files = [entry for entry in entries if isinstance(entry, FileEntry)]
    found.digests += [(entry.sha256, entry.length, entry.path) for entry in files]
    if session is not None:
        _check_files(session, files, found)
    if file is not None:
        _check_file(file, files, found)
    return found


def proof_of(archive: Archive, session: str, bodies: Sequence[bytes], places: Sequence[int]) -> dict[str, Json]:
    """Return the proof for the entries at some places. Raises `PolluxError` where the last seal does not fit them."""
    stored = seals.seals(archive.database)
    hashes = [merkle.leaf_hash(body) for body in bodies]
    if not stored or merkle.root(hashes).hex() != seal_from(stored[-1][1])[0].root:
        raise PolluxError(
            "The last seal does not fit what it sealed, so it proves nothing; see `pollux verify --seal`."
        )
    return {
        "schema": SCHEMA,
        "session": session,
        "seal": b64encode(stored[-1][1]).decode(),
        "entries": [
            {
                "entry": msgspec.json.decode(bodies[place]),
                "index": place,
                "path": [one.hex() for one in merkle.inclusion(hashes, place)],
            }
            for place in places
        ],
    }


def opened(value: Json, keys: Sequence[PublicKey], found: Verdict) -> tuple[InclusionProof, list[Entry]] | None:
    """Parse a proof, check its seal, and return the entries that lead to the root of the seal."""
    try:
        proof = _decode(json_bytes(value))
        if proof.schema != SCHEMA:
            raise ValueError(f"its schema is {proof.schema}")  # noqa: TRY301
        seal, envelope = seal_from(b64decode(proof.seal, validate=True))
    except ValueError as error:  # msgspec's own error is one, too
        found.fault("envelope", f"it is no proof that can be read ({error})")
        return None
    except PolluxError as error:
        found.fault("seal", str(error).rstrip("."))
        return None
    found.facts |= {"session": proof.session, "seal": str(seal.number), "sealed at": seal.at, "root": seal.root}
    check_seal(seal, envelope, keys, found)
    if len({included.index for included in proof.entries}) < len(proof.entries):
        found.fault("leaf", "it has the same entry twice")
    return proof, [entry for included in proof.entries if (entry := _included(included, seal, found))]


def session_entry(proof: InclusionProof, entries: Sequence[Entry], found: Verdict) -> SessionEntry | None:
    """Return the one entry of the session that a proof is about; without it the proof fails."""
    sessions = [entry for entry in entries if isinstance(entry, SessionEntry)]
    others = sorted({entry.session for entry in sessions} - {proof.session})
    if others:
        found.fault("leaf", f"it is about session {proof.session}, but was sealed for {', '.join(others)}")
    elif not sessions:
        found.fault("leaf", f"it has no sealed entry of session {proof.session}, so it proves nothing about it")
    elif len(sessions) > 1:
        found.fault("leaf", f"it has {len(sessions)} entries of session {proof.session}, where it should have one")
    else:
        return sessions[0]
    return None


def _included(included: _Included, seal: Seal, found: Verdict) -> Entry | None:
    """Return an entry if it leads to the root of the seal."""
    try:
        body = json_bytes(included.entry)
        path = [bytes.fromhex(step) for step in included.path]
    except (ValueError, PolluxError):
        body, path = b"", []
    root = merkle.root_from_inclusion(merkle.leaf_hash(body), included.index, seal.size, path)
    if root is None or root.hex() != seal.root:
        found.fault("leaf", f"entry {included.index} is not one that seal {seal.number} covers")
        return None
    entry = entry_from(body)
    if entry is None:
        found.fault("leaf", f"entry {included.index} is of no kind that this Pollux knows")
    elif isinstance(entry, ForgottenEntry):
        found.fault("leaf", f"entry {included.index} is about a forgotten file, which proves nothing about a session")
    return entry


def _check_files(session: SessionEntry, files: Sequence[FileEntry], found: Verdict) -> None:
    """Check that no file of the session is left out, and name those that nothing ties to the session."""
    shown = {entry.sha256 for entry in files}
    for digest in session.files:
        if digest not in shown:
            found.fault("file", f"it leaves out a file that the session was read from (SHA-256 {digest})")
    others = [entry.path for entry in files if entry.sha256 not in session.files]
    if others:
        found.leave_unproven(
            others,
            f"These files are sealed, but nothing proves that they belong to session {session.session}, "
            f"which was not read from them: {listed(others)}",
        )


def _check_file(file: bytes, files: Sequence[FileEntry], found: Verdict) -> None:
    """Look for a file among the sealed ones; one that has grown since is proven up to its old length."""
    same = [
        entry for entry in files if len(file) >= entry.length and sha256(file[: entry.length]).hex() == entry.sha256
    ]
    longest = max(same, key=lambda entry: entry.length, default=None)
    if longest is None:
        found.fault("file", f"the file (SHA-256 {sha256(file).hex()}) is none of those that were sealed")
    elif longest.length < len(file):
        words = f"of its {len(file)} bytes only the first {longest.length} were sealed"
        found.fault("file", f"{words}, as {longest.path}")
    else:
        found.notes.append(f"the file is {longest.path} as it was sealed")
