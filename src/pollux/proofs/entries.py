"""The entries of a sealed archive, each a leaf of its tree: what was kept, what it says, what was forgotten.

An entry is canonical JSON. A version of a file is known by what nothing can change but new bytes at its end: where it
was, when it was first seen, and the hash of so many of its first bytes. Neither the segments it is stored in are part
of it, which are put together over time, nor its number, which an import may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from pollux.archive.seals import Name
from pollux.proofs.canonical import json_bytes

TREE = "tree"
"""The commitment of `pollux.proofs.commitment`."""


class _Named(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    machine: str
    home: str
    path: str

    @property
    def name(self) -> Name:
        """Whose it is."""
        return self.machine, self.home, self.path


class FileEntry(_Named, frozen=True, tag="file"):
    """The first bytes of a version of a file."""

    first_seen_us: int
    length: int
    sha256: str


class ForgottenEntry(_Named, frozen=True, tag="forgotten"):
    """A file of which nothing is kept any more, because somebody asked for that."""

    at_us: int


class SessionEntry(
    msgspec.Struct, frozen=True, tag="session", tag_field="kind", forbid_unknown_fields=True, omit_defaults=True
):
    """What a session says, committed to field by field."""

    session: str
    record: str
    """The profile of the record that was committed to."""
    by: str
    """The program that made it."""
    fields: int
    root: str
    files: Sequence[str]
    """SHA-256 of the files that the session was read from, as in their own entries."""
    form: str | None = None
    """How the commitment is computed: `TREE`. Entries without it have an older form, which did not show removals."""


Entry: TypeAlias = FileEntry | ForgottenEntry | SessionEntry
_decode = msgspec.json.Decoder(Entry).decode


def entry_bytes(entry: Entry) -> bytes:
    """Write an entry."""
    return json_bytes(msgspec.to_builtins(entry))


def entry_from(data: bytes) -> Entry | None:
    """Parse an entry; return None where it is none, or is not in its canonical form."""
    try:
        entry = _decode(data)
    except ValueError:  # msgspec's own error is one, too
        return None
    return entry if entry_bytes(entry) == data else None
