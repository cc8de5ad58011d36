"""The names of the search index, a file next to the archive that is derived from it."""

from __future__ import annotations

from pathlib import Path


def index_path(archive: Path) -> Path:
    """Return the file of an archive's index: `archive.search.db` for `archive.db`."""
    return archive.with_name(f"{archive.name.removesuffix('.db')}.search.db")


def index_files(archive: Path) -> list[Path]:
    """Return all files of an archive's index, except its lock."""
    path = index_path(archive)
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
