"""What a signature says about a conversation without showing it: trace metadata, as the VAC schema wants them.

They stand in the unprotected header, which a signature does not cover. So ours puts their hash into the protected one,
under a label of its own, and a changed one is seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pollux.errors import PolluxError
from pollux.model import Session
from pollux.proofs.canonical import cbor_bytes, sha256
from pollux.text.times import stamp

LABEL = 100
"""Of trace metadata in the unprotected header; a placeholder of the draft."""
HASH_LABEL = "trace-metadata-sha-256"
"""Of their hash in the protected header; ours."""
RECORD_FORMAT = "ietf-vac-v3.0"
_TIME = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:(60|[0-5][0-9])([.][0-9]+)?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


class NoRecordError(PolluxError):
    """What should be signed as a record is none."""

    def __init__(self, reason: str) -> None:
        """Say why, and what to do."""
        super().__init__(
            f"This is no agent record: {reason}; `pollux record create` makes one, and `--raw` signs a session file."
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """Which conversation it is, and when it was."""

    session_id: str | bytes
    vendor: str
    format: str
    start: str | int | None
    end: str | int | None = None

    def metadata(self, payload: bytes) -> dict[str, Any] | None:
        """Write the metadata; a conversation without any time has none, since the schema wants its beginning."""
        if self.start is None:
            return None
        found: dict[str, Any] = {
            "session-id": self.session_id,
            "agent-vendor": self.vendor,
            "trace-format": self.format,
            "timestamp-start": self.start,
            "content-hash": sha256(payload).hex(),
            "content-hash-alg": "sha-256",
        }
        return found if self.end is None else {**found, "timestamp-end": self.end}


def metadata_hash(metadata: dict[str, Any]) -> bytes:
    """Hash metadata, to bind them to a signature."""
    return sha256(cbor_bytes(metadata))


def trace_of_record(record: Any) -> Trace:  # noqa: ANN401  whatever was decoded
    """Read from a record which conversation it is. Raises `NoRecordError` where it is none."""
    match record:
        case {"version": str(), "id": str(), "session": dict(session)}:
            times = [*_times(session), record.get("created")]
        case _:
            raise NoRecordError("it has no `version`, `id` and `session`")
    match session:
        case {"session-id": str() | bytes() as id_, "agent-meta": {"model-id": str(), "model-provider": str(vendor)}}:
            return Trace(id_, vendor, RECORD_FORMAT, _first_time(*times), _first_time(session.get("session-end")))
        case _:
            raise NoRecordError("its `session` has no `session-id`, or no `agent-meta` with model and provider")


def trace_of_session(session: Session, file_name: str) -> Trace:
    """Say which conversation a file of the client's holds."""
    times = [one for one in (session.started, session.ended, session.updated) if one]
    kind = "gemini-json" if file_name.endswith(".json") else "gemini-jsonl"
    end = session.ended or session.updated
    return Trace(session.id, "google", kind, stamp(times[0]) if times else None, stamp(end) if end else None)


def _first_time(*values: object) -> str | int | None:
    """Return the first that the schema takes as a time."""
    for one in values:
        if isinstance(one, str) and _TIME.fullmatch(one):
            return one
        if isinstance(one, int) and not isinstance(one, bool) and one >= 0:
            return one
    return None


def _times(session: dict[str, Any]) -> Iterator[object]:
    yield session.get("session-start")
    entries = session.get("entries")
    yield from (one.get("timestamp") for one in entries if isinstance(one, dict)) if isinstance(entries, list) else ()
