"""Key files are readable only by their owner, never overwritten, and rejected with a message if invalid."""

from __future__ import annotations

import os
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path

import cbor2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from pollux.proofs import keys, public
from pollux.proofs.canonical import sha256
from pollux.proofs.public import KeyFileError

POSIX = pytest.mark.skipif(os.name != "posix", reason="modes of files are not the same here")
RAW = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")


def no_passphrase() -> bytes:
    raise AssertionError("nobody should be asked")


def test_key_consists_of_two_files(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "keys"
    made = keys.create_key(folder, "mara")
    private = keys.load_private_key(folder / "mara.pem", no_passphrase)
    assert public.public_from_private(private).raw == made.raw == public.read_public_key(folder / "mara.pub").raw
    assert [(key.name, key.is_own, key.has_passphrase, key.error) for key in keys.list_keys(folder)] == [
        ("mara", True, False, None)
    ]


@POSIX
def test_key_files_are_readable_only_by_their_owner(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    keys.create_key(folder, "mara")
    keys.create_key(folder, "locked", b"open sesame")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {(folder / f"{name}.pem").stat().st_mode & 0o777 for name in ("mara", "locked")} == {0o600}


@POSIX
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_key_file_readable_by_others_is_rejected(tmp_path: Path, mode: int) -> None:
    keys.create_key(tmp_path, "mara")
    (tmp_path / "mara.pem").chmod(mode)
    with pytest.raises(KeyFileError, match=r"can be read by other users.*chmod 600"):
        keys.load_private_key(tmp_path / "mara.pem", no_passphrase)
    assert "chmod 600" in (keys.list_keys(tmp_path)[0].error or "")


@pytest.mark.parametrize("suffix", [".pem", ".pub"])
def test_existing_files_are_not_overwritten(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"mara{suffix}").write_bytes(b"precious")
    with pytest.raises(KeyFileError, match="already exists and is not overwritten"):
        keys.create_key(tmp_path, "mara")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(f"mara{suffix}", b"precious")]


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "x" * 65, "ä"])
def test_invalid_names_are_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyFileError, match="cannot be the name"):
        keys.create_key(tmp_path, name)
    assert not [*tmp_path.iterdir()]


def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyFileError, match="cannot be written"):
        keys.create_key(tmp_path / "file" / "keys", "mara")


def test_thumbprint_follows_rfc_9679() -> None:
    """The key of RFC 8032's first test, with the hashed bytes written by hand."""
    by_hand = bytes.fromhex("a3" + "0101" + "2006" + "215820") + RAW
    key = public.PublicKey(RAW)
    assert key.cose == by_hand
    assert key.id == sha256(by_hand)
    assert key.uri == f"urn:ietf:params:oauth:ckt:sha-256:{public.thumbprint_text(key.id)}"
    assert b64decode(public.thumbprint_text(key.id) + "=", altchars="-_") == key.id


@pytest.mark.parametrize("form", ["pem", "cose"])
def test_public_key_is_read_from_pem_and_cose(tmp_path: Path, form: str) -> None:
    key = public.PublicKey(RAW)
    path = tmp_path / "key"
    path.write_bytes(key.pem if form == "pem" else key.cose)
    assert public.read_public_key(path).raw == RAW


def test_pem_is_read_by_an_independent_library() -> None:
    key = serialization.load_pem_public_key(public.PublicKey(RAW).pem)
    assert isinstance(key, ed25519.Ed25519PublicKey)
    assert key.public_bytes_raw() == RAW


def other_pem() -> bytes:
    made = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.PKCS8
    return made.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def other_public_pem() -> bytes:
    made = ec.generate_private_key(ec.SECP256R1()).public_key()
    return made.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def pem(kind: bytes, data: str) -> bytes:
    return b"\n".join([b"-----BEGIN %s-----" % kind, b64encode(bytes.fromhex(data)), b"-----END %s-----" % kind, b""])


UNKNOWN = pem(b"PRIVATE KEY", "300f020100300506032a03040403040100")
NO_KEYS = [
    UNKNOWN,
    pem(b"PUBLIC KEY", "300c300506032a03040303000101"),
    b"",
    b"hello",
    b"\xff\xff",
    b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    other_pem(),
    other_public_pem(),
    cbor2.dumps({1: 2, -1: 1, -2: b"x" * 32}),
    cbor2.dumps({1: 1, -1: 6, -2: b"short"}),
    cbor2.dumps([1, 2]),
]


@pytest.mark.parametrize("data", NO_KEYS)
def test_files_without_a_public_key_are_rejected(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "some.pub"
    path.write_bytes(data)
    with pytest.raises(KeyFileError, match="holds no Ed25519 public key"):
        public.read_public_key(path)
    assert keys.list_keys(tmp_path)[0].error


@pytest.mark.parametrize("data", [b"", b"hello", NO_KEYS[6], UNKNOWN, other_pem()])
def test_files_without_a_private_key_are_rejected(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "some.pem"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match=r"some\.pem"):
        keys.load_private_key(path, no_passphrase)


def test_missing_key_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="Cannot read"):
        public.read_public_key(tmp_path / "no.pub")
    with pytest.raises(KeyFileError, match="Cannot read"):
        keys.load_private_key(tmp_path / "no.pem", no_passphrase)
    assert keys.list_keys(tmp_path / "nowhere") == []


def test_replaced_public_key_is_reported(tmp_path: Path) -> None:
    keys.create_key(tmp_path, "mara")
    other = keys.create_key(tmp_path / "others", "bob")
    (tmp_path / "mara.pub").write_bytes(other.pem)
    with pytest.raises(KeyFileError, match=r"mara\.pub does not belong to"):
        keys.load_private_key(tmp_path / "mara.pem", no_passphrase)
    assert "does not belong to" in (keys.list_keys(tmp_path)[0].error or "")


def test_public_key_alone_is_not_own(tmp_path: Path) -> None:
    (tmp_path / "bob.pub").write_bytes(public.PublicKey(RAW).pem)
    (key,) = keys.list_keys(tmp_path)
    assert (key.name, key.is_own, key.public and key.public.raw) == ("bob", False, RAW)


# Passphrases


def test_key_is_locked_with_a_passphrase(tmp_path: Path) -> None:
    keys.create_key(tmp_path, "mara", b"open sesame")
    place = tmp_path / "mara.pem"
    assert keys.list_keys(tmp_path)[0].has_passphrase
    assert (
        public.public_from_private(keys.load_private_key(place, lambda: b"open sesame")).raw
        == public.read_public_key(tmp_path / "mara.pub").raw
    )
    with pytest.raises(KeyFileError, match="passphrase is wrong, or the file is damaged"):
        keys.load_private_key(place, lambda: b"open barley")
    (tmp_path / "mara.pub").unlink()
    assert keys.list_keys(tmp_path)[0].error, "the public key is unknown until the key is unlocked"


def test_passphrase_is_hashed_in_many_rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert keys.ROUNDS >= 600_000
    monkeypatch.setattr(keys, "ROUNDS", 1_000_000)
    keys.create_key(tmp_path, "mara", b"x")
    assert (1_000_000).to_bytes(3, "big") in b64decode(
        b"".join((tmp_path / "mara.pem").read_bytes().split(b"\n")[1:-2])
    )


def test_locked_key_is_opened_by_openssl(tmp_path: Path) -> None:
    made = keys.create_key(tmp_path, "mara", b"open sesame")
    command = ["openssl", "pkey", "-in", str(tmp_path / "mara.pem"), "-passin", "pass:open sesame", "-pubout"]
    try:
        result = subprocess.run(command, capture_output=True, check=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    assert result.stdout == made.pem
