"""A private key under a passphrase, as every tool reads it: PKCS #8 with PBES2 (RFC 8018).

The library would write that itself, but with two thousand rounds, which is a matter of minutes for who guesses. So the
few fields are written here, with as many rounds as are advised today: PBKDF2 with HMAC-SHA-256, then AES-256-CBC.
"""

from __future__ import annotations

import os
from base64 import encodebytes

from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

ROUNDS = 600_000
_SALT = _BLOCK = 16
_KEY = 32

_INTEGER, _OCTETS, _NULL, _OBJECT, _SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
_PBES2 = bytes.fromhex("2a864886f70d01050d")
_PBKDF2 = bytes.fromhex("2a864886f70d01050c")
_HMAC_SHA256 = bytes.fromhex("2a864886f70d0209")
_AES_256_CBC = bytes.fromhex("60864801650304012a")


def locked(private: bytes, passphrase: bytes) -> bytes:
    """Return a private key (PKCS #8, DER) as PEM that only the passphrase opens."""
    salt, start = os.urandom(_SALT), os.urandom(_BLOCK)
    key = PBKDF2HMAC(hashes.SHA256(), _KEY, salt, ROUNDS).derive(passphrase)
    padder = padding.PKCS7(_BLOCK * 8).padder()
    cipher = Cipher(algorithms.AES(key), modes.CBC(start)).encryptor()
    hidden = cipher.update(padder.update(private) + padder.finalize()) + cipher.finalize()
    body = encodebytes(_fields(salt, start, hidden)).replace(b"\n", b"")
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return b"\n".join([b"-----BEGIN ENCRYPTED PRIVATE KEY-----", *lines, b"-----END ENCRYPTED PRIVATE KEY-----", b""])


def _fields(salt: bytes, start: bytes, hidden: bytes) -> bytes:
    rounds = ROUNDS.to_bytes(3, "big")
    hashed = _der(_SEQUENCE, _der(_OBJECT, _HMAC_SHA256), _der(_NULL))
    stretched = _der(_SEQUENCE, _der(_OCTETS, salt), _der(_INTEGER, rounds), hashed)
    derived = _der(_SEQUENCE, _der(_OBJECT, _PBKDF2), stretched)
    ciphered = _der(_SEQUENCE, _der(_OBJECT, _AES_256_CBC), _der(_OCTETS, start))
    scheme = _der(_SEQUENCE, _der(_OBJECT, _PBES2), _der(_SEQUENCE, derived, ciphered))
    return _der(_SEQUENCE, scheme, _der(_OCTETS, hidden))


def _der(tag: int, *parts: bytes) -> bytes:
    """Write one field; all of ours are shorter than 256 bytes."""
    body = b"".join(parts)
    length = bytes([len(body)]) if len(body) < 0x80 else bytes([0x81, len(body)])  # noqa: PLR2004
    return bytes([tag]) + length + body
