"""Seals of an import are checked separately, and are adopted only from a matching backup of the same archive."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.archive.test_verify import LOG, archived_home, changed, damage, grown, lived_in, synced
from tests.proofs.samples import OTHER, PUBLIC, STRANGER
from tests.proofs.sealing import seal_it, verify
from tests.proofs.test_seal import alter_segment

from pollux.archive import foreign, import_archive, seals, store
from pollux.proofs import seal as sealing
from pollux.proofs.public import PublicKey, thumbprint_text
from pollux.proofs.verify_archive import adopt_own, check_imported, describe_imported


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Return a sealed archive for an import."""
    _, archive = archived_home(tmp_path)
    seal_it(archive)
    return archive


def imported(archive: Path, other: Path, *own: PublicKey) -> tuple[int, int]:
    """Import an archive; return the number of new seals, and the number that were adopted."""
    with store.open_archive(archive) as ours, foreign.open_foreign(other) as theirs:
        return import_archive.import_archive(ours, theirs, memory={}, now_us=1).n_seals, adopt_own(ours, own)


def notes(archive: Path, *keys: PublicKey) -> list[str]:
    with store.open_archive(archive, write=False) as opened:
        return [
            describe_imported(chain, check_imported(opened, chain, keys)) for chain in seals.chains(opened.database)
        ]


def test_own_backup_restores_its_seals_but_not_its_secret(tmp_path: Path, backup: Path) -> None:
    archive = tmp_path / "new.db"
    assert imported(archive, backup, PUBLIC) == (1, 1)
    assert verify(archive).is_ok
    assert notes(archive, PUBLIC) == []
    with store.open_archive(archive) as ours, store.open_archive(backup, write=False) as theirs:
        assert seals.known_secret(ours.database) is None
        assert seals.secret(ours.database) != seals.known_secret(theirs.database)
    assert imported(archive, backup, PUBLIC) == (0, 0)


def test_foreign_seals_do_not_affect_own_verification(tmp_path: Path, backup: Path) -> None:
    archive = tmp_path / "mine.db"
    synced(archive, lived_in(tmp_path / "second"))
    assert imported(archive, backup, STRANGER) == (1, 0)
    assert imported(archive, backup, STRANGER) == (0, 0)
    with store.open_archive(archive, write=False) as opened:
        assert (seals.seals(opened.database), seals.entries(opened.database)) == ([], [])
    made = sealing.seal
    with store.open_archive(archive) as opened:
        assert made(opened, OTHER, at=builders.instant_of(0), record_of=lambda _: {"session": {}}).seal
    verdict = verify(archive, keys=(STRANGER,))
    assert (verdict.is_ok, verdict.facts["entries"]) == (True, verdict.facts["entries"])
    (words,) = notes(archive, STRANGER)
    assert f"not confirmed: key: seal 1 is signed with the unknown key {thumbprint_text(PUBLIC.id)}" in words
    (words,) = notes(archive, STRANGER, PUBLIC)
    assert words.endswith("the imported files match")


def test_longer_chain_replaces_its_shorter_copy(tmp_path: Path, backup: Path) -> None:
    archive = tmp_path / "mine.db"
    assert imported(archive, backup) == (1, 0)
    grown(tmp_path / "home", LOG, builders.log(builders.user("u3", "and on", second=9)))
    synced(backup, tmp_path / "home")
    seal_it(backup, hours=1)
    assert imported(archive, backup) == (1, 0)
    (words,) = notes(archive, PUBLIC)
    assert words.startswith("2 seals of an imported archive")
    assert words.endswith("the imported files match")


@pytest.mark.parametrize("is_unsealed", [True, False])
def test_tampered_backup_does_not_fail_own_verification(
    tmp_path: Path,
    backup: Path,
    is_unsealed: bool,  # noqa: FBT001
) -> None:
    with changed(backup) as database:
        (segment_id,) = database.execute("SELECT id FROM segments WHERE base_id IS NULL LIMIT 1").fetchone()
    alter_segment(backup, segment_id)
    archive = tmp_path / "mine.db"
    if not is_unsealed:
        synced(archive, lived_in(tmp_path / "second"))
        seal_it(archive)
    assert imported(archive, backup, PUBLIC) == (1, 0)
    (words,) = notes(archive, PUBLIC)
    assert "sealed bytes were not imported" in words
    if not is_unsealed:
        assert verify(archive).is_ok


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE seals SET body = x'd28443a10126a0f640'",
        "UPDATE seals SET body = x'00'",
        "UPDATE seals SET number = 7",
        "UPDATE sealed SET body = x'7b7d' WHERE place = 0",
        "DELETE FROM sealed WHERE place = 0",
        "INSERT INTO seals SELECT 2, body FROM seals",
    ],
)
def test_changed_seals_are_not_adopted(tmp_path: Path, backup: Path, statement: str) -> None:
    damage(backup, statement)
    archive = tmp_path / "mine.db"
    assert imported(archive, backup, PUBLIC)[1] == 0
    (words,) = notes(archive, PUBLIC)
    assert "not confirmed" in words


def test_forgotten_file_is_not_missing_from_an_import(tmp_path: Path, backup: Path) -> None:
    archive = tmp_path / "mine.db"
    imported(archive, backup)
    with changed(archive) as database:
        (file_id,) = database.execute("SELECT id FROM files WHERE path LIKE '%run_shell_18%'").fetchone()
        database.execute(
            "DELETE FROM segments WHERE version_id IN (SELECT id FROM versions WHERE file_id = ?)", (file_id,)
        )
        database.execute("DELETE FROM versions WHERE file_id = ?", (file_id,))
        database.execute("UPDATE files SET forgotten_us = 1, version_id = NULL WHERE id = ?", (file_id,))
    (words,) = notes(archive, PUBLIC)
    assert words.endswith("the imported files match")
