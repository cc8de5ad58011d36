"""Damage of every table of an archive: each command works or reports the damage, and prints no damaged bytes."""
# ruff: noqa: S311, S608  chosen by a seed, and statements made here

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.archive.test_raw import forge
from tests.archive.test_verify import DOCUMENT, LOG, archived_home, content_of, segments_of
from tests.cli.running import Runner

TABLES = (
    "files",
    "versions",
    "segments",
    "tombstones",
    "facts_meta",
    "readings",
    "sessions",
    "session_files",
    "session_usage",
    "projects",
    "messages",
    "model_calls",
    "tool_calls",
    "shell_commands",
    "file_touches",
    "problems",
    "call_digests",
    "session_digests",
    "reports",
    "changed_sessions",
    "merged_bundles",
)
VALUES = (None, "text", b"\xff\x00", 1.5, -1, 0, 2**62, -(2**62), "", b"")
SEEDS = 30


def commands(folder: Path) -> list[tuple[str, ...]]:
    return [
        ("ls", "--all"),
        ("ls", "--json"),
        ("show", builders.SESSION),
        ("raw", builders.SESSION),
        ("raw", builders.OTHER),
        ("export", builders.SESSION, "-f", "json"),
        ("export", builders.OTHER, "-f", "markdown"),
        ("export", "--all", "-f", "html", "-o", str(folder / "pages")),
        ("usage",),
        ("stats",),
        ("audit", builders.SESSION),
        ("tree", builders.SESSION),
        ("record", "create", builders.SESSION),
        ("status",),
        ("doctor",),
        ("archive", "info"),
        ("verify",),
        ("verify", "--deep"),
        ("sync", "--raw-only"),
        ("sync",),
        ("archive", "compact"),
        ("archive", "backup", str(folder / "copy.db"), "--force"),
        ("restore", builders.SESSION, "--dry-run"),
        ("verify", "--repair"),
        ("ls",),
        ("raw", builders.SESSION),
    ]


def harm(archive: Path, chance: random.Random) -> str:
    """Damage an archive in one way; return what was done."""
    database = sqlite3.connect(archive, isolation_level=None)
    table = chance.choice(TABLES)
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    keys = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[5]]
    rows = database.execute(f"SELECT {', '.join(keys)} FROM {table} ORDER BY {', '.join(keys)}").fetchall()
    row: tuple[Any, ...] = chance.choice(rows) if rows else tuple("" for _ in keys)
    which = " AND ".join(f"{key} IS ?" for key in keys)
    try:
        if table == "segments" and chance.random() < 0.5:
            return _flipped(database, row[0], chance)
        if chance.random() < 0.3:
            database.execute(f"DELETE FROM {table} WHERE {which}", row)
            return f"DELETE FROM {table} WHERE {which} {row}"
        column, value = chance.choice(columns), chance.choice(VALUES)
        database.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {which}", (value, *row))
    except sqlite3.IntegrityError as error:  # a type that a key cannot have
        return f"nothing: {error}"
    finally:
        database.close()
    return f"UPDATE {table} SET {column} = {value!r} WHERE {which} {row}"


def _flipped(database: sqlite3.Connection, segment_id: int, chance: random.Random) -> str:
    data = bytearray(database.execute("SELECT data FROM segments WHERE id = ?", (segment_id,)).fetchone()[0])
    place, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
    data[place] ^= bit
    database.execute("UPDATE segments SET data = ? WHERE id = ?", (bytes(data), segment_id))
    return f"segment {segment_id}: byte {place} ^ {bit}"


@pytest.mark.parametrize(
    "command",
    [
        ("raw", builders.SESSION),
        ("show", builders.SESSION),
        ("export", builders.SESSION, "-f", "json"),
        ("export", builders.SESSION, "-f", "markdown", "-o", "session.md"),
        ("export", builders.SESSION, "-f", "html"),
        ("record", "create", builders.SESSION),
        ("restore", builders.SESSION),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("place", [0, 1])
def test_damaged_session_is_reported_in_one_sentence(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], place: int
) -> None:
    root, archive = archived_home(tmp_path)
    monkeypatch.setenv("POLLUX_HOME", str(root))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive))
    monkeypatch.chdir(tmp_path)
    right = (root / ".gemini" / LOG).read_text()
    (root / ".gemini" / LOG).unlink()
    assert run("sync").status == 0
    forge(archive, segments_of(archive, LOG)[place][0])
    before = set(root.rglob("*"))
    result = run(*command)
    assert result.status == 1
    assert str(root / ".gemini" / LOG) in result.err
    assert str(archive) in result.err
    assert "Run `pollux verify --repair` to restore it from" in result.err
    assert right.startswith(result.out)
    assert set(root.rglob("*")) == before
    assert not (tmp_path / "session.md").exists()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_commands_survive_damage_and_print_no_damaged_bytes(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    root, archive = archived_home(tmp_path)
    chance = random.Random(seed)
    right = {data.decode() for path in (LOG, DOCUMENT) for data in content_of(archive, path)}
    stub = root / ".gemini/tmp/webapp/chats/session-2026-11-15T19-45-6ece72aa.jsonl"
    right.add(stub.read_text())
    if chance.random() < 0.5:
        shutil.rmtree(root / ".gemini/tmp/webapp/chats")
    monkeypatch.setenv("POLLUX_HOME", str(root))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive))
    done = [harm(archive, chance) for _ in range(chance.choice((1, 1, 3)))]
    for command in commands(tmp_path):
        result = run(*command)
        assert result.status in (0, 1, 2), (done, command)
        assert result.status == 0 or result.err or result.out, (done, command)
        if command[0] == "raw":
            fits = result.out in right if result.status == 0 else any(one.startswith(result.out) for one in right)
            assert fits, (done, command, result)


@pytest.mark.parametrize("is_there", [True, False])
def test_programming_error_is_not_reported_as_damage(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    root, archive = archived_home(tmp_path)
    monkeypatch.setenv("POLLUX_HOME", str(root))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive if is_there else tmp_path / "none.db"))

    def wrong(*_: object, **_options: object) -> None:
        raise KeyError("a mistake of ours")

    monkeypatch.setattr("pollux.library.listing.session_page", wrong)
    with pytest.raises(KeyError, match="a mistake of ours"):
        run("ls")
