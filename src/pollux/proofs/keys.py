"""Ed25519 keys: made, kept and found.

A key is two files in one folder: `NAME.pem` with the private half (PKCS #8, under a passphrase or not) for its owner
alone, and `NAME.pub` with the public half (SubjectPublicKeyInfo), to be handed to everybody. A `.pub` without a `.pem`
is somebody else's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pollux.disk.private_files import make_private_folder
from pollux.proofs.passphrase import locked
from pollux.proofs.public import KeyFileError, PublicKey, key_bytes, private_from, public_key, public_of
from pollux.text.shell import quoted

DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Key:
    """A key in the folder."""

    name: str
    public: PublicKey | None
    is_own: bool
    """Whether the private half is there too."""
    has_passphrase: bool = False
    fault: str | None = None
    """Why it cannot be used."""


def create(folder: Path, name: str, passphrase: bytes | None = None) -> PublicKey:
    """Make a key. Raises `KeyFileError` if there is one of that name: a key is never overwritten."""
    if not _NAME.fullmatch(name):
        raise KeyFileError(f"'{name}' cannot be the name of a key: take letters, digits, dots and dashes.")
    private = Ed25519PrivateKey.generate()
    public = PublicKey(public_of(private).raw, folder / f"{name}.pub")
    own = folder / f"{name}.pem"
    try:
        make_private_folder(folder)
        _write(own, _pem(private, passphrase), 0o600)
        _write(folder / f"{name}.pub", public.pem, 0o644)
    except FileExistsError as error:
        if Path(error.filename) != own:
            own.unlink()
        raise KeyFileError(
            f"{error.filename} is there already and is not replaced; give the key another name."
        ) from None
    except OSError as error:
        raise KeyFileError(f"{own} cannot be written: {error.strerror}.") from None
    return public


def known(folder: Path) -> list[Key]:
    """List the keys of a folder; one that cannot be used says why."""
    names = {path.stem for path in _files(folder) if path.suffix in (".pem", ".pub")}
    return [_key(folder, name) for name in sorted(names)]


def unlocked(path: Path, passphrase: Callable[[], bytes]) -> Ed25519PrivateKey:
    """Read a private key; the passphrase is asked for only where there is one."""
    _check_mode(path)
    data = key_bytes(path)
    try:
        found = private_from(data, None)
        if found is None:
            found = private_from(data, passphrase())
    except ValueError:
        raise KeyFileError(f"{path} cannot be unlocked: the passphrase is wrong, or the file is damaged.") from None
    if not isinstance(found, Ed25519PrivateKey):
        raise KeyFileError(f"{path} holds no Ed25519 key; `pollux keys create` makes one.")
    beside = path.with_suffix(".pub")
    if beside.exists() and public_key(beside).raw != public_of(found).raw:
        raise KeyFileError(f"{beside} holds another key than {path}: it was replaced or altered.")
    return found


def _key(folder: Path, name: str) -> Key:
    own, public = folder / f"{name}.pem", folder / f"{name}.pub"
    has_passphrase = False
    try:
        if own.exists():
            _check_mode(own)
            has_passphrase = b"ENCRYPTED" in key_bytes(own)
        found = public_key(public if public.exists() or has_passphrase else own)
        if own.exists() and not has_passphrase and public_key(own).raw != found.raw:
            raise KeyFileError(f"{public} holds another key than {own}: it was replaced or altered.")  # noqa: TRY301
    except KeyFileError as error:
        return Key(name, None, own.exists(), has_passphrase, str(error))
    return Key(name, found, own.exists(), has_passphrase)


def _pem(private: Ed25519PrivateKey, passphrase: bytes | None) -> bytes:
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    if passphrase:
        return locked(private.private_bytes(serialization.Encoding.DER, form, plain), passphrase)
    return private.private_bytes(serialization.Encoding.PEM, form, plain)


def _write(path: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _files(folder: Path) -> list[Path]:
    try:
        return [*folder.iterdir()]
    except OSError:
        return []


def _check_mode(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}.") from None
    if os.name == "posix" and mode & 0o077:
        raise KeyFileError(
            f"{path} can be read by others, so it may not be yours alone; `chmod 600 {quoted(str(path))}` first."
        )
