"""Records of sessions: made, signed, redacted with a proof, and checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pollux.disk.regular_files import read_named
from pollux.errors import PolluxError, UnreadableFileError
from pollux.exports.source import Wanted, subject
from pollux.exports.vac.encode import cbor_pieces, json_pieces
from pollux.exports.vac.record import record
from pollux.exports.vac.seed_profile import seed_record
from pollux.exports.vac.vcs import observed
from pollux.library.config import Config, UsageError
from pollux.library.references import Ref, load_families, load_session, open_reference
from pollux.library.sinks import FileSink, StreamSink, write_output
from pollux.model import Json, Problem, Session
from pollux.proofs import verify
from pollux.proofs.canonical import json_bytes, json_value
from pollux.proofs.disclosure import redacted
from pollux.proofs.redacted import prove_record
from pollux.proofs.secrets import Secrets, secrets
from pollux.proofs.signing import JSON, LOG, record_from
from pollux.proofs.signing import sign as sign_payload
from pollux.proofs.trace import Trace, trace_of_record, trace_of_session
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
    from pollux.proofs.fields import Field
    from pollux.proofs.public import PublicKey

DETACHED, ATTACHED = ".sig.cbor", ".signed.cbor"
"""Suffixes of signatures without and with what they sign."""
_SIGNED_SUFFIXES = (".json", ".jsonl", ".cbor")
_ALWAYS_HIDDEN = "content-hash"
"""Hashes of single lines, from which hidden ones could be guessed."""
_WITH_FILE = ("signature", "proof", "continuation")
"""Kinds of what is checked together with another file."""


class RecordOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a record contains, and how it is written."""

    profile: str = "vac-00"
    """`seed`: only the fields of the draft's translation document."""
    format: str = "json"
    """Or `cbor`."""
    branches: Branches = Branches.ACTIVE
    created: datetime | None = None
    vcs: bool = False
    """Whether to record what the project's folder has checked out now."""


class RecordResult(msgspec.Struct, frozen=True):
    """What came of writing a record."""

    losses: Mapping[str, int]
    """What the record cannot represent, and how often that occurred."""
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]


class Payload(NamedTuple):
    """Bytes to be signed, and what the signature says of them."""

    data: bytes
    trace: Trace
    content_type: str
    path: Path
    """The file they come from, beside which the signature belongs."""


class RedactedRecord(NamedTuple):
    """A record with hidden values and the proof of the others, and the secrets that were looked for."""

    data: bytes
    secrets: Secrets | None


def creation_time(text: str | None, config: Config) -> datetime | None:
    """Return the time that a record is to give for itself: `now`, or a time. Raises `BadFilterError`."""
    if text is None:
        return None
    now = config.clock()
    return (now if text == "now" else filters.moment("--created", text, now=now)).astimezone(UTC)


def write_record(
    library: Library, reference: Ref, sink: StreamSink | FileSink, options: RecordOptions, wanted: Filter = ALL
) -> RecordResult:
    """Write the record of a session."""
    if options.profile == "seed" and (options.created or options.vcs or options.branches is Branches.ALL):
        raise UsageError("--profile seed has no place for --created, --vcs or --branches all: leave them out.")
    with library.snapshot_for(reference) as snapshot:
        session, group, by_id = open_reference(snapshot, reference, wanted)
        opener = snapshot.sessions.open if snapshot else opened
        source = subject(session, group, by_id, opener, library.prices, wanted=Wanted(branches=options.branches))
        vcs, note = _observe_vcs(session) if options.vcs else (None, "")
        value = record(source, created=options.created, vcs=vcs)
        if options.profile == "seed":
            value = seed_record(value, source.losses)
        write_output(library.outputs, sink, {"json": json_pieces, "cbor": cbor_pieces}[options.format](value))
        return RecordResult(dict(sorted(source.losses.items())), (note,) if note else (), session.problems)


def _observe_vcs(session: Session) -> tuple[dict[str, Json] | None, str]:
    """Return what the project's folder has checked out, if it is known for certain and still there, or a note."""
    project = session.project
    if not project.proven or project.path is None:
        return None, "--vcs: the project's folder is not known for certain, so nothing is said of it."
    state = observed(Path(project.path))
    if state is None:
        return None, f"--vcs: {project.path} is in no git repository here, so nothing is said of it."
    return state, ""


def record_payload(path: Path, *, attached: bool) -> Payload:
    """Return a record to be signed, in canonical form. Raises `PolluxError` if its file has another form."""
    data = read_input(path)
    value, canonical, content_type = record_from(data)
    trace = trace_of_record(value)
    if data != canonical and not attached:
        raise PolluxError(
            f"{path} is not written in its one form (RFC 8785 or deterministic CBOR), so its signature would break as "
            "soon as somebody writes it anew; --attached signs that form, --raw signs the bytes as they are."
        )
    return Payload(canonical, trace, content_type, path)


def session_payload(library: Library, reference: Ref) -> Payload:
    """Return the bytes of a session file to be signed: one that was named, or the main one of a session."""
    with library.snapshot_for(reference) as snapshot:
        session, group, _ = open_reference(snapshot, reference)
        source = group.main.reading.original
        trace = trace_of_session(session, source.path.name)
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
    """Return a COSE_Sign1 signature of bytes."""
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
    """Return where the signature of a file belongs: beside it."""
    return path.with_name(path.name.removesuffix(path.suffix) + (ATTACHED if attached else DETACHED))


def redact_record(
    library: Library, reference: str, is_hidden: Callable[[Field], bool], *, hide_secrets: bool = False
) -> RedactedRecord:
    """Return the record of a sealed session without the values that are hidden, and with the proof of the others."""
    with library.snapshot() as snapshot:
        archive = archive_of(snapshot)
        session = load_session(snapshot, reference)
        make = record_maker(snapshot, load_families(snapshot, [session.id]), library.prices)
        original = complete_record(make(session.id))
        matches = secrets(original) if hide_secrets else None
        places = matches.places if matches else frozenset()
        shown = redacted(original, lambda field: field.path in places or is_hidden(field))
        return RedactedRecord(json_bytes(prove_record(archive, session.id, original, shown)), matches)


def field_chooser(names: Sequence[str], pattern: str | None) -> Callable[[Field], bool]:
    """Return a function that says which values are hidden: by their name, their pointer or their text."""
    try:
        text = re.compile(pattern) if pattern is not None else None
    except re.error as error:
        raise UsageError(f"--hide-text '{pattern}' is no regular expression: {error}.") from None
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
    """Return what makes the record that is sealed for a session; its entries are made when they are asked for."""
    opener = snapshot.sessions.open

    def make(session_id: str) -> dict[str, Any]:
        session = by_id[session_id]
        return record(subject(session, opener(session), by_id, opener, prices))

    return make


def complete_record(value: dict[str, Any]) -> dict[str, Json]:
    """Return a record with all its entries made."""
    made = json_value(b"".join(json_pieces(value)))
    assert isinstance(made, dict)
    return made


def archive_of(snapshot: Snapshot) -> Archive:
    """Return the archive of a snapshot, which alone has seals. Raises `UsageError` if there is none."""
    if snapshot.archive is None:
        raise UsageError("Seals are in the archive alone: leave --no-archive and POLLUX_ARCHIVE=- out.")
    return snapshot.archive


def verify_file(path: Path, file: Path | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check a signature, a seal, a proof or a redacted record.

    Args:
        path: what to check.
        file: what was signed or what a proof is about; a detached signature finds the file of its name beside it.
        keys: the keys to believe.

    """
    data = read_input(path)
    if file is None and verify.is_detached(data):
        file = _signed_file(path)
    verdict = verify.examine(data, read_input(file) if file else None, keys)
    if file and verdict.kind not in _WITH_FILE:
        raise UsageError(f"--file is for signatures and proofs, but {path} is a {verdict.kind}; leave --file out.")
    return verdict


def _signed_file(path: Path) -> Path:
    """Return the file that a signature is about: the one of the same name beside it."""
    stem = path.name.removesuffix(DETACHED)
    for suffix in _SIGNED_SUFFIXES if stem != path.name else ():
        place = path.with_name(stem + suffix)
        if place.is_file():
            return place
    raise UsageError(f"What {path} signs is not beside it under its name; name it with `--file`.")


def read_input(path: Path) -> bytes:
    """Return the bytes of a file that the user named. Raises `UnreadableFileError`."""
    try:
        return read_named(path)
    except OSError as error:
        raise UnreadableFileError(path, error.strerror) from None
