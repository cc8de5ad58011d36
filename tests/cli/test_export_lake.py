"""`pollux export -f parquet` writes a folder of tables, and explains why if it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.cli.running import Runner

from pollux.cli.demo import HOME as DEMO
from pollux.lake import parquet
from pollux.lake.parquet import TABLES

pyarrow = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: `pip install 'pollux-cli[lake]'`")


def test_command_writes_a_folder(run: Runner, tmp_path: Path) -> None:
    ended = run("export", "--all", "-f", "parquet", "-o", str(tmp_path / "facts"))
    assert ended.status in (0, 1)
    assert "23 sessions, 29 session files, 5 projects, 248 messages" in ended.err
    assert sorted(one.stem for one in (tmp_path / "facts").iterdir()) == sorted(TABLES)


def test_command_includes_subagents(run: Runner, tmp_path: Path) -> None:
    ended = run("export", "e92f6bc2", "-f", "parquet", "-o", str(tmp_path / "facts"))
    assert ended.err.startswith("2 sessions, 2 session files, 1 project, ")
    assert len(pyarrow.read_table(tmp_path / "facts" / "sessions.parquet")) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--all", "--no-archive", "-o", "facts"], "leave --no-archive out"),
        (["--all"], "name it with `-o facts/`"),
        ([str(next((DEMO / ".gemini" / "tmp").rglob("*f688da5c.jsonl"))), "-o", "facts"], "name sessions by ID"),
    ],
)
def test_wrong_usage_is_reported(run: Runner, options: list[str], words: str) -> None:
    ended = run("export", "-f", "parquet", *options)
    assert ended.status == 2
    assert words in ended.err


def test_unwritable_folder_is_reported(run: Runner, tmp_path: Path) -> None:
    builders.put(tmp_path / "file", b"")
    ended = run("export", "--all", "-f", "parquet", "-o", str(tmp_path / "file" / "facts"))
    assert ended.status == 1
    assert "cannot be written" in ended.err


def test_missing_library_names_its_extra(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:  # noqa: ANN401
        raise ImportError(name)

    monkeypatch.setattr(parquet, "import_module", missing)
    ended = run("export", "--all", "-f", "parquet", "-o", str(tmp_path / "facts"))
    assert (ended.status, ended.err) == (
        1,
        "Parquet needs pyarrow; install it with `pip install 'pollux-cli[lake]'`.\n",
    )
