"""Seal the archive with signed Merkle roots, and prove what a seal covers."""

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
from pollux.proofs.chain import SealCopy, seal_copy_from
from pollux.proofs.inclusion import prove, prove_consistency
from pollux.proofs.seal import SealOutcome, seal

if TYPE_CHECKING:
    from pollux.library.keys import SigningKey
    from pollux.library.library import Library


class SealResult(NamedTuple):
    """The newest seal, what is new in it, and its bytes for a file."""

    sealed: SealOutcome
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
    """Refresh the archive, and sign a Merkle root over its whole content, chained to the previous seal.

    Args:
        library: names the archive.
        key: the signing key.
        again: sessions whose records are sealed again.
        issuer: a name to put into the seal.
        with_entries: include all sealed entries, which name every file, in the returned bytes.
        report: shows progress.

    """
    with library.writing(create=True) as snapshot:
        archive = snapshot.archive
        assert archive is not None  # only an archive is writable
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
        return SealResult(sealed, SealCopy(sealed.data, entries).file_bytes)


def prove_session(library: Library, reference: str) -> bytes:
    """Return the proof that the last seal covers a session and its files."""
    with library.snapshot() as snapshot:
        archive = archive_of(snapshot)
        return json_bytes(prove(archive, load_session(snapshot, reference).id)) + b"\n"


def prove_continuation(library: Library, older: Path) -> bytes:
    """Return the proof that the last seal covers everything that an older seal in a file covers."""
    with library.snapshot() as snapshot:
        return json_bytes(prove_consistency(archive_of(snapshot), read_seal(older).data)) + b"\n"


def read_seal(path: Path) -> SealCopy:
    """Return the seal in a file."""
    try:
        return seal_copy_from(read_input(path))
    except UnreadableFileError:
        raise
    except PolluxError as error:
        raise PolluxError(f"{path} is no seal. {error}") from None
