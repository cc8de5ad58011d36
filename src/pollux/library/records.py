"""Create, sign, redact and verify records of sessions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pollux.disk.read import read_named
from pollux.errors import PolluxError, UnreadableFileError
from pollux.exports.source import ExportOptions, export_source
from pollux.exports.vac.encode import cbor_pieces, json_pieces, record
from pollux.exports.vac.seed_profile import seed_record
from pollux.exports.vac.vcs import read_vcs
from pollux.library.config import Config, UsageError
from pollux.library.outputs import FileSink, StreamSink, write_output
from pollux.library.references import Ref, load_families, load_session, open_reference
from pollux.model import Json, Problem, Session
from pollux.proofs import verify
from pollux.proofs.canonical import json_bytes, json_value
from pollux.proofs.redacted import hide_values, prove_record
from pollux.proofs.secrets import Secrets, find_secrets
from pollux.proofs.signing import JSON, LOG, TraceMetadata, record_from, trace_from_record, trace_from_session
from pollux.proofs.signing import sign as sign_payload
from pollux.proofs.verdict import Verdict
from pollux.reports import filters
from pollux.reports.filters import ALL, Filter
from pollux.sessions.reader import opened
from pollux.views.transcript import Branches

if TYPE_CHECKING:
    from pollux.archive.store import Archive
    from pollux.library.keys import SigningKey
    from pollux.library.library import Library
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices
    from pollux.proofs.commitment import Field
    from pollux.proofs.public import PublicKey

DETACHED, ATTACHED = ".sig.cbor", ".signed.cbor"
"""Suffixes of signatures without and with their payload."""
_SIGNED_SUFFIXES = (".json", ".jsonl", ".cbor")
_ALWAYS_HIDDEN = "content-hash"
"""Hashes of single lines, from which hidden text could be guessed."""
_WITH_FILE = ("signature", "proof", "continuation")
"""Kinds of documents that are checked together with another file."""


class RecordOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The contents and the format of a record."""

    profile: str = "vac-00"
    """`seed`: only the fields of the draft's translation document."""
    format: str = "json"
    """Or `cbor`."""
    branches: Branches = Branches.ACTIVE
    created: datetime | None = None
    vcs: bool = False
    """Record the current git commit of the project's folder."""


class RecordResult(msgspec.Struct, frozen=True):
    """What a record leaves out, and the problems of its session."""

    losses: Mapping[str, int]
    """What the record cannot represent, and how often that occurred."""
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]


class Payload(NamedTuple):
    """Bytes to sign, and what the signature says about them."""

    data: bytes
    trace: TraceMetadata
    content_type: str
    path: Path
    """The file that contains them; the signature is written next to it."""


class RedactedRecord(NamedTuple):
    """A record with hidden values and the proof of the others, and the secrets that were hidden."""

    data: bytes
    secrets: Secrets | None


def creation_time(text: str | None, config: Config) -> datetime | None:
    """Return the creation time for a record: `now`, or a time. Raises `InvalidFilterError`."""
    if text is None:
        return None
    now = config.clock()
    return (now if text == "now" else filters.parse_date("--created", text, now=now)).astimezone(UTC)


def write_record(
    library: Library, reference: Ref, sink: StreamSink | FileSink, options: RecordOptions, wanted: Filter = ALL
) -> RecordResult:
    """Write the record of a session."""
    if options.profile == "seed" and (options.created or options.vcs or options.branches is Branches.ALL):
        raise UsageError("--profile seed has no place for --created, --vcs or --branches all: leave them out.")
    with library.snapshot_for(reference) as snapshot:
        session, group, by_id = open_reference(snapshot, reference, wanted)
        opener = snapshot.sessions.open if snapshot else opened
        source = export_source(
            session, group, by_id, opener, library.prices, options=ExportOptions(branches=options.branches)
        )
        vcs, note = _observe_vcs(session) if options.vcs else (None, "")
        value = record(source, created=options.created, vcs=vcs)
        if options.profile == "seed":
            value = seed_record(value, source.losses)
        write_output(library.outputs, sink, {"json": json_pieces, "cbor": cbor_pieces}[options.format](value))
        return RecordResult(dict(sorted(source.losses.items())), (note,) if note else (), session.problems)


def _observe_vcs(session: Session) -> tuple[dict[str, Json] | None, str]:
    """Return the git state of the project's folder, or None and a note if the folder is unproven or no repository."""
    project = session.project
    if not project.proven or project.path is None:
        return None, "--vcs: the project's folder is not proven, so no commit is recorded."
    state = read_vcs(Path(project.path))
    if state is None:
        return None, f"--vcs: {project.path} is not in a git repository, so no commit is recorded."
    return state, ""


def record_payload(path: Path, *, attached: bool) -> Payload:
    """Return a record to sign, in canonical form. Raises `PolluxError` if the file is not canonical."""
    data = read_input(path)
    value, canonical, content_type = record_from(data)
    trace = trace_from_record(value)
    if data != canonical and not attached:
        raise PolluxError(
            f"{path} is not in canonical form (RFC 8785 or deterministic CBOR), so any program that rewrites it would "
            "break the signature. Pass --attached to sign the canonical form, or --raw to sign the bytes as they are."
        )
    return Payload(canonical, trace, content_type, path)


def session_payload(library: Library, reference: Ref) -> Payload:
    """Return the bytes of a session file to sign: the named file, or the main file of a session."""
    with library.snapshot_for(reference) as snapshot:
        session, group, _ = open_reference(snapshot, reference)
        source = group.main.reading.original
        trace = trace_from_session(session, source.path.name)
        content_type = JSON if source.path.suffix == ".json" else LOG
        if isinstance(reference, Path):
            return Payload(read_input(reference), trace, content_type, reference)
        return Payload(b"".join(source.blocks()), trace, content_type, Path(source.path.name))


def sign(
    payload: Payload,
    key: SigningKey,
    *,
    at: datetime,
    issuer: str | None = None,
    subject_name: str | None = None,
    attached: bool = False,
) -> bytes:
    """Return a COSE_Sign1 signature of a payload."""
    return sign_payload(
        payload.data,
        key.private,
        payload.trace,
        content_type=payload.content_type,
        at=at,
        issuer=issuer,
        subject=subject_name,
        attached=attached,
    )


def signature_path(path: Path, *, attached: bool) -> Path:
    """Return the path of a file's signature, next to the file."""
    return path.with_name(path.name.removesuffix(path.suffix) + (ATTACHED if attached else DETACHED))


def redact_record(
    library: Library, reference: str, is_hidden: Callable[[Field], bool], *, hide_secrets: bool = False
) -> RedactedRecord:
    """Return the record of a sealed session with some values hidden, and the proof of the others."""
    with library.snapshot() as snapshot:
        archive = archive_of(snapshot)
        session = load_session(snapshot, reference)
        make = record_maker(snapshot, load_families(snapshot, [session.id]), library.prices)
        original = complete_record(make(session.id))
        matches = find_secrets(original) if hide_secrets else None
        places = matches.places if matches else frozenset()
        shown = hide_values(original, lambda field: field.path in places or is_hidden(field))
        return RedactedRecord(json_bytes(prove_record(archive, session.id, original, shown)), matches)


def field_chooser(names: Sequence[str], pattern: str | None) -> Callable[[Field], bool]:
    """Return a predicate that selects values to hide by name, JSON pointer or text. Raises `UsageError`."""
    try:
        text = re.compile(pattern) if pattern is not None else None
    except re.error as error:
        raise UsageError(f"Invalid regular expression for --hide-text: '{pattern}' ({error}).") from None
    members = {_ALWAYS_HIDDEN, *(name for name in names if not name.startswith("/"))}
    pointers = [name for name in names if name.startswith("/")]

    def is_hidden(field: Field) -> bool:
        is_count = isinstance(field.value, int | float)
        if field.path[-1] in members and not is_count:
            return True
        if any(fnmatchcase(field.pointer, pointer) for pointer in pointers):
            return True
        if text is None or not isinstance(field.value, str | dict):
            return False
        words = [field.value] if isinstance(field.value, str) else field.value
        return any(text.search(word) for word in words)

    return is_hidden


def record_maker(snapshot: Snapshot, by_id: Mapping[str, Session], prices: Prices) -> Callable[[str], dict[str, Any]]:
    """Return a function that builds the record of a session, whose entries are built lazily."""
    opener = snapshot.sessions.open

    def make(session_id: str) -> dict[str, Any]:
        session = by_id[session_id]
        return record(export_source(session, opener(session), by_id, opener, prices))

    return make


def complete_record(value: dict[str, Any]) -> dict[str, Json]:
    """Return a record with all its entries built."""
    made = json_value(b"".join(json_pieces(value)))
    assert isinstance(made, dict)
    return made


def archive_of(snapshot: Snapshot) -> Archive:
    """Return the archive of a snapshot. Raises `UsageError` if there is none, since only archives have seals."""
    if snapshot.archive is None:
        raise UsageError("Only an archive has seals: leave --no-archive and POLLUX_ARCHIVE=- out.")
    return snapshot.archive


def verify_file(path: Path, file: Path | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check a signature, a seal, a proof or a redacted record.

    Args:
        path: the document to check.
        file: the signed file, or the subject of a proof; by default, the file next to a detached signature.
        keys: trusted keys.

    """
    data = read_input(path)
    if file is None and verify.is_detached(data):
        file = _signed_file(path)
    verdict = verify.verify_data(data, read_input(file) if file else None, keys)
    if file and verdict.kind not in _WITH_FILE:
        raise UsageError(f"--file is for signatures and proofs, but {path} is a {verdict.kind}; leave --file out.")
    return verdict


def _signed_file(path: Path) -> Path:
    """Return the file of the same name next to a signature."""
    stem = path.name.removesuffix(DETACHED)
    for suffix in _SIGNED_SUFFIXES if stem != path.name else ():
        place = path.with_name(stem + suffix)
        if place.is_file():
            return place
    raise UsageError(f"The file that {path} signs is not next to it: name it with `--file`.")


def read_input(path: Path) -> bytes:
    """Return the bytes of a file that the user named. Raises `UnreadableFileError`."""
    try:
        return read_named(path)
    except OSError as error:
        raise UnreadableFileError(path, error.strerror) from None
