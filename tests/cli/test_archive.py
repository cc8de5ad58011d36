"""`pollux archive`: info, path, compact, backup and import."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.archive.test_verify import DOCUMENT, LOG, answer, archived_home, damage, flip, grown, segments_of, synced
from tests.cli.running import Runner

from pollux.archive import maintenance, store
from pollux.archive.lock import WriterLock
from pollux.cli import COMMANDS, Command


@pytest.fixture(autouse=True)
def _commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "archive", Command("pollux.cli.archive", ""))


@pytest.fixture
def place(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root, archive = archived_home(tmp_path)
    monkeypatch.setenv("POLLUX_HOME", str(root))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive))
    del run
    return archive


def test_path_is_printed(run: Runner, place: Path) -> None:
    assert run("archive", "path").out == f"{place}\n"
    assert run("archive", "path", "--archive", "x.db").out == f"{Path.cwd() / 'x.db'}\n"


def test_no_archive_option_is_refused(run: Runner) -> None:
    result = run("archive", "path", "--no-archive")
    assert (result.status, result.out) == (2, "")
    assert "needs the archive" in result.err


def test_info(run: Runner, place: Path) -> None:
    result = run("archive", "info")
    assert (result.status, result.err) == (0, "")
    for words in (place.name, "times smaller", "subagents", "writer    none", "versions"):
        assert words in result.out
    assert "forgotten" not in result.out


def test_info_as_json(run: Runner, place: Path) -> None:
    found = run("archive", "info", "--json").json
    assert found["schema"] == "pollux.archive/1"
    assert found.keys() == {
        "schema",
        "archive",
        "bytes",
        "files",
        "deleted_files",
        "versions",
        "imported_versions",
        "segments",
        "archived_bytes",
        "stored_bytes",
        "ratio",
        "sessions",
        "subagents",
        "deleted",
        "forgotten",
        "index",
        "last_sync",
        "writer",
        "homes",
    }
    assert (found["archive"], found["sessions"], found["subagents"], found["writer"]) == (str(place), 2, 1, None)
    assert found["index"].keys() == {"bytes", "sessions", "of"}
    assert found["last_sync"].endswith("Z")
    assert found["homes"][0].keys() == {"machine", "home", "files", "deleted_files", "bytes"}


def test_info_of_an_empty_archive(run: Runner, tmp_path: Path) -> None:
    store.open_archive(tmp_path / "new.db").close()
    args = ("archive", "info", "--archive", str(tmp_path / "new.db"))
    assert "not counted yet" in run(*args).out
    found = run(*args, "--json").json
    assert found["ratio"] is found["sessions"] is found["last_sync"] is None


def test_info_names_the_writer(run: Runner, place: Path) -> None:
    lock = WriterLock(place)
    assert lock.take()
    assert lock.owner() in run("archive", "info").out
    lock.release()


@pytest.mark.parametrize("args", [("info",), ("compact",), ("backup", "x.db")])
def test_missing_archive_is_reported(run: Runner, tmp_path: Path, args: tuple[str, ...]) -> None:
    result = run("archive", *args, "--archive", str(tmp_path / "no.db"))
    assert (result.status, result.out) == (1, "")
    assert "no archive" in result.err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("args", [("compact",), ("import", "other.db")])
def test_second_writer_is_refused(run: Runner, place: Path, args: tuple[str, ...]) -> None:
    other = maintenance.backup(place, place.with_name("other.db")).path
    lock = WriterLock(place)
    assert lock.take()
    result = run("archive", args[0], *(str(other) for _ in args[1:]))
    assert result.status == 1
    assert lock.owner() in result.err
    assert result.err.count("\n") == 1
    lock.release()


def test_compact(run: Runner, place: Path) -> None:
    result = run("archive", "compact")
    assert (result.status, result.err) == (0, "")
    assert "1 segment fewer" in result.out
    assert len(segments_of(place, LOG)) == 1


def test_compact_deletes_undo_copies(run: Runner, place: Path) -> None:
    assert run("forget", builders.OTHER, "--yes").status == 0
    result = run("archive", "compact")
    assert (result.status, result.err) == (
        0,
        "1 undo copy deleted: `pollux forget --undo` cannot bring those sessions back any more.\n",
    )
    assert not place.with_name(f"{place.name}.forgotten").exists()
    assert "undo copies" in run("archive", "compact", "--help").out


def test_compact_reports_readers_and_damage(run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flip(place, segments_of(place, LOG)[0][0])
    monkeypatch.setattr(maintenance, "vacuum", lambda _: False)
    result = run("archive", "compact")
    assert result.status == 1
    assert Path(LOG).name in result.err
    assert "Another process is reading" in result.err


def test_backup(run: Runner, place: Path) -> None:
    target = place.with_name("copy.db")
    result = run("archive", "backup", str(target))
    assert (result.status, result.err) == (0, "")
    assert "every byte checked" in result.out
    assert run("archive", "backup", str(target)).status == 1
    assert run("archive", "backup", str(target), "--force").status == 0
    flip(place, 1)
    assert run("archive", "backup", str(target), "--force").status == 1
    result = run("archive", "backup", str(place.with_name("damaged.db")))
    assert result.status == 1
    assert "has the same damage as" in result.err


def test_import(run: Runner, place: Path, tmp_path: Path) -> None:
    other = maintenance.backup(place, place.with_name("other.db")).path
    grown(tmp_path / "home", LOG, builders.log(answer(3)))
    synced(other, tmp_path / "home")
    result = run("archive", "import", str(other))
    assert result.status == 0
    assert "1 file, 1 version" in result.out
    assert "1 file (2.8 kB) claim to be from this machine, which never read these bytes." in result.err
    assert f"{Path(LOG).name}: 2.8 kB" in result.err
    assert "1 version, not read on this machine" in run("archive", "info").out
    again = run("archive", "import", str(other))
    assert ("Nothing to import" in again.out, again.err) == (True, "")
    found = run("archive", "import", str(other), "--json").json
    expected = {"schema", "from", "files", "versions", "bytes", "not_read_here", "forgotten", "seals", "problems"}
    assert found.keys() == expected
    assert found["schema"] == "pollux.imported/1"


def test_import_json_lists_bytes_not_read_here(run: Runner, place: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "new" / "mine.db"
    found = run("archive", "import", str(place), "--archive", str(fresh), "--json").json
    assert len(found["not_read_here"]) == found["files"]
    assert sum(one["bytes"] for one in found["not_read_here"]) == found["bytes"]
    assert str(tmp_path / "home" / ".gemini" / LOG) in [one["file"] for one in found["not_read_here"]]


def test_import_reports_what_it_skipped(run: Runner, place: Path) -> None:
    other = maintenance.backup(place, place.with_name("other.db")).path
    flip(other, segments_of(other, LOG)[1][0])
    damage(place, "UPDATE files SET forgotten_us = 1 WHERE path LIKE '%run_shell%'")
    damage(other, "UPDATE files SET machine = 'laptop' WHERE path NOT LIKE '%run_shell%'")
    result = run("archive", "import", str(other))
    assert result.status == 1
    assert "2 files of forgotten sessions not imported" in result.err
    assert "damaged in other.db" in result.err


def test_import_of_an_invalid_archive_is_refused(run: Runner, place: Path) -> None:
    missing = run("archive", "import", str(place.with_name("none.db")))
    assert (missing.status, "does not exist" in missing.err) == (2, True)
    itself = run("archive", "import", str(place))
    assert (itself.status, "itself" in itself.err) == (2, True)
    letter = builders.put(place.with_name("letter.db"), b"dear archive" * 1000)
    assert run("archive", "import", str(letter)).status == 2
    other = maintenance.backup(place, place.with_name("other.db")).path
    damage(other, "PRAGMA user_version = 99")
    newer = run("archive", "import", str(other))
    assert (newer.status, "newer Pollux" in newer.err) == (2, True)


def test_import_creates_an_archive(run: Runner, place: Path, tmp_path: Path) -> None:
    result = run("archive", "import", str(place), "--archive", str(tmp_path / "new" / "mine.db"))
    assert result.status == 0
    assert segments_of(tmp_path / "new" / "mine.db", DOCUMENT)


def test_archive_without_subcommand_prints_info(run: Runner, place: Path) -> None:
    assert place.exists()
    assert run("archive") == run("archive", "info")


def test_info_survives_nonsensical_rows(run: Runner, place: Path) -> None:
    damage(
        place,
        "UPDATE files SET last_us = 9223372036854775807",
        "UPDATE versions SET archived_bytes = 9223372036854775807",
    )
    result = run("archive", "info")
    assert (result.status, "never" in result.out) == (0, True)
    damage(
        place, "UPDATE files SET last_us = 'soon', machine = x'61'", "UPDATE segments SET length = 9223372036854775807"
    )
    assert run("archive", "info").status == 0
    assert run("archive", "info", "--json").json["last_sync"] is None


def test_show_counts_imported_messages(run: Runner, place: Path, tmp_path: Path) -> None:
    other = maintenance.backup(place, place.with_name("other.db")).path
    log = tmp_path / "home" / ".gemini" / LOG
    data = log.read_bytes()
    grown(tmp_path / "home", LOG, builders.log(answer(3)))
    synced(other, tmp_path / "home")
    log.write_bytes(data)
    assert "imported archive" not in run("show", builders.SESSION).err
    run("archive", "import", str(other))
    result = run("show", builders.SESSION)
    assert result.status == 0
    assert "1 of these messages come from an imported archive and were not read on this machine" in result.err
    (session,) = [one for one in run("ls", "--json").json["sessions"] if one["id"] == builders.SESSION]
    assert [one["role"] for one in session["files"]].count("import") == 1
