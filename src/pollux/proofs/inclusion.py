"""Prove without the archive what its seals cover.

An inclusion proof holds a seal, entries of one session, and the hashes that lead from the entries to the root of the
seal. It is a JSON file, or a member of a redacted record. A consistency proof shows to the owner of an old seal that
the newest seal covers everything that the old one covered; it holds no entries, so it reveals nothing else. Checking
either needs only the public key of the sealer.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from pollux.archive import forget, seals
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import merkle
from pollux.proofs.canonical import json_bytes, sha256
from pollux.proofs.chain import check_seal, seal_copy_from
from pollux.proofs.entries import Entry, FileEntry, ForgottenEntry, SessionEntry, entry_from
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import Seal, seal_from
from pollux.proofs.verdict import Verdict, join_names

SCHEMA = "pollux.proof/1"
CONSISTENCY_SCHEMA = "pollux.continuation/1"

FieldProof: TypeAlias = dict[str, str]
"""The salt of a field that is shown, or the digest of one that is hidden."""


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
    fields: tuple[FieldProof, ...] | None = None
    """In a redacted record: the proof of each field."""
    checks: str | None = None
    """The first bytes of the digest of each field, to name a field that was changed."""


class _ConsistencyProof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: str
    old: str
    new: str
    path: tuple[str, ...]


_decode = msgspec.json.Decoder(InclusionProof).decode
_decode_consistency = msgspec.json.Decoder(_ConsistencyProof).decode


def prove(archive: Archive, session: str) -> dict[str, Json]:
    """Return the proof that the last seal covers a session and its files.

    Raises `PolluxError` if no seal covers the record of the session: then nothing ties the files to it.
    """
    bodies = [body for _, body in seals.entries(archive.database)]
    entries = [entry_from(body) for body in bodies]
    own = [place for place, entry in enumerate(entries) if isinstance(entry, SessionEntry) and entry.session == session]
    if not own:
        raise PolluxError(
            f"Session {session} is not sealed yet. Run `pollux archive seal`; it reports what it cannot seal."
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
    return prove_entries(archive, session, bodies, sorted({own[-1], *read_from.values(), *newest.values()}))


def prove_entries(archive: Archive, session: str, bodies: Sequence[bytes], places: Sequence[int]) -> dict[str, Json]:
    """Return the proof for the entries at some places. Raises `PolluxError` if the last seal does not match them."""
    stored = seals.seals(archive.database)
    hashes = [merkle.leaf_hash(body) for body in bodies]
    if not stored or merkle.root(hashes).hex() != seal_from(stored[-1][1])[0].root:
        raise PolluxError(
            "The last seal does not match the sealed entries, so it proves nothing. "
            "Run `pollux verify --seal` for details."
        )
    included: list[Json] = []
    for place in places:
        path = [step.hex() for step in merkle.inclusion(hashes, place)]
        included.append({"entry": msgspec.json.decode(bodies[place]), "index": place, "path": path})
    return {"schema": SCHEMA, "session": session, "seal": _base64(stored[-1][1]), "entries": included}


def prove_consistency(archive: Archive, old: bytes) -> dict[str, Json]:
    """Return the proof that the last seal is consistent with an old one. Raises `PolluxError` if it is not."""
    seal, _ = seal_from(old)
    stored = seals.seals(archive.database)
    hashes = [merkle.leaf_hash(body) for _, body in seals.entries(archive.database)]
    if not stored or not 0 < seal.size <= len(hashes) or merkle.root(hashes[: seal.size]).hex() != seal.root:
        raise PolluxError(
            f"This archive is not consistent with seal {seal.number}. Run `pollux verify --seal` for details."
        )
    path = [step.hex() for step in merkle.consistency(hashes, seal.size)]
    return {"schema": CONSISTENCY_SCHEMA, "old": _base64(old), "new": _base64(stored[-1][1]), "path": path}


def verify_proof(value: Mapping[str, Json], file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check an inclusion proof; `file`, if given, must be one of the files that it proves."""
    verdict = Verdict("proof")
    opened = open_proof(value, keys, verdict)
    if opened is None:
        return verdict
    proof, entries = opened
    if proof.fields is not None or proof.checks is not None:
        verdict.add_error("envelope", "it has `fields` or `checks`, which belong to a redacted record")
    session = session_entry(proof, entries, verdict)
    files = [entry for entry in entries if isinstance(entry, FileEntry)]
    verdict.digests += [(entry.sha256, entry.length, entry.path) for entry in files]
    if session is not None:
        _check_files(session, files, verdict)
    if file is not None:
        _check_file(file, files, verdict)
    return verdict


def verify_consistency(value: Mapping[str, Json], file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check a consistency proof; `file`, if given, is the verifier's own copy of the old seal."""
    verdict = Verdict("continuation")
    try:
        proof = _decode_consistency(json_bytes(value))
        old_bytes = b64decode(proof.old, validate=True)
        (old, old_envelope), (new, new_envelope) = seal_from(old_bytes), seal_from(b64decode(proof.new, validate=True))
        path = [bytes.fromhex(step) for step in proof.path]
        old_root, new_root = bytes.fromhex(old.root), bytes.fromhex(new.root)
    except (msgspec.DecodeError, ValueError, PolluxError) as error:
        verdict.add_error("envelope", f"the proof cannot be read ({str(error).rstrip('.')})")
        return verdict
    for seal, envelope in ((old, old_envelope), (new, new_envelope)):
        check_seal(seal, envelope, keys, verdict)
        verdict.facts[f"seal {seal.number}"] = f"{seal.at}, {seal.size} entries, root {seal.root}"
    if not merkle.is_consistent(old.size, new.size, old_root, new_root, path):
        verdict.add_error("chain", f"seal {new.number} does not cover everything that seal {old.number} covered")
    _check_own_copy(old, old_bytes, file, verdict)
    return verdict


def open_proof(value: Json, keys: Sequence[PublicKey], verdict: Verdict) -> tuple[InclusionProof, list[Entry]] | None:
    """Parse an inclusion proof, check its seal, and return the entries that lead to the root of the seal."""
    try:
        proof = _decode(json_bytes(value))
        if proof.schema != SCHEMA:
            raise ValueError(f"its schema is {proof.schema}")  # noqa: TRY301
        seal, envelope = seal_from(b64decode(proof.seal, validate=True))
    except ValueError as error:  # includes msgspec's errors
        verdict.add_error("envelope", f"the proof cannot be read ({error})")
        return None
    except PolluxError as error:
        verdict.add_error("seal", str(error).rstrip("."))
        return None
    verdict.facts |= {"session": proof.session, "seal": str(seal.number), "sealed at": seal.at, "root": seal.root}
    check_seal(seal, envelope, keys, verdict)
    if len({included.index for included in proof.entries}) < len(proof.entries):
        verdict.add_error("leaf", "it has the same entry twice")
    entries = (_included_entry(included, seal, verdict) for included in proof.entries)
    return proof, [entry for entry in entries if entry]


def session_entry(proof: InclusionProof, entries: Sequence[Entry], verdict: Verdict) -> SessionEntry | None:
    """Return the single entry of the session that a proof is about; without it the proof fails."""
    sessions = [entry for entry in entries if isinstance(entry, SessionEntry)]
    others = sorted({entry.session for entry in sessions} - {proof.session})
    if others:
        verdict.add_error("leaf", f"it is about session {proof.session}, but was sealed for {', '.join(others)}")
    elif not sessions:
        verdict.add_error("leaf", f"it has no sealed entry of session {proof.session}, so it proves nothing about it")
    elif len(sessions) > 1:
        verdict.add_error("leaf", f"it has {len(sessions)} entries of session {proof.session} instead of one")
    else:
        return sessions[0]
    return None


def _included_entry(included: _Included, seal: Seal, verdict: Verdict) -> Entry | None:
    """Return an entry if it leads to the root of the seal."""
    try:
        body = json_bytes(included.entry)
        path = [bytes.fromhex(step) for step in included.path]
    except (ValueError, PolluxError):
        body, path = b"", []
    root = merkle.root_from_inclusion(merkle.leaf_hash(body), included.index, seal.size, path)
    if root is None or root.hex() != seal.root:
        verdict.add_error("leaf", f"seal {seal.number} does not cover entry {included.index}")
        return None
    entry = entry_from(body)
    if entry is None:
        verdict.add_error("leaf", f"entry {included.index} is of a kind that this Pollux does not know")
    elif isinstance(entry, ForgottenEntry):
        verdict.add_error("leaf", f"entry {included.index} is about a forgotten file and proves nothing")
    return entry


def _check_files(session: SessionEntry, files: Sequence[FileEntry], verdict: Verdict) -> None:
    """Check that no file of the session is left out, and list files that the session was not read from."""
    digests = {entry.sha256 for entry in files}
    for digest in session.files:
        if digest not in digests:
            verdict.add_error("file", f"it leaves out a file that the session was read from (SHA-256 {digest})")
    others = [entry.path for entry in files if entry.sha256 not in session.files]
    if others:
        verdict.leave_unproven(
            others,
            f"These files are sealed, but nothing proves that they belong to session {session.session}, "
            f"which was not read from them: {join_names(others)}",
        )


def _check_file(file: bytes, files: Sequence[FileEntry], verdict: Verdict) -> None:
    """Check that a file is one of the sealed ones; if it has grown since, only its old length is proven."""
    same = [
        entry for entry in files if len(file) >= entry.length and sha256(file[: entry.length]).hex() == entry.sha256
    ]
    longest = max(same, key=lambda entry: entry.length, default=None)
    if longest is None:
        verdict.add_error("file", f"the file (SHA-256 {sha256(file).hex()}) is not one of the sealed files")
    elif longest.length < len(file):
        covered = f"only the first {longest.length} of its {len(file)} bytes were sealed"
        verdict.add_error("file", f"{covered}, as {longest.path}")
    else:
        verdict.notes.append(f"the file is {longest.path} as it was sealed")


def _check_own_copy(seal: Seal, old: bytes, file: bytes | None, verdict: Verdict) -> None:
    """Check that the proof starts from the verifier's copy: the owner of the key could have made another chain."""
    if file is None:
        verdict.leave_unproven(
            [f"seal {seal.number}"],
            f"Nothing proves that seal {seal.number} is the one that you have; pass your copy of it with --file",
        )
        return
    try:
        own_copy = seal_copy_from(file).data
    except PolluxError as error:
        verdict.add_error("file", f"the file is not a seal: {str(error).rstrip('.')}")
        return
    if own_copy != old:
        verdict.add_error("file", f"the file is not the seal {seal.number} that the proof starts from")


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
