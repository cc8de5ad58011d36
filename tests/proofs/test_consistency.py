"""A consistency proof shows that an archive still contains all entries of an old seal, without revealing entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.archive.test_verify import LOG, archived_home, damage, grown, synced
from tests.proofs.samples import PUBLIC, STRANGER, signed
from tests.proofs.sealing import seal_copy, seal_it

from pollux.archive import store
from pollux.errors import PolluxError
from pollux.proofs.canonical import json_bytes
from pollux.proofs.chain import SealCopy
from pollux.proofs.inclusion import prove_consistency
from pollux.proofs.verify import verify_data


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    root, archive = archived_home(tmp_path_factory.mktemp("archived"))
    copies = []
    for hour in range(4):
        grown(root, LOG, builders.log(builders.user(f"v{hour}", "more", second=20 + hour)))
        synced(archive, root)
        seal_it(archive, hours=hour)
        copies.append(seal_copy(archive))
    return archive, copies


def proof_of(archive: Path, old: bytes) -> dict[str, Any]:
    with store.open_archive(archive, write=False) as opened:
        return json.loads(json_bytes(prove_consistency(opened, old)))  # type: ignore[no-any-return]


def test_each_old_seal_is_proven_consistent(sealed: tuple[Path, list[bytes]]) -> None:
    archive, copies = sealed
    for number, old in enumerate(copies, 1):
        proof = proof_of(archive, old)
        verdict = verify_data(json_bytes(proof), old, [PUBLIC])
        assert verdict.is_fully_proven
        assert {"seal 4", f"seal {number}"} <= set(verdict.facts)
        assert "webapp" not in json.dumps(proof)


def test_old_seal_must_be_the_stored_one(sealed: tuple[Path, list[bytes]]) -> None:
    archive, copies = sealed
    proof = json_bytes(proof_of(archive, copies[0]))
    unknown = verify_data(proof, None, [PUBLIC])
    assert (unknown.is_ok, [item.names for item in unknown.unproven]) == (True, [("seal 1",)])
    assert verify_data(proof, SealCopy(copies[0], (b"{}",)).file_bytes, [PUBLIC]).is_fully_proven, (
        "the copy contains its entries"
    )
    other = verify_data(proof, copies[1], [PUBLIC])
    assert [error.message for error in other.errors] == ["the file is not the seal 1 that the proof starts from"]
    assert [error.what for error in verify_data(proof, b"x", [PUBLIC]).errors] == ["file"]


def test_reordered_entries_are_not_consistent(sealed: tuple[Path, list[bytes]]) -> None:
    archive, copies = sealed
    proof = proof_of(archive, copies[0])
    for bad in (
        proof | {"old": proof["new"], "new": proof["old"]},
        proof | {"path": proof["path"][1:]},
        proof | {"path": [proof["path"][0], *proof["path"]]},
        proof | {"old": proof_of(archive, copies[1])["old"]},
    ):
        assert [error.what for error in verify_data(json_bytes(bad), None, [PUBLIC]).errors] == ["chain"]


def test_proof_with_another_key_is_rejected(sealed: tuple[Path, list[bytes]]) -> None:
    archive, copies = sealed
    verdict = verify_data(json_bytes(proof_of(archive, copies[0])), None, [STRANGER])
    assert [error.what for error in verdict.errors] == ["key", "key"]


@pytest.mark.parametrize("change", [{"old": "!"}, {"path": ["zz"]}, {"more": 1}, {"new": "AAAA"}, {"path": 5}])
def test_malformed_proofs_are_rejected(sealed: tuple[Path, list[bytes]], change: dict[str, Any]) -> None:
    archive, copies = sealed
    verdict = verify_data(json_bytes(proof_of(archive, copies[0]) | change), None, [PUBLIC])
    assert [error.what for error in verdict.errors] == ["envelope"]


def test_an_inconsistent_archive_gives_no_proof(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    seal_it(archive)
    old = seal_copy(archive)
    damage(archive, "UPDATE sealed SET body = x'00' WHERE place = 0")
    with pytest.raises(PolluxError, match="is not consistent with seal 1"):
        proof_of(archive, old)
    with pytest.raises(PolluxError, match="not the seal of an archive"):
        proof_of(archive, signed())
