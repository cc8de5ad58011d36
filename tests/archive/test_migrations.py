"""An archive of an earlier commit is opened and upgraded, and its reports do not change."""

from __future__ import annotations

import lzma
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.archive.test_dependents import check
from tests.archive.test_verify import deeply
from tests.cli.running import Runner

from pollux.archive import schema, store
from pollux.archive.lock import WriterLock
from pollux.archive.migrations import STEPS, migrate
from pollux.errors import ArchiveError

STORED = Path(__file__).parents[1] / "data" / "archive"
OLD = STORED / "4f2486a.db.xz"
"""Archives from the commit of their name: two homes, a subagent, versions of a document, a deleted file, prices."""
COMMANDS = {
    "ls": ("ls", "--all"),
    "usage": ("usage", "--by", "session", "--timezone", "UTC"),
    "usage-days": ("usage", "--timezone", "UTC"),
    "stats": ("stats", "--timezone", "UTC"),
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "archive.db"
    path.write_bytes(lzma.decompress(OLD.read_bytes()))
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_reports_on_an_upgraded_archive_are_unchanged(run: Runner, old: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    result = run(*COMMANDS[name], "--all-homes", "--json", "--archive", str(old), home=tmp_path / "empty")
    assert result.json == msgspec.json.decode((STORED / f"{name}.json").read_bytes())


def test_old_archive_is_migrated_by_the_missing_steps(run: Runner, old: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run("sync", "--archive", str(old), home=tmp_path / "empty").status == 0
    with closing(sqlite3.connect(old)) as database:
        assert {row[0] for row in database.execute("SELECT name FROM migrations")} == set(STEPS)
        assert database.execute("PRAGMA user_version").fetchone() == (len(STEPS),)
        assert schema.are_current(database)
        check(database)
    assert deeply(old).is_ok


def test_old_archive_is_opened_without_being_written(old: Path) -> None:
    before = old.read_bytes()
    with store.open_archive(old, write=False) as archive:
        assert not schema.are_current(archive.database)
    assert old.read_bytes() == before


def test_old_archive_that_cannot_be_written_is_read(run: Runner, old: Path, tmp_path: Path) -> None:
    """Its columns have their old names, under which nothing is searched any more."""
    with closing(sqlite3.connect(old)) as database:
        (n_bytes,) = database.execute("SELECT sum(kept) FROM versions").fetchone()
        (n_deleted,) = database.execute("SELECT count(gone_us) FROM files").fetchone()
        database.execute("PRAGMA journal_mode = DELETE")
    copy = tmp_path / "copy.db"
    copy.write_bytes(old.read_bytes())
    (tmp_path / "empty").mkdir()
    lock = WriterLock(old)
    assert lock.take()
    info = run("archive", "info", "--json", "--archive", str(old), home=tmp_path / "empty")
    checked = run("verify", "--json", "--archive", str(old), home=tmp_path / "empty")
    listed = run("ls", "--archive", str(old), home=tmp_path / "empty")
    lock.release()
    assert sum(home["bytes"] for home in info.json["homes"]) == n_bytes
    assert info.json["deleted_files"] == n_deleted
    assert checked.json["ok"]
    assert "Traceback" not in listed.err
    assert old.read_bytes() == copy.read_bytes()


def test_migration_steps_run_once() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        migrate(database, "new")
        before = database.total_changes
        migrate(database, "new")
        assert database.total_changes == before
        database.execute("DROP TABLE imported")
        database.execute("DROP TABLE imported_entries")
        database.execute("DROP TABLE imported_seals")
        database.execute("DELETE FROM migrations WHERE name = 'imports'")
        migrate(database, "new")
        assert database.execute("SELECT count(*) FROM imported").fetchone() == (0,)


@pytest.mark.parametrize("statement", ["PRAGMA user_version = 99", "INSERT INTO migrations VALUES ('from the future')"])
def test_newer_archive_is_refused(statement: str) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        migrate(database, "new")
        database.execute(statement)
        with pytest.raises(ArchiveError, match="newer Pollux"):
            migrate(database, "new")
