"""Commit to a JSON value with one hash, so that any part of it can be hidden later and nothing else can change.

The hash follows the structure of the value. A field (a leaf of the value) is hashed with a secret salt, an array with
the digests of its values, an object with the names and digests of its members. Whoever hides a part publishes its
digest instead, at the place where the part stood. So a part can be hidden but not removed, moved, renamed or repeated:
the names, the order and the number of everything around it are hashed too. Salted digests cannot be guessed, and a
hidden array or object reveals neither its names nor its size.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pollux.model import Json
from pollux.proofs.canonical import NotCanonicalError, json_bytes
from pollux.proofs.fields import Field, Path, children_of, leaf

MEMBER = "pollux-proof"
"""The member of a redacted record that holds its proof."""
OUTSIDE = ("created", "recording-agent", "redacted", "vcs", MEMBER)
"""Members of a record that describe how it was written, not the session. The commitment does not cover them."""
_SALT = 16


class Commitment(NamedTuple):
    """What a seal says about the content of a session."""

    root: bytes
    n_fields: int


class Salts(NamedTuple):
    """Makes the salts of one session from the secret of its archive.

    A salt depends on the path and the value too, so a published salt says nothing about any other.
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
        return urlsafe_b64encode(hmac.digest(self.secret, key, "sha256")[:_SALT]).decode().rstrip("=")


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
        raise NotCanonicalError("its values are nested too deeply") from None


def leaf_digest(salt: str, value: Json) -> bytes:
    """Return the digest of a field."""
    return _leaf_digest(salt, json_bytes(value))


def _leaf_digest(salt: str, value: bytes) -> bytes:
    return hashlib.sha256(b'["value",%b,%b]' % (json_bytes(salt), value)).digest()


def _digest(part: Field, digest_of: Callable[[Field], bytes]) -> bytes:
    children = children_of(part)
    if children is None:
        return digest_of(leaf(part))
    # Canonical JSON, hashed piece by piece: an array can have millions of values.
    is_object = isinstance(part.value, dict)
    hashed = hashlib.sha256(b'["object"' if is_object else b'["array"')
    for child in children:
        if is_object:
            hashed.update(b"," + json_bytes(child.path[-1]))
        hashed.update(b',"' + _digest(child, digest_of).hex().encode() + b'"')
    hashed.update(b"]")
    return hashed.digest()
