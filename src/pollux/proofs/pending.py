"""What of an archive no seal is over yet: versions of files, what the sessions in them say, what was forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pollux import __version__
from pollux.archive import seals
from pollux.archive.inventory import place_of
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.model import Json, Problem
from pollux.proofs.commitment import Salts, commitment
from pollux.proofs.entries import TREE, Entry, FileEntry, ForgottenEntry, SessionEntry
from pollux.sessions.reader import Progress

PROFILE = "vac-00"
"""Of the records that are committed to."""
BY = f"pollux {__version__}"


@dataclass(slots=True)
class New:
    """What is to be sealed."""

    entries: list[Entry] = field(default_factory=list)
    n_files: int = 0
    n_bytes: int = 0
    n_sessions: int = 0
    forgotten: list[str] = field(default_factory=list)
    """Files that were forgotten since the last seal."""
    problems: list[Problem] = field(default_factory=list)
    """What cannot be sealed."""


def unsealed(
    archive: Archive,
    known: Sequence[Entry],
    record_of: Callable[[str], Mapping[str, Json]],
    *,
    again: Sequence[str] = (),
    progress: Progress = lambda _done, _all: None,
) -> New:
    """Find what is new since the entries that are known."""
    new = New()
    new.entries += _files(archive, known, new, progress)
    new.entries += _sessions(archive, [*known, *new.entries], new, record_of, again, progress)
    new.entries += _tombstones(archive, known, new)
    return new


def _files(archive: Archive, known: Sequence[Entry], found: New, progress: Progress) -> Iterator[FileEntry]:
    """Yield an entry for each version that is new, or longer than it was."""
    sealed = {(one.name, one.first_seen_us, one.length) for one in known if isinstance(one, FileEntry)}
    new = [one for one in seals.versions(archive.database) if (one.name, one.first_us, one.kept) not in sealed]
    n_bytes = sum(one.kept for one in new)
    for version in new:
        there = seals.prefixes(archive.database, version.id, [version.kept])
        digest = there.digests.get(version.kept)
        if digest is None:
            words = f"not sealed: {there.fault}; `pollux verify` tells more"
            found.problems.append(Problem("damaged-archive", words, str(place_of(*version.name[1:]))))
            continue
        found.n_files += 1
        found.n_bytes += version.kept
        progress(found.n_bytes, n_bytes)
        yield FileEntry(*version.name, version.first_us, version.kept, digest.hex())


def _sessions(
    archive: Archive,
    known: Sequence[Entry],
    found: New,
    record_of: Callable[[str], Mapping[str, Json]],
    again: Sequence[str],
    progress: Progress,
) -> Iterator[SessionEntry]:
    """Yield an entry for each session whose bytes are new, or that another version of Pollux may read differently."""
    last = {one.session: one for one in known if isinstance(one, SessionEntry)}
    files = {(one.name, one.first_seen_us, one.length): one.sha256 for one in known if isinstance(one, FileEntry)}
    digests = {one.id: files.get((one.name, one.first_us, one.kept)) for one in seals.versions(archive.database)}
    secret = seals.secret(archive.database)
    sources = seals.sources(archive.database)
    for done, (session, versions) in enumerate(sources.items(), 1):
        progress(done, len(sources))
        hashes = sorted({digest for one in versions if (digest := digests.get(one))})
        before = last.get(session)
        if not hashes:
            continue
        if before and session not in again and (before.by, before.form, [*before.files]) == (BY, TREE, hashes):
            continue
        try:
            root, n_fields = commitment(record_of(session), Salts(secret, session))
        except PolluxError as error:
            found.problems.append(Problem("not-sealed", f"what session {session} says is not sealed: {error}"))
            continue
        entry = SessionEntry(session, PROFILE, BY, n_fields, root.hex(), hashes, TREE)
        if entry != before:
            found.n_sessions += 1
            yield entry


def _tombstones(archive: Archive, known: Sequence[Entry], found: New) -> Iterator[ForgottenEntry]:
    """Yield an entry for each sealed file that somebody has asked to forget."""
    told = {one.name for one in known if isinstance(one, ForgottenEntry)}
    untold = {one.name for one in known if isinstance(one, FileEntry)} - told
    for name, at_us in sorted(seals.files(archive.database).items()):
        if at_us is not None and name in untold:
            found.forgotten.append(str(place_of(*name[1:])))
            yield ForgottenEntry(*name, at_us)
