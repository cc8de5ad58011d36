"""Archived files by the place where they stood."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

from pollux.archive.inventory import place_of
from pollux.text.unicode import sound


class ArchivedFile(NamedTuple):
    """A file with bytes in the archive."""

    id: int
    path: str
    """Below its home."""
    version_id: int
    """Its newest version."""


def file_at(database: sqlite3.Connection, place: Path) -> ArchivedFile | None:
    """Return the file that stood at a place; of several machines, that of the one seen last."""
    rows = database.execute(
        """
        SELECT id, path, version_id, home FROM files
        WHERE version_id IS NOT NULL AND forgotten_us IS NULL AND (path = ?1 OR path LIKE ?2 ESCAPE '!')
        ORDER BY last_us DESC
        """,
        (sound(place.name), f"%/{_literal(sound(place.name))}"),
    ).fetchall()
    wanted = Path(sound(str(place)))
    for file_id, path, version_id, home in rows:
        if place_of(home, path) == wanted:
            return ArchivedFile(file_id, path, version_id)
    return None


def _literal(text: str) -> str:
    """Return a text for `LIKE` that stands for itself alone."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
