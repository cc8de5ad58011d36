"""A signature verifies only with its payload, its header and its key, and each changed part is named."""

from __future__ import annotations

from pathlib import Path

import cbor2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests import builders
from tests.proofs.samples import AT, KEY, OTHER, PAYLOAD, PUBLIC, STRANGER, flipped, record, signed

from pollux.proofs import cose, signatures, signing
from pollux.proofs.canonical import cbor_bytes, json_bytes, sha256
from pollux.proofs.public import PublicKey, Trust, thumbprint_text
from pollux.proofs.signing import InvalidRecordError, trace_from_record, trace_from_session
from pollux.proofs.verdict import Verdict
from pollux.sessions.reader import from_file

ATTACHED, DETACHED = signed(), signed(attached=False)
ENVELOPE = cose.open_envelope(ATTACHED)
bits = st.integers(0, 7)


def faulty_parts(verdict: Verdict) -> set[str]:
    return {error.what for error in verdict.errors}


def verify(data: bytes = ATTACHED, file: bytes | None = None, keys: tuple[PublicKey, ...] = (PUBLIC,)) -> Verdict:
    return signatures.verify(data, file, keys)


@pytest.mark.parametrize(("data", "file"), [(ATTACHED, None), (ATTACHED, PAYLOAD), (DETACHED, PAYLOAD)])
def test_valid_signature_verifies(data: bytes, file: bytes | None) -> None:
    verdict = verify(data, file, (STRANGER, PUBLIC))
    assert (verdict.errors, verdict.is_ok) == ([], True)
    assert verdict.facts == {
        "signed at": "2026-11-15T12:00:00Z",
        "subject": "6ece72aa",
        "content": "application/json",
        "format": "ietf-vac-v3.0",
        "began": "2026-11-15T19:30:00.000Z",
        "ended": "2026-11-15T19:31:00.000Z",
    }
    (signer,) = verdict.signers
    assert (signer.key, signer.is_verified, signer.is_issuer_proven) == (PUBLIC, True, True)


def test_header_follows_the_schema() -> None:
    assert ENVELOPE.protected[cose.CLAIMS] == {1: PUBLIC.uri, 2: "6ece72aa", 6: int(AT.timestamp())}
    assert ENVELOPE.protected[cose.CONTENT_TYPE] == "application/json"
    metadata = ENVELOPE.unprotected[signing.LABEL]
    assert set(metadata) == {
        *("session-id", "agent-vendor", "trace-format", "timestamp-start", "timestamp-end"),
        *("content-hash", "content-hash-alg"),
    }
    assert metadata["content-hash"] == sha256(PAYLOAD).hex()
    assert metadata["agent-vendor"] == "google"


def test_issuer_is_a_claim_of_the_signer() -> None:
    verdict = verify(signed(issuer="mailto:mara@example.org", subject="incident 12"))
    assert verdict.is_ok
    (signer,) = verdict.signers
    assert (signer.issuer, signer.is_issuer_proven, verdict.facts["subject"]) == (
        *("mailto:mara@example.org", False),
        "incident 12",
    )
    assert signer.description == "a key (given with --key), claiming to be 'mailto:mara@example.org'"


@pytest.mark.parametrize(
    ("trust", "words"),
    [
        (Trust.OWN, "mara.pub (your own key)"),
        (Trust.FOLDER, "mara.pub (another person's key in your folder of keys)"),
        (Trust.GIVEN, "mara.pub (given with --key)"),
    ],
)
def test_key_file_is_named_with_its_trust(trust: Trust, words: str) -> None:
    key = PublicKey(PUBLIC.raw, Path("keys/mara.pub"), trust)
    (signer,) = verify(keys=(key,)).signers
    assert (signer.description, signer.trust, signer.file) == (words, trust, str(Path("keys/mara.pub")))


def test_key_that_did_not_sign_is_not_a_signer() -> None:
    (unknown,) = verify(keys=(STRANGER,)).signers
    assert (unknown.description, unknown.trust, unknown.file) == ("an unknown key", "unknown", None)
    stolen = cose.sign(PAYLOAD, OTHER, content_type="x", claims={1: "a", 2: "b"}, protected={cose.KEY_ID: PUBLIC.id})
    (other,) = verify(stolen).signers
    assert other.description == "unknown: the signature does not match a key (given with --key), claiming to be 'a'"
    assert not other.is_issuer_proven


def test_issuer_with_the_thumbprint_of_another_key_fails() -> None:
    verdict = verify(signed(issuer=STRANGER.uri))
    assert [error.what for error in verdict.errors] == ["claims"]
    assert "it claims to be signed with urn:" in verdict.errors[0].message


# Changed bits


@given(st.integers(0, len(PAYLOAD) - 1), bits)
def test_changed_payload_fails(place: int, bit: int) -> None:
    changed = flipped(PAYLOAD, place, bit)
    for verdict in (verify(DETACHED, changed), verify(ATTACHED.replace(PAYLOAD, changed))):
        assert faulty_parts(verdict) >= {"payload", "signature"}
        assert sha256(changed).hex() in verdict.errors[0].message
    assert faulty_parts(verify(ATTACHED, changed)) == {"payload"}


@given(st.integers(0, len(ENVELOPE.protected_bytes) - 1), bits)
def test_changed_protected_header_fails(place: int, bit: int) -> None:
    changed = flipped(ENVELOPE.protected_bytes, place, bit)
    assert faulty_parts(verify(ATTACHED.replace(ENVELOPE.protected_bytes, changed))) & {
        *("signature", "key", "header", "claims", "envelope", "metadata")
    }


@given(st.integers(0, 63), bits)
def test_changed_signature_fails(place: int, bit: int) -> None:
    verdict = verify(ATTACHED.replace(ENVELOPE.signature, flipped(ENVELOPE.signature, place, bit)))
    assert faulty_parts(verdict) == {"signature"}


@given(st.integers(0, 31), bits)
def test_changed_key_fails(place: int, bit: int) -> None:
    verdict = verify(keys=(PublicKey(flipped(PUBLIC.raw, place, bit)),))
    assert faulty_parts(verdict) == {"key"}
    assert thumbprint_text(PUBLIC.id) in verdict.errors[0].message


@given(st.integers(0, len(DETACHED) - 1), bits)
@example(0, 0)
def test_envelope_with_any_changed_bit_fails(place: int, bit: int) -> None:
    """The protected header contains the hash of the unprotected one."""
    assert not verify(flipped(DETACHED, place, bit), PAYLOAD).is_ok


def test_signature_with_the_key_id_of_another_key_fails() -> None:
    """An envelope that names our key and was signed by another."""
    stolen = cose.sign(PAYLOAD, OTHER, content_type="x", claims={1: "a", 2: "b"}, protected={cose.KEY_ID: PUBLIC.id})
    verdict = verify(stolen)
    assert faulty_parts(verdict) == {"signature"}


# Missing and odd values


def test_missing_payload_is_reported() -> None:
    verdict = verify(DETACHED)
    assert [error.message for error in verdict.errors] == ["it is not part of the envelope, and no file was given"]


def test_file_without_an_envelope_is_rejected() -> None:
    assert faulty_parts(verify(b"hello")) == {"envelope"}


def test_unknown_key_is_reported_with_the_known_keys() -> None:
    (fault,) = verify(keys=(STRANGER,)).errors
    assert fault.what == "key"
    assert thumbprint_text(PUBLIC.id) in fault.message
    assert thumbprint_text(STRANGER.id) in fault.message
    assert "known: none" in verify(keys=()).errors[0].message


def nameless(**more: object) -> bytes:
    """Return a signature without a key ID and without a hash of the metadata, as of another program."""
    header = cbor_bytes({1: -8, 15: {1: "a", 2: "b"}})
    signature = KEY.sign(cbor_bytes(["Signature1", header, b"", PAYLOAD]))
    return cbor_bytes(cbor2.CBORTag(18, [header, more, PAYLOAD, signature]))


def test_envelope_without_key_id_is_checked_with_the_only_key() -> None:
    assert verify(nameless()).is_ok
    assert faulty_parts(verify(nameless(), keys=(STRANGER,))) == {"signature"}
    assert "does not name its key" in verify(nameless(), keys=(PUBLIC, STRANGER)).errors[0].message


def with_metadata(metadata: object) -> bytes:
    """Add trace metadata to a signature that does not cover them, which needs no key."""
    data = cose.open_envelope(nameless())
    return cbor_bytes(cbor2.CBORTag(18, [data.protected_bytes, {100: metadata}, PAYLOAD, data.signature]))


def test_unsigned_metadata_must_match_the_record() -> None:
    verdict = verify(with_metadata({"session-id": "other", "trace-format": "ietf-vac-v3.0"}))
    assert [error.message for error in verdict.errors] == ["they name session other, but the record is of 6ece72aa"]


@pytest.mark.parametrize(
    "metadata",
    [{}, {"timestamp-start": "1999-01-01T00:00:00Z", "timestamp-end": 5, "trace-format": "gemini-jsonl"}, 5, None],
)
def test_unsigned_metadata_are_named_but_not_shown(metadata: object) -> None:
    verdict = verify(with_metadata(metadata))
    assert verdict.is_ok
    assert not verdict.is_fully_proven
    assert [item.names for item in verdict.unproven] == [("trace-metadata",)]
    assert verdict.facts == {"subject": "b"}


@pytest.mark.parametrize(
    "metadata", [{"content-hash": 1}, {"trace-format": ["x"]}, {"timestamp-start": 1.5}, {"session-id": True}]
)
def test_metadata_of_a_wrong_type_are_rejected(metadata: dict[str, object]) -> None:
    assert faulty_parts(verify(with_metadata(metadata))) == {"metadata"}


def test_malformed_metadata_are_reported() -> None:
    parts = [ENVELOPE.protected_bytes, {100: {"when": cbor2.CBORSimpleValue(99)}}, PAYLOAD, ENVELOPE.signature]
    assert faulty_parts(verify(cbor2.dumps(cbor2.CBORTag(18, parts)))) == {"metadata"}


@pytest.mark.parametrize("payload", [b"", b"no json", b"[1]", b"\xff"])
def test_payload_that_is_not_a_record_is_reported(payload: bytes) -> None:
    metadata = {"session-id": "a", "trace-format": "ietf-vac-v3.0", "content-hash": "00"}
    data = cose.sign(payload, KEY, content_type="x", claims={1: "a", 2: "b"}, unprotected={100: metadata})
    assert faulty_parts(verify(data)) == {"payload"}


def test_unknown_algorithm_is_reported() -> None:
    data = cose.sign(PAYLOAD, KEY, content_type="x", claims={1: "a", 2: "b"}, protected={1: -7})
    assert faulty_parts(verify(data)) == {"header"}


@pytest.mark.parametrize("claims", [{}, {1: "a"}, {1: 1, 2: "b"}])
def test_missing_claims_are_reported(claims: dict[int, object]) -> None:
    assert faulty_parts(verify(cose.sign(PAYLOAD, KEY, content_type="x", claims=claims))) == {"claims"}  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [1e300, -(10**20), "noon", None, True, float("nan"), [1]])
def test_odd_time_is_reported(seconds: object) -> None:
    data = cose.sign(PAYLOAD, KEY, content_type="x", claims={1: "a", 2: "b", 6: seconds})
    verdict = verify(data)
    assert "signed at" not in verdict.facts
    assert faulty_parts(verdict) == {"claims"}


def test_time_with_thousands_of_digits_is_reported() -> None:
    assert faulty_parts(verify(cose.sign(PAYLOAD, KEY, content_type="x", claims={1: "a", 2: "b", 6: 2**20000}))) == {
        "claims"
    }


def test_rewritten_record_is_reported_as_the_same_values() -> None:
    pretty = builders.line(record()).replace(b",", b", ")
    (payload, _) = verify(DETACHED, pretty).errors
    assert payload.message.endswith(": the same values, but written differently")


# Identity of the session


def test_cbor_records_verify() -> None:
    data = cbor_bytes(record())
    assert signing.record_from(data) == (record(), data, signing.CBOR)
    tagged = cbor_bytes(cbor2.CBORTag(4149, record()))
    assert signing.record_from(tagged) == (record(), tagged, signing.CBOR)
    assert signing.untagged(cbor2.loads(cbor_bytes(cbor2.CBORTag(4149, {"a": [{"b": 1}]})))) == {"a": [{"b": 1}]}
    assert verify(signed(data)).is_ok
    session = record()["session"] | {"session-id": b"\x01\x02"}
    verdict = verify(signed(cbor_bytes(record(session=session))))
    assert (verdict.is_ok, verdict.facts["subject"]) == (True, "0102")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xff", "neither JSON nor CBOR"),
        (b"{", "JSON cannot be read"),
        (b'{"id":"a","id":"b"}', "has the member 'id' twice"),
        (cbor2.dumps(cbor2.CBORTag(35, "(")), "neither JSON nor CBOR"),
        (b"\xd8\x1c\x81\xd8\x1d\x00", "neither JSON nor CBOR"),  # an array that contains itself
        (cbor_bytes({}) + b"x", "neither JSON nor CBOR"),
        (b'{"a":1} {"b":2}', "JSON cannot be read"),
        (b"{}", "no `version`, `id` and `session`"),
        (b"[]", "no `version`, `id` and `session`"),
        (b'{"version":"1","id":"a","session":{}}', "no `session-id`"),
        (b'{"version":"1","id":"a","session":{"session-id":"a","agent-meta":{}}}', "no `agent-meta` with"),
        (b"\x01", "no `version`"),
    ],
)
def test_invalid_records_are_rejected(data: bytes, words: str) -> None:
    with pytest.raises(InvalidRecordError, match=words):
        trace_from_record(signing.record_from(data)[0])


@pytest.mark.parametrize(
    ("session", "start"),
    [
        ({"session-start": 5}, 5),
        (
            {"session-start": "yesterday", "entries": [1, {"timestamp": True}, {"timestamp": "2026-11-15T19:30:01Z"}]},
            "2026-11-15T19:30:01Z",
        ),
        ({"session-start": -1, "entries": 7}, "2026-11-15T12:00:00Z"),
    ],
)
def test_start_is_read_from_the_record(session: dict[str, object], start: object) -> None:
    about = {"session-id": "a", "agent-meta": {"model-id": "m", "model-provider": "p"}}
    assert trace_from_record(record(session=about | session)).start == start


def test_record_without_times_has_no_metadata() -> None:
    bare = record(session=record()["session"] | {"session-start": None, "entries": []})
    del bare["created"]
    data = signed(json_bytes(bare))
    assert cose.open_envelope(data).unprotected == {}
    assert verify(data).is_ok


@pytest.mark.parametrize(("name", "kind"), [("a.jsonl", "gemini-jsonl"), ("a.json", "gemini-json")])
def test_session_file_is_signed(tmp_path: Path, name: str, kind: str) -> None:
    messages = (builders.user(), builders.gemini())
    data = builders.document(*messages) if name == "a.json" else builders.log(builders.header(), *messages)
    session, _ = from_file(builders.put(tmp_path / name, data))
    about = trace_from_session(session, name)
    assert (about.session_id, about.format, about.vendor) == (builders.SESSION, kind, "google")
    assert (about.start, about.end) == (builders.at(0), builders.at(2))
    signature = signing.sign(data, KEY, about, content_type=signing.LOG, at=AT)
    assert verify(signature, data).is_ok
    assert faulty_parts(verify(signature, data + b" ")) == {"payload", "signature"}
