"""The entries of a sealed archive, which are the leaves of its Merkle tree: files, sessions, forgotten files.

An entry is canonical JSON. It identifies a version of a file by what only appending can change: its name, when it was
first seen, and the hash of its bytes so far. Segments are not part of an entry because compaction joins them, nor is
the version's number because an import may change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from pollux.archive.seals import Name
from pollux.proofs.canonical import json_bytes

TREE = "tree"
"""The commitment of `pollux.proofs.commitment`."""


class _NamedEntry(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    machine: str
    home: str
    path: str

    @property
    def name(self) -> Name:
        """Machine, home and path of the file."""
        return self.machine, self.home, self.path


class FileEntry(_NamedEntry, frozen=True, tag="file"):
    """The first bytes of a version of a file."""

    first_seen_us: int
    length: int
    sha256: str


class ForgottenEntry(_NamedEntry, frozen=True, tag="forgotten"):
    """A file whose bytes the user deleted from the archive."""

    at_us: int


class SessionEntry(
    msgspec.Struct, frozen=True, tag="session", tag_field="kind", forbid_unknown_fields=True, omit_defaults=True
):
    """A commitment to the record of a session."""

    session: str
    record: str
    """The profile of the record."""
    by: str
    """The program that made the record."""
    fields: int
    root: str
    files: Sequence[str]
    """SHA-256 of the files that the session was read from, as in their own entries."""
    form: str | None = None
    """How the commitment is computed: `TREE`. Entries without it have an older form that does not reveal removals."""


Entry: TypeAlias = FileEntry | ForgottenEntry | SessionEntry
_decode = msgspec.json.Decoder(Entry).decode


def entry_bytes(entry: Entry) -> bytes:
    """Return the canonical JSON of an entry."""
    return json_bytes(msgspec.to_builtins(entry))


def entry_from(data: bytes) -> Entry | None:
    """Parse an entry; return None if it is invalid or not canonical."""
    try:
        entry = _decode(data)
    except ValueError:  # includes msgspec's errors
        return None
    return entry if entry_bytes(entry) == data else None
