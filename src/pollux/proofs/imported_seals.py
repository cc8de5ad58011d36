"""Seals that came with an imported archive: whose they are, and whether what was imported is what they are over.

They say nothing about this archive, so they are checked beside its own seals and never with them. Only a chain that is
signed throughout with keys of one's own, that fits what was imported to the last entry, and that comes into an archive
without any seal becomes this archive's own: a backup of one's own, restored. The salts of what is sealed from then on
are made from a new secret all the same, because whoever has handled the backup may know the old one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pollux.archive import seals
from pollux.archive.inventory import place_of
from pollux.archive.seals import Chain, Kept, Name
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.proofs import cose
from pollux.proofs.chain import check_chain
from pollux.proofs.entries import FileEntry, ForgottenEntry, entry_from
from pollux.proofs.public import PublicKey, shown
from pollux.proofs.seal import seal_from
from pollux.proofs.verdict import Verdict


def adopt_own(archive: Archive, own: Sequence[PublicKey]) -> int:
    """Make the seals of a restored backup this archive's own, if they are; return how many."""
    database = archive.database
    if seals.seals(database) or seals.entries(database):
        return 0
    fitting = [chain for chain in seals.chains(database) if look_at(archive, chain, own).is_good]
    if not fitting:
        return 0
    longest = max(fitting, key=lambda chain: len(chain.seals))
    seals.adopt(database, longest)
    return len(longest.seals)


def look_at(archive: Archive, chain: Chain, keys: Sequence[PublicKey]) -> Verdict:
    """Check a chain that came with an import: its signatures, its entries, and the imported bytes they are over."""
    found = Verdict("imported seals")
    for number, data in chain.seals:
        _check_signer(number, data, keys, found)
    if found.is_good:  # nothing else of what strangers wrote is worth a look
        check_chain(chain.seals, chain.entries, keys, found)
        _check_files(archive, chain, found)
    return found


def note(chain: Chain, found: Verdict) -> str:
    """Say in one sentence without its full stop what was found about an imported chain."""
    number = f"{len(chain.seals)} seal{'s' * (len(chain.seals) != 1)} of an imported archive"
    if found.is_good:
        return f"{number}, signed with the key {found.facts['key']}: what was imported is as it was sealed"
    first = found.faults[0]
    more = f", and {len(found.faults) - 1} more" if len(found.faults) > 1 else ""
    return f"{number}, not confirmed: {first.file or first.what}: {first.message}{more}"


def _check_signer(number: int, data: bytes, keys: Sequence[PublicKey], found: Verdict) -> None:
    """Check that a seal is signed with one of some keys, before anything that it says is looked at."""
    try:
        _, envelope = seal_from(data)
    except PolluxError as error:
        found.fault("seal", f"seal {number} cannot be read: {str(error).rstrip('.')}")
        return
    key = next((one for one in keys if one.id == envelope.key_id), None)
    if key is None:
        named = shown(envelope.key_id) if envelope.key_id else "it does not name"
        found.fault("key", f"seal {number} is signed with the key {named}, which is not known here")
    elif not cose.is_signed(envelope, envelope.payload or b"", key):
        found.fault("signature", f"seal {number} was changed after it was signed")
    else:
        found.facts["key"] = shown(key.id)


def _check_files(archive: Archive, chain: Chain, found: Verdict) -> None:
    claims: dict[Name, list[FileEntry]] = defaultdict(list)
    forgotten = {name for name, at_us in seals.files(archive.database).items() if at_us is not None}
    for place, body in chain.entries:
        entry = entry_from(body)
        if entry is None:
            found.fault("leaf", f"sealed entry {place} cannot be read")
        elif isinstance(entry, FileEntry):
            claims[entry.name].append(entry)
        elif isinstance(entry, ForgottenEntry):
            forgotten.add(entry.name)
    versions: dict[Name, list[Kept]] = defaultdict(list)
    for version in seals.versions(archive.database):
        versions[version.name].append(version)
    for name in sorted(claims):
        if versions[name] or name not in forgotten:
            _check_file(archive, name, claims[name], versions[name], found)


def _check_file(
    archive: Archive, name: Name, claims: Sequence[FileEntry], versions: Sequence[Kept], found: Verdict
) -> None:
    """Look for a version that begins as sealed, for each time that the file was sealed."""
    lengths = {one.length for one in claims}
    hashed = [
        (version.first_us, length, digest.hex())
        for version in versions
        for length, digest in seals.prefixes(
            archive.database, version.id, [one for one in lengths if one <= version.kept]
        ).digests.items()
    ]
    for one in claims:
        if (one.first_seen_us, one.length, one.sha256) not in hashed:
            found.fault("file", f"its {one.length} bytes that were sealed are not here", str(place_of(*name[1:])))
            return
