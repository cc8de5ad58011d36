"""A proof verifies without the archive, and only with its own entries, seal and key."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import builders
from tests.archive.test_verify import CHILD, LOG, archived_home, content_of, damage, grown, synced
from tests.proofs.samples import AT, KEY, OTHER, PUBLIC, STRANGER, flipped, record, signed
from tests.proofs.sealing import record_of, seal_copy, seal_copy_with_entries, seal_it

from pollux.archive import seals, store
from pollux.errors import PolluxError
from pollux.proofs import cose, inclusion, merkle, signing
from pollux.proofs.canonical import json_bytes
from pollux.proofs.commitment import MEMBER
from pollux.proofs.entries import SessionEntry, entry_bytes
from pollux.proofs.inclusion import prove
from pollux.proofs.redacted import hide_values, prove_record
from pollux.proofs.seal import BY, SCHEMA, Seal
from pollux.proofs.signing import trace_from_record
from pollux.proofs.verdict import Verdict
from pollux.proofs.verify import NotAProofError, is_detached, verify_data


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    _, sealed = archived_home(tmp_path_factory.mktemp("archived"))
    seal_it(sealed)
    return sealed


def proof_of(archive: Path, session: str = builders.SESSION) -> dict[str, Any]:
    with store.open_archive(archive, write=False) as opened:
        return json.loads(json_bytes(prove(opened, session)))  # type: ignore[no-any-return]


def copy_of(archive: Path, *names: str, session: str = builders.SESSION) -> dict[str, Any]:
    original = record_of(session)
    with store.open_archive(archive, write=False) as opened:
        shown = hide_values(original, lambda field: field.path[-1] in names)
        return json.loads(json_bytes(prove_record(opened, session, original, shown)))  # type: ignore[no-any-return]


def verdict_on(value: object, file: bytes | None = None) -> Verdict:
    return verify_data(json_bytes(value), file, [PUBLIC])  # type: ignore[arg-type]


def faulty_parts(verdict: Verdict) -> list[str]:
    return [error.what for error in verdict.errors]


def test_proof_covers_all_files_of_a_session(archive: Path) -> None:
    verdict = verdict_on(proof_of(archive))
    assert (verdict.errors, verdict.notes) == ([], [])
    assert verdict.facts["session"] == builders.SESSION
    assert [(signer.of, signer.key, signer.is_verified) for signer in verdict.signers] == [("seal 1", PUBLIC, True)]
    paths = {path for _, _, path in verdict.digests}
    assert {LOG, f"tmp/webapp/chats/{builders.SESSION}/{CHILD}.jsonl", "tmp/webapp/run_shell_17.txt"} <= paths
    assert "tmp/webapp/run_shell_18.txt" not in paths


def test_file_is_compared_with_the_sealed_one(archive: Path) -> None:
    (data,) = content_of(archive, LOG)
    proof = proof_of(archive)
    assert verdict_on(proof, data).notes == [f"the file is {LOG} as it was sealed"]
    for other in (b"", b"x" + data[1:]):
        (fault,) = verdict_on(proof, other).errors
        assert (fault.what, "is not one of the sealed files" in fault.message) == ("file", True)
    (fault,) = verdict_on(proof, data + b"{}\n").errors
    assert fault.message == f"only the first {len(data)} of its {len(data) + 3} bytes were sealed, as {LOG}"
    assert faulty_parts(verdict_on(proof, data[:-1])) == ["file"], "a sealed stub has the same beginning"


def test_proof_is_small_and_contains_no_content(archive: Path) -> None:
    text = json.dumps(proof_of(archive))
    assert "xylophone" not in text
    assert len(text) < 20_000


def test_unsealed_sessions_cannot_be_proven(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    with pytest.raises(PolluxError, match="sealed yet"):
        proof_of(archive)


def test_grown_file_is_proven_up_to_its_sealed_length(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    seal_it(archive)
    (before,) = content_of(archive, LOG)
    grown(root, LOG, b"{}\n")
    synced(archive, root)
    assert verdict_on(proof_of(archive), before).is_ok
    seal_it(archive, hours=1)
    proof = proof_of(archive)
    assert faulty_parts(verdict_on(proof, before)) == ["file"], "the newest seal covers more bytes"
    assert verdict_on(proof, before + b"{}\n").is_ok


def test_tampered_archive_gives_no_proof(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    seal_it(archive)
    damage(archive, "DELETE FROM sealed WHERE place = 0")
    with pytest.raises(PolluxError, match="does not match the sealed entries"):
        proof_of(archive)


def test_proof_without_its_key_fails(archive: Path) -> None:
    for keys in ([STRANGER], []):
        verdict = verify_data(json_bytes(proof_of(archive)), None, keys)
        assert faulty_parts(verdict) == ["key"]


def test_files_without_a_session_are_not_proven(tmp_path: Path) -> None:
    """The record of the session could not be sealed, so no entry assigns the files to it."""
    _, archive = archived_home(tmp_path)

    def fails(_: str) -> dict[str, object]:
        raise PolluxError("odd")

    seal_it(archive, record_of=fails)
    with pytest.raises(PolluxError, match="is not sealed yet"):
        proof_of(archive)


def test_empty_proof_fails(archive: Path) -> None:
    proof = proof_of(archive) | {"entries": []}
    for session in (builders.SESSION, "never-there"):
        (fault,) = verdict_on(proof | {"session": session}).errors
        assert fault.message == f"it has no sealed entry of session {session}, so it proves nothing about it"


def test_proof_without_the_entry_of_its_session_fails(archive: Path) -> None:
    proof, other = proof_of(archive), proof_of(archive, builders.OTHER)
    files = [entry for entry in other["entries"] if entry["entry"]["kind"] == "file"]
    assert faulty_parts(verdict_on(proof | {"entries": files})) == ["leaf"]
    assert "was sealed for" in verdict_on(proof | {"entries": other["entries"]}).errors[0].message
    both = verdict_on(proof | {"entries": [*proof["entries"], *other["entries"]]})
    assert "leaf" in faulty_parts(both)


def test_proof_without_a_file_of_its_session_fails(archive: Path) -> None:
    proof = proof_of(archive)
    (session,) = (entry["entry"] for entry in proof["entries"] if entry["entry"]["kind"] == "session")
    for digest in session["files"]:
        fewer = [entry for entry in proof["entries"] if entry["entry"].get("sha256") != digest]
        (fault,) = verdict_on(proof | {"entries": fewer}).errors
        assert fault.message == f"it leaves out a file that the session was read from (SHA-256 {digest})"


def test_other_files_are_not_attributed_to_the_session(archive: Path) -> None:
    proof, other = proof_of(archive), proof_of(archive, builders.OTHER)
    own_indexes = {entry["index"] for entry in proof["entries"]}
    more = [
        entry for entry in other["entries"] if entry["entry"]["kind"] == "file" and entry["index"] not in own_indexes
    ]
    assert more
    verdict = verdict_on(proof | {"entries": [*proof["entries"], *more]})
    assert not verdict.is_fully_proven
    (unproven,) = verdict.unproven
    assert {entry["entry"]["path"] for entry in more} <= {*unproven.names}
    assert LOG not in unproven.names
    assert "nothing proves that they belong to session" in unproven.sentence


def test_repeated_entry_fails(archive: Path) -> None:
    proof = proof_of(archive)
    verdict = verdict_on(proof | {"entries": [*proof["entries"], proof["entries"][-1]]})
    assert "it has the same entry twice" in [error.message for error in verdict.errors]


def test_signature_of_another_kind_is_not_a_seal(archive: Path) -> None:
    """The owner of the key signed the same bytes for another purpose, such as a session file."""
    payload = cose.open_envelope(b64decode(proof_of(archive)["seal"])).payload or b""
    data = cose.sign(payload, KEY, content_type="application/json", claims={1: "a", 2: "a session"})
    verdict = verdict_on(proof_of(archive) | {"seal": b64encode(data).decode()})
    assert [error.message for error in verdict.errors] == [
        "its subject (CWT claim 2) is not 'pollux archive', so it was not signed as a seal"
    ]


def test_proof_with_members_of_a_redacted_record_fails(archive: Path) -> None:
    assert faulty_parts(verdict_on(proof_of(archive) | {"fields": []})) == ["envelope"]
    assert faulty_parts(verdict_on(proof_of(archive) | {"checks": ""})) == ["envelope"]


def leaves(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    if isinstance(value, dict | list) and value:
        keys = value if isinstance(value, dict) else range(len(value))
        return [leaf for key in keys for leaf in leaves(value[key], (*way, key))]
    return [way]


def with_changed(value: Any, path: tuple[Any, ...], new: object) -> Any:  # noqa: ANN401
    changed = deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return changed


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_proof_with_any_changed_value_fails(archive: Path, data: st.DataObject) -> None:
    proof = proof_of(archive)
    path = data.draw(st.sampled_from(leaves(proof)))
    new: object = data.draw(st.sampled_from([0, "", "00" * 32, None, [], "x", 10**30, {"a": 1}]))
    forged = with_changed(proof, path, new)
    if forged != proof:
        try:
            assert not verdict_on(forged).is_ok, path
        except NotAProofError:
            assert path == ("schema",)


@given(st.data())
def test_proof_with_any_flipped_bit_in_its_seal_fails(archive: Path, data: st.DataObject) -> None:
    proof = proof_of(archive)
    seal = b64decode(proof["seal"])
    bad = flipped(seal, data.draw(st.integers(0, len(seal) - 1)), data.draw(st.integers(0, 7)))
    assert not verdict_on(proof | {"seal": b64encode(bad).decode()}).is_ok


# Redacted records


def test_redacted_record_verifies(archive: Path) -> None:
    copy = copy_of(archive, "output", "content")
    verdict = verdict_on(copy)
    assert (verdict.errors, verdict.notes) == ([], [])
    assert verdict.facts["session"] == builders.SESSION
    assert int(verdict.facts["shown"]) < int(verdict.facts["fields"])
    assert "hunter2" not in json.dumps(copy)
    assert copy["session"]["entries"][0]["content"] == "[redacted]"


def test_record_without_hidden_fields_verifies(archive: Path) -> None:
    verdict = verdict_on(copy_of(archive))
    assert verdict.is_ok
    assert verdict.facts["shown"] == verdict.facts["fields"]


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_redacted_record_with_any_changed_value_fails(archive: Path, data: st.DataObject) -> None:
    copy = copy_of(archive, "content", "children")
    paths = [way for way in leaves(copy) if way[-1] != "checks"]
    way = data.draw(st.sampled_from(paths))
    new: object = data.draw(st.sampled_from([0, "", "00" * 32, None, [], "x", True]))
    forged = with_changed(copy, way, new)
    if forged != copy:
        assert not verdict_on(forged).is_ok, way


def test_changed_field_is_named(archive: Path) -> None:
    copy = copy_of(archive, "output")
    bad = with_changed(copy, ("session", "entries", 0, "type"), "assistant")
    assert [error.message for error in verdict_on(bad).errors] == [
        "it shows something else than was sealed: /session/entries/0/type"
    ]
    wild = bad | {MEMBER: bad[MEMBER] | {"checks": "AAAA"}}
    assert verdict_on(wild).errors[0].message.endswith(" more"), "checks prove nothing, and may name too many fields"
    hidden = next(number for number, field in enumerate(copy[MEMBER]["fields"]) if "hidden" in field)
    other = with_changed(copy, (MEMBER, "fields", hidden), {"hidden": "00" * 32})
    assert [error.message for error in verdict_on(other).errors] == [
        "it shows something else than was sealed: its proof was changed"
    ]


def test_added_or_removed_field_fails(archive: Path) -> None:
    copy = copy_of(archive, "output")
    assert faulty_parts(verdict_on(copy | {"more": 1})) == ["field"]
    less = deepcopy(copy)
    del less["session"]["session-end"]
    assert faulty_parts(verdict_on(less)) == ["field"]
    assert faulty_parts(verdict_on(copy | {MEMBER: copy[MEMBER] | {"fields": None}})) == ["field"]


def test_other_text_in_hidden_fields_is_noted(archive: Path) -> None:
    original = record_of(builders.SESSION)
    shown = deepcopy({**original})
    shown["session"]["entries"][0]["content"] = "where is the *****?"
    with store.open_archive(archive, write=False) as opened:
        copy = prove_record(opened, builders.SESSION, original, shown)
    assert [error.message for error in verdict_on(copy).errors] == [
        "hidden fields show other text, which nothing proves: /session/entries/0/content"
    ]
    verdict = verify_data(signed(json_bytes(copy)), None, [PUBLIC])
    assert verdict.is_ok
    assert verdict.notes == [
        "hidden fields show other text, for which only the signer vouches: /session/entries/0/content",
        "no seal covers these members, for which only the signer vouches: created, recording-agent",
    ]
    assert not verify_data(signed(json_bytes(copy)), None, [STRANGER]).is_ok


@pytest.mark.parametrize("name", ["created", "recording-agent", "redacted", "vcs"])
def test_members_that_no_seal_covers_are_named(archive: Path, name: str) -> None:
    copy = copy_of(archive, "output")
    assert verdict_on(copy).is_fully_proven
    forged = copy | {name: "forged"}
    verdict = verdict_on(forged)
    assert [item.names for item in verdict.unproven] == [(name,)]
    assert f"Nothing proves these members, which no seal covers and anyone can have set: {name}" in (
        verdict.unproven[0].sentence
    )
    by_signer = verify_data(signed(json_bytes(forged)), None, [PUBLIC])
    assert (by_signer.is_fully_proven, by_signer.notes) == (
        True,
        [f"no seal covers these members, for which only the signer vouches: {name}"],
    )
    by_stranger = verify_data(signed(json_bytes(forged)), None, [STRANGER])
    assert [item.names for item in by_stranger.unproven] == [(name,)]


def test_repeated_member_fails(archive: Path) -> None:
    data = json_bytes(copy_of(archive, "output"))
    forged = b'{"session":{"entries":[]},' + data[1:]
    with pytest.raises(NotAProofError, match="an object has the member 'session' twice"):
        verify_data(forged, None, [PUBLIC])


def test_signer_of_a_record_is_distinguished_from_that_of_the_seal(archive: Path) -> None:
    data = signing.sign(
        json_bytes(copy_of(archive, "output")),
        OTHER,
        trace_from_record(copy_of(archive, "output")),
        content_type=signing.JSON,
        at=AT,
        issuer="mailto:bob@example.org",
        attached=True,
    )
    verdict = verify_data(data, None, [PUBLIC, STRANGER])
    assert [(signer.of, signer.key, signer.issuer) for signer in verdict.signers] == [
        ("signature", STRANGER, "mailto:bob@example.org"),
        ("seal 1", PUBLIC, PUBLIC.uri),
    ]


def test_redacted_record_contains_only_the_entry_of_its_session(archive: Path) -> None:
    copy, proof = copy_of(archive, "output"), proof_of(archive)
    assert faulty_parts(verdict_on(with_changed(copy, (MEMBER, "entries"), []))) == ["leaf"]
    assert faulty_parts(verdict_on(with_changed(copy, (MEMBER, "entries"), proof["entries"]))) == ["leaf"]


def test_commitment_of_an_older_form_does_not_prove_a_redacted_record(tmp_path: Path) -> None:
    """In that form, fields can be removed from a redacted record without a key and without a trace."""
    _, archive = archived_home(tmp_path)
    body = SessionEntry(builders.SESSION, "vac-00", BY, 3, "00" * 32, [])
    with store.open_archive(archive) as opened:
        seal = Seal(SCHEMA, 1, "2026-11-15T12:00:00.000Z", 1, merkle.leaf_hash(entry_bytes(body)).hex(), None)
        data = cose.sign(
            json_bytes(msgspec.to_builtins(seal)), KEY, content_type="x", claims={1: "a", 2: "pollux archive"}
        )
        seals.append(opened.database, [(0, entry_bytes(body))], 1, data)
        with pytest.raises(PolluxError, match=f"Run `pollux archive seal {builders.SESSION}`"):
            prove_record(opened, builders.SESSION, record(), record())
        proof = inclusion.prove_entries(opened, builders.SESSION, [entry_bytes(body)], [0])
    verdict = verdict_on(record() | {MEMBER: {**proof, "fields": []}})
    assert "sealed by another version of Pollux" in verdict.errors[0].message
    assert seal_it(archive, hours=1).new.n_sessions >= 1, "the next seal commits to it in the new form"
    assert verdict_on(copy_of(archive, "output")).is_fully_proven


def test_record_that_differs_from_the_sealed_one_is_rejected(archive: Path) -> None:
    with store.open_archive(archive, write=False) as opened:
        other = record(id="another")
        with pytest.raises(PolluxError, match=f"Run `pollux archive seal {builders.SESSION}`"):
            prove_record(opened, builders.SESSION, other, other)


def test_proof_of_another_session_fails(archive: Path) -> None:
    copy, other = copy_of(archive, "output"), copy_of(archive, "output", session=builders.OTHER)
    assert not verdict_on(copy | {MEMBER: copy[MEMBER] | {"entries": other[MEMBER]["entries"]}}).is_ok
    assert not verdict_on(copy | {MEMBER: other[MEMBER]}).is_ok


def test_signature_and_proof_of_a_redacted_record_are_both_checked(archive: Path) -> None:
    payload = json_bytes(copy_of(archive, "output"))
    assert verify_data(signed(payload), None, [PUBLIC]).facts["seal"] == "1"
    assert verify_data(signed(payload, attached=False), payload, [PUBLIC]).is_ok
    changed = payload.replace(b"under the mat", b"in the drawer")
    verdict = verify_data(signed(changed), None, [PUBLIC])
    assert faulty_parts(verdict) == ["field"], "it is signed, but has changed since it was sealed"


# Other files


def test_seal_alone_verifies(archive: Path) -> None:
    for data in (seal_copy(archive), seal_copy_with_entries(archive)):
        verdict = verify_data(data, None, [PUBLIC])
        assert (verdict.kind, verdict.errors, verdict.facts["seal"]) == ("seal", [], "1")
        assert faulty_parts(verify_data(data, None, [STRANGER])) == ["key"]
    assert faulty_parts(verify_data(seal_copy_with_entries(archive)[:-1], None, [PUBLIC])) == ["seal"]


def test_detached_signature_is_recognised() -> None:
    assert is_detached(signed(attached=False))
    assert not is_detached(signed())
    assert not is_detached(b"\xd2\x00")
    assert not is_detached(b"{}")


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"hello", b"\xff", b'{"schema":"other"}', json_bytes(record())])
def test_files_that_are_not_proofs_are_rejected(data: bytes) -> None:
    with pytest.raises(NotAProofError, match="is not a proof"):
        verify_data(data, None, [PUBLIC])


@pytest.mark.parametrize("value", [{"schema": "pollux.proof/1"}, {MEMBER: {}}, {MEMBER: 5}, {MEMBER: {"seal": "!"}}])
def test_malformed_proofs_are_reported(value: dict[str, Any]) -> None:
    assert not verdict_on(value).is_ok


@given(st.binary(max_size=200))
def test_any_bytes_are_rejected(data: bytes) -> None:
    for file_data in (data, b"\xd2" + data, b"\x82" + data):
        with suppress(NotAProofError):
            assert not verify_data(file_data, None, [PUBLIC]).is_ok


def test_entry_of_a_newer_pollux_is_reported() -> None:
    """A sealed entry of an unknown kind is reported, not skipped."""
    body = json_bytes({"kind": "photograph"})
    seal = Seal(SCHEMA, 1, "2026-11-15T12:00:00.000Z", 1, merkle.leaf_hash(body).hex(), None)
    data = cose.sign(
        json_bytes(msgspec.to_builtins(seal)),
        KEY,
        content_type="application/json",
        claims={1: "a", 2: "pollux archive"},
    )
    entry = {"entry": {"kind": "photograph"}, "index": 0, "path": []}
    proof = {"schema": "pollux.proof/1", "session": "s", "seal": b64encode(data).decode(), "entries": [entry]}
    assert verdict_on(proof).errors[0].message == "entry 0 is of a kind that this Pollux does not know"
