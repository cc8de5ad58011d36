"""Parse and write times: the client's ISO 8601 timestamps, and microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def parse_time(value: object) -> datetime | None:
    """Parse an ISO 8601 time, in UTC if it has no zone; return None for any other value."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is UTC:  # as the client writes them
            return at
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def client_timestamp(at: datetime) -> str:
    """Return a time as the client writes it: UTC, with milliseconds and `Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def microseconds(at: datetime | None) -> int | None:
    """Return a time as microseconds since 1970, UTC; computed in integers, because floats are not exact."""
    return (at - _EPOCH) // _MICROSECOND if at else None


def moment(at_us: object) -> datetime | None:
    """Return the time that an archive stores in microseconds; None for any value that is not a time."""
    if not at_us or not isinstance(at_us, int):
        return None
    try:
        return datetime.fromtimestamp(at_us / 1_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def from_microseconds(at_us: int | None) -> datetime | None:
    """Return the time for a result of `microseconds`."""
    return None if at_us is None else _EPOCH + timedelta(microseconds=at_us)
