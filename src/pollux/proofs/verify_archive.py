"""An archive held against what was sealed: no sealed byte changed, none removed but those that were to be forgotten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pollux.archive import seals
from pollux.archive.inventory import place_of
from pollux.archive.seals import Kept, Name, Prefixes
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.proofs.chain import Given, check_chain, check_outside
from pollux.proofs.entries import Entry, FileEntry, ForgottenEntry, SessionEntry, entry_from
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import Seal
from pollux.proofs.verdict import Verdict
from pollux.sessions.reader import Progress
from pollux.text.times import stamp

_DAY = len("2026-11-15")


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a seal says of a version: these are its first bytes."""

    entry: FileEntry
    seal: str


def verify(
    archive: Archive,
    keys: Sequence[PublicKey],
    given: Given | None = None,
    *,
    progress: Progress = lambda _done, _all: None,
) -> Verdict:
    """Hold an archive against its own seals, or against one that was kept elsewhere.

    Raises `PolluxError` if there is no seal at all.
    """
    database = archive.database
    database.execute("BEGIN")  # one moment, whatever somebody else writes meanwhile
    try:
        return _verified(archive, keys, given, progress)
    finally:
        database.execute("ROLLBACK")


def _verified(archive: Archive, keys: Sequence[PublicKey], given: Given | None, progress: Progress) -> Verdict:
    database = archive.database
    stored, entries = seals.seals(database), seals.entries(database)
    if not stored and not entries and given is None:
        raise PolluxError("This archive has no seal yet; `pollux archive seal` makes one.")
    found = Verdict("archive")
    chain = check_chain(stored, entries, keys, found)
    bodies = [body for _, body in entries]
    if given is not None:
        seal, bodies = check_outside(given, stored, entries, keys, found)
        chain = [*(one for one in chain if one.number < seal.number), seal]
    known = _read(bodies, found)
    later = (entry_from(body) for _, body in entries[len(bodies) :])
    told = {one.name: one.at_us for one in (*(one for _, one in known), *later) if isinstance(one, ForgottenEntry)}
    _check_files(archive, known, told, chain, found, progress)
    found.facts |= _facts(chain, known)
    return found


def _read(bodies: Sequence[bytes], found: Verdict) -> list[tuple[int, Entry]]:
    known = []
    for place, body in enumerate(bodies):
        entry = entry_from(body)
        if entry is None:
            found.fault("leaf", f"sealed entry {place} cannot be read")
        else:
            known.append((place, entry))
    return known


def _check_files(
    archive: Archive,
    known: Iterable[tuple[int, Entry]],
    told: Mapping[Name, int],
    chain: Sequence[Seal],
    found: Verdict,
    progress: Progress,
) -> None:
    claims: dict[Name, list[_Claim]] = defaultdict(list)
    for place, entry in known:
        if isinstance(entry, FileEntry):
            claims[entry.name].append(_Claim(entry, _seal_of(chain, place)))
    versions: dict[Name, list[Kept]] = defaultdict(list)
    for version in seals.versions(archive.database):
        versions[version.name].append(version)
    files = seals.files(archive.database)
    n_bytes, done = sum(one.kept for name in claims for one in versions[name]), 0
    for name in sorted(claims):
        forgotten_us = told.get(name) or files.get(name)
        if forgotten_us and not versions[name]:
            _note_forgotten(name, forgotten_us, found, is_attested=name in told)
        elif name not in files:
            _fault_missing(name, claims[name], found)
        else:
            _check_file(archive, name, claims[name], versions[name], found)
        done += sum(one.kept for one in versions[name])
        progress(done, n_bytes)


def _check_file(
    archive: Archive, name: Name, claims: Sequence[_Claim], versions: Sequence[Kept], found: Verdict
) -> None:
    """Look for a version that begins as sealed, for each time that the file was sealed."""
    lengths = {one.entry.length for one in claims}
    hashed = [
        (version, seals.prefixes(archive.database, version.id, [one for one in lengths if one <= version.kept]))
        for version in versions
    ]
    intact: dict[int, int] = {}
    reported: set[int] = set()
    for one in claims:
        entry = one.entry
        seen = [version.first_us for version, there in hashed if _begins_with(there, entry)]
        if entry.first_seen_us in seen:
            intact[entry.first_seen_us] = max(intact.get(entry.first_seen_us, 0), entry.length)
        elif entry.first_seen_us not in reported:
            reported.add(entry.first_seen_us)
            reason = _reason(entry, hashed, seen)
            kept = intact.get(entry.first_seen_us)
            rest = f"; its first {kept} bytes are unchanged" if kept else ""
            found.fault("file", f"{one.seal} has {entry.length} bytes of it, but {reason}{rest}", _place(name))


def _begins_with(there: Prefixes, entry: FileEntry) -> bool:
    digest = there.digests.get(entry.length)
    return digest is not None and digest.hex() == entry.sha256


def _reason(entry: FileEntry, hashed: Sequence[tuple[Kept, Prefixes]], seen: Sequence[int]) -> str:
    """Say why the bytes that were sealed are not found."""
    if not hashed:
        return "none of its bytes are there"
    same = next((one for one in hashed if one[0].first_us == entry.first_seen_us), None)
    if same is None and seen:
        return f"the archive now says it saw them first at {_moment(seen[0])}, not at {_moment(entry.first_seen_us)}"
    if same is None:
        return f"the version first seen at {_moment(entry.first_seen_us)} is missing"
    version, there = same
    if there.fault:
        return there.fault
    if version.kept < entry.length:
        return f"only {version.kept} are there"
    return "they were altered: their SHA-256 is another"


def _fault_missing(name: Name, claims: Sequence[_Claim], found: Verdict) -> None:
    longest = max(claims, key=lambda one: one.entry.length)
    words = f"{longest.seal} has {longest.entry.length} bytes of it, but it is no longer in the archive"
    found.fault("file", words, _place(name))


def _note_forgotten(name: Name, at_us: int, found: Verdict, *, is_attested: bool) -> None:
    how = "which a seal confirms" if is_attested else "which no seal confirms yet"
    found.notes.append(f"{_place(name)}: forgotten by you on {_moment(at_us)[:_DAY]}, {how}")


def _seal_of(chain: Sequence[Seal], place: int) -> str:
    number = next((one.number for one in chain if one.size > place), None)
    return f"seal {number}" if number else "the list of entries"


def _facts(chain: Sequence[Seal], known: Sequence[tuple[int, Entry]]) -> dict[str, str]:
    names = {one.name for _, one in known if isinstance(one, FileEntry)}
    sessions = {one.session for _, one in known if isinstance(one, SessionEntry)}
    found = {"files": str(len(names)), "sessions": str(len(sessions)), "entries": str(len(known))}
    if chain:
        found |= {"seal": str(chain[-1].number), "sealed at": chain[-1].at, "root": chain[-1].root}
    return found


def _place(name: Name) -> str:
    return str(place_of(*name[1:]))


def _moment(at_us: int) -> str:
    try:
        return stamp(datetime.fromtimestamp(at_us / 1_000_000, UTC))
    except (ValueError, OverflowError, OSError):  # nobody can have seen it then
        return f"{at_us} µs"
