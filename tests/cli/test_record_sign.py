"""`pollux record sign` and `verify` name the signer, and report what does not match."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

import cbor2
import pytest
from tests import builders
from tests.cli.running import Runner
from tests.proofs.samples import PAYLOAD, flipped, record

from pollux.cli import output
from pollux.library.config import keys_folder
from pollux.proofs import cose
from pollux.proofs.canonical import cbor_bytes, json_bytes
from pollux.proofs.signing import LABEL

ID = "0363a0b0"


@pytest.fixture
def here(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty working folder with a record and a key."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "record.json").write_bytes(PAYLOAD)
    run("keys", "create")
    return tmp_path


def test_signed_and_verified(run: Runner, here: Path) -> None:
    done = run("record", "sign", "record.json")
    assert (done.status, done.out) == (0, "")
    assert "Signed with the key default: record.sig.cbor, " in done.err
    good = run("record", "verify", "record.sig.cbor")
    assert (good.status, "the signature is valid" in good.err) == (0, True)
    assert "6ece72aa" in good.out
    assert all(len(line) <= 80 for line in good.out.splitlines())
    assert cose.open_envelope((here / "record.sig.cbor").read_bytes()).payload is None


def test_record_is_verified_on_another_machine(run: Runner, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("record", "sign", "record.json")
    (here / "mara.pub").write_bytes((keys_folder() / "default.pub").read_bytes())
    monkeypatch.setenv("POLLUX_KEYS", str(here / "nothing"))
    unknown = run("record", "verify", "record.sig.cbor")
    assert (unknown.status, "(known: none)" in unknown.out) == (1, True)
    assert run("record", "verify", "record.sig.cbor", "--key", "mara.pub").status == 0


def test_record_is_signed_with_attached_payload(run: Runner, here: Path) -> None:
    assert run("record", "sign", "record.json", "--attached", "--issuer", "mailto:mara@example.org").status == 0
    found = run("record", "verify", "record.signed.cbor", "--json").json
    assert (found["schema"], found["kind"], found["ok"], found["errors"]) == (
        "pollux.verdict/1",
        "signature",
        True,
        [],
    )
    (signer,) = found["signers"]
    assert signer == {
        "of": "signature",
        "key": run("keys", "show", "--format", "id").out.strip(),
        "key_file": str(keys_folder() / "default.pub"),
        "trust": "own",
        "verified": True,
        "issuer": "mailto:mara@example.org",
        "issuer_proven": False,
    }
    assert found["unproven"] == []
    assert run("record", "verify", "record.signed.cbor", "--file", "record.json").status == 0
    assert cose.open_envelope((here / "record.signed.cbor").read_bytes()).payload == PAYLOAD


def test_key_is_printed_next_to_the_claimed_name(run: Runner, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("record", "sign", "record.json", "--issuer", "mailto:mara@example.org")
    own = run("record", "verify", "record.sig.cbor").out
    assert "signed by  default.pub (your own key), claiming to be 'mailto:mara@example.org'\n" in own
    (here / "keys").mkdir()
    (here / "keys" / "bob.pub").write_bytes((keys_folder() / "default.pub").read_bytes())
    monkeypatch.setenv("POLLUX_KEYS", str(here / "keys"))
    known = run("record", "verify", "record.sig.cbor").out
    assert "bob.pub (another person's key in your folder of keys), claiming to be 'mailto:mara@" in known
    given = run("record", "verify", "record.sig.cbor", "--key", str(here / "keys" / "bob.pub")).out
    assert "signed by  bob.pub (given with --key), claiming to be " in given
    monkeypatch.setenv("POLLUX_KEYS", str(here / "nothing"))
    unknown = run("record", "verify", "record.sig.cbor").out
    assert "signed by  an unknown key, claiming to be " in unknown


def test_unsigned_metadata_is_not_shown(run: Runner, here: Path) -> None:
    (here / "s.jsonl").write_bytes(builders.log({"sessionId": "aaaaaaaa-1", "projectHash": "x"}, {"id": "u"}))
    run("record", "sign", "--raw", "s.jsonl")
    parts = [*cbor2.loads((here / "s.sig.cbor").read_bytes()).value]
    parts[1] = {100: {"timestamp-start": "1999-01-01T00:00:00Z"}}
    (here / "s.sig.cbor").write_bytes(cbor2.dumps(cbor2.CBORTag(18, parts)))
    found = run("record", "verify", "s.sig.cbor")
    assert found.status == 0
    assert "1999" not in found.out
    assert "The signature does not cover the trace metadata (header 100)" in found.err
    assert "the signature is valid, except for the unproven statements above" in found.err
    assert run("record", "verify", "s.sig.cbor", "--json").json["unproven"] == ["trace-metadata"]


def test_only_the_canonical_form_is_signed(run: Runner, here: Path) -> None:
    (here / "pretty.json").write_text(json.dumps(record(), indent=2))
    refused = run("record", "sign", "pretty.json")
    assert (refused.status, "RFC 8785" in refused.err) == (1, True)
    assert run("record", "sign", "pretty.json", "--attached").status == 0
    assert cose.open_envelope((here / "pretty.signed.cbor").read_bytes()).payload == PAYLOAD


def test_cbor_record_is_signed_into_another_file(run: Runner, here: Path) -> None:
    (here / "record.cbor").write_bytes(cbor_bytes(record()))
    assert run("record", "sign", "record.cbor", "-o", "there.sig.cbor").status == 0
    assert run("record", "verify", "there.sig.cbor").status == 2, "nothing of that name is there"
    assert run("record", "verify", "there.sig.cbor", "--file", "record.cbor").status == 0
    assert "cannot be written" in run("record", "sign", "record.cbor", "-o", "no/such/folder").err


@pytest.mark.parametrize("place", [0, len(PAYLOAD) // 2, len(PAYLOAD) - 1])
def test_changed_byte_is_reported(run: Runner, here: Path, place: int) -> None:
    run("record", "sign", "record.json")
    (here / "record.json").write_bytes(flipped(PAYLOAD, place))
    bad = run("record", "verify", "record.sig.cbor")
    assert bad.status == 1
    assert bad.out.startswith("payload: its SHA-256 is ")
    assert "signature: it does not match this payload." in bad.out
    assert "the signature is not valid" in bad.err


def test_raw_session_file_is_signed(run: Runner, here: Path) -> None:
    data = builders.log(builders.header(), builders.user(), builders.gemini())
    (here / "session.jsonl").write_bytes(data)
    assert run("record", "sign", "--raw", "session.jsonl").status == 0
    good = run("record", "verify", "session.sig.cbor")
    assert (good.status, "gemini-jsonl" in good.out) == (0, True)
    (here / "session.jsonl").write_bytes(data + b"\n")
    assert run("record", "verify", "session.sig.cbor").status == 1


def test_raw_archived_session_is_signed(run: Runner, here: Path) -> None:
    assert run("record", "sign", "--raw", ID).status == 0
    (signature,) = here.glob("*.sig.cbor")
    (here / "kept").write_text(run("raw", ID).out, "utf-8")
    assert run("record", "verify", signature.name, "--file", "kept").status == 0
    assert run("record", "sign", "--raw", "nosuch").status == 1


def test_record_without_a_time_is_signed(run: Runner, here: Path) -> None:
    bare = record(session=record()["session"] | {"session-start": None, "entries": []})
    del bare["created"]
    (here / "bare.json").write_bytes(json_bytes(bare))
    done = run("record", "sign", "bare.json")
    assert (done.status, "contains no time" in done.err) == (0, True)
    assert LABEL not in cose.open_envelope((here / "bare.sig.cbor").read_bytes()).unprotected
    assert run("record", "verify", "bare.sig.cbor").status == 0


def test_signature_goes_to_stdout(run: Runner, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    monkeypatch.setattr(output, "write", written.extend)
    assert run("record", "sign", "record.json", "-o", "-").err == ""
    assert cose.open_envelope(b"".join(written)).payload is None
    del here


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (("sign", "nothing.json"), 1, "Cannot read nothing"),
        (("sign", "odd.json"), 1, "This is not an agent record"),
        (("sign", "record.json", "--key", "nobody"), 2, "You have no private key 'nobody'; your keys are default"),
        (("sign", "record.json", "--key", "./none.pem"), 1, "Cannot read none.pem"),
        (("sign",), 2, "FILE|SESSION"),
        (("verify", "nothing"), 1, "Cannot read nothing"),
        (("verify", "record.json"), 1, "is not a proof"),
        (("verify", "odd.json", "--key", "nobody"), 2, "No key 'nobody'"),
        (("verify", "odd.json", "--key", "./odd.json"), 1, "holds no Ed25519 public key"),
        (("nosuch",), 2, "There is no command"),
    ],
)
def test_wrong_usage_is_reported(run: Runner, here: Path, args: tuple[str, ...], status: int, words: str) -> None:
    (here / "odd.json").write_bytes(json_bytes({"a": 1}))
    found = run("record", *args)
    assert (found.status, words in found.err) == (status, True), found.err


def test_missing_key_is_reported(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "record.json").write_bytes(PAYLOAD)
    found = run("record", "sign", str(tmp_path / "record.json"))
    assert (found.status, "`pollux keys create` makes one" in found.err) == (1, True)


def test_key_must_be_named_if_there_are_several(run: Runner, here: Path) -> None:
    (keys_folder() / "default.pem").rename(keys_folder() / "one.pem")
    (keys_folder() / "default.pub").rename(keys_folder() / "one.pub")
    assert run("record", "sign", "record.json").status == 0, "the only one"
    run("keys", "create", "two")
    found = run("record", "sign", "record.json")
    assert (found.status, "You have several keys: pass --key with one of one, two" in found.err) == (2, True)
    assert run("record", "sign", "record.json", "--key", "two").status == 0
    assert run("record", "sign", "record.json", "--key", str(keys_folder() / "one.pem")).status == 0
    del here


class _Person(StringIO):
    def isatty(self) -> bool:
        return True


def test_locked_key_needs_its_passphrase(run: Runner, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_PASSPHRASE", "open sesame")
    run("keys", "create", "locked", "--passphrase")
    assert run("record", "sign", "record.json", "--key", "locked").status == 0
    monkeypatch.setenv("POLLUX_PASSPHRASE", "wrong")
    assert "cannot be unlocked" in run("record", "sign", "record.json", "--key", "locked").err
    monkeypatch.delenv("POLLUX_PASSPHRASE")
    monkeypatch.setattr(sys, "stdin", StringIO())
    assert "Set POLLUX_PASSPHRASE" in run("record", "sign", "record.json", "--key", "locked").err
    monkeypatch.setattr(sys, "stdin", _Person())
    monkeypatch.setattr("click.termui.hidden_prompt_func", lambda _: "open sesame")
    assert run("record", "sign", "record.json", "--key", "locked").status == 0
    del here


def test_subcommands_are_listed(run: Runner) -> None:
    listed = run("record", "--help").out
    assert all(f"\n  {name} " in listed for name in ("create", "sign", "redact", "verify"))


def test_altered_key_is_reported(run: Runner, here: Path) -> None:
    run("record", "sign", "record.json")
    run("keys", "create", "other")
    (keys_folder() / "default.pub").write_bytes((keys_folder() / "other.pub").read_bytes())
    found = run("record", "verify", "record.sig.cbor")
    assert found.status == 1
    assert "default.pub does not belong to" in found.err
    assert found.out.startswith("key: signed with the unknown key ")
    del here


def test_hostile_text_is_escaped(run: Runner, here: Path) -> None:
    run("record", "sign", "record.json", "--attached", "--issuer", "\x1b[2Jme\nyou")
    found = run("record", "verify", "record.signed.cbor", columns=80)
    assert found.status == 0
    assert "\x1b" not in found.out
    assert "me␊you" in found.out
    del here
