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


class OfferedWord(NamedTuple):
    """A word of a query, and what it means."""

    text: str
    help: str


def offered_query_words(named_homes: Sequence[Path], incomplete: str) -> list[OfferedWord]:
    """Return the fields that begin with a word, or the values that begin so if it has a field."""
    from pollux.search.fields import FIELDS, field_named  # noqa: PLC0415  not needed for other arguments

    name, separator, value = incomplete.partition(":")
    if not separator:
        fields = [field for field in FIELDS if field.name.startswith(name)]
        return [OfferedWord(f"{field.name}:", field.help) for field in fields]
    field = field_named(name)
    if field is None:
        return []
    values: Sequence[str] = field.choices
    if field.name == "project":
        values = offered_projects(named_homes)
    elif field.name == "id":
        values = [session.id8 for session in offered_sessions(named_homes)]
    return [OfferedWord(f"{name}:{word}", "") for word in values if word.startswith(value)]


def _located(named_homes: Sequence[Path]) -> HomeScan:
    try:
        homes = configure(named_homes=named_homes, archive=None).homes
    except UsageError:  # reported when the command runs
        homes = ()
    return locate(homes)


def _short(folder: str) -> str:
    return folder[:8] if len(folder) == _HASH_DIGITS else folder
