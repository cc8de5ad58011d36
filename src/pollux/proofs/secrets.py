"""Find the values of a record that contain a secret, by the rules of redaction.

Names and e-mail addresses do not count as secrets: they are in nearly every path, and hiding those would hide the
record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pollux.model import Json
from pollux.proofs.commitment import Path
from pollux.redaction import values
from pollux.redaction.joined_text import JoinedText
from pollux.redaction.names import KnownNames
from pollux.redaction.rule import RuleKind
from pollux.redaction.scan import scan

_MARK = "[redacted:secret#1]"
"""Has the form of a pseudonym, which no rule matches."""
_ROUNDS = 4
"""A secret may match only after the secret next to it was replaced, so a text is scanned this often."""
_BINARY = 400
"""Unreadable Base64 of this length or more is reported."""


class Secrets(NamedTuple):
    """The secrets of a record."""

    places: frozenset[Path]
    """Paths of the values that contain a secret; if a member name contains one, the path of its object."""
    counts: Counter[str]
    """Kinds of secrets, and how often each was found."""
    unread: Counter[str]
    """Kinds of content that could not be scanned."""


def find_secrets(record: Mapping[str, Json]) -> Secrets:
    """Return the secrets in all texts and names of a record."""
    marker = _Marker()
    marked = values.redact_value(record, marker, "record")
    return Secrets(frozenset(_differing(record, marked, ())), marker.counts, +marker.unread)


class _Marker:
    """Replaces every secret by a mark, and counts them."""

    drop_binary = False
    has_custom_rules = False

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.unread = Counter[str]()
        self._no_names = KnownNames()

    def redact_text(self, text: str, where: str) -> str:
        return self.redact_joined(JoinedText((text,)), where)[0]

    def redact_joined(self, pieces: JoinedText, where: str) -> Sequence[str]:
        del where
        for number in range(_ROUNDS):
            result = scan(pieces.text, self._no_names, pieces.seams)
            if not number:
                self.unread["base64 in a text"] += sum(size >= _BINARY for size in result.binary)
            matches = [match for match in result.matches if match.rule.kind is RuleKind.SECRET]
            if not matches:
                return pieces.texts
            self.counts.update(f"{match.rule.finds} ({match.rule.id})" for match in matches)
            pieces = pieces.replace([(match.start, match.end) for match in matches], [_MARK] * len(matches))
        return [_MARK] * len(pieces.texts)

    def note_unscanned(self, media_type: str, size: int) -> None:
        del size
        self.unread[f"{media_type} attachment"] += 1


def _differing(value: Json, marked: Json, path: Path) -> Iterator[Path]:
    """Yield the paths of differences, as deep as both values have the same shape."""
    match value, marked:
        case dict(), dict() if value.keys() == marked.keys():
            for name, inner in value.items():
                yield from _differing(inner, marked[name], (*path, name))
        case list(), list() if len(value) == len(marked):
            for place, (inner, other) in enumerate(zip(value, marked, strict=True)):
                yield from _differing(inner, other, (*path, place))
        case _ if value != marked:
            yield path
