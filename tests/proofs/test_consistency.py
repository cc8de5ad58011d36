"""Who keeps an old seal can be shown that nothing was taken away from what it is over, without being told anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.archive.test_verify import LOG, archived_home, damage, grown, synced
from tests.proofs.samples import PUBLIC, STRANGER, signed
from tests.proofs.sealing import bare, seal_it

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
        copies.append(bare(archive))
    return archive, copies


def proof_of(archive: Path, old: bytes) -> dict[str, Any]:
    with store.open_archive(archive, write=False) as opened:
        return json.loads(json_bytes(prove_consistency(opened, old)))  # type: ignore[no-any-return]


def test_every_old_seal(sealed: tuple[Path, list[bytes]]) -> None:
    archive, copies = sealed
    for number, old in enumerate(copies, 1):
        proof = proof_of(archive, old)
        found = verify_data(json_bytes(proof), old, [PUBLIC])
        assert found.is_fully_proven
        assert {"seal 4", f"seal {number}"} <= set(found.facts)
        assert "webapp" not in json.dumps(proof)


def test_old_seal_must_be_the_stored_one(sealed: tuple[Path, list[bytes]]) -> None:
    archive, copies = sealed
    proof = json_bytes(proof_of(archive, copies[0]))
    unknown = verify_data(proof, None, [PUBLIC])
    assert (unknown.is_ok, [one.names for one in unknown.unproven]) == (True, [("seal 1",)])
    assert verify_data(proof, SealCopy(copies[0], (b"{}",)).file_bytes, [PUBLIC]).is_fully_proven, (
        "kept with its entries"
    )
    other = verify_data(proof, copies[1], [PUBLIC])
    assert [one.message for one in other.errors] == ["the file is not the seal 1 that the proof starts from"]
    assert [one.what for one in verify_data(proof, b"x", [PUBLIC]).errors] == ["file"]


def test_another_order_is_no_continuation(sealed: tuple[Path, list[bytes]]) -> None:
    archive, copies = sealed
    proof = proof_of(archive, copies[0])
    for bad in (
        proof | {"old": proof["new"], "new": proof["old"]},
        proof | {"path": proof["path"][1:]},
        proof | {"path": [proof["path"][0], *proof["path"]]},
        proof | {"old": proof_of(archive, copies[1])["old"]},
    ):
        assert [one.what for one in verify_data(json_bytes(bad), None, [PUBLIC]).errors] == ["chain"]


def test_the_wrong_key(sealed: tuple[Path, list[bytes]]) -> None:
    archive, copies = sealed
    found = verify_data(json_bytes(proof_of(archive, copies[0])), None, [STRANGER])
    assert [one.what for one in found.errors] == ["key", "key"]


@pytest.mark.parametrize("change", [{"old": "!"}, {"path": ["zz"]}, {"more": 1}, {"new": "AAAA"}, {"path": 5}])
def test_malformed_proofs_are_rejected(sealed: tuple[Path, list[bytes]], change: dict[str, Any]) -> None:
    archive, copies = sealed
    found = verify_data(json_bytes(proof_of(archive, copies[0]) | change), None, [PUBLIC])
    assert [one.what for one in found.errors] == ["envelope"]


def test_an_inconsistent_archive_gives_no_proof(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    seal_it(archive)
    old = bare(archive)
    damage(archive, "UPDATE sealed SET body = x'00' WHERE place = 0")
    with pytest.raises(PolluxError, match="is not consistent with seal 1"):
        proof_of(archive, old)
    with pytest.raises(PolluxError, match="not the seal of an archive"):
        proof_of(archive, signed())
