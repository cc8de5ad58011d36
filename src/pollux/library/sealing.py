"""Seals of the archive: signed roots over all that it contains, and proofs that a seal covers something."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pollux.archive import seals
from pollux.errors import PolluxError, UnreadableFileError
from pollux.library.freshness import Reporter, no_report
from pollux.library.records import archive_of, read_input, record_maker
from pollux.library.references import load_session
from pollux.library.select import find_session
from pollux.proofs.canonical import json_bytes
from pollux.proofs.chain import Given, given_from
from pollux.proofs.continuation import continuation
from pollux.proofs.inclusion import prove
from pollux.proofs.seal import Sealed, seal

if TYPE_CHECKING:
    from pollux.library.keys import SigningKey
    from pollux.library.library import Library


class SealResult(NamedTuple):
    """The newest seal, what it covers for the first time, and the seal as a file to be kept elsewhere."""

    sealed: Sealed
    file: bytes | None


def seal_archive(
    library: Library,
    key: SigningKey,
    again: Sequence[str] = (),
    *,
    issuer: str | None = None,
    with_entries: bool = False,
    report: Reporter = no_report,
) -> SealResult:
    """Copy what is new into the archive, and sign a Merkle root over all that it contains, chained to the seal before.

    Args:
        library: with the archive.
        key: to sign with.
        again: sessions whose records are sealed again.
        issuer: a name to seal under.
        with_entries: whether the file contains all sealed entries, which name every file.
        report: told how far the work is.

    """
    with library.writing(create=True) as snapshot:
        archive = snapshot.archive
        assert archive is not None  # nothing else can be written to
        with report("sealing") as progress:
            by_id = {session.id: session for session in snapshot.sessions.load(None)}
            sealed = seal(
                archive,
                key.private,
                at=library.config.clock(),
                record_of=record_maker(snapshot, by_id, library.prices),
                again=[find_session(snapshot, reference) for reference in again],
                issuer=issuer,
                progress=progress,
            )
        if sealed.seal is None:
            return SealResult(sealed, None)
        entries = tuple(body for _, body in seals.entries(archive.database)) if with_entries else None
        return SealResult(sealed, Given(sealed.data, entries).file_bytes)


def prove_session(library: Library, reference: str) -> bytes:
    """Return the proof that the last seal covers a session and the files that it was read from."""
    with library.snapshot() as snapshot:
        archive = archive_of(snapshot)
        return json_bytes(prove(archive, load_session(snapshot, reference).id)) + b"\n"


def prove_continuation(library: Library, older: Path) -> bytes:
    """Return the proof that the last seal covers all that an older one in a file covered."""
    with library.snapshot() as snapshot:
        return json_bytes(continuation(archive_of(snapshot), read_seal(older).data)) + b"\n"


def read_seal(path: Path) -> Given:
    """Return a seal that was kept in a file."""
    try:
        return given_from(read_input(path))
    except UnreadableFileError:
        raise
    except PolluxError as error:
        raise PolluxError(f"{path} is no seal. {error}") from None
