"""Importing a crafted archive ends with one sentence and leaves the user's own sessions unchanged."""
# ruff: noqa: S311  no secrets are drawn
# ruff: noqa: S608  statements made here

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.archive.test_verify import LOG, answer, archived_home, lived_in, synced
from tests.cli.running import Runner

from pollux.archive import raw
from pollux.errors import PolluxError

Change = Callable[[random.Random, sqlite3.Connection], None]

COLUMNS = {
    "files": (
        "machine",
        "home",
        "path",
        "size",
        "mtime_ns",
        "inode",
        "first_us",
        "last_us",
        "deleted_us",
        "version_id",
    ),
    "versions": ("file_id", "number", "archived_bytes", "head", "tail", "mtime_ns", "first_us"),
    "segments": ("version_id", "start", "length", "sha256", "base_id", "depth", "data"),
    "seals": ("body",),
    "sealed": ("body",),
    "session_files": ("role",),
    "facts_meta": ("value",),
}
VALUES: tuple[object, ...] = (
    *(None, "", "zz", "a\nb", "a\0b", "../../etc/passwd", "/etc/passwd", "C:\\x", "x" * 70_000),
    *(b"", b"\xff\xfe", b"x" * 32, 0, -1, 1, 65, 2**31, 2**62, 2**63 - 1, -(2**63), 1.5, float("inf")),
)


def wrong_value(rng: random.Random, database: sqlite3.Connection) -> None:
    table = rng.choice([*COLUMNS])
    column, value = rng.choice(COLUMNS[table]), rng.choice(VALUES)
    which = "" if rng.random() < 0.3 else f"WHERE rowid = {_row(rng, database, table)}"
    if table in ("session_files", "facts_meta"):
        which = ""  # without rows that are numbered
    _tried(database, f"UPDATE {table} SET {column} = ? {which}", value)


def text_that_is_none(rng: random.Random, database: sqlite3.Connection) -> None:
    column = rng.choice(["machine", "home", "path"])
    _tried(
        database, f"UPDATE files SET {column} = CAST(x'ff2f6162' AS TEXT) WHERE rowid = {_row(rng, database, 'files')}"
    )


def missing_table(rng: random.Random, database: sqlite3.Connection) -> None:
    database.execute(f"DROP TABLE {rng.choice([*COLUMNS, 'tombstones', 'sealing', 'messages', 'imported'])}")


def strange_schema(rng: random.Random, database: sqlite3.Connection) -> None:
    endless = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT i AS id, 'm' AS machine FROM c"
    table = rng.choice(["files", "versions", "segments", "seals"])
    statements = rng.choice(
        [
            (f"ALTER TABLE {table} RENAME TO beside", f"CREATE VIEW {table} AS {endless}"),
            (f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN SELECT 1; END",),
            (f"ALTER TABLE {table} ADD COLUMN extra AS (hex(zeroblob(1000000)))",),
            ("CREATE VIRTUAL TABLE words USING fts5(text)",),
            (f"CREATE INDEX strange ON {table} (hex(rowid))",),
        ]
    )
    for statement in statements:
        _tried(database, statement)


def dangling(rng: random.Random, database: sqlite3.Connection) -> None:
    statement = rng.choice(
        [
            "UPDATE versions SET file_id = 9999 WHERE rowid = 1",
            "UPDATE segments SET version_id = 9999 WHERE rowid = 2",
            "UPDATE files SET version_id = 9999",
            "UPDATE segments SET base_id = 9999",
            "DELETE FROM versions WHERE rowid % 2",
            "DELETE FROM segments WHERE rowid % 3 = 0",
            "DELETE FROM files WHERE rowid % 2",
        ]
    )
    _tried(database, statement)


def in_a_circle(rng: random.Random, database: sqlite3.Connection) -> None:
    one, two = _row(rng, database, "segments"), _row(rng, database, "segments")
    for segment, base in ((one, two), (two, one)):
        database.execute("UPDATE segments SET base_id = ?, depth = ? WHERE id = ?", (base, rng.randint(0, 3), segment))


def overlapping(rng: random.Random, database: sqlite3.Connection) -> None:
    _tried(database, "UPDATE segments SET start = start - ? WHERE start > 0", rng.randint(1, 50))
    _tried(database, "UPDATE versions SET archived_bytes = archived_bytes + ?", rng.randint(-5, 5))


def other_bytes(rng: random.Random, database: sqlite3.Connection) -> None:
    row = _row(rng, database, "segments")
    (data,) = database.execute("SELECT data FROM segments WHERE id = ?", (row,)).fetchone()
    if isinstance(data, bytes) and data:
        changed = bytearray(data)
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        database.execute("UPDATE segments SET data = ? WHERE id = ?", (bytes(changed), row))


def forged(rng: random.Random, database: sqlite3.Connection) -> None:
    """Replace the messages of a log under the same IDs, with matching hashes."""
    rows = database.execute("SELECT version_id FROM files WHERE path = ? AND version_id IS NOT NULL", (LOG,)).fetchall()
    for (version_id,) in rows:
        read = raw.reader(database, version_id)
        told = answer(1, toolCalls=[builders.call(f"f{n}") for n in range(4)]) | {"content": "Yes, do it."}
        updated = builders.updates(lastUpdated="2031-01-01T00:00:00Z", summary="forged")
        data = read(0, read.size) + builders.log(told, *rng.sample([updated, builders.rewind("u1")], rng.randint(0, 2)))
        database.execute("DELETE FROM segments WHERE version_id = ?", (version_id,))
        raw._insert(database, version_id, raw._packed(0, data))
        digest = hashlib.sha256(data[:4096]).digest()
        database.execute(
            "UPDATE versions SET archived_bytes = ?, head = ? WHERE id = ?", (len(data), digest, version_id)
        )


def moved(rng: random.Random, database: sqlite3.Connection) -> None:
    _tried(database, "UPDATE files SET machine = ?", rng.choice(["laptop", "", "\x1b[31m"]))


CHANGES: tuple[Change, ...] = (
    *(wrong_value, wrong_value, wrong_value, text_that_is_none, missing_table, strange_schema, dangling, in_a_circle),
    *(overlapping, other_bytes, forged, moved, moved),
)


def crafted(rng: random.Random, other: Path) -> None:
    """Change an archive in one to three ways, and maybe the file itself."""
    database = sqlite3.connect(other, isolation_level=None)
    try:
        for change in rng.sample(CHANGES, rng.randint(1, 3)):
            try:
                change(rng, database)
            except (sqlite3.DatabaseError, RecursionError, TypeError, ValueError, LookupError, PolluxError):
                continue  # one change has made another impossible
    finally:
        database.close()
    data = bytearray(other.read_bytes())
    if rng.random() < 0.2:
        other.write_bytes(data[: rng.randrange(len(data))])
    elif rng.random() < 0.2:
        for _ in range(rng.randint(1, 20)):
            data[rng.randrange(100, len(data))] ^= 1 << rng.randrange(8)
        other.write_bytes(data)


def _row(rng: random.Random, database: sqlite3.Connection, table: str) -> int:
    rows = database.execute(f"SELECT rowid FROM {table}").fetchall() if table in _NUMBERED else []
    return rng.choice(rows)[0] if rows else 0


_NUMBERED = ("files", "versions", "segments", "seals", "sealed")


def _tried(database: sqlite3.Connection, statement: str, *values: object) -> None:
    try:
        database.execute(statement, values)
    except sqlite3.IntegrityError:
        return  # the same value in every row of a key


def seen(run: Runner, own: str) -> dict[str, Any]:
    """Return what a user sees of their own sessions; files that an import added to them are left out."""
    sessions = run("ls", "--all", "--json").json["sessions"]
    for session in sessions:
        files = [file for file in session["files"] if file["role"] != "import"]
        session["files"] = [file for file in files if file["path"].startswith(own)]
    mine = {session["id"]: session for session in sessions if session["files"]}
    usage = run("usage", "--json").json
    return {"sessions": mine, "raw": {id_: run("raw", id_).out for id_ in mine}, "usage": usage["billed"]}


@pytest.mark.parametrize("seed", range(60))
def test_crafted_archive_does_not_change_own_sessions(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    root, archive = archived_home(tmp_path)
    monkeypatch.setenv("POLLUX_HOME", str(root))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive))
    run("keys", "create")
    run("archive", "seal")
    other = tmp_path / "other.db"
    run("archive", "backup", str(other))
    synced(other, lived_in(tmp_path / "second"))
    crafted(rng, other)
    before = seen(run, str(root))
    result = run("archive", "import", str(other))
    assert result.status in (0, 1, 2)
    assert result.status == 0 or str(other) in result.err or "/" in result.err
    assert str(archive) not in result.err
    after = seen(run, str(root))
    assert after["sessions"].keys() == before["sessions"].keys()
    for id_, session in before["sessions"].items():
        assert after["sessions"][id_] == session
    assert after == before
    assert run("verify").status == 0
    assert run("verify", "--seal").status == 0
    assert run("archive", "info").status == 0
    n_files = run("archive", "import", str(other), "--json")
    assert n_files.status != 0 or n_files.json["files"] == 0
