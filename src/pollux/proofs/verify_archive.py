"""Compare an archive with its seals, and with those of archives that were imported into it.

Seals of an imported archive say nothing about this archive, so they are checked separately. A chain becomes this
archive's own only if it is the restored backup of the user: signed throughout with the user's keys, matching what was
imported to the last entry, in an archive without any seal. Salts of later seals are made from a new secret all the
same, because others may have handled the backup.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pollux.archive import seals
from pollux.archive.inventory import original_path
from pollux.archive.seals import ImportedChain, Name, Prefixes, SealedVersion
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.proofs import cose
from pollux.proofs.chain import SealCopy, check_chain, check_external_seal
from pollux.proofs.entries import Entry, FileEntry, ForgottenEntry, SessionEntry, entry_from
from pollux.proofs.public import PublicKey, thumbprint_text
from pollux.proofs.seal import Seal, seal_from
from pollux.proofs.verdict import Verdict
from pollux.sessions.reader import Progress
from pollux.text.times import client_timestamp

_DAY = len("2026-11-15")


@dataclass(frozen=True, slots=True)
class _Claim:
    """A sealed statement that these are the first bytes of a version."""

    entry: FileEntry
    seal: str


def verify(
    archive: Archive,
    keys: Sequence[PublicKey],
    copy: SealCopy | None = None,
    *,
    progress: Progress = lambda _done, _all: None,
) -> Verdict:
    """Compare an archive with its own seals, or with a copy of one. Raises `PolluxError` if there is no seal."""
    database = archive.database
    database.execute("BEGIN")  # one snapshot, even if another process writes meanwhile
    try:
        return _verify(archive, keys, copy, progress)
    finally:
        database.execute("ROLLBACK")


def adopt_own(archive: Archive, own: Sequence[PublicKey]) -> int:
    """Make the seals of a restored backup this archive's own, if they qualify; return their number."""
    database = archive.database
    if seals.seals(database) or seals.entries(database):
        return 0
    matching = [chain for chain in seals.chains(database) if check_imported(archive, chain, own).is_ok]
    if not matching:
        return 0
    longest = max(matching, key=lambda chain: len(chain.seals))
    seals.adopt(database, longest)
    return len(longest.seals)


def check_imported(archive: Archive, chain: ImportedChain, keys: Sequence[PublicKey]) -> Verdict:
    """Check the seals of an imported archive: their signatures, their entries, and the imported bytes they cover."""
    verdict = Verdict("imported seals")
    for number, data in chain.seals:
        _check_signer(number, data, keys, verdict)
    if verdict.is_ok:  # content of unknown signers is not parsed
        check_chain(chain.seals, chain.entries, keys, verdict)
        _check_imported_files(archive, chain, verdict)
    return verdict


def describe_imported(chain: ImportedChain, verdict: Verdict) -> str:
    """Return the verdict about imported seals as one sentence without its full stop."""
    number = f"{len(chain.seals)} seal{'s' * (len(chain.seals) != 1)} of an imported archive"
    if verdict.is_ok:
        return f"{number}, signed with the key {verdict.facts['key']}: the imported files match"
    first = verdict.errors[0]
    more = f", and {len(verdict.errors) - 1} more" if len(verdict.errors) > 1 else ""
    return f"{number}, not confirmed: {first.file or first.what}: {first.message}{more}"


def _verify(archive: Archive, keys: Sequence[PublicKey], copy: SealCopy | None, progress: Progress) -> Verdict:
    database = archive.database
    stored, entries = seals.seals(database), seals.entries(database)
    if not stored and not entries and copy is None:
        raise PolluxError("This archive has no seal yet. Run `pollux archive seal` to make one.")
    verdict = Verdict("archive")
    chain = check_chain(stored, entries, keys, verdict)
    bodies = [body for _, body in entries]
    if copy is not None:
        seal, bodies = check_external_seal(copy, stored, entries, keys, verdict)
        chain = [*(earlier for earlier in chain if earlier.number < seal.number), seal]
    sealed = _parse_entries(enumerate(bodies), verdict)
    later = (entry_from(body) for _, body in entries[len(bodies) :])
    forgotten: dict[Name, int] = {}
    for entry in (*(entry for _, entry in sealed), *later):
        if isinstance(entry, ForgottenEntry):
            forgotten[entry.name] = entry.at_us
    _check_files(archive, sealed, forgotten, chain, verdict, progress)
    verdict.facts |= _facts(chain, sealed)
    return verdict


def _parse_entries(numbered: Iterable[tuple[int, bytes]], verdict: Verdict) -> list[tuple[int, Entry]]:
    sealed = []
    for place, body in numbered:
        entry = entry_from(body)
        if entry is None:
            verdict.add_error("leaf", f"sealed entry {place} cannot be read")
        else:
            sealed.append((place, entry))
    return sealed


def _versions_by_name(archive: Archive) -> dict[Name, list[SealedVersion]]:
    versions: dict[Name, list[SealedVersion]] = defaultdict(list)
    for version in seals.versions(archive.database):
        versions[version.name].append(version)
    return versions


def _hash_versions(
    archive: Archive, versions: Sequence[SealedVersion], entries: Iterable[FileEntry]
) -> list[tuple[SealedVersion, Prefixes]]:
    """Return each version with the digests of its beginnings, at the lengths that were sealed."""
    lengths = {entry.length for entry in entries}
    hashed = []
    for version in versions:
        available = [length for length in lengths if length <= version.length]
        hashed.append((version, seals.prefixes(archive.database, version.id, available)))
    return hashed


def _check_files(
    archive: Archive,
    sealed: Iterable[tuple[int, Entry]],
    forgotten: Mapping[Name, int],
    chain: Sequence[Seal],
    verdict: Verdict,
    progress: Progress,
) -> None:
    claims: dict[Name, list[_Claim]] = defaultdict(list)
    for place, entry in sealed:
        if isinstance(entry, FileEntry):
            claims[entry.name].append(_Claim(entry, _seal_name(chain, place)))
    versions = _versions_by_name(archive)
    files = seals.files(archive.database)
    n_bytes, done = sum(version.length for name in claims for version in versions[name]), 0
    for name in sorted(claims):
        forgotten_us = forgotten.get(name) or files.get(name)
        if forgotten_us and not versions[name]:
            how = "which a seal confirms" if name in forgotten else "which no seal confirms yet"
            verdict.notes.append(f"{_place(name)}: forgotten by you on {_time_text(forgotten_us)[:_DAY]}, {how}")
        elif name not in files:
            longest = max(claims[name], key=lambda claim: claim.entry.length)
            message = f"{longest.seal} covers {longest.entry.length} bytes of it, but it is missing from the archive"
            verdict.add_error("file", message, _place(name))
        else:
            _check_file(archive, name, claims[name], versions[name], verdict)
        done += sum(version.length for version in versions[name])
        progress(done, n_bytes)


def _check_file(
    archive: Archive, name: Name, claims: Sequence[_Claim], versions: Sequence[SealedVersion], verdict: Verdict
) -> None:
    """Check for each seal over a file that a version begins with the sealed bytes."""
    hashed = _hash_versions(archive, versions, (claim.entry for claim in claims))
    intact: dict[int, int] = {}
    reported: set[int] = set()
    for claim in claims:
        entry = claim.entry
        first_seen = [version.first_us for version, prefixes in hashed if _begins_with(prefixes, entry)]
        if entry.first_seen_us in first_seen:
            intact[entry.first_seen_us] = max(intact.get(entry.first_seen_us, 0), entry.length)
        elif entry.first_seen_us not in reported:
            reported.add(entry.first_seen_us)
            reason = _reason(entry, hashed, first_seen)
            n_intact = intact.get(entry.first_seen_us)
            unchanged = f"; its first {n_intact} bytes are unchanged" if n_intact else ""
            message = f"{claim.seal} covers {entry.length} bytes of it, but {reason}{unchanged}"
            verdict.add_error("file", message, _place(name))


def _begins_with(prefixes: Prefixes, entry: FileEntry) -> bool:
    digest = prefixes.digests.get(entry.length)
    return digest is not None and digest.hex() == entry.sha256


def _reason(entry: FileEntry, hashed: Sequence[tuple[SealedVersion, Prefixes]], first_seen: Sequence[int]) -> str:
    """Return why no version begins with the sealed bytes."""
    if not hashed:
        return "the archive has none of them"
    same = next((pair for pair in hashed if pair[0].first_us == entry.first_seen_us), None)
    if same is None and first_seen:
        now, sealed = _time_text(first_seen[0]), _time_text(entry.first_seen_us)
        return f"the archive now says that it first saw them at {now}, not at {sealed}"
    if same is None:
        return f"the version first seen at {_time_text(entry.first_seen_us)} is missing"
    version, prefixes = same
    if prefixes.fault:
        return prefixes.fault
    if version.length < entry.length:
        return f"the archive has only {version.length}"
    return "they were altered: their SHA-256 differs"


def _seal_name(chain: Sequence[Seal], place: int) -> str:
    number = next((seal.number for seal in chain if seal.size > place), None)
    return f"seal {number}" if number else "the list of entries"


def _facts(chain: Sequence[Seal], sealed: Sequence[tuple[int, Entry]]) -> dict[str, str]:
    names = {entry.name for _, entry in sealed if isinstance(entry, FileEntry)}
    sessions = {entry.session for _, entry in sealed if isinstance(entry, SessionEntry)}
    facts = {"files": str(len(names)), "sessions": str(len(sessions)), "entries": str(len(sealed))}
    if chain:
        facts |= {"seal": str(chain[-1].number), "sealed at": chain[-1].at, "root": chain[-1].root}
    return facts


def _check_signer(number: int, data: bytes, keys: Sequence[PublicKey], verdict: Verdict) -> None:
    """Check that a seal is signed with one of the keys, before its content is looked at."""
    try:
        _, envelope = seal_from(data)
    except PolluxError as error:
        verdict.add_error("seal", f"seal {number} cannot be read: {str(error).rstrip('.')}")
        return
    key = next((key for key in keys if key.id == envelope.key_id), None)
    if key is None:
        named = f"the unknown key {thumbprint_text(envelope.key_id)}" if envelope.key_id else "a key without a name"
        verdict.add_error("key", f"seal {number} is signed with {named}")
    elif not cose.is_signed(envelope, envelope.payload or b"", key):
        verdict.add_error("signature", f"seal {number} was changed after it was signed")
    else:
        verdict.facts["key"] = thumbprint_text(key.id)


def _check_imported_files(archive: Archive, chain: ImportedChain, verdict: Verdict) -> None:
    claims: dict[Name, list[FileEntry]] = defaultdict(list)
    forgotten = {name for name, at_us in seals.files(archive.database).items() if at_us is not None}
    for _, entry in _parse_entries(chain.entries, verdict):
        if isinstance(entry, FileEntry):
            claims[entry.name].append(entry)
        elif isinstance(entry, ForgottenEntry):
            forgotten.add(entry.name)
    versions = _versions_by_name(archive)
    for name in sorted(claims):
        if versions[name] or name not in forgotten:
            _check_imported_file(archive, name, claims[name], versions[name], verdict)


def _check_imported_file(
    archive: Archive, name: Name, claims: Sequence[FileEntry], versions: Sequence[SealedVersion], verdict: Verdict
) -> None:
    hashed = _hash_versions(archive, versions, claims)
    for entry in claims:
        matches = (
            version.first_us == entry.first_seen_us and _begins_with(prefixes, entry) for version, prefixes in hashed
        )
        if not any(matches):
            verdict.add_error("file", f"its {entry.length} sealed bytes were not imported", _place(name))
            return


def _place(name: Name) -> str:
    return str(original_path(*name[1:]))


def _time_text(at_us: int) -> str:
    try:
        return client_timestamp(datetime.fromtimestamp(at_us / 1_000_000, UTC))
    except (ValueError, OverflowError, OSError):  # out of range, so it was tampered with
        return f"{at_us} µs"
