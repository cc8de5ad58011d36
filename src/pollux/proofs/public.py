"""Read and write public keys.

A key is identified by its COSE Key Thumbprint (RFC 9679, SHA-256), so that the identifier proves the key.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pollux.disk.read import read_named
from pollux.errors import PolluxError
from pollux.proofs.canonical import cbor_bytes, sha256
from pollux.proofs.cbor import read_cbor

_KTY, _CRV, _X, _OKP, _ED25519 = 1, -1, -2, 1, 6
"""Labels and values of a COSE_Key (RFC 9053)."""
_URN = "urn:ietf:params:oauth:ckt:sha-256:"
_MAX_BYTES = 1 << 16
"""Size limit of a key file."""


class KeyFileError(PolluxError):
    """A key file cannot be used; the message names it."""


class Trust(StrEnum):
    """Why a public key is trusted."""

    OWN = "own"
    """Its private key is in the user's folder of keys."""
    FOLDER = "folder"
    """The user put another person's `.pub` into the folder of keys."""
    GIVEN = "given"
    """The user named it with `--key`."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key, the file that it was read from, and why it is trusted."""

    raw: bytes
    path: Path | None = None
    trust: Trust = Trust.GIVEN

    @property
    def id(self) -> bytes:
        """The COSE Key Thumbprint."""
        return sha256(self.cose)

    @property
    def uri(self) -> str:
        """The thumbprint as a URI."""
        return thumbprint_uri(self.id)

    @property
    def cose(self) -> bytes:
        """The key as a COSE_Key, with the members that the thumbprint is computed from."""
        return cbor_bytes({_KTY: _OKP, _CRV: _ED25519, _X: self.raw})

    @property
    def pem(self) -> bytes:
        """The key as PEM."""
        encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        return Ed25519PublicKey.from_public_bytes(self.raw).public_bytes(encoding, form)


def thumbprint_text(key_id: bytes) -> str:
    """Return a thumbprint as base64url without padding."""
    return urlsafe_b64encode(key_id).decode().rstrip("=")


def thumbprint_uri(key_id: bytes) -> str:
    """Return a thumbprint as a COSE Key Thumbprint URI."""
    return _URN + thumbprint_text(key_id)


def read_public_key(path: Path) -> PublicKey:
    """Read a public key from a PEM or COSE_Key file, or derive it from an unencrypted private key."""
    data = read_key_file(path)
    raw = _raw_from_pem(data) if data.lstrip().startswith(b"-----BEGIN ") else _raw_from_cose(data)
    if raw is None:
        raise KeyFileError(f"{path} holds no Ed25519 public key, neither as PEM nor as a COSE_Key.")
    return PublicKey(raw, path)


def public_from_private(private: Ed25519PrivateKey) -> PublicKey:
    """Return the public key of a private key."""
    return PublicKey(_raw(private.public_key()))


def read_key_file(path: Path) -> bytes:
    """Return the bytes of a key file. Raises `KeyFileError`."""
    try:
        return read_named(path, limit=_MAX_BYTES)
    except OSError as error:
        raise KeyFileError(f"Cannot read {path}: {error.strerror}.") from None


def private_from(data: bytes, passphrase: bytes | None) -> object | None:
    """Load a PEM private key; return None if it needs a passphrase. Raises `ValueError` if it cannot be loaded."""
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
        key = read_cbor(data)
    except ValueError:
        return None
    match key:
        case {1: 1, -1: 6, -2: bytes(raw)} if len(raw) == 32:  # noqa: PLR2004
            return raw
    return None
