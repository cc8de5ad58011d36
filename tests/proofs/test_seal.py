"""A seal covers all files archived at its time; each later change or removal is reported."""
# ruff: noqa: S608  the statements contain only values of these tests

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests import builders
from tests.archive.older import revert
from tests.archive.test_verify import (
    DOCUMENT,
    LOG,
    archived_home,
    changed,
    content_of,
    damage,
    grown,
    lived_in,
    rewritten,
    segments_of,
    synced,
)
from tests.proofs.samples import KEY, PUBLIC, STRANGER, flipped, signed
from tests.proofs.sealing import messages, seal_copy, seal_copy_with_entries, seal_it, verify

from pollux.archive import foreign, forget, import_archive, maintenance, raw, seals, store
from pollux.archive.maintenance import backup
from pollux.errors import ArchiveError, PolluxError
from pollux.proofs import chain, cose, merkle
from pollux.proofs.canonical import sha256
from pollux.proofs.entries import FileEntry, ForgottenEntry, SessionEntry, entry_from
from pollux.proofs.public import thumbprint_text
from pollux.proofs.seal import seal_from
from pollux.proofs.verdict import Verdict
from pollux.proofs.verify_archive import adopt_own


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return an archive with two seals, between which one file grew, one was rewritten and one was added."""
    root, sealed = archived_home(tmp_path)
    seal_it(sealed)
    grown(root, LOG, builders.log(builders.user("u3", "and on", second=9)))
    rewritten(root, 11, 12, 13)
    builders.put(root / ".gemini/tmp/webapp/shell_history", b"ls\n")
    synced(sealed, root)
    seal_it(sealed, hours=1)
    return sealed


def entries_of(archive: Path) -> list[object]:
    with store.open_archive(archive, write=False) as opened:
        return [entry_from(body) for _, body in seals.entries(opened.database)]


def place(archive: Path, path: str) -> str:
    return str(archive.parent / "home" / ".gemini" / path)


def test_sealed_archive_verifies(archive: Path) -> None:
    verdict = verify(archive)
    assert (verdict.errors, verdict.notes) == ([], [])
    assert verdict.facts["seal"] == "2"
    assert verdict.facts["sealed at"] == "2026-11-15T13:00:00.000Z"
    assert verify(archive, seal_copy(archive)).is_ok
    assert verify(archive, seal_copy_with_entries(archive)).is_ok


def test_each_version_of_files_and_sessions_is_sealed(archive: Path) -> None:
    entries = entries_of(archive)
    files = [entry for entry in entries if isinstance(entry, FileEntry)]
    log = [file for file in files if file.path == LOG]
    document = [file for file in files if file.path == DOCUMENT]
    assert len({file.first_seen_us for file in log}) == 1, "one version that grew"
    assert len({file.first_seen_us for file in document}) == 3, "three versions"
    (content,) = content_of(archive, LOG)
    for file in log:
        assert file.sha256 == sha256(content[: file.length]).hex()
    assert [file.length for file in log][-1] == len(content)
    sessions = [entry.session for entry in entries if isinstance(entry, SessionEntry)]
    assert sessions.count(builders.SESSION) == 2, "once more after the session grew"
    assert [len(sessions), len({*sessions})] == [5, 3]


def test_seal_contains_number_predecessor_size_and_root(archive: Path) -> None:
    with store.open_archive(archive, write=False) as opened:
        (_, first), (_, second) = seals.seals(opened.database)
        bodies = [body for _, body in seals.entries(opened.database)]
    earlier, later = seal_from(first)[0], seal_from(second)[0]
    assert (earlier.number, earlier.previous, later.number) == (1, None, 2)
    assert later.previous == sha256(first).hex()
    assert later.size == len(bodies)
    assert later.root == merkle.root([merkle.leaf_hash(body) for body in bodies]).hex()
    assert all(json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode() == body for body in bodies)


def test_unchanged_archive_gets_no_new_seal(archive: Path) -> None:
    outcome = seal_it(archive, hours=2)
    assert (outcome.is_new, outcome.new.n_files, outcome.new.n_sessions) == (False, 0, 0)
    assert outcome.seal
    assert outcome.seal.number == 2
    assert outcome.data == seal_copy(archive)


def test_changed_record_of_a_session_is_sealed_on_demand(archive: Path) -> None:
    outcome = seal_it(
        archive, again=[builders.SESSION], record_of=lambda session: {"id": session, "more": "known by now"}
    )
    assert (outcome.is_new, outcome.new.n_files, outcome.new.n_sessions) == (True, 0, 1)
    assert not seal_it(
        archive, again=[builders.SESSION], record_of=lambda session: {"id": session, "more": "known by now"}
    ).is_new


def test_empty_archive_is_not_sealed(tmp_path: Path) -> None:
    synced(tmp_path / "archive.db", tmp_path / "nobody")
    outcome = seal_it(tmp_path / "archive.db")
    assert (outcome.seal, outcome.is_new) == (None, False)
    with pytest.raises(PolluxError, match="has no seal yet"):
        verify(tmp_path / "archive.db")


def test_failed_record_is_a_problem_and_does_not_stop_sealing(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)

    def fails(session: str) -> dict[str, object]:
        raise PolluxError(f"{session} is odd.")

    outcome = seal_it(archive, record_of=fails)
    assert {problem.code for problem in outcome.new.problems} == {"not-sealed"}
    assert outcome.is_new
    assert verify(archive).is_ok


def test_damaged_bytes_are_not_sealed(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(archive, "UPDATE segments SET sha256 = zeroblob(32) WHERE id = 1")
    outcome = seal_it(archive)
    assert [problem.code for problem in outcome.new.problems] == ["damaged-archive"]
    assert "damaged" in outcome.new.problems[0].message


# Permitted changes of a sealed archive


def test_grown_archive_verifies(archive: Path, tmp_path: Path) -> None:
    root = tmp_path / "home"
    grown(root, LOG, builders.log(builders.user("u4", "more", second=12)))
    rewritten(root, 14)
    synced(archive, root)
    assert verify(archive).is_ok


def test_compacted_archive_verifies(archive: Path) -> None:
    with store.open_archive(archive) as opened:
        assert maintenance.compact(opened).n_merged
    assert verify(archive).is_ok


def test_backup_verifies(archive: Path, tmp_path: Path) -> None:
    backup(archive, tmp_path / "copy.db")
    assert verify(tmp_path / "copy.db").is_ok


def test_seals_are_adopted_by_an_import_into_a_new_archive(archive: Path, tmp_path: Path) -> None:
    with store.open_archive(archive) as opened:
        forget.forget(opened, [builders.OTHER], now_us=1_794_700_000_000_000, memory={})
    seal_it(archive, hours=2)
    for n_seals, n_adopted in ((3, 3), (0, 0)):  # a second import changes nothing
        with store.open_archive(tmp_path / "new.db") as ours, foreign.open_foreign(archive) as theirs:
            assert import_archive.import_archive(ours, theirs, memory={}, now_us=1).n_seals == n_seals
            assert adopt_own(ours, [PUBLIC]) == n_adopted
            assert seals.known_secret(ours.database) is None
        assert verify(tmp_path / "new.db").is_ok
    assert seal_it(tmp_path / "new.db", hours=3, again=[builders.SESSION]).is_new
    assert verify(tmp_path / "new.db").is_ok


def test_import_into_a_sealed_archive_keeps_it_valid(archive: Path, tmp_path: Path) -> None:
    other = lived_in(tmp_path / "other")
    with (other / ".gemini" / LOG).open("ab") as file:
        file.write(builders.log(builders.user("u9", "elsewhere", second=40)))
    synced(tmp_path / "other.db", other)
    with store.open_archive(archive) as ours, foreign.open_foreign(tmp_path / "other.db") as theirs:
        assert import_archive.import_archive(ours, theirs, memory={}, now_us=1).n_files
    assert verify(archive).is_ok
    assert seal_it(archive, hours=3).is_new
    assert verify(archive).is_ok


def test_forgotten_files_are_not_missing(archive: Path) -> None:
    before = seal_copy(archive)
    with store.open_archive(archive) as opened:
        forget.forget(opened, [builders.SESSION], now_us=1_794_700_000_000_000, memory={})
    verdict = verify(archive)
    assert verdict.is_ok
    assert len(verdict.notes) >= 5
    assert all(note.endswith("forgotten by you on 2026-11-14, which no seal confirms yet") for note in verdict.notes)
    done = seal_it(archive, hours=2)
    assert place(archive, LOG) in done.new.forgotten
    assert [entry for entry in entries_of(archive) if isinstance(entry, ForgottenEntry)]
    for copy in (None, before):
        verdict = verify(archive, copy)
        assert verdict.is_ok
        assert all(note.endswith("which a seal confirms") for note in verdict.notes)
    assert not seal_it(archive, hours=3).is_new


def test_archive_of_an_older_pollux_can_be_sealed(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    revert(archive, "raw")
    with pytest.raises(PolluxError, match="has no seal yet"):
        verify(archive)
    with store.open_archive(archive, write=False) as opened:
        assert seals.known_secret(opened.database) is None
    assert seal_it(archive).is_new
    assert verify(archive).is_ok


# Tampering with write access to the archive, but without the key


def alter_segment(archive: Path, segment_id: int) -> None:
    """Change a byte of a segment and its hash, so that only a seal reveals it."""
    with store.open_archive(archive) as opened:
        data = bytearray(raw.content(opened.database, segment_id))
        data[-2] ^= 1
        made = raw._packed(0, bytes(data))
        opened.database.execute(
            "UPDATE segments SET data = ?, sha256 = ?, base_id = NULL, depth = 0 WHERE id = ?",
            (made.data, made.sha256, segment_id),
        )


def test_altered_segment_is_reported(archive: Path) -> None:
    alter_segment(archive, segments_of(archive, LOG)[0][0])
    (fault,) = verify(archive).errors
    assert fault.file == place(archive, LOG)
    assert fault.message.startswith("seal 1 covers ")
    assert fault.message.endswith("they were altered: their SHA-256 differs")


def test_altered_end_leaves_the_beginning_proven(archive: Path) -> None:
    segment_id, _, start, _ = segments_of(archive, LOG)[-1]
    alter_segment(archive, segment_id)
    (fault,) = verify(archive).errors
    assert fault.message.startswith("seal 2 covers ")
    assert fault.message.endswith(f"their SHA-256 differs; its first {start} bytes are unchanged")


def test_altered_segment_with_its_old_hash_is_reported(archive: Path) -> None:
    segment_id, _, start, _ = segments_of(archive, LOG)[1]
    damage(archive, f"UPDATE segments SET sha256 = zeroblob(32) WHERE id = {segment_id}")
    (fault,) = verify(archive).errors
    assert f"its bytes from {start} on are damaged" in fault.message


def test_removed_segment_is_reported(archive: Path) -> None:
    first, second, *_ = segments_of(archive, LOG)
    damage(archive, f"DELETE FROM segments WHERE id = {second[0]}")
    (fault,) = verify(archive).errors
    assert f"its bytes from {second[2]} on are missing" in fault.message
    damage(archive, f"DELETE FROM segments WHERE id = {first[0]}")
    assert "its bytes from 0 on are missing" in messages(verify(archive))[0]


def test_segment_that_cannot_be_unpacked_is_reported(archive: Path) -> None:
    damage(archive, f"UPDATE segments SET data = x'00' WHERE id = {segments_of(archive, LOG)[0][0]}")
    assert "cannot be decompressed" in messages(verify(archive))[0]


def test_shortened_file_is_reported(archive: Path) -> None:
    segment_id, _, start, _ = segments_of(archive, LOG)[-1]
    damage(
        archive,
        f"UPDATE versions SET archived_bytes = {start} "
        f"WHERE id = (SELECT version_id FROM segments WHERE id = {segment_id})",
        f"DELETE FROM segments WHERE id = {segment_id}",
    )
    (fault,) = verify(archive).errors
    assert f"the archive has only {start}; its first {start} bytes are unchanged" in fault.message


def versions_of(archive: Path, path: str) -> list[int]:
    with changed(archive) as database:
        rows = database.execute(
            "SELECT versions.id FROM versions JOIN files ON files.id = file_id WHERE path = ? ORDER BY number", (path,)
        )
        return [row[0] for row in rows]


def remove_version(archive: Path, version_id: int) -> None:
    damage(
        archive,
        f"DELETE FROM segments WHERE version_id = {version_id}",
        f"DELETE FROM versions WHERE id = {version_id}",
    )


def test_removed_file_is_reported(archive: Path) -> None:
    (only,) = versions_of(archive, LOG)
    remove_version(archive, only)
    assert "the archive has none of them" in messages(verify(archive))[0]
    damage(archive, f"DELETE FROM files WHERE path = '{LOG}'")
    (fault,) = verify(archive).errors
    assert fault.file == place(archive, LOG)
    assert "it is missing from the archive" in fault.message


def test_removed_version_is_reported(archive: Path) -> None:
    remove_version(archive, versions_of(archive, DOCUMENT)[-1])
    (fault,) = verify(archive).errors
    assert fault.file == place(archive, DOCUMENT)
    assert "the version first seen at" in fault.message


def test_changed_time_is_reported(archive: Path) -> None:
    damage(archive, "UPDATE versions SET first_us = 0 WHERE id = 1")
    (fault,) = verify(archive).errors
    assert "the archive now says that it first saw them at 1970-01-01T00:00:00.000Z, not at " in fault.message


def test_versions_with_the_same_beginning_verify(tmp_path: Path) -> None:
    """A log is cut to its first line and continues differently, so that both versions begin with the sealed bytes."""
    root, archive = archived_home(tmp_path)
    seal_it(archive)
    content = (root / ".gemini" / LOG).read_bytes()
    head = content[: content.index(b"\n") + 1]
    for hour, data in enumerate((head, head + b"{}\n", head), 1):
        (root / ".gemini" / LOG).write_bytes(data)
        synced(archive, root)
        seal_it(archive, hours=hour)
        assert verify(archive).errors == []
    assert len(versions_of(archive, LOG)) == 3


def test_forged_tombstone_is_listed_as_unconfirmed(archive: Path) -> None:
    """Forging a tombstone needs only write access, so it is listed as unconfirmed until a seal covers it."""
    damage(archive, f"UPDATE files SET forgotten_us = 1 WHERE path = '{LOG}'")
    assert verify(archive).notes == [], "its bytes are still there and equal the sealed ones"
    remove_version(archive, *versions_of(archive, LOG))
    (note,) = verify(archive).notes
    assert note.startswith(place(archive, LOG))
    assert note.endswith("which no seal confirms yet")


# Tampering with the seals themselves


def seal_rows(archive: Path) -> dict[int, bytes]:
    with changed(archive) as database:
        return dict(database.execute("SELECT number, body FROM seals").fetchall())


def test_removed_seal_is_reported(archive: Path) -> None:
    damage(archive, "DELETE FROM seals WHERE number = 1")
    assert messages(verify(archive)) == ["chain: seal 1 is missing before seal 2"]


def test_removed_seals_in_the_middle_are_reported(archive: Path, tmp_path: Path) -> None:
    for hour in (2, 3):
        grown(tmp_path / "home", LOG, builders.log(builders.user(f"u{hour}0", "more", second=20 + hour)))
        synced(archive, tmp_path / "home")
        seal_it(archive, hours=hour)
    damage(archive, "DELETE FROM seals WHERE number IN (2, 3)")
    assert messages(verify(archive)) == ["chain: seals 2–3 are missing before seal 4"]


def test_swapped_seals_are_reported(archive: Path) -> None:
    rows = seal_rows(archive)
    with changed(archive) as database:
        database.execute("UPDATE seals SET body = ? WHERE number = 1", (rows[2],))
        database.execute("UPDATE seals SET body = ? WHERE number = 2", (rows[1],))
    faults = messages(verify(archive))
    assert "chain: the seal in place 1 has the number 2" in faults
    assert "chain: the seal in place 2 has the number 1" in faults


@pytest.mark.parametrize("number", [1, 2])
def test_any_changed_byte_of_a_seal_is_reported(archive: Path, number: int) -> None:
    rows = seal_rows(archive)
    with changed(archive) as database:
        entries = seals.entries(database)
    for index in range(len(rows[number])):
        changed_rows = [*(rows | {number: flipped(rows[number], index)}).items()]
        verdict = Verdict("archive")
        chain.check_chain(changed_rows, entries, [PUBLIC], verdict)
        assert any(f"seal {number}" in error.message for error in verdict.errors), (index, messages(verdict))


def test_unreadable_seal_is_reported(archive: Path) -> None:
    damage(archive, "UPDATE seals SET body = x'00' WHERE number = 1")
    faults = messages(verify(archive))
    assert faults[0].startswith("seal: seal 1 cannot be read: ")
    assert "chain: seal 2 does not continue seal 1 of this archive" in faults


def test_chain_with_an_unknown_key_fails(archive: Path) -> None:
    verdict = verify(archive, keys=(STRANGER,))
    assert {error.what for error in verdict.errors} == {"key"}
    assert all(thumbprint_text(PUBLIC.id) in error.message for error in verdict.errors)
    assert len(verdict.errors) == 2


def test_altered_entry_is_reported(archive: Path) -> None:
    with changed(archive) as database:
        body = database.execute("SELECT body FROM sealed WHERE place = 3").fetchone()[0]
        database.execute("UPDATE sealed SET body = ? WHERE place = 3", (body.replace(b'"length":', b'"length":1'),))
    faults = messages(verify(archive))
    assert faults[0].startswith("leaf: one of the sealed entries 0–")
    assert "was altered, added or removed: seal 1 has another root" in faults[0]
    damage(archive, "UPDATE sealed SET body = x'00' WHERE place = 3")
    assert "leaf: sealed entry 3 cannot be read" in messages(verify(archive))


def test_removed_entries_are_reported(archive: Path) -> None:
    damage(archive, "DELETE FROM sealed WHERE place IN (3, 4)")
    faults = messages(verify(archive))
    assert "leaf: sealed entries 3–4 are missing" in faults
    assert any("seal 1 has another root" in message for message in faults)


def test_entries_without_a_seal_are_reported(archive: Path) -> None:
    damage(archive, "INSERT INTO sealed SELECT max(place) + 1, body FROM sealed")
    (message,) = messages(verify(archive))
    assert message.startswith("leaf: no seal covers the entries from ")


def test_shortened_list_of_entries_is_reported(archive: Path) -> None:
    damage(archive, "DELETE FROM sealed WHERE place = (SELECT max(place) FROM sealed)")
    (fault,) = verify(archive).errors
    assert "seal 2 covers" in fault.message


def test_tampered_archive_is_not_sealed_again(archive: Path) -> None:
    damage(archive, "DELETE FROM sealed WHERE place = (SELECT max(place) FROM sealed)")
    with pytest.raises(PolluxError, match="does not match the sealed entries"):
        seal_it(archive)
    damage(archive, "DELETE FROM seals")
    with pytest.raises(PolluxError, match="without a seal"):
        seal_it(archive)


def test_repeated_earlier_seal_is_reported(archive: Path) -> None:
    rows = seal_rows(archive)
    with changed(archive) as database:
        database.execute("INSERT INTO seals VALUES (3, ?)", (rows[1],))
    faults = messages(verify(archive))
    assert "chain: a later seal covers fewer entries than an earlier one" in faults


# A shortened chain, which only a copy of the last seal in another place reveals


def shorten_chain(archive: Path) -> None:
    size = seal_from(seal_rows(archive)[1])[0].size
    damage(archive, "DELETE FROM seals WHERE number = 2", f"DELETE FROM sealed WHERE place >= {size}")


@pytest.mark.parametrize("make_copy", [seal_copy, seal_copy_with_entries])
def test_shortened_chain_is_reported_with_a_copy_of_its_last_seal(archive: Path, make_copy: object) -> None:
    outside_copy = make_copy(archive)  # type: ignore[operator]
    shorten_chain(archive)
    assert verify(archive).is_ok, "without the copy, it looks like an archive with one seal"
    faults = messages(verify(archive, outside_copy))
    assert "chain: the given seal 2 is not in the archive: its last seal is 1" in faults
    assert any(message.endswith("of the given seal 2") for message in faults)


def test_copy_with_entries_names_missing_files(archive: Path) -> None:
    outside_copy = seal_copy_with_entries(archive)
    shorten_chain(archive)
    damage(archive, "DELETE FROM files WHERE path = 'tmp/webapp/shell_history'")
    verdict = verify(archive, outside_copy)
    assert place(archive, "tmp/webapp/shell_history") in {error.file for error in verdict.errors}
    damage(archive, "DELETE FROM seals", "DELETE FROM sealed")
    verdict = verify(archive, outside_copy)
    assert "chain: the given seal 2 is not in the archive: it has no seal" in messages(verdict)
    assert place(archive, "tmp/webapp/shell_history") in {error.file for error in verdict.errors}


def test_rewritten_chain_is_reported_with_a_copy_of_its_last_seal(archive: Path, tmp_path: Path) -> None:
    outside_copy = seal_copy(archive)
    damage(archive, "DELETE FROM seals", "DELETE FROM sealed")
    alter_segment(archive, segments_of(archive, LOG)[0][0])
    for _ in range(2):
        grown(tmp_path / "home", LOG, b"{}\n")
        synced(archive, tmp_path / "home")
        seal_it(archive)
    assert verify(archive).is_ok
    assert "chain: the given seal 2 differs from the seal that the archive has under this number" in messages(
        verify(archive, outside_copy)
    )


def test_copy_whose_entries_do_not_match_its_seal_is_reported(archive: Path) -> None:
    outside = chain.seal_copy_from(seal_copy_with_entries(archive))
    assert outside.entries
    bad = chain.SealCopy(outside.data, outside.entries[1:]).file_bytes
    assert any("does not cover the" in message for message in messages(verify(archive, bad)))


@pytest.mark.parametrize("data", [b"", b"hello", b"\x82\x01\x02", b"\x82\x41\x00\x81\x01"])
def test_files_that_are_not_seals_are_rejected(data: bytes) -> None:
    with pytest.raises(PolluxError):
        chain.seal_copy_from(data)


def test_signature_of_another_kind_is_not_a_seal(archive: Path) -> None:
    with pytest.raises(PolluxError, match="not the seal of an archive"):
        chain.seal_copy_from(signed())
    with changed(archive) as database:
        database.execute("UPDATE seals SET body = ? WHERE number = 2", (signed(),))
    assert any("seal 2 cannot be read" in message for message in messages(verify(archive)))


def test_seal_of_a_newer_pollux_asks_for_an_update(archive: Path) -> None:
    payload = (cose.open_envelope(seal_copy(archive)).payload or b"").replace(b"pollux.seal/1", b"pollux.seal/9")
    data = cose.sign(payload, KEY, content_type="application/json", claims={1: "a", 2: "b"})
    with pytest.raises(PolluxError, match="please update"):
        seal_from(data)


def test_progress_is_reported(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    steps: list[tuple[int, int]] = []
    seal_it(archive, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] > 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE files SET path = x'ff' WHERE id = 1",
        "UPDATE files SET machine = 5, home = x'00'",
        "UPDATE segments SET start = 'x' WHERE id = 1",
        "UPDATE segments SET length = 'x' WHERE id = 1",
        "UPDATE segments SET data = 'x', sha256 = 'y' WHERE id = 1",
        "UPDATE segments SET length = 1 WHERE id = 1",
        "UPDATE versions SET archived_bytes = 'x' WHERE id = 1",
        "UPDATE versions SET first_us = 9223372036854775807 WHERE id = 1",
        "UPDATE versions SET first_us = 'x' WHERE id = 1",
        "UPDATE seals SET body = 'text'",
        "UPDATE sealed SET body = 5",
        "UPDATE sealed SET body = 'text' WHERE place = 2",
        "DELETE FROM segments",
        "DELETE FROM files",
    ],
)
def test_arbitrary_values_in_the_tables_are_reported(archive: Path, statement: str) -> None:
    with sqlite3.connect(archive, isolation_level=None) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute(statement)
    try:
        assert not verify(archive).is_ok
    except ArchiveError as error:  # a text that is none
        assert "is not a valid archive" in str(error) or "cannot be used" in str(error)  # noqa: PT017  either is right


def test_impossible_times_in_entries_are_reported(archive: Path) -> None:
    """Entries may contain any value before their seal is checked."""
    outside = chain.seal_copy_from(seal_copy_with_entries(archive))
    assert outside.entries
    odd = [b'{"at_us":1' + b"0" * 17 + b',"home":"h","kind":"forgotten","machine":"m","path":"p"}']
    odd += [entry.replace(b'"first_seen_us":', b'"first_seen_us":99') for entry in outside.entries]
    assert not verify(archive, chain.SealCopy(outside.data, tuple(odd)).file_bytes).is_ok
