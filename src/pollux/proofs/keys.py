"""Create, list and load Ed25519 keys.

A key is two files in one folder: `NAME.pem` with the private key (PKCS #8, optionally under a passphrase), readable by
its owner only, and `NAME.pub` with the public key (SubjectPublicKeyInfo), to be shared. A `.pub` without a `.pem` is
another person's key.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import hashes, padding, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

from pollux.disk.write import make_private_folder
from pollux.proofs.public import (
    KeyFileError,
    PublicKey,
    private_from,
    public_from_private,
    read_key_file,
    read_public_key,
)
from pollux.text.shell import quoted

DEFAULT = "default"
ROUNDS = 600_000
"""Rounds of PBKDF2."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_SALT_BYTES = _BLOCK_BYTES = 16
_KEY_BYTES = 32
_PEM_LINE = 64
_INTEGER, _OCTETS, _NULL, _OBJECT, _SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
"""DER tags."""
_PBES2 = bytes.fromhex("2a864886f70d01050d")
_PBKDF2 = bytes.fromhex("2a864886f70d01050c")
_HMAC_SHA256 = bytes.fromhex("2a864886f70d0209")
_AES_256_CBC = bytes.fromhex("60864801650304012a")


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key in the folder of keys."""

    name: str
    public: PublicKey | None
    is_own: bool
    """Whether the folder has the private key too."""
    has_passphrase: bool = False
    error: str | None = None
    """Why the key cannot be used."""


def create_key(folder: Path, name: str, passphrase: bytes | None = None) -> PublicKey:
    """Create a key. Raises `KeyFileError` if the name is taken: a key is never overwritten."""
    if not _NAME.fullmatch(name):
        raise KeyFileError(f"'{name}' cannot be the name of a key: use letters, digits, dots, dashes and underscores.")
    private = Ed25519PrivateKey.generate()
    public = PublicKey(public_from_private(private).raw, folder / f"{name}.pub")
    private_path = folder / f"{name}.pem"
    try:
        make_private_folder(folder)
        _write_new(private_path, _pem(private, passphrase), 0o600)
        _write_new(folder / f"{name}.pub", public.pem, 0o644)
    except FileExistsError as error:
        if Path(error.filename) != private_path:
            private_path.unlink()
        raise KeyFileError(f"{error.filename} already exists and is not overwritten; use another name.") from None
    except OSError as error:
        raise KeyFileError(f"{private_path} cannot be written: {error.strerror}.") from None
    return public


def list_keys(folder: Path) -> list[KeyInfo]:
    """Return the keys of a folder, sorted by name, including those that cannot be used."""
    try:
        names = {path.stem for path in folder.iterdir() if path.suffix in (".pem", ".pub")}
    except OSError:
        return []
    return [_key_info(folder, name) for name in sorted(names)]


def load_private_key(path: Path, passphrase: Callable[[], bytes]) -> Ed25519PrivateKey:
    """Load a private key; `passphrase` is called only if the key has one."""
    _check_mode(path)
    data = read_key_file(path)
    try:
        private = private_from(data, None)
        if private is None:
            private = private_from(data, passphrase())
    except ValueError:
        raise KeyFileError(f"{path} cannot be unlocked: the passphrase is wrong, or the file is damaged.") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise KeyFileError(f"{path} holds no Ed25519 key; `pollux keys create` makes one.")
    public_path = path.with_suffix(".pub")
    if public_path.exists() and read_public_key(public_path).raw != public_from_private(private).raw:
        raise KeyFileError(f"{public_path} does not belong to {path}: one of them was replaced.")
    return private


def encrypt_private_key(private: bytes, passphrase: bytes) -> bytes:
    """Return a private key (PKCS #8, DER) as PEM, encrypted with PBES2 (RFC 8018): PBKDF2-HMAC-SHA-256, AES-256-CBC.

    `cryptography` can write the same structure, but with 2,048 rounds, which a passphrase guesser gets through quickly.
    """
    salt, vector = os.urandom(_SALT_BYTES), os.urandom(_BLOCK_BYTES)
    key = PBKDF2HMAC(hashes.SHA256(), _KEY_BYTES, salt, ROUNDS).derive(passphrase)
    padder = padding.PKCS7(_BLOCK_BYTES * 8).padder()
    cipher = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    encrypted = cipher.update(padder.update(private) + padder.finalize()) + cipher.finalize()
    body = b64encode(_encrypted_key_info(salt, vector, encrypted))
    lines = [body[start : start + _PEM_LINE] for start in range(0, len(body), _PEM_LINE)]
    return b"\n".join([b"-----BEGIN ENCRYPTED PRIVATE KEY-----", *lines, b"-----END ENCRYPTED PRIVATE KEY-----", b""])


def _key_info(folder: Path, name: str) -> KeyInfo:
    private_path, public_path = folder / f"{name}.pem", folder / f"{name}.pub"
    is_own, has_passphrase = private_path.exists(), False
    try:
        if is_own:
            _check_mode(private_path)
            has_passphrase = b"ENCRYPTED" in read_key_file(private_path)
        public = read_public_key(public_path if public_path.exists() or has_passphrase else private_path)
        if is_own and not has_passphrase and read_public_key(private_path).raw != public.raw:
            raise KeyFileError(f"{public_path} does not belong to {private_path}: one was replaced.")  # noqa: TRY301
    except KeyFileError as error:
        return KeyInfo(name, None, is_own, has_passphrase, str(error))
    return KeyInfo(name, public, is_own, has_passphrase)


def _pem(private: Ed25519PrivateKey, passphrase: bytes | None) -> bytes:
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    if passphrase:
        return encrypt_private_key(private.private_bytes(serialization.Encoding.DER, form, plain), passphrase)
    return private.private_bytes(serialization.Encoding.PEM, form, plain)


def _encrypted_key_info(salt: bytes, vector: bytes, encrypted: bytes) -> bytes:
    rounds = ROUNDS.to_bytes(3, "big")
    prf = _der(_SEQUENCE, _der(_OBJECT, _HMAC_SHA256), _der(_NULL))
    parameters = _der(_SEQUENCE, _der(_OCTETS, salt), _der(_INTEGER, rounds), prf)
    derivation = _der(_SEQUENCE, _der(_OBJECT, _PBKDF2), parameters)
    encryption = _der(_SEQUENCE, _der(_OBJECT, _AES_256_CBC), _der(_OCTETS, vector))
    scheme = _der(_SEQUENCE, _der(_OBJECT, _PBES2), _der(_SEQUENCE, derivation, encryption))
    return _der(_SEQUENCE, scheme, _der(_OCTETS, encrypted))


def _der(tag: int, *parts: bytes) -> bytes:
    """Return one DER element; those written here are shorter than 256 bytes."""
    body = b"".join(parts)
    length = bytes([len(body)]) if len(body) < 0x80 else bytes([0x81, len(body)])  # noqa: PLR2004
    return bytes([tag]) + length + body


def _write_new(path: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _check_mode(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise KeyFileError(f"Cannot read {path}: {error.strerror}.") from None
    if os.name == "posix" and mode & 0o077:
        raise KeyFileError(
            f"{path} can be read by other users; run `chmod 600 {quoted(str(path))}` if the key is still yours alone."
        )
