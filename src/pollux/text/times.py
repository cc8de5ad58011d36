"""Times as the client writes them: ISO 8601, milliseconds, UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant(value: object) -> datetime | None:
    """Read a time; what is none has none, and a time without a zone is UTC."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        if found.tzinfo is UTC:  # as the client writes them
            return found
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def stamp(at: datetime) -> str:
    """Write a time as the client does."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def microseconds(at: datetime | None) -> int | None:
    """Return a time as whole microseconds since 1970, UTC; exact for every year, which a float is not."""
    return (at - _EPOCH) // _MICROSECOND if at else None


def moment(at_us: object) -> datetime | None:
    """Return the time that an archive states in microseconds; none for a value that is no time."""
    if not at_us or not isinstance(at_us, int):
        return None
    try:
        return datetime.fromtimestamp(at_us / 1_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def from_microseconds(at_us: int | None) -> datetime | None:
    """Return the time that `microseconds` wrote."""
    return None if at_us is None else _EPOCH + timedelta(microseconds=at_us)
