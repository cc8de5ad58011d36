"""A seal speaks for all that was kept when it was made: what is changed or removed after that is named."""
# ruff: noqa: S608  it is done with statements made here

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
from tests.proofs.sealing import bare, full, look, messages, seal_it

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
    """Return an archive with two seals: something grew, something was rewritten, and something is new between them."""
    root, found = archived_home(tmp_path)
    seal_it(found)
    grown(root, LOG, builders.log(builders.user("u3", "and on", second=9)))
    rewritten(root, 11, 12, 13)
    builders.put(root / ".gemini/tmp/webapp/shell_history", b"ls\n")
    synced(found, root)
    seal_it(found, hours=1)
    return found


def entries_of(archive: Path) -> list[object]:
    with store.open_archive(archive, write=False) as opened:
        return [entry_from(body) for _, body in seals.entries(opened.database)]


def place(archive: Path, path: str) -> str:
    return str(archive.parent / "home" / ".gemini" / path)


def test_a_sealed_archive_is_good(archive: Path) -> None:
    found = look(archive)
    assert (found.errors, found.notes) == ([], [])
    assert found.facts["seal"] == "2"
    assert found.facts["sealed at"] == "2026-11-15T13:00:00.000Z"
    assert look(archive, bare(archive)).is_ok
    assert look(archive, full(archive)).is_ok


def test_files_and_sessions_are_sealed(archive: Path) -> None:
    found = entries_of(archive)
    files = [one for one in found if isinstance(one, FileEntry)]
    log = [one for one in files if one.path == LOG]
    document = [one for one in files if one.path == DOCUMENT]
    assert len({one.first_seen_us for one in log}) == 1, "one version that grew"
    assert len({one.first_seen_us for one in document}) == 3, "three versions"
    (whole,) = content_of(archive, LOG)
    for one in log:
        assert one.sha256 == sha256(whole[: one.length]).hex()
    assert [one.length for one in log][-1] == len(whole)
    sessions = [one.session for one in found if isinstance(one, SessionEntry)]
    assert sessions.count(builders.SESSION) == 2, "once more after it grew"
    assert [len(sessions), len({*sessions})] == [5, 3]


def test_the_fields_of_a_seal(archive: Path) -> None:
    with store.open_archive(archive, write=False) as opened:
        (_, first), (_, second) = seals.seals(opened.database)
        bodies = [body for _, body in seals.entries(opened.database)]
    one, two = seal_from(first)[0], seal_from(second)[0]
    assert (one.number, one.previous, two.number) == (1, None, 2)
    assert two.previous == sha256(first).hex()
    assert two.size == len(bodies)
    assert two.root == merkle.root([merkle.leaf_hash(body) for body in bodies]).hex()
    assert all(json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode() == body for body in bodies)


def test_nothing_new_needs_no_seal(archive: Path) -> None:
    found = seal_it(archive, hours=2)
    assert (found.is_new, found.new.n_files, found.new.n_sessions) == (False, 0, 0)
    assert found.seal
    assert found.seal.number == 2
    assert found.data == bare(archive)


def test_a_session_can_be_committed_to_again(archive: Path) -> None:
    found = seal_it(archive, again=[builders.SESSION], record_of=lambda one: {"id": one, "more": "known by now"})
    assert (found.is_new, found.new.n_files, found.new.n_sessions) == (True, 0, 1)
    assert not seal_it(
        archive, again=[builders.SESSION], record_of=lambda one: {"id": one, "more": "known by now"}
    ).is_new


def test_an_empty_archive_has_nothing_to_seal(tmp_path: Path) -> None:
    synced(tmp_path / "archive.db", tmp_path / "nobody")
    found = seal_it(tmp_path / "archive.db")
    assert (found.seal, found.is_new) == (None, False)
    with pytest.raises(PolluxError, match="has no seal yet"):
        look(tmp_path / "archive.db")


def test_a_record_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)

    def fails(session: str) -> dict[str, object]:
        raise PolluxError(f"{session} is odd.")

    found = seal_it(archive, record_of=fails)
    assert {one.code for one in found.new.problems} == {"not-sealed"}
    assert found.is_new
    assert look(archive).is_ok


def test_damaged_bytes_are_not_sealed(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    damage(archive, "UPDATE segments SET sha256 = zeroblob(32) WHERE id = 1")
    found = seal_it(archive)
    assert [one.code for one in found.new.problems] == ["damaged-archive"]
    assert "damaged" in found.new.problems[0].message


# What may happen to a sealed archive


def test_it_may_grow(archive: Path, tmp_path: Path) -> None:
    root = tmp_path / "home"
    grown(root, LOG, builders.log(builders.user("u4", "more", second=12)))
    rewritten(root, 14)
    synced(archive, root)
    assert look(archive).is_ok


def test_it_may_be_compacted(archive: Path) -> None:
    with store.open_archive(archive) as opened:
        assert maintenance.compact(opened).n_merged
    assert look(archive).is_ok


def test_it_may_be_backed_up(archive: Path, tmp_path: Path) -> None:
    backup(archive, tmp_path / "copy.db")
    assert look(tmp_path / "copy.db").is_ok


def test_seals_move_with_an_import(archive: Path, tmp_path: Path) -> None:
    with store.open_archive(archive) as opened:
        forget.forget(opened, [builders.OTHER], now_us=1_794_700_000_000_000, memory={})
    seal_it(archive, hours=2)
    for n_seals, n_adopted in ((3, 3), (0, 0)):  # a second time changes nothing
        with store.open_archive(tmp_path / "new.db") as ours, foreign.open_foreign(archive) as theirs:
            assert import_archive.import_archive(ours, theirs, memory={}, now_us=1).n_seals == n_seals
            assert adopt_own(ours, [PUBLIC]) == n_adopted
            assert seals.known_secret(ours.database) is None
        assert look(tmp_path / "new.db").is_ok
    assert seal_it(tmp_path / "new.db", hours=3, again=[builders.SESSION]).is_new
    assert look(tmp_path / "new.db").is_ok


def test_an_import_into_a_sealed_archive_changes_nothing_sealed(archive: Path, tmp_path: Path) -> None:
    other = lived_in(tmp_path / "other")
    with (other / ".gemini" / LOG).open("ab") as file:
        file.write(builders.log(builders.user("u9", "elsewhere", second=40)))
    synced(tmp_path / "other.db", other)
    with store.open_archive(archive) as ours, foreign.open_foreign(tmp_path / "other.db") as theirs:
        assert import_archive.import_archive(ours, theirs, memory={}, now_us=1).n_files
    assert look(archive).is_ok
    assert seal_it(archive, hours=3).is_new
    assert look(archive).is_ok


def test_forgotten_files_are_not_missing(archive: Path) -> None:
    before = bare(archive)
    with store.open_archive(archive) as opened:
        forget.forget(opened, [builders.SESSION], now_us=1_794_700_000_000_000, memory={})
    found = look(archive)
    assert found.is_ok
    assert len(found.notes) >= 5
    assert all(one.endswith("forgotten by you on 2026-11-14, which no seal confirms yet") for one in found.notes)
    done = seal_it(archive, hours=2)
    assert place(archive, LOG) in done.new.forgotten
    assert [one for one in entries_of(archive) if isinstance(one, ForgottenEntry)]
    for given in (None, before):
        found = look(archive, given)
        assert found.is_ok
        assert all(one.endswith("which a seal confirms") for one in found.notes)
    assert not seal_it(archive, hours=3).is_new


def test_an_archive_of_an_older_pollux_is_sealed_too(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    revert(archive, "raw")
    with pytest.raises(PolluxError, match="has no seal yet"):
        look(archive)
    with store.open_archive(archive, write=False) as opened:
        assert seals.known_secret(opened.database) is None
    assert seal_it(archive).is_new
    assert look(archive).is_ok


# Tampering: whoever can write to the archive, but has not the key


def put_other(archive: Path, segment_id: int) -> None:
    """Change a byte of what was kept, and its hash with it, so that nothing else notices."""
    with store.open_archive(archive) as opened:
        data = bytearray(raw.content(opened.database, segment_id))
        data[-2] ^= 1
        made = raw._packed(0, bytes(data))
        opened.database.execute(
            "UPDATE segments SET data = ?, sha256 = ?, base_id = NULL, depth = 0 WHERE id = ?",
            (made.data, made.sha256, segment_id),
        )


def test_an_altered_segment(archive: Path) -> None:
    put_other(archive, segments_of(archive, LOG)[0][0])
    (fault,) = look(archive).errors
    assert fault.file == place(archive, LOG)
    assert fault.message.startswith("seal 1 covers ")
    assert fault.message.endswith("they were altered: their SHA-256 differs")


def test_an_altered_end_leaves_the_beginning_proven(archive: Path) -> None:
    segment_id, _, start, _ = segments_of(archive, LOG)[-1]
    put_other(archive, segment_id)
    (fault,) = look(archive).errors
    assert fault.message.startswith("seal 2 covers ")
    assert fault.message.endswith(f"their SHA-256 differs; its first {start} bytes are unchanged")


def test_an_altered_segment_whose_hash_was_left(archive: Path) -> None:
    segment_id, _, start, _ = segments_of(archive, LOG)[1]
    damage(archive, f"UPDATE segments SET sha256 = zeroblob(32) WHERE id = {segment_id}")
    (fault,) = look(archive).errors
    assert f"its bytes from {start} on are damaged" in fault.message


def test_a_removed_segment(archive: Path) -> None:
    first, second, *_ = segments_of(archive, LOG)
    damage(archive, f"DELETE FROM segments WHERE id = {second[0]}")
    (fault,) = look(archive).errors
    assert f"its bytes from {second[2]} on are missing" in fault.message
    damage(archive, f"DELETE FROM segments WHERE id = {first[0]}")
    assert "its bytes from 0 on are missing" in messages(look(archive))[0]


def test_a_segment_that_cannot_be_unpacked(archive: Path) -> None:
    damage(archive, f"UPDATE segments SET data = x'00' WHERE id = {segments_of(archive, LOG)[0][0]}")
    assert "cannot be decompressed" in messages(look(archive))[0]


def test_a_shortened_file(archive: Path) -> None:
    segment_id, _, start, _ = segments_of(archive, LOG)[-1]
    damage(
        archive,
        f"UPDATE versions SET archived_bytes = {start} "
        f"WHERE id = (SELECT version_id FROM segments WHERE id = {segment_id})",
        f"DELETE FROM segments WHERE id = {segment_id}",
    )
    (fault,) = look(archive).errors
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


def test_a_removed_file(archive: Path) -> None:
    (only,) = versions_of(archive, LOG)
    remove_version(archive, only)
    assert "the archive has none of them" in messages(look(archive))[0]
    damage(archive, f"DELETE FROM files WHERE path = '{LOG}'")
    (fault,) = look(archive).errors
    assert fault.file == place(archive, LOG)
    assert "it is missing from the archive" in fault.message


def test_a_removed_version(archive: Path) -> None:
    remove_version(archive, versions_of(archive, DOCUMENT)[-1])
    (fault,) = look(archive).errors
    assert fault.file == place(archive, DOCUMENT)
    assert "the version first seen at" in fault.message


def test_a_changed_time(archive: Path) -> None:
    damage(archive, "UPDATE versions SET first_us = 0 WHERE id = 1")
    (fault,) = look(archive).errors
    assert "the archive now says that it first saw them at 1970-01-01T00:00:00.000Z, not at " in fault.message


def test_versions_that_begin_alike(tmp_path: Path) -> None:
    """A log that was cut back to its beginning and goes on differently: both versions begin with what was sealed."""
    root, archive = archived_home(tmp_path)
    seal_it(archive)
    whole = (root / ".gemini" / LOG).read_bytes()
    head = whole[: whole.index(b"\n") + 1]
    for hour, data in enumerate((head, head + b"{}\n", head), 1):
        (root / ".gemini" / LOG).write_bytes(data)
        synced(archive, root)
        seal_it(archive, hours=hour)
        assert look(archive).errors == []
    assert len(versions_of(archive, LOG)) == 3


def test_a_forged_tombstone_is_recognised(archive: Path) -> None:
    """Who can write to the archive can forge it; that is why it is shown, and that no seal confirms it."""
    damage(archive, f"UPDATE files SET forgotten_us = 1 WHERE path = '{LOG}'")
    assert look(archive).notes == [], "its bytes are there, and as they were sealed"
    remove_version(archive, *versions_of(archive, LOG))
    (note,) = look(archive).notes
    assert note.startswith(place(archive, LOG))
    assert note.endswith("which no seal confirms yet")


# Tampering with the seals themselves


def seal_rows(archive: Path) -> dict[int, bytes]:
    with changed(archive) as database:
        return dict(database.execute("SELECT number, body FROM seals").fetchall())


def test_a_removed_seal(archive: Path) -> None:
    damage(archive, "DELETE FROM seals WHERE number = 1")
    assert messages(look(archive)) == ["chain: seal 1 is missing before seal 2"]


def test_a_removed_seal_in_the_middle(archive: Path, tmp_path: Path) -> None:
    for hour in (2, 3):
        grown(tmp_path / "home", LOG, builders.log(builders.user(f"u{hour}0", "more", second=20 + hour)))
        synced(archive, tmp_path / "home")
        seal_it(archive, hours=hour)
    damage(archive, "DELETE FROM seals WHERE number IN (2, 3)")
    assert messages(look(archive)) == ["chain: seals 2–3 are missing before seal 4"]


def test_swapped_seals(archive: Path) -> None:
    rows = seal_rows(archive)
    with changed(archive) as database:
        database.execute("UPDATE seals SET body = ? WHERE number = 1", (rows[2],))
        database.execute("UPDATE seals SET body = ? WHERE number = 2", (rows[1],))
    found = messages(look(archive))
    assert "chain: the seal in place 1 has the number 2" in found
    assert "chain: the seal in place 2 has the number 1" in found


@pytest.mark.parametrize("number", [1, 2])
def test_no_bit_of_a_seal_can_be_changed(archive: Path, number: int) -> None:
    rows = seal_rows(archive)
    with changed(archive) as database:
        entries = seals.entries(database)
    for index in range(len(rows[number])):
        changed_rows = [*(rows | {number: flipped(rows[number], index)}).items()]
        found = Verdict("archive")
        chain.check_chain(changed_rows, entries, [PUBLIC], found)
        assert any(f"seal {number}" in one.message for one in found.errors), (index, messages(found))


def test_an_unreadable_seal_is_reported(archive: Path) -> None:
    damage(archive, "UPDATE seals SET body = x'00' WHERE number = 1")
    found = messages(look(archive))
    assert found[0].startswith("seal: seal 1 cannot be read: ")
    assert "chain: seal 2 does not continue seal 1 of this archive" in found


def test_a_chain_with_an_unknown_key(archive: Path) -> None:
    found = look(archive, keys=(STRANGER,))
    assert {one.what for one in found.errors} == {"key"}
    assert all(thumbprint_text(PUBLIC.id) in one.message for one in found.errors)
    assert len(found.errors) == 2


def test_an_altered_entry(archive: Path) -> None:
    with changed(archive) as database:
        body = database.execute("SELECT body FROM sealed WHERE place = 3").fetchone()[0]
        database.execute("UPDATE sealed SET body = ? WHERE place = 3", (body.replace(b'"length":', b'"length":1'),))
    found = messages(look(archive))
    assert found[0].startswith("leaf: one of the sealed entries 0–")
    assert "was altered, added or removed: seal 1 has another root" in found[0]
    damage(archive, "UPDATE sealed SET body = x'00' WHERE place = 3")
    assert "leaf: sealed entry 3 cannot be read" in messages(look(archive))


def test_a_removed_entry(archive: Path) -> None:
    damage(archive, "DELETE FROM sealed WHERE place IN (3, 4)")
    found = messages(look(archive))
    assert "leaf: sealed entries 3–4 are missing" in found
    assert any("seal 1 has another root" in one for one in found)


def test_entries_without_a_seal_are_reported(archive: Path) -> None:
    damage(archive, "INSERT INTO sealed SELECT max(place) + 1, body FROM sealed")
    (message,) = messages(look(archive))
    assert message.startswith("leaf: no seal covers the entries from ")


def test_the_end_of_the_list_cut_off(archive: Path) -> None:
    damage(archive, "DELETE FROM sealed WHERE place = (SELECT max(place) FROM sealed)")
    (fault,) = look(archive).errors
    assert "seal 2 covers" in fault.message


def test_nothing_is_sealed_on_top_of_tampering(archive: Path) -> None:
    damage(archive, "DELETE FROM sealed WHERE place = (SELECT max(place) FROM sealed)")
    with pytest.raises(PolluxError, match="does not match the sealed entries"):
        seal_it(archive)
    damage(archive, "DELETE FROM seals")
    with pytest.raises(PolluxError, match="without a seal"):
        seal_it(archive)


def test_an_earlier_state_of_the_list_cannot_follow_a_later_one(archive: Path) -> None:
    rows = seal_rows(archive)
    with changed(archive) as database:
        database.execute("INSERT INTO seals VALUES (3, ?)", (rows[1],))
    found = messages(look(archive))
    assert "chain: a later seal covers fewer entries than an earlier one" in found


# The end of the chain cut off: only a copy of the last seal in another place shows it


def cut_off(archive: Path) -> None:
    size = seal_from(seal_rows(archive)[1])[0].size
    damage(archive, "DELETE FROM seals WHERE number = 2", f"DELETE FROM sealed WHERE place >= {size}")


@pytest.mark.parametrize("copy", [bare, full])
def test_a_chain_that_was_cut_short(archive: Path, copy: object) -> None:
    given = copy(archive)  # type: ignore[operator]
    cut_off(archive)
    assert look(archive).is_ok, "by itself it looks like an archive that was sealed once"
    found = messages(look(archive, given))
    assert "chain: the given seal 2 is not in the archive: its last seal is 1" in found
    assert any(one.endswith("of the given seal 2") for one in found)


def test_a_copy_with_entries_names_the_files_too(archive: Path) -> None:
    given = full(archive)
    cut_off(archive)
    damage(archive, "DELETE FROM files WHERE path = 'tmp/webapp/shell_history'")
    found = look(archive, given)
    assert place(archive, "tmp/webapp/shell_history") in {one.file for one in found.errors}
    damage(archive, "DELETE FROM seals", "DELETE FROM sealed")
    found = look(archive, given)
    assert "chain: the given seal 2 is not in the archive: it has no seal" in messages(found)
    assert place(archive, "tmp/webapp/shell_history") in {one.file for one in found.errors}


def test_a_chain_made_anew_with_the_same_key(archive: Path, tmp_path: Path) -> None:
    given = bare(archive)
    damage(archive, "DELETE FROM seals", "DELETE FROM sealed")
    put_other(archive, segments_of(archive, LOG)[0][0])
    for _ in range(2):
        grown(tmp_path / "home", LOG, b"{}\n")
        synced(archive, tmp_path / "home")
        seal_it(archive)
    assert look(archive).is_ok
    assert "chain: the given seal 2 differs from the seal that the archive has under this number" in messages(
        look(archive, given)
    )


def test_entries_that_do_not_match_the_given_seal(archive: Path) -> None:
    outside = chain.seal_copy_from(full(archive))
    assert outside.entries
    bad = chain.SealCopy(outside.data, outside.entries[1:]).file_bytes
    assert any("does not cover the" in one for one in messages(look(archive, bad)))


@pytest.mark.parametrize("data", [b"", b"hello", b"\x82\x01\x02", b"\x82\x41\x00\x81\x01"])
def test_files_that_are_not_seals_are_rejected(data: bytes) -> None:
    with pytest.raises(PolluxError):
        chain.seal_copy_from(data)


def test_a_signature_of_something_else_is_no_seal(archive: Path) -> None:
    with pytest.raises(PolluxError, match="not the seal of an archive"):
        chain.seal_copy_from(signed())
    with changed(archive) as database:
        database.execute("UPDATE seals SET body = ? WHERE number = 2", (signed(),))
    assert any("seal 2 cannot be read" in one for one in messages(look(archive)))


def test_a_seal_of_a_newer_pollux(archive: Path) -> None:
    payload = (cose.open_envelope(bare(archive)).payload or b"").replace(b"pollux.seal/1", b"pollux.seal/9")
    data = cose.sign(payload, KEY, content_type="application/json", claims={1: "a", 2: "b"})
    with pytest.raises(PolluxError, match="please update"):
        seal_from(data)


def test_progress_is_reported(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    told: list[tuple[int, int]] = []
    seal_it(archive, progress=lambda done, whole: told.append((done, whole)))
    assert told[-1][0] == told[-1][1] > 0


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
        assert not look(archive).is_ok
    except ArchiveError as error:  # a text that is none
        assert "is not a valid archive" in str(error) or "cannot be used" in str(error)  # noqa: PT017  either is right


def test_a_time_that_never_was(archive: Path) -> None:
    """An entry may say anything, as long as nobody has looked at its seal."""
    outside = chain.seal_copy_from(full(archive))
    assert outside.entries
    odd = [b'{"at_us":1' + b"0" * 17 + b',"home":"h","kind":"forgotten","machine":"m","path":"p"}']
    odd += [one.replace(b'"first_seen_us":', b'"first_seen_us":99') for one in outside.entries]
    assert not look(archive, chain.SealCopy(outside.data, tuple(odd)).file_bytes).is_ok
