"""One value, one sequence of bytes: what is signed and hashed must not depend on who wrote it down.

JSON is written by RFC 8785: no spaces, members in the order of their UTF-16 units, numbers as ECMAScript writes them.
That document refuses two things that session files do hold, and these have one form here too: an integer beyond 2^53 is
written with all its digits, and half a surrogate pair as an escape in lower case. So every decoded JSON value has
exactly one form, and where RFC 8785 has one, it is that one.

CBOR is written by RFC 8949, section 4.2.1, in `deterministic`.
"""

from __future__ import annotations

import hashlib
import json
import math
from decimal import Decimal

from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import deterministic

_quoted = json.encoder.encode_basestring
"""Escapes just what RFC 8785 wants escaped, and leaves all else as it is."""


class NotCanonicalError(PolluxError):
    """A value that has no canonical form."""

    def __init__(self, reason: str) -> None:
        """Say why."""
        super().__init__(f"This cannot be written down in one way only: {reason}.")


def json_bytes(value: Json) -> bytes:
    """Write a decoded JSON value in its one form."""
    pieces: list[str] = []
    try:
        _write(value, pieces)
    except RecursionError:
        raise NotCanonicalError("its values are nested too deeply") from None
    return "".join(pieces).encode("utf-8", "backslashreplace")


def json_value(data: bytes) -> Json:
    """Parse JSON with big integers whole and half surrogates kept.

    Raises `ValueError` for what is no JSON. That includes an object that names a member twice: readers disagree on
    which one counts, so one that nobody proved could be shown beside one that is proven.
    """
    try:
        value: Json = json.loads(data.decode(), parse_constant=_no_constant, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    return value


def cbor_bytes(value: object) -> bytes:
    """Write a value as deterministic CBOR."""
    pieces: list[bytes] = []
    try:
        deterministic.write(value, pieces)
    except RecursionError:
        raise NotCanonicalError("its values are nested too deeply") from None
    except UnicodeEncodeError:
        raise NotCanonicalError("half a surrogate pair is no text in CBOR") from None
    except TypeError as error:
        raise NotCanonicalError(str(error)) from None
    return b"".join(pieces)


def units(key: str) -> bytes:
    """Return what members are sorted by: their UTF-16 units, as ECMAScript compares texts."""
    return key.encode("utf-16-be", "surrogatepass")


def sha256(data: bytes) -> bytes:
    """Hash bytes."""
    return hashlib.sha256(data).digest()


def _write(value: Json, pieces: list[str]) -> None:
    if isinstance(value, str):  # what there is most of comes first
        pieces.append(_quoted(value))
    elif isinstance(value, dict):
        _write_members(value, pieces)
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            pieces.append("," if number else "[")
            _write(one, pieces)
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
        raise NotCanonicalError(f"{type(value).__name__} is no kind of JSON")


def _write_members(value: dict[str, Json], pieces: list[str]) -> None:
    for number, key in enumerate(sorted(value, key=units)):
        pieces.append("," if number else "{")
        pieces.append(_quoted(key))
        pieces.append(":")
        _write(value[key], pieces)
    pieces.append("}" if value else "{}")


def _number(value: float) -> str:
    """Write a number as ECMAScript does: the fewest digits that lead back to it, an exponent only from 1e21 on."""
    if not math.isfinite(value):
        raise NotCanonicalError(f"{value} is no number of JSON")
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits)).rstrip("0")
    if not shown:
        return "0"
    point = len(digits) + exponent
    """How many digits stand before the point."""
    return ("-" if sign else "") + _with_point(shown, point)


def _with_point(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:  # noqa: PLR2004  ECMAScript's limits
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:  # noqa: PLR2004
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:  # noqa: PLR2004
        return f"0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if digits[1:] else ""
    return f"{digits[0]}{rest}e{point - 1:+d}"


def _object(members: list[tuple[str, Json]]) -> Json:
    value = dict(members)
    if len(value) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the member {twice!r} twice")
    return value


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is no number of JSON")
