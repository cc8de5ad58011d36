"""Documents of keys, seals and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from pollux.model import Json
from pollux.proofs.keys import KeyInfo
from pollux.proofs.public import thumbprint_text
from pollux.proofs.seal import SealOutcome
from pollux.proofs.verdict import Signer, Verdict
from pollux.views.contracts import problem_row


class KeysDocument(msgspec.Struct, frozen=True):
    """The keys in a folder."""

    folder: Path
    keys: Sequence[KeyInfo]


class VerdictDocument(msgspec.Struct, frozen=True):
    """Whether a file or an archive matches its signature or seal."""

    verdict: Verdict
    subject: str
    """The path of the checked file or archive."""


def keys_json(document: KeysDocument) -> dict[str, Json]:
    """Return the keys of `pollux keys list --json`."""
    return {"folder": str(document.folder), "keys": [_key_row(key) for key in document.keys]}


def sealed_json(sealed: SealOutcome) -> dict[str, Json]:
    """Return the keys of `pollux archive seal --json`."""
    seal = sealed.seal
    return {
        "number": seal.number if seal else None,
        "at": seal.at if seal else None,
        "entries": seal.size if seal else None,
        "root": seal.root if seal else None,
        "new": sealed.is_new,
        "files": sealed.new.n_files,
        "bytes": sealed.new.n_bytes,
        "sessions": sealed.new.n_sessions,
        "forgotten": sealed.new.forgotten,
        "problems": [problem_row(problem) for problem in sealed.new.problems],
    }


def verdict_json(document: VerdictDocument) -> dict[str, Json]:
    """Return the keys of `pollux record verify --json` and of `pollux verify --seal --json`."""
    verdict = document.verdict
    return {
        "subject": document.subject,
        "kind": verdict.kind,
        "ok": verdict.is_ok,
        "errors": [{"what": fault.what, "message": fault.message, "file": fault.file} for fault in verdict.errors],
        "unproven": [name for unproven in verdict.unproven for name in unproven.names],
        "signers": [_signer_row(signer) for signer in verdict.signers],
        "notes": [*verdict.notes, *(unproven.sentence for unproven in verdict.unproven)],
        "files": [{"sha256": digest, "length": length, "path": path} for digest, length, path in verdict.digests],
        "facts": {name.replace(" ", "_"): value for name, value in verdict.facts.items()},
    }


def _key_row(key: KeyInfo) -> dict[str, Json]:
    return {
        "name": key.name,
        "id": thumbprint_text(key.public.id) if key.public else None,
        "own": key.is_own,
        "passphrase": key.has_passphrase,
        "error": key.error,
    }


def _signer_row(signer: Signer) -> dict[str, Json]:
    return {
        "of": signer.of,
        "key": signer.thumbprint,
        "key_file": signer.file,
        "trust": signer.trust,
        "verified": signer.is_verified,
        "issuer": signer.issuer,
        "issuer_proven": signer.is_issuer_proven,
    }
