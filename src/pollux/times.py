"""Times as the client writes them: ISO 8601, milliseconds, UTC."""

from __future__ import annotations

from datetime import UTC, datetime


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
    """Write a time as whole microseconds since 1970, UTC."""
    return round(at.timestamp() * 1_000_000) if at else None
