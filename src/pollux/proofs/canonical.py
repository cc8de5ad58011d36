"""Return the one canonical encoding of a value, so that signatures and hashes do not depend on who wrote it.

JSON follows RFC 8785: no spaces, members sorted by their UTF-16 code units, numbers as ECMAScript writes them. RFC 8785
rejects two things that session files contain, so Pollux defines a form for them: an integer beyond 2^53 is written with
all its digits, and an unpaired surrogate as a lower-case escape. Every decoded JSON value has exactly one encoding.

CBOR follows RFC 8949, section 4.2.1 (see `cbor`).
"""

from __future__ import annotations

import hashlib
import json
import math
from decimal import Decimal

from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs.cbor import write_cbor

_TOO_DEEP = "its values are nested too deeply"
_quote = json.encoder.encode_basestring
"""Escapes exactly the characters that RFC 8785 requires."""


class NotCanonicalError(PolluxError):
    """A value has no canonical encoding."""

    def __init__(self, reason: str = _TOO_DEEP) -> None:
        """Build the message from the reason."""
        super().__init__(f"This value has no canonical encoding: {reason}.")


def json_bytes(value: Json) -> bytes:
    """Return the canonical JSON of a value."""
    pieces: list[str] = []
    try:
        _write(value, pieces)
    except RecursionError:
        raise NotCanonicalError from None
    return "".join(pieces).encode("utf-8", "backslashreplace")


def json_value(data: bytes) -> Json:
    """Parse JSON without losing digits of large integers or unpaired surrogates.

    Raises `ValueError` for malformed JSON and for an object that repeats a name: readers disagree on which member
    counts, so an unproven member could be displayed in place of a proven one.
    """
    try:
        value: Json = json.loads(data.decode(), parse_constant=_reject_constant, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return value


def cbor_bytes(value: object) -> bytes:
    """Return the deterministic CBOR of a value."""
    pieces: list[bytes] = []
    try:
        write_cbor(value, pieces)
    except RecursionError:
        raise NotCanonicalError from None
    except UnicodeEncodeError:
        raise NotCanonicalError("CBOR text cannot contain an unpaired surrogate") from None
    except TypeError as error:
        raise NotCanonicalError(str(error)) from None
    return b"".join(pieces)


def sort_key(name: str) -> bytes:
    """Return the UTF-16 code units of a member name, by which RFC 8785 sorts members."""
    return name.encode("utf-16-be", "surrogatepass")


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 digest of bytes."""
    return hashlib.sha256(data).digest()


def _write(value: Json, pieces: list[str]) -> None:
    if isinstance(value, str):  # the most frequent type is checked first
        pieces.append(_quote(value))
    elif isinstance(value, dict):
        _write_members(value, pieces)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            pieces.append("," if number else "[")
            _write(item, pieces)
        pieces.append("]" if value else "[]")
    elif value is None:
        pieces.append("null")
    elif isinstance(value, bool):
        pieces.append("true" if value else "false")
    elif isinstance(value, int):
        pieces.append(str(value))
    elif isinstance(value, float):
        pieces.append(_number(value))
    else:
        raise NotCanonicalError(f"JSON has no type for {type(value).__name__}")


def _write_members(value: dict[str, Json], pieces: list[str]) -> None:
    for number, key in enumerate(sorted(value, key=sort_key)):
        pieces.append("," if number else "{")
        pieces.append(_quote(key))
        pieces.append(":")
        _write(value[key], pieces)
    pieces.append("}" if value else "{}")


def _number(value: float) -> str:
    """Return a number as ECMAScript writes it: the fewest digits that identify it, an exponent only from 1e21 on."""
    if not math.isfinite(value):
        raise NotCanonicalError(f"JSON has no number {value}")
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    significant = "".join(map(str, digits)).rstrip("0")
    if not significant:
        return "0"
    n_before_point = len(digits) + exponent
    return ("-" if sign else "") + _with_point(significant, n_before_point)


def _with_point(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:  # noqa: PLR2004  ECMAScript's limits
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:  # noqa: PLR2004
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:  # noqa: PLR2004
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if digits[1:] else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


def _object(members: list[tuple[str, Json]]) -> Json:
    value = dict(members)
    if len(value) < len(members):
        names = [name for name, _ in members]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the member {repeated!r} twice")
    return value


def _reject_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON number")
