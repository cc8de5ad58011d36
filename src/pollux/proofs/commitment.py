"""Commit to a JSON value with one hash, so that any part of it can be hidden later and nothing else can change.

The hash follows the structure of the value. A field (a leaf of the value: a text, a number, true, false, null, or an
empty array or object) is hashed with a secret salt, an array with the digests of its items, an object with the names
and digests of its members. A hidden part is replaced by its digest. So a part can be hidden but not removed, moved,
renamed or repeated: the names, order and number of everything around it are hashed too. Salted digests cannot be
guessed, and a hidden array or object reveals neither its names nor its size.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pollux.model import Json
from pollux.proofs.canonical import NotCanonicalError, json_bytes, sort_key

MEMBER = "pollux-proof"
"""The member of a redacted record that holds its proof."""
OUTSIDE = ("created", "recording-agent", "redacted", "vcs", MEMBER)
"""Members of a record that describe how it was written, not the session. The commitment does not cover them."""
_SALT_BYTES = 16
_SCALARS = (str, int, float)
_PLAIN = (*_SCALARS, dict, list)

Path: TypeAlias = tuple[str | int, ...]


class Field(NamedTuple):
    """A part of a JSON value, usually a leaf, and the path to it."""

    path: Path
    value: Json

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer (RFC 6901)."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self.path)


@runtime_checkable
class LazyArray(Protocol):
    """An array whose items are made one by one while it is read."""

    count: int
    each: Callable[[], Iterator[Any]]


class Commitment(NamedTuple):
    """The digest of a session's record, and the number of fields that it covers."""

    root: bytes
    n_fields: int


class Salts(NamedTuple):
    """Derives the salts of one session from the secret of its archive.

    A salt depends on the path and the value too, so a published salt reveals nothing about any other.
    """

    secret: bytes
    session: str

    def salt(self, field: Field) -> str:
        """Return the salt of a field, as base64url without padding."""
        return self._salt(field.path, json_bytes(field.value))

    def digest(self, field: Field) -> bytes:
        """Return the digest of a field."""
        value = json_bytes(field.value)
        return _leaf_digest(self._salt(field.path, value), value)

    def _salt(self, path: Path, value: bytes) -> str:
        key = b"[%b,%b,%b]" % (json_bytes(self.session), json_bytes(path), value)
        return urlsafe_b64encode(hmac.digest(self.secret, key, "sha256")[:_SALT_BYTES]).decode().rstrip("=")


def committed(record: Mapping[str, Json]) -> dict[str, Json]:
    """Return the members of a record that the commitment covers."""
    return {name: value for name, value in record.items() if name not in OUTSIDE}


def commitment(record: Mapping[str, Json], salts: Salts) -> Commitment:
    """Commit to all fields of a record."""
    n_fields = 0

    def digest(field: Field) -> bytes:
        nonlocal n_fields
        n_fields += 1
        return salts.digest(field)

    return Commitment(root(Field((), committed(record)), digest), n_fields)


def root(part: Field, digest_of: Callable[[Field], bytes]) -> bytes:
    """Return the digest of a part of a record; `digest_of` is called for each of its fields, in canonical order."""
    try:
        return _digest(part, digest_of)
    except RecursionError:
        raise NotCanonicalError from None


def leaf_digest(salt: str, value: Json) -> bytes:
    """Return the digest of a field."""
    return _leaf_digest(salt, json_bytes(value))


def leaf(part: Field) -> Field:
    """Return a part without children as a field: an empty lazy array becomes an ordinary empty array."""
    is_lazy = not (part.value is None or isinstance(part.value, _PLAIN))
    return Field(part.path, []) if is_lazy or part.value == () else part


def children_of(part: Field) -> Iterator[Field] | None:
    """Return the members of an object, sorted by name, or the items of an array; None for a leaf."""
    path, value = part
    if value is None or isinstance(value, _SCALARS):
        return None
    if isinstance(value, dict):
        return (Field((*path, name), value[name]) for name in sorted(value, key=sort_key)) if value else None
    array: Any = value
    if isinstance(array, list | tuple):
        return (Field((*path, place), item) for place, item in enumerate(array)) if array else None
    assert isinstance(array, LazyArray)
    return (Field((*path, place), item) for place, item in enumerate(array.each())) if array.count else None


def _leaf_digest(salt: str, value: bytes) -> bytes:
    return hashlib.sha256(b'["value",%b,%b]' % (json_bytes(salt), value)).digest()


def _digest(part: Field, digest_of: Callable[[Field], bytes]) -> bytes:
    children = children_of(part)
    if children is None:
        return digest_of(leaf(part))
    # Canonical JSON, hashed piece by piece: an array can have millions of items.
    is_object = isinstance(part.value, dict)
    hashed = hashlib.sha256(b'["object"' if is_object else b'["array"')
    for child in children:
        if is_object:
            hashed.update(b"," + json_bytes(child.path[-1]))
        hashed.update(b',"' + _digest(child, digest_of).hex().encode() + b'"')
    hashed.update(b"]")
    return hashed.digest()
