"""Redacted copies that still prove where they come from.

A *field* is a leaf of a JSON value: a text, a number, true, false, null, or an empty array or object. Each is written
as the canonical JSON of `[salt, path, value]`, where the path is the array of names and places that lead to it. The
Merkle root over all of them, in the order of the document's canonical form, is the *commitment*, which is sealed with
the session.

A copy has the same fields, or fewer; where a whole value is cut away, one placeholder stands for all its fields. For a
field that it shows a copy brings the salt, so that anybody can make the leaf again; for one that it hides or omits it
brings the leaf's hash alone, from which nothing can be guessed, since the salt is secret. A salt is made from a secret
of the archive, the session, the path and the value: to know one tells nothing about any other.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import merkle
from pollux.proofs.canonical import NotCanonicalError, json_bytes
from pollux.proofs.fields import Field, Path, fields

REDACTED = "[redacted]"
"""What stands where a field is not shown."""
MEMBER = "pollux-proof"
"""Of a redacted record: what proves it."""
OUTSIDE = ("created", "recording-agent", "redacted", "vcs", MEMBER)
"""Members of a record that say how it was written down; they are no part of the session, nor of the commitment."""
_SALT = 16
_CHECK = 3

Proof: TypeAlias = dict[str, str | bool]


class Leaf(NamedTuple):
    """A leaf that a copy leads to, and the field that stands for it there."""

    hash: bytes
    field: Field | None
    is_shown: bool


class Commitment(NamedTuple):
    """What a seal says of a session's content."""

    root: bytes
    n_fields: int


def committed(record: Mapping[str, Json]) -> dict[str, Json]:
    """Return what of a record is a function of the session, and so can be committed to."""
    return {name: value for name, value in record.items() if name not in OUTSIDE}


def commitment(record: Mapping[str, Json], secret: bytes, session: str) -> Commitment:
    """Commit to all fields of a record."""
    n_fields = 0

    def hashes() -> Iterator[bytes]:
        nonlocal n_fields
        for one in fields(committed(record)):
            n_fields += 1
            yield _salted(secret, session, one)[1]

    return Commitment(merkle.root(hashes()), n_fields)


def redacted(record: Mapping[str, Json], is_hidden: Callable[[Field], bool]) -> dict[str, Json]:
    """Copy a record and hide some of its values, each with all that is in it; it is asked about from the top down."""
    try:
        shown = _copied(committed(record), (), is_hidden)
    except RecursionError:
        raise NotCanonicalError("its values are nested too deeply") from None
    assert isinstance(shown, dict)
    return {**{name: record[name] for name in OUTSIDE if name in record and name != MEMBER}, **shown}


def disclosed(original: Mapping[str, Json], shown: Mapping[str, Json], secret: bytes, session: str) -> list[Proof]:
    """Say of each field how it is proven: by its salt where the copy shows it, else by its hash."""
    copy = {one.path: one for one in fields(committed(shown))}
    cuts = {path for path, one in copy.items() if one.value == REDACTED}
    found: list[Proof] = []
    for one in fields(committed(original)):
        (salt, digest), other = _salted(secret, session, one), copy.pop(one.path, None)
        if other and json_bytes(other.value) == json_bytes(one.value):
            found.append({"salt": salt})
            continue
        cut = next((one.path[:end] for end in range(len(one.path)) if one.path[:end] in cuts), None)
        if cut in copy:
            del copy[cut]
            found.append({"cut": True})
        found.append({"hidden" if other else "omitted": digest.hex()})
    if copy:
        pointer = next(iter(copy.values())).pointer
        raise PolluxError(f"The copy has a field that the original has not, which nothing can prove: {pointer}.")
    return found


def recomputed(record: Mapping[str, Json], proofs: Sequence[Proof]) -> list[Leaf]:
    """Return the leaves that a copy leads to.

    Raises `ValueError`, in words, where the proofs are not made for this copy.
    """
    copy = fields(committed(record))
    found: list[Leaf] = []
    for proof in proofs:
        match proof:
            case {"omitted": str(digest)}:
                found.append(Leaf(_digest(digest), None, is_shown=False))
            case {"cut": True}:
                if (field := _next(copy)).value != REDACTED:
                    raise ValueError(f"{field.pointer} should say {REDACTED}: nothing proves what it says")
            case {"hidden": str(digest)}:
                found.append(Leaf(_digest(digest), _next(copy), is_shown=False))
            case {"salt": str(salt)}:
                field = _next(copy)
                found.append(Leaf(_hash(salt, _told(field)), field, is_shown=True))
            case _:
                raise ValueError("one of its fields has neither salt nor digest")
    if left := next(copy, None):
        raise ValueError(f"nothing proves the field {left.pointer}")
    return found


def checks(leaves: Sequence[Leaf]) -> str:
    """Write down a little of each leaf: no proof, but it tells which one was changed."""
    return b64encode(b"".join(one.hash[:_CHECK] for one in leaves)).decode()


def changed(leaves: Sequence[Leaf], said: str) -> list[Field]:
    """Tell which of the shown fields are not what was written down."""
    try:
        data = b64decode(said, validate=True)
    except ValueError:
        return []
    return [
        one.field
        for number, one in enumerate(leaves)
        if one.is_shown and one.field and one.hash[:_CHECK] != data[number * _CHECK : (number + 1) * _CHECK]
    ]


def _next(copy: Iterator[Field]) -> Field:
    found = next(copy, None)
    if found is None:
        raise ValueError("it has fewer fields than are to be proven")
    return found


def _digest(text: str) -> bytes:
    found = bytes.fromhex(text)
    if len(found) != len(merkle.EMPTY):
        raise ValueError(f"a digest has {len(found)} bytes")
    return found


def _salted(secret: bytes, session: str, field: Field) -> tuple[str, bytes]:
    """Make the salt of a field, and its hash."""
    told = _told(field)
    salt = hmac.digest(secret, b"[" + json_bytes(session) + b"," + told, "sha256")[:_SALT]
    shown = urlsafe_b64encode(salt).decode().rstrip("=")
    return shown, _hash(shown, told)


def _told(field: Field) -> bytes:
    """Write path and value as they stand in the array that is hashed."""
    return json_bytes(field.path) + b"," + json_bytes(field.value) + b"]"


def _hash(salt: str, told: bytes) -> bytes:
    return merkle.leaf_hash(b"[" + json_bytes(salt) + b"," + told)


def _copied(value: Json, path: Path, is_hidden: Callable[[Field], bool]) -> Json:
    if path and is_hidden(Field(path, value)):
        return REDACTED
    if isinstance(value, dict):
        return {name: _copied(one, (*path, name), is_hidden) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(one, (*path, place), is_hidden) for place, one in enumerate(value)]
    return value
