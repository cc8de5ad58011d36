"""Explain why nothing was found: which field of a query matches no session, and which value was probably meant."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from difflib import get_close_matches

import msgspec

from pollux.search import facts
from pollux.search.facts import FactPlace
from pollux.search.fields import Level
from pollux.search.terms import FieldTest, Query
from pollux.text.escape import printable

_SIMILARITY = 0.7
_SHOWN = 60


def explain_nothing(database: sqlite3.Connection, query: Query, place: FactPlace) -> tuple[str, ...]:
    """Return a sentence for each field that every hit has to match and that no session matches."""
    sentences = []
    for node in query.node.nodes:
        if isinstance(node, FieldTest) and facts.level(node) in {Level.SESSION, Level.MESSAGE}:
            if facts.sessions_of(database, node, place):
                continue
            sentence = f'No session matches "{_shown(node)}".'
            similar = _similar(database, node, place)
            sentences.append(f'{sentence} Did you mean "{node.name}:{printable(similar)}"?' if similar else sentence)
    return tuple(sentences)


def _similar(database: sqlite3.Connection, test: FieldTest, place: FactPlace) -> str | None:
    names = {name.casefold(): name for name in _names(database, test, place)}
    for value in test.values:
        for match in get_close_matches(value.casefold(), names, n=1, cutoff=_SIMILARITY):
            return names[match]
    return None


def _names(database: sqlite3.Connection, test: FieldTest, place: FactPlace) -> Iterator[str]:
    """Yield the names that the field of a test can have."""
    match test.name:
        case "project":
            yield from {project.name for project in place.projects.values() if project.path or project.slug}
        case "model":
            for (models,) in database.execute("SELECT DISTINCT models FROM sessions"):
                yield from msgspec.json.decode(models, type=list[str])
        case "tool":
            for name, label in database.execute("SELECT DISTINCT raw_name, label FROM tool_calls"):
                yield from (name, label)


def _shown(test: FieldTest) -> str:
    text = f"{test.name}:{','.join(test.values)}"
    return printable(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
