"""Check a signature, a seal, a proof or a redacted record, whichever a file contains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import cose, inclusion, redacted, signatures
from pollux.proofs.canonical import json_value
from pollux.proofs.chain import check_seal_copy, seal_copy_from
from pollux.proofs.commitment import MEMBER
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import seal_from
from pollux.proofs.verdict import Verdict

_TAG, _PAIR = b"\xd2", b"\x82"
"""The first byte of an envelope, and of a seal with its entries."""


class NotAProofError(PolluxError):
    """The file is not a proof."""

    def __init__(self, reason: str | None = None) -> None:
        """Build the message; `reason` says why its JSON cannot be read."""
        if reason is not None:
            super().__init__(f"This is not a proof: its JSON cannot be read ({reason}).")
            return
        super().__init__(
            "This is not a proof: neither a signature, a seal, a proof nor a redacted record. "
            "Name its signature, and pass this file with --file."
        )


def verify_data(data: bytes, file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check a signature, a seal, a proof or a redacted record. Raises `NotAProofError` for everything else."""
    if data[:1] == _TAG:
        return _seal(data, keys) if _is_seal(data) else _signature(data, file, keys)
    if data[:1] == _PAIR:
        return _seal(data, keys)
    value = _json_object(data)
    if value.get("schema") == inclusion.SCHEMA:
        return inclusion.verify_proof(value, file, keys)
    if value.get("schema") == inclusion.CONSISTENCY_SCHEMA:
        return inclusion.verify_consistency(value, file, keys)
    if MEMBER in value:
        return redacted.verify_record(value, keys)
    raise NotAProofError


def is_detached(data: bytes) -> bool:
    """Return whether this is a signature whose payload is in another file."""
    try:
        return data[:1] == _TAG and cose.open_envelope(data).payload is None
    except cose.InvalidEnvelopeError:
        return False


def _is_seal(data: bytes) -> bool:
    try:
        seal_from(data)
    except PolluxError:
        return False
    return True


def _seal(data: bytes, keys: Sequence[PublicKey]) -> Verdict:
    verdict = Verdict("seal")
    try:
        seal = check_seal_copy(seal_copy_from(data), keys, verdict)
    except PolluxError as error:
        verdict.add_error("seal", str(error).rstrip("."))
        return verdict
    verdict.facts |= {"seal": str(seal.number), "sealed at": seal.at, "entries": str(seal.size), "root": seal.root}
    return verdict


def _signature(data: bytes, file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check a signature; if it signs a redacted record, check that too."""
    verdict = signatures.verify(data, file, keys)
    payload = file if is_detached(data) else signatures.payload_of(data)
    try:
        record = _json_object(payload or b"")
    except NotAProofError:  # a session log, for example
        return verdict
    if MEMBER in record:
        verdict.merge(redacted.verify_record(record, keys, is_signed=verdict.is_ok))
    return verdict


def _json_object(data: bytes) -> Mapping[str, Json]:
    if data.lstrip()[:1] != b"{":
        return {}
    try:
        value = json_value(data)
    except ValueError as error:
        raise NotAProofError(str(error)) from None
    return value if isinstance(value, dict) else {}
