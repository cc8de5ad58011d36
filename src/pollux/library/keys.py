"""The keys in use: the one to sign with, and those whose signatures are believed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pollux.errors import PolluxError
from pollux.library.config import UsageError
from pollux.proofs import keys
from pollux.proofs.keys import Key
from pollux.proofs.public import PublicKey, Trust, public_key, shown

AskPassphrase = Callable[[str], bytes]
"""Asks for the passphrase of the key with this name."""


class SigningKey(NamedTuple):
    """A private key, unlocked, and its name."""

    private: Ed25519PrivateKey
    name: str


class BelievedKeys(NamedTuple):
    """Public keys to check signatures with, and sentences about files in the folder that are no usable keys."""

    keys: list[PublicKey]
    faults: list[str]


def create_key(folder: Path, name: str, passphrase: bytes | None = None) -> PublicKey:
    """Write a new key into a folder and return its public half; no key is ever overwritten."""
    return keys.create(folder, name, passphrase)


def known_keys(folder: Path) -> list[Key]:
    """Return the keys in a folder: the user's own, and public ones of others."""
    return keys.known(folder)


def own_public_keys(folder: Path) -> list[PublicKey]:
    """Return the public halves of the keys that the user can sign with."""
    return [key.public for key in keys.known(folder) if key.is_own and key.public]


def thumbprint(public: PublicKey) -> str:
    """Return the thumbprint of a key (RFC 9679), as it is printed."""
    return shown(public.id)


def signing_key(folder: Path, wanted: str | None, ask: AskPassphrase) -> SigningKey:
    """Return the key to sign with: the one wanted, else the default one, else the only one."""
    path = _private_path(folder, wanted)
    return SigningKey(keys.unlocked(path, lambda: ask(path.stem)), path.stem)


def find_public_key(folder: Path, wanted: str | None) -> PublicKey:
    """Return the public key of this name or file; without a name, the user's default or only one."""
    return public_key(_public_path(folder, wanted or _usual_name(folder)))


def believed_keys(folder: Path, wanted: Sequence[str] = ()) -> BelievedKeys:
    """Return the public keys of these names or files; without any, all usable ones in the folder."""
    if wanted:
        return BelievedKeys([public_key(_public_path(folder, name)) for name in wanted], [])
    known = keys.known(folder)
    trust = {True: Trust.OWN, False: Trust.FOLDER}
    believed = [replace(key.public, trust=trust[key.is_own]) for key in known if key.public]
    return BelievedKeys(believed, [key.fault for key in known if key.fault])


def _own_names(folder: Path) -> list[str]:
    return [key.name for key in keys.known(folder) if key.is_own]


def _usual_name(folder: Path) -> str:
    own = _own_names(folder)
    if keys.DEFAULT in own or not own:
        return keys.DEFAULT
    if len(own) > 1:
        raise UsageError(f"Say which key: {', '.join(own)}.")
    return own[0]


def _private_path(folder: Path, wanted: str | None) -> Path:
    own = _own_names(folder)
    if wanted and wanted not in own and (os.sep in wanted or Path(wanted).is_file()):
        return Path(wanted)
    name = wanted or (keys.DEFAULT if keys.DEFAULT in own or len(own) != 1 else own[0])
    if name in own:
        return folder / f"{name}.pem"
    if not own:
        raise PolluxError("There is no key to sign with yet; `pollux keys create` makes one.")
    if wanted is None:
        raise UsageError(f"Say with --key which key to sign with: {', '.join(own)}.")
    raise UsageError(f"There is no key '{name}' of yours; the keys are {', '.join(own)}.")


def _public_path(folder: Path, wanted: str) -> Path:
    for suffix in (".pub", ".pem") if os.sep not in wanted else ():
        if (folder / f"{wanted}{suffix}").exists():
            return folder / f"{wanted}{suffix}"
    if os.sep in wanted or Path(wanted).is_file():
        return Path(wanted)
    raise UsageError(f"There is no key '{wanted}', neither as a file nor in {folder}; see `pollux keys list`.")
