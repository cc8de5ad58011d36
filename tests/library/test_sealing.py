"""Keys, seals, proofs and records through the library, as any front end uses them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import builders

from pollux.errors import PolluxError
from pollux.library import keys, records, sealing
from pollux.library.config import UsageError, configure
from pollux.library.library import Library
from pollux.library.outputs import FileSink


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    data = builders.log(builders.header(), builders.user("u1", "my secret plan"), builders.gemini())
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", data)
    with Library(configure(named_homes=[tmp_path], archive=tmp_path / "archive.db")) as opened:
        yield opened


def sealed(library: Library) -> keys.SigningKey:
    keys.create_key(library.config.keys_dir, "default", b"open sesame")
    key = keys.signing_key(library.config.keys_dir, None, lambda _name: b"open sesame")
    assert sealing.seal_archive(library, key).sealed.is_new
    return key


def test_a_front_end_is_asked_for_the_passphrase_of_a_key(library: Library) -> None:
    names: list[str] = []
    keys.create_key(library.config.keys_dir, "work", b"open sesame")

    def ask(name: str) -> bytes:
        names.append(name)
        return b"open sesame"

    assert keys.signing_key(library.config.keys_dir, None, ask).name == "work"
    assert names == ["work"]


def test_a_seal_proves_a_session_and_a_redacted_record(library: Library, tmp_path: Path) -> None:
    sealed(library)
    believed = keys.believed_keys(library.config.keys_dir).keys
    hidden = records.redact_record(library, "latest", records.field_chooser((), "secret"))
    assert b"secret plan" not in hidden.data
    for data in (sealing.prove_session(library, "latest"), hidden.data):
        path = builders.put(tmp_path / "proof.json", data)
        assert records.verify_file(path, None, believed).is_ok


def test_a_later_seal_continues_an_older_one(library: Library, tmp_path: Path) -> None:
    key = sealed(library)
    again = sealing.seal_archive(library, key, with_entries=True)
    assert (again.sealed.is_new, again.sealed.new.n_files) == (False, 0)
    assert again.file is not None
    older = builders.put(tmp_path / "seal.cbor", again.file)
    assert sealing.read_seal(older).entries
    assert b"continuation" in sealing.prove_continuation(library, older)


def test_a_record_is_written_signed_and_verified(library: Library, tmp_path: Path) -> None:
    key = sealed(library)
    path = tmp_path / "session.json"
    result = records.write_record(library, "latest", FileSink(path), records.RecordOptions())
    assert (result.notes, result.problems) == ((), ())
    payload = records.record_payload(path, attached=False)
    signature = records.signature_path(path, attached=False)
    signature.write_bytes(records.sign(payload, key, at=library.config.clock()))
    assert records.verify_file(signature, None, keys.believed_keys(library.config.keys_dir).keys).is_ok


def test_nothing_is_sealed_without_an_archive(tmp_path: Path) -> None:
    keys.create_key(tmp_path / "keys", "default")
    key = keys.signing_key(tmp_path / "keys", None, lambda _name: b"")
    with Library(configure(named_homes=[tmp_path], archive=None)) as library:
        with pytest.raises(UsageError, match="This command needs the archive"):
            sealing.seal_archive(library, key)
        with pytest.raises(PolluxError, match="Only an archive has seals"):
            sealing.prove_session(library, "latest")
