"""Find the key to sign with, and the keys whose signatures are trusted."""

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
from pollux.proofs.keys import KeyInfo
from pollux.proofs.public import PublicKey, Trust, read_public_key, thumbprint_text

AskPassphrase = Callable[[str], bytes]
"""Asks the user for the passphrase of the named key."""


class SigningKey(NamedTuple):
    """An unlocked private key and its name."""

    private: Ed25519PrivateKey
    name: str


class BelievedKeys(NamedTuple):
    """Trusted public keys, and messages about unusable key files in the folder."""

    keys: list[PublicKey]
    faults: list[str]


def create_key(folder: Path, name: str, passphrase: bytes | None = None) -> PublicKey:
    """Create a key in a folder and return its public half; never overwrite one."""
    return keys.create_key(folder, name, passphrase)


def known_keys(folder: Path) -> list[KeyInfo]:
    """Return the keys in a folder: the user's own and public keys of others."""
    return keys.list_keys(folder)


def own_public_keys(folder: Path) -> list[PublicKey]:
    """Return the public halves of the user's own keys."""
    return [key.public for key in keys.list_keys(folder) if key.is_own and key.public]


def thumbprint(public: PublicKey) -> str:
    """Return the thumbprint of a key (RFC 9679) for display."""
    return thumbprint_text(public.id)


def signing_key(folder: Path, wanted: str | None, ask: AskPassphrase) -> SigningKey:
    """Return the named key, else the default one, else the only one."""
    path = _private_path(folder, wanted)
    return SigningKey(keys.load_private_key(path, lambda: ask(path.stem)), path.stem)


def find_public_key(folder: Path, wanted: str | None) -> PublicKey:
    """Return the public key with this name or path; without a name, the user's default or only one."""
    return read_public_key(_public_path(folder, wanted or _usual_name(folder)))


def believed_keys(folder: Path, wanted: Sequence[str] = ()) -> BelievedKeys:
    """Return the public keys with these names or paths; without any, all usable ones in the folder."""
    if wanted:
        return BelievedKeys([read_public_key(_public_path(folder, name)) for name in wanted], [])
    stored = keys.list_keys(folder)
    trust = {True: Trust.OWN, False: Trust.FOLDER}
    believed = [replace(key.public, trust=trust[key.is_own]) for key in stored if key.public]
    return BelievedKeys(believed, [key.error for key in stored if key.error])


def _own_names(folder: Path) -> list[str]:
    return [key.name for key in keys.list_keys(folder) if key.is_own]


def _usual_name(folder: Path) -> str:
    own = _own_names(folder)
    if keys.DEFAULT in own or not own:
        return keys.DEFAULT
    if len(own) > 1:
        raise UsageError(f"You have several keys: name one of {', '.join(own)}.")
    return own[0]


def _private_path(folder: Path, wanted: str | None) -> Path:
    own = _own_names(folder)
    if wanted and wanted not in own and (os.sep in wanted or Path(wanted).is_file()):
        return Path(wanted)
    name = wanted or (keys.DEFAULT if keys.DEFAULT in own or len(own) != 1 else own[0])
    if name in own:
        return folder / f"{name}.pem"
    if not own:
        raise PolluxError("You have no key to sign with; `pollux keys create` makes one.")
    if wanted is None:
        raise UsageError(f"You have several keys: pass --key with one of {', '.join(own)}.")
    raise UsageError(f"You have no private key '{name}'; your keys are {', '.join(own)}.")


def _public_path(folder: Path, wanted: str) -> Path:
    for suffix in (".pub", ".pem") if os.sep not in wanted else ():
        if (folder / f"{wanted}{suffix}").exists():
            return folder / f"{wanted}{suffix}"
    if os.sep in wanted or Path(wanted).is_file():
        return Path(wanted)
    raise UsageError(f"No key '{wanted}': no such file, and none in {folder}. Run `pollux keys list` to list keys.")
