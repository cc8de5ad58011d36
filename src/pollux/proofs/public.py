"""Public keys: their names, the forms they are handed over in, and the files they are read from.

A key is named by its COSE Key Thumbprint (RFC 9679, SHA-256), so that the name proves the key.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pollux.disk.regular_files import read_named
from pollux.errors import PolluxError
from pollux.proofs.canonical import cbor_bytes, sha256
from pollux.proofs.reader import read

_KTY, _CRV, _X, _OKP, _ED25519 = 1, -1, -2, 1, 6
"""Labels and values of a COSE_Key (RFC 9053)."""
_URN = "urn:ietf:params:oauth:ckt:sha-256:"
_BIGGEST = 1 << 16
"""Bytes of a key file, at most."""


class KeyFileError(PolluxError):
    """A key file cannot be used; the message names it."""


class Trust(StrEnum):
    """Why a public key is believed."""

    OWN = "own"
    """Its private half is in the user's folder of keys."""
    FOLDER = "folder"
    """The user put somebody else's `.pub` into the folder of keys."""
    GIVEN = "given"
    """The user named it with `--key`."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The public half of a key, the file that it was read from, and why it is believed."""

    raw: bytes
    path: Path | None = None
    trust: Trust = Trust.GIVEN

    @property
    def id(self) -> bytes:
        """Its COSE Key Thumbprint."""
        return sha256(self.cose)

    @property
    def uri(self) -> str:
        """Its thumbprint as a name that can stand anywhere."""
        return uri(self.id)

    @property
    def cose(self) -> bytes:
        """The key as a COSE_Key, with the members that its thumbprint is made of."""
        return cbor_bytes({_KTY: _OKP, _CRV: _ED25519, _X: self.raw})

    @property
    def pem(self) -> bytes:
        """The key as PEM."""
        encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        return Ed25519PublicKey.from_public_bytes(self.raw).public_bytes(encoding, form)


def shown(key_id: bytes) -> str:
    """Write a thumbprint as text."""
    return urlsafe_b64encode(key_id).decode().rstrip("=")


def uri(key_id: bytes) -> str:
    """Write a thumbprint as a COSE Key Thumbprint URI."""
    return _URN + shown(key_id)


def public_key(path: Path) -> PublicKey:
    """Read a public key from a file, PEM or COSE_Key; of a private key that is not locked, take its public half."""
    data = key_bytes(path)
    raw = _raw_from_pem(data) if data.lstrip().startswith(b"-----BEGIN ") else _raw_from_cose(data)
    if raw is None:
        raise KeyFileError(f"{path} holds no Ed25519 public key, neither as PEM nor as a COSE_Key.")
    return PublicKey(raw, path)


def public_of(private: Ed25519PrivateKey) -> PublicKey:
    """Return the public half of a private key."""
    return PublicKey(_raw(private.public_key()))


def key_bytes(path: Path) -> bytes:
    """Read a file that should hold a key."""
    try:
        return read_named(path, limit=_BIGGEST)
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}.") from None


def private_from(data: bytes, passphrase: bytes | None) -> object | None:
    """Load a private key; nothing if it needs a passphrase and has none. Raises `ValueError` if it does not open."""
    try:
        return serialization.load_pem_private_key(data, passphrase)
    except TypeError:
        return None
    except UnsupportedAlgorithm as error:
        raise ValueError(error) from None


def _raw(public: Ed25519PublicKey) -> bytes:
    return public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def _raw_from_pem(data: bytes) -> bytes | None:
    try:
        if b"PRIVATE KEY-----" in data:
            private = private_from(data, None)
            return _raw(private.public_key()) if isinstance(private, Ed25519PrivateKey) else None
        public = serialization.load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return _raw(public) if isinstance(public, Ed25519PublicKey) else None


def _raw_from_cose(data: bytes) -> bytes | None:
    try:
        key = read(data)
    except ValueError:
        return None
    match key:
        case {1: 1, -1: 6, -2: bytes(raw)} if len(raw) == 32:  # noqa: PLR2004
            return raw
    return None
