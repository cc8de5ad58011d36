"""A proof needs no archive: it holds for its entries, its seal and its key, and for nothing that was changed."""

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
from tests.proofs.sealing import bare, full, record_of, seal_it

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
    _, found = archived_home(tmp_path_factory.mktemp("archived"))
    seal_it(found)
    return found


def proof_of(archive: Path, session: str = builders.SESSION) -> dict[str, Any]:
    with store.open_archive(archive, write=False) as opened:
        return json.loads(json_bytes(prove(opened, session)))  # type: ignore[no-any-return]


def copy_of(archive: Path, *names: str, session: str = builders.SESSION) -> dict[str, Any]:
    original = record_of(session)
    with store.open_archive(archive, write=False) as opened:
        shown = hide_values(original, lambda one: one.path[-1] in names)
        return json.loads(json_bytes(prove_record(opened, session, original, shown)))  # type: ignore[no-any-return]


def look(value: object, file: bytes | None = None) -> Verdict:
    return verify_data(json_bytes(value), file, [PUBLIC])  # type: ignore[arg-type]


def whats(found: Verdict) -> list[str]:
    return [one.what for one in found.errors]


def test_a_proof_of_a_session_with_all_that_belongs_to_it(archive: Path) -> None:
    found = look(proof_of(archive))
    assert (found.errors, found.notes) == ([], [])
    assert found.facts["session"] == builders.SESSION
    assert [(one.of, one.key, one.is_verified) for one in found.signers] == [("seal 1", PUBLIC, True)]
    paths = {path for _, _, path in found.digests}
    assert {LOG, f"tmp/webapp/chats/{builders.SESSION}/{CHILD}.jsonl", "tmp/webapp/run_shell_17.txt"} <= paths
    assert "tmp/webapp/run_shell_18.txt" not in paths


def test_a_file_is_one_that_was_sealed(archive: Path) -> None:
    (data,) = content_of(archive, LOG)
    proof = proof_of(archive)
    assert look(proof, data).notes == [f"the file is {LOG} as it was sealed"]
    for other in (b"", b"x" + data[1:]):
        (fault,) = look(proof, other).errors
        assert (fault.what, "is not one of the sealed files" in fault.message) == ("file", True)
    (fault,) = look(proof, data + b"{}\n").errors
    assert fault.message == f"only the first {len(data)} of its {len(data) + 3} bytes were sealed, as {LOG}"
    assert whats(look(proof, data[:-1])) == ["file"], "though it begins like a stub that was sealed"


def test_a_proof_is_smaller_than_the_archive(archive: Path) -> None:
    told = json.dumps(proof_of(archive))
    assert "xylophone" not in told
    assert len(told) < 20_000


def test_unsealed_sessions_cannot_be_proven(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    with pytest.raises(PolluxError, match="sealed yet"):
        proof_of(archive)


def test_a_grown_file_is_proven_up_to_its_sealed_length(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    seal_it(archive)
    (before,) = content_of(archive, LOG)
    grown(root, LOG, b"{}\n")
    synced(archive, root)
    assert look(proof_of(archive), before).is_ok
    seal_it(archive, hours=1)
    proof = proof_of(archive)
    assert whats(look(proof, before)) == ["file"], "the newest seal is over more"
    assert look(proof, before + b"{}\n").is_ok


def test_a_tampered_archive_gives_no_proof(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    seal_it(archive)
    damage(archive, "DELETE FROM sealed WHERE place = 0")
    with pytest.raises(PolluxError, match="does not match the sealed entries"):
        proof_of(archive)


def test_without_the_right_key(archive: Path) -> None:
    for keys in ([STRANGER], []):
        found = verify_data(json_bytes(proof_of(archive)), None, keys)
        assert whats(found) == ["key"]


def test_files_without_a_session_are_not_proven(tmp_path: Path) -> None:
    """The record of the session could not be sealed, so nothing ties the files to it."""
    _, archive = archived_home(tmp_path)

    def fails(_: str) -> dict[str, object]:
        raise PolluxError("odd")

    seal_it(archive, record_of=fails)
    with pytest.raises(PolluxError, match="is not sealed yet"):
        proof_of(archive)


def test_a_proof_of_nothing_fails(archive: Path) -> None:
    proof = proof_of(archive) | {"entries": []}
    for session in (builders.SESSION, "never-there"):
        (fault,) = look(proof | {"session": session}).errors
        assert fault.message == f"it has no sealed entry of session {session}, so it proves nothing about it"


def test_a_proof_without_the_entry_of_its_session_fails(archive: Path) -> None:
    proof, other = proof_of(archive), proof_of(archive, builders.OTHER)
    files = [one for one in other["entries"] if one["entry"]["kind"] == "file"]
    assert whats(look(proof | {"entries": files})) == ["leaf"]
    assert "was sealed for" in look(proof | {"entries": other["entries"]}).errors[0].message
    both = look(proof | {"entries": [*proof["entries"], *other["entries"]]})
    assert "leaf" in whats(both)


def test_no_file_of_the_session_can_be_left_out(archive: Path) -> None:
    proof = proof_of(archive)
    (session,) = (one["entry"] for one in proof["entries"] if one["entry"]["kind"] == "session")
    for digest in session["files"]:
        fewer = [one for one in proof["entries"] if one["entry"].get("sha256") != digest]
        (fault,) = look(proof | {"entries": fewer}).errors
        assert fault.message == f"it leaves out a file that the session was read from (SHA-256 {digest})"


def test_other_files_are_not_attributed_to_the_session(archive: Path) -> None:
    proof, other = proof_of(archive), proof_of(archive, builders.OTHER)
    there = {one["index"] for one in proof["entries"]}
    more = [one for one in other["entries"] if one["entry"]["kind"] == "file" and one["index"] not in there]
    assert more
    found = look(proof | {"entries": [*proof["entries"], *more]})
    assert not found.is_fully_proven
    (unproven,) = found.unproven
    assert {one["entry"]["path"] for one in more} <= {*unproven.names}
    assert LOG not in unproven.names
    assert "nothing proves that they belong to session" in unproven.sentence


def test_an_entry_counts_once(archive: Path) -> None:
    proof = proof_of(archive)
    found = look(proof | {"entries": [*proof["entries"], proof["entries"][-1]]})
    assert "it has the same entry twice" in [one.message for one in found.errors]


def test_a_seal_that_was_not_signed_as_one(archive: Path) -> None:
    """The holder of the key signed the same bytes as something else, such as a session file."""
    payload = cose.open_envelope(b64decode(proof_of(archive)["seal"])).payload or b""
    data = cose.sign(payload, KEY, content_type="application/json", claims={1: "a", 2: "a session"})
    found = look(proof_of(archive) | {"seal": b64encode(data).decode()})
    assert [one.message for one in found.errors] == [
        "its subject (CWT claim 2) is not 'pollux archive', so it was not signed as a seal"
    ]


def test_a_proof_with_parts_of_a_redacted_record(archive: Path) -> None:
    assert whats(look(proof_of(archive) | {"fields": []})) == ["envelope"]
    assert whats(look(proof_of(archive) | {"checks": ""})) == ["envelope"]


def leaves(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    if isinstance(value, dict | list) and value:
        keys = value if isinstance(value, dict) else range(len(value))
        return [found for key in keys for found in leaves(value[key], (*way, key))]
    return [way]


def with_changed(value: Any, way: tuple[Any, ...], new: object) -> Any:  # noqa: ANN401
    changed = deepcopy(value)
    inner = changed
    for one in way[:-1]:
        inner = inner[one]
    inner[way[-1]] = new
    return changed


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_of_a_proof_can_be_changed(archive: Path, data: st.DataObject) -> None:
    proof = proof_of(archive)
    way = data.draw(st.sampled_from(leaves(proof)))
    new: object = data.draw(st.sampled_from([0, "", "00" * 32, None, [], "x", 10**30, {"a": 1}]))
    found = with_changed(proof, way, new)
    if found != proof:
        try:
            assert not look(found).is_ok, way
        except NotAProofError:
            assert way == ("schema",)


@given(st.data())
def test_no_bit_of_its_seal_can_be_changed(archive: Path, data: st.DataObject) -> None:
    proof = proof_of(archive)
    seal = b64decode(proof["seal"])
    bad = flipped(seal, data.draw(st.integers(0, len(seal) - 1)), data.draw(st.integers(0, 7)))
    assert not look(proof | {"seal": b64encode(bad).decode()}).is_ok


# Redacted records


def test_a_redacted_record(archive: Path) -> None:
    copy = copy_of(archive, "output", "content")
    found = look(copy)
    assert (found.errors, found.notes) == ([], [])
    assert found.facts["session"] == builders.SESSION
    assert int(found.facts["shown"]) < int(found.facts["fields"])
    assert "hunter2" not in json.dumps(copy)
    assert copy["session"]["entries"][0]["content"] == "[redacted]"


def test_a_record_that_hides_nothing(archive: Path) -> None:
    found = look(copy_of(archive))
    assert found.is_ok
    assert found.facts["shown"] == found.facts["fields"]


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_of_a_redacted_record_can_be_changed(archive: Path, data: st.DataObject) -> None:
    copy = copy_of(archive, "content", "children")
    told = [way for way in leaves(copy) if way[-1] != "checks"]
    way = data.draw(st.sampled_from(told))
    new: object = data.draw(st.sampled_from([0, "", "00" * 32, None, [], "x", True]))
    found = with_changed(copy, way, new)
    if found != copy:
        assert not look(found).is_ok, way


def test_a_changed_field_is_named(archive: Path) -> None:
    copy = copy_of(archive, "output")
    bad = with_changed(copy, ("session", "entries", 0, "type"), "assistant")
    assert [one.message for one in look(bad).errors] == [
        "it shows something else than was sealed: /session/entries/0/type"
    ]
    wild = bad | {MEMBER: bad[MEMBER] | {"checks": "AAAA"}}
    assert look(wild).errors[0].message.endswith(" more"), "checks prove nothing, and may name too many"
    hidden = next(number for number, one in enumerate(copy[MEMBER]["fields"]) if "hidden" in one)
    other = with_changed(copy, (MEMBER, "fields", hidden), {"hidden": "00" * 32})
    assert [one.message for one in look(other).errors] == [
        "it shows something else than was sealed: its proof was changed"
    ]


def test_a_field_cannot_be_added_or_taken_away(archive: Path) -> None:
    copy = copy_of(archive, "output")
    assert whats(look(copy | {"more": 1})) == ["field"]
    less = deepcopy(copy)
    del less["session"]["session-end"]
    assert whats(look(less)) == ["field"]
    assert whats(look(copy | {MEMBER: copy[MEMBER] | {"fields": None}})) == ["field"]


def test_other_text_in_hidden_fields_is_reported(archive: Path) -> None:
    original = record_of(builders.SESSION)
    shown = deepcopy({**original})
    shown["session"]["entries"][0]["content"] = "where is the *****?"
    with store.open_archive(archive, write=False) as opened:
        copy = prove_record(opened, builders.SESSION, original, shown)
    assert [one.message for one in look(copy).errors] == [
        "hidden fields show other text, which nothing proves: /session/entries/0/content"
    ]
    found = verify_data(signed(json_bytes(copy)), None, [PUBLIC])
    assert found.is_ok
    assert found.notes == [
        "hidden fields show other text, for which only the signer vouches: /session/entries/0/content",
        "no seal covers these members, for which only the signer vouches: created, recording-agent",
    ]
    assert not verify_data(signed(json_bytes(copy)), None, [STRANGER]).is_ok


@pytest.mark.parametrize("name", ["created", "recording-agent", "redacted", "vcs"])
def test_members_that_no_seal_covers_are_named(archive: Path, name: str) -> None:
    copy = copy_of(archive, "output")
    assert look(copy).is_fully_proven
    forged = copy | {name: "forged"}
    found = look(forged)
    assert [one.names for one in found.unproven] == [(name,)]
    assert f"Nothing proves these members, which no seal covers and anyone can have set: {name}" in (
        found.unproven[0].sentence
    )
    by_signer = verify_data(signed(json_bytes(forged)), None, [PUBLIC])
    assert (by_signer.is_fully_proven, by_signer.notes) == (
        True,
        [f"no seal covers these members, for which only the signer vouches: {name}"],
    )
    by_stranger = verify_data(signed(json_bytes(forged)), None, [STRANGER])
    assert [one.names for one in by_stranger.unproven] == [(name,)]


def test_a_member_cannot_be_named_twice(archive: Path) -> None:
    data = json_bytes(copy_of(archive, "output"))
    forged = b'{"session":{"entries":[]},' + data[1:]
    with pytest.raises(NotAProofError, match="an object has the member 'session' twice"):
        verify_data(forged, None, [PUBLIC])


def test_the_signer_of_a_record_is_not_the_sealer(archive: Path) -> None:
    data = signing.sign(
        json_bytes(copy_of(archive, "output")),
        OTHER,
        trace_from_record(copy_of(archive, "output")),
        content_type=signing.JSON,
        at=AT,
        issuer="mailto:bob@example.org",
        attached=True,
    )
    found = verify_data(data, None, [PUBLIC, STRANGER])
    assert [(one.of, one.key, one.issuer) for one in found.signers] == [
        ("signature", STRANGER, "mailto:bob@example.org"),
        ("seal 1", PUBLIC, PUBLIC.uri),
    ]


def test_a_redacted_record_has_the_entry_of_its_session_alone(archive: Path) -> None:
    copy, proof = copy_of(archive, "output"), proof_of(archive)
    assert whats(look(with_changed(copy, (MEMBER, "entries"), []))) == ["leaf"]
    assert whats(look(with_changed(copy, (MEMBER, "entries"), proof["entries"]))) == ["leaf"]


def test_a_commitment_of_an_older_form_proves_no_redacted_record(tmp_path: Path) -> None:
    """In that form anybody could remove fields from a redacted record without a trace."""
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
    found = look(record() | {MEMBER: {**proof, "fields": []}})
    assert "sealed by another version of Pollux" in found.errors[0].message
    assert seal_it(archive, hours=1).new.n_sessions >= 1, "the next seal commits to it in the new form"
    assert look(copy_of(archive, "output")).is_fully_proven


def test_a_record_that_was_not_sealed_so(archive: Path) -> None:
    with store.open_archive(archive, write=False) as opened:
        other = record(id="another")
        with pytest.raises(PolluxError, match=f"Run `pollux archive seal {builders.SESSION}`"):
            prove_record(opened, builders.SESSION, other, other)


def test_a_proof_of_another_session_cannot_be_borrowed(archive: Path) -> None:
    one, other = copy_of(archive, "output"), copy_of(archive, "output", session=builders.OTHER)
    assert not look(one | {MEMBER: one[MEMBER] | {"entries": other[MEMBER]["entries"]}}).is_ok
    assert not look(one | {MEMBER: other[MEMBER]}).is_ok


def test_a_signed_redacted_record_is_looked_at_twice(archive: Path) -> None:
    payload = json_bytes(copy_of(archive, "output"))
    assert verify_data(signed(payload), None, [PUBLIC]).facts["seal"] == "1"
    assert verify_data(signed(payload, attached=False), payload, [PUBLIC]).is_ok
    changed = payload.replace(b"under the mat", b"in the drawer")
    found = verify_data(signed(changed), None, [PUBLIC])
    assert whats(found) == ["field"], "it is signed, but has changed since it was sealed"


# Whatever is looked at


def test_a_seal_by_itself(archive: Path) -> None:
    for data in (bare(archive), full(archive)):
        found = verify_data(data, None, [PUBLIC])
        assert (found.kind, found.errors, found.facts["seal"]) == ("seal", [], "1")
        assert whats(verify_data(data, None, [STRANGER])) == ["key"]
    assert whats(verify_data(full(archive)[:-1], None, [PUBLIC])) == ["seal"]


def test_detached() -> None:
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
    assert not look(value).is_ok


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for one in (data, b"\xd2" + data, b"\x82" + data):
        with suppress(NotAProofError):
            assert not verify_data(one, None, [PUBLIC]).is_ok


def test_an_entry_of_a_newer_pollux() -> None:
    """One that is sealed, but of a kind that is not known yet: it is said, and not left out."""
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
    assert look(proof).errors[0].message == "entry 0 is of a kind that this Pollux does not know"
