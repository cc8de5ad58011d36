"""Check any file that proves something; its content tells what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import continuation, cose, inclusion, redacted, signatures
from pollux.proofs.canonical import json_value
from pollux.proofs.chain import check_given, given_from
from pollux.proofs.commitment import MEMBER
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import seal_from
from pollux.proofs.verdict import Verdict

_TAG, _PAIR = b"\xd2", b"\x82"
"""How an envelope begins, and a seal with its entries."""


class NoProofError(PolluxError):
    """The file proves nothing."""

    def __init__(self, reason: str | None = None) -> None:
        """Build the message: why the file cannot be read, or what would be a proof."""
        if reason is not None:
            super().__init__(f"This proves nothing by itself: its JSON cannot be read ({reason}).")
            return
        super().__init__(
            "This proves nothing by itself: it is neither signature, seal, proof nor redacted record; "
            "name the signature, and this with --file."
        )


def examine(data: bytes, file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check a signature, a seal, a proof or a redacted record. Raises `NoProofError` for everything else."""
    if data[:1] == _TAG:
        return _seal(data, keys) if _is_seal(data) else _signature(data, file, keys)
    if data[:1] == _PAIR:
        return _seal(data, keys)
    value = _json_object(data)
    if value.get("schema") == inclusion.SCHEMA:
        return inclusion.verify_proof(value, file, keys)
    if value.get("schema") == continuation.SCHEMA:
        return continuation.verify(value, file, keys)
    if MEMBER in value:
        return redacted.verify_record(value, keys)
    raise NoProofError


def is_detached(data: bytes) -> bool:
    """Return whether this is a signature of something in another file."""
    try:
        return data[:1] == _TAG and cose.opened(data).payload is None
    except cose.NoEnvelopeError:
        return False


def _is_seal(data: bytes) -> bool:
    try:
        seal_from(data)
    except PolluxError:
        return False
    return True


def _seal(data: bytes, keys: Sequence[PublicKey]) -> Verdict:
    found = Verdict("seal")
    try:
        seal = check_given(given_from(data), keys, found)
    except PolluxError as error:
        found.fault("seal", str(error).rstrip("."))
        return found
    found.facts |= {"seal": str(seal.number), "sealed at": seal.at, "entries": str(seal.size), "root": seal.root}
    return found


def _signature(data: bytes, file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check a signature; where a redacted record was signed, check that too."""
    found = signatures.verify(data, file, keys)
    payload = file if is_detached(data) else signatures.payload_of(data)
    try:
        record = _json_object(payload or b"")
    except NoProofError:  # a session log, for example
        return found
    if MEMBER in record:
        found.take(redacted.verify_record(record, keys, is_signed=found.is_good))
    return found


def _json_object(data: bytes) -> Mapping[str, Json]:
    if data.lstrip()[:1] != b"{":
        return {}
    try:
        value = json_value(data)
    except ValueError as error:
        raise NoProofError(str(error)) from None
    return value if isinstance(value, dict) else {}
