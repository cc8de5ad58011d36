"""Which values of a record hold a secret, by the rules of redaction.

Names and e-mail addresses are no secrets here: they stand in nearly every path, and hiding those would hide the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pollux.model import Json
from pollux.proofs.fields import Path
from pollux.redaction import values
from pollux.redaction.joined_text import Pieces
from pollux.redaction.names import KnownNames
from pollux.redaction.rule import Kind
from pollux.redaction.scan import scan

_MARK = "[redacted:secret#1]"
"""In the form of a pseudonym, which no rule looks into."""
_ROUNDS = 4
"""So often is looked for what is only seen when its neighbour is gone."""
_BINARY = 400
"""Base64 from this length on is worth a word when it cannot be read."""


class Secrets(NamedTuple):
    """What was found in a record."""

    places: frozenset[Path]
    """The values that hold a secret; where a name holds one, the object that it stands in."""
    counts: Counter[str]
    """What was found, in words, and how often."""
    unread: Counter[str]
    """What could not be looked into, in words."""


def secrets(record: Mapping[str, Json]) -> Secrets:
    """Look for secrets in all texts and names of a record."""
    marker = _Marker()
    marked = values.redacted(record, marker, "record")
    return Secrets(frozenset(_differing(record, marked, ())), marker.counts, +marker.unread)


class _Marker:
    """Puts a mark in place of every secret, and counts them."""

    drop_binary = False

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.unread = Counter[str]()
        self._nobody = KnownNames()

    def one(self, text: str, where: str) -> str:
        return self.pieces(Pieces((text,)), where)[0]

    def pieces(self, pieces: Pieces, where: str) -> Sequence[str]:
        del where
        for number in range(_ROUNDS):
            result = scan(pieces.whole, self._nobody, pieces.seams)
            if not number:
                self.unread["base64 in a text"] += sum(size >= _BINARY for size in result.binary)
            found = [one for one in result.found if one.rule.kind is Kind.SECRET]
            if not found:
                return pieces.texts
            self.counts.update(f"{one.rule.finds} ({one.rule.id})" for one in found)
            pieces = pieces.replaced([(one.start, one.end) for one in found], [_MARK] * len(found))
        return [_MARK] * len(pieces.texts)

    def note_unscanned(self, media_type: str, size: int) -> None:
        del size
        self.unread[f"{media_type} attachment"] += 1


def _differing(value: Json, marked: Json, path: Path) -> Iterator[Path]:
    """Yield where two values differ: as deep as they are of the same shape."""
    match value, marked:
        case dict(), dict() if value.keys() == marked.keys():
            for name, inner in value.items():
                yield from _differing(inner, marked[name], (*path, name))
        case list(), list() if len(value) == len(marked):
            for place, (inner, other) in enumerate(zip(value, marked, strict=True)):
                yield from _differing(inner, other, (*path, place))
        case _ if value != marked:
            yield path
