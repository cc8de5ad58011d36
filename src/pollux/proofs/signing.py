"""Sign records and session files.

A signature describes the conversation in trace metadata, as the VAC schema defines them. They are in the unprotected
header, which a signature does not cover, so Pollux puts their hash into the protected header to detect changes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pollux.errors import PolluxError
from pollux.model import Json, Session
from pollux.proofs import cose
from pollux.proofs.canonical import cbor_bytes, json_bytes, json_value, sha256
from pollux.proofs.public import public_from_private
from pollux.text.times import client_timestamp

JSON, CBOR, LOG = "application/json", "application/cbor", "application/jsonl"
LABEL = 100
"""Label of the trace metadata in the unprotected header; a placeholder of the draft."""
HASH_LABEL = "trace-metadata-sha-256"
"""Label of their hash in the protected header, defined by Pollux."""
RECORD_FORMAT = "ietf-vac-v3.0"
_TIME = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:(60|[0-5][0-9])([.][0-9]+)?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


class InvalidRecordError(PolluxError):
    """The input is not an agent record."""

    def __init__(self, reason: str) -> None:
        """Build the message from the reason."""
        super().__init__(
            f"This is not an agent record: {reason}. "
            "Run `pollux record create` to make one, or pass --raw to sign a session file."
        )


@dataclass(frozen=True, slots=True)
class TraceMetadata:
    """What identifies a conversation: its session ID, its vendor and format, and its times."""

    session_id: str | bytes
    vendor: str
    format: str
    start: str | int | None
    end: str | int | None = None

    def for_payload(self, payload: bytes) -> dict[str, Any] | None:
        """Return the header of a payload, or None without a start time, which the schema requires."""
        if self.start is None:
            return None
        header: dict[str, Any] = {
            "session-id": self.session_id,
            "agent-vendor": self.vendor,
            "trace-format": self.format,
            "timestamp-start": self.start,
            "content-hash": sha256(payload).hex(),
            "content-hash-alg": "sha-256",
        }
        return header if self.end is None else {**header, "timestamp-end": self.end}


def sign(
    payload: bytes,
    private: Ed25519PrivateKey,
    trace: TraceMetadata,
    *,
    content_type: str,
    at: datetime,
    issuer: str | None = None,
    subject: str | None = None,
    attached: bool = False,
) -> bytes:
    """Return the signature of a record or a file.

    The issuer defaults to the key's thumbprint, the subject to the session ID.
    """
    id_ = trace.session_id
    claims: dict[int | str, object] = {
        cose.ISSUER: issuer or public_from_private(private).uri,
        cose.SUBJECT: subject or (id_ if isinstance(id_, str) else id_.hex()),
        cose.ISSUED_AT: int(at.timestamp()),
    }
    metadata = trace.for_payload(payload)
    return cose.sign(
        payload,
        private,
        content_type=content_type,
        claims=claims,
        protected={HASH_LABEL: metadata_hash(metadata)} if metadata else {},
        unprotected={LABEL: metadata} if metadata else {},
        attached=attached,
    )


def metadata_hash(metadata: dict[str, Any]) -> bytes:
    """Return the hash that binds trace metadata to a signature."""
    return sha256(cbor_bytes(metadata))


def record_from(data: bytes) -> tuple[Json, bytes, str]:
    """Parse a record in JSON or CBOR; return it with its canonical bytes and their media type."""
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            record = json_value(data)
        except ValueError as error:
            raise InvalidRecordError(f"its JSON cannot be read ({error})") from None
        return record, json_bytes(record), JSON
    record, canonical = _cbor_value(data)
    return untagged(record), canonical, CBOR


def untagged(value: Any) -> Any:  # noqa: ANN401  any CBOR
    """Return the value inside a tag, or the value itself if it has none."""
    return _plain(value.value) if isinstance(value, cbor2.CBORTag) else value


def trace_from_record(record: Any) -> TraceMetadata:  # noqa: ANN401  any decoded value
    """Return the trace metadata of a record. Raises `InvalidRecordError` if required members are missing."""
    match record:
        case {"version": str(), "id": str(), "session": dict(session)}:
            times = [*_times(session), record.get("created")]
        case _:
            raise InvalidRecordError("it has no `version`, `id` and `session`")
    match session:
        case {"session-id": str() | bytes() as id_, "agent-meta": {"model-id": str(), "model-provider": str(vendor)}}:
            end = _first_time(session.get("session-end"))
            return TraceMetadata(id_, vendor, RECORD_FORMAT, _first_time(*times), end)
        case _:
            raise InvalidRecordError("its `session` has no `session-id`, or no `agent-meta` with model and provider")


def trace_from_session(session: Session, file_name: str) -> TraceMetadata:
    """Return the trace metadata of a session file."""
    start = session.started or session.ended or session.updated
    end = session.ended or session.updated
    kind = "gemini-json" if file_name.endswith(".json") else "gemini-jsonl"
    return TraceMetadata(
        session.id, "google", kind, client_timestamp(start) if start else None, client_timestamp(end) if end else None
    )


def _cbor_value(data: bytes) -> tuple[Any, bytes]:
    """Parse CBOR with `cbor2`, which is much faster than `cbor` on large records; return its canonical bytes too."""
    stream = io.BytesIO(data)
    try:
        value = cbor2.CBORDecoder(stream).decode()
        canonical = cbor_bytes(value)  # rejects dates, decimals and circular references
    except Exception:  # noqa: BLE001  the decoders of single tags raise exceptions of many libraries
        raise InvalidRecordError("it is neither JSON nor CBOR") from None
    if stream.tell() != len(data):
        raise InvalidRecordError("it is neither JSON nor CBOR")
    return value, canonical


def _plain(value: Any) -> Any:  # noqa: ANN401  any CBOR
    """Return lists and dictionaries in place of the immutable values that `cbor2` makes inside a tag."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _first_time(*values: object) -> str | int | None:
    """Return the first value that the schema accepts as a time."""
    for value in values:
        if isinstance(value, str) and _TIME.fullmatch(value):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def _times(session: dict[str, Any]) -> Iterator[object]:
    yield session.get("session-start")
    entries = session.get("entries")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield entry.get("timestamp")
