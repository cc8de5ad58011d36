"""Sessions and projects for shell completion, taken from file names, because reading files would be too slow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pollux.library.config import UsageError, configure
from pollux.sessions.locate import HomeScan, locate, name_facts

_HASH_DIGITS = 64
"""Hex digits of SHA-256."""


class OfferedSession(NamedTuple):
    """What a file name says about a session."""

    id8: str
    day: str
    folder: str


def offered_sessions(named_homes: Sequence[Path]) -> list[OfferedSession]:
    """Return the sessions of some homes, newest first."""
    newest: dict[str, tuple[str, str]] = {}
    for file in _located(named_homes).files:
        started, id8 = name_facts(file.path.name)
        if file.what == "session" and id8:
            day = f"{started:%Y-%m-%d %H:%M}" if started else ""
            newest[id8] = max((day, file.folder), newest.get(id8, ("", "")))
    ordered = sorted(newest.items(), key=lambda item: item[1], reverse=True)
    return [OfferedSession(id8, day, _short(folder)) for id8, (day, folder) in ordered]


def offered_projects(named_homes: Sequence[Path]) -> list[str]:
    """Return the names of the project folders of some homes."""
    return sorted({_short(folder.name) for folder in _located(named_homes).folders})


def _located(named_homes: Sequence[Path]) -> HomeScan:
    try:
        homes = configure(named_homes=named_homes, archive=None).homes
    except UsageError:  # reported when the command runs
        homes = ()
    return locate(homes)


def _short(folder: str) -> str:
    return folder[:8] if len(folder) == _HASH_DIGITS else folder
