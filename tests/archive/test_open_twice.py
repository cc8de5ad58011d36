from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pollux.archive.store import _open_files, open_archive

WRITE = """
import sys, pathlib
from pollux.archive.store import open_archive
with open_archive(pathlib.Path(sys.argv[1])) as archive:
    archive.database.execute("CREATE TABLE written (x)")
"""


@pytest.mark.parametrize("n_connections", [1, 2, 5])
def test_another_process_leaves_the_log_that_connections_read(tmp_path: Path, n_connections: int) -> None:
    path = tmp_path / "archive.db"
    open_archive(path).close()
    opened = [open_archive(path, write=False) for _ in range(n_connections)]
    for archive in opened:
        archive.database.execute("SELECT count(*) FROM files").fetchone()
    subprocess.run([sys.executable, "-c", WRITE, path], check=True)
    assert path.with_name("archive.db-wal").exists()
    for archive in opened:
        assert archive.database.execute("SELECT count(*) FROM written").fetchone() == (0,)
        archive.close()
    assert (path.stat().st_dev, path.stat().st_ino) not in _open_files
