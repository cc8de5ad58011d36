"""Make redacted copies of a record, and prove that they are copies of the record that was sealed.

A copy has the structure of the original. Each field is either shown, and then the proof gives its salt, or it says
`[redacted]`, and then the proof gives the hash of the hidden value. From these anyone can compute the commitment that
was sealed with the session.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pollux.archive import seals
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs.canonical import NotCanonicalError, json_bytes
from pollux.proofs.commitment import (
    MEMBER,
    OUTSIDE,
    Field,
    Path,
    Salts,
    children_of,
    commitment,
    committed,
    leaf,
    leaf_digest,
    root,
)
from pollux.proofs.entries import TREE, SessionEntry, entry_from
from pollux.proofs.inclusion import FieldProof, open_proof, prove_entries, session_entry
from pollux.proofs.public import PublicKey
from pollux.proofs.verdict import Verdict, join_names
from pollux.text.shell import quoted

REDACTED = "[redacted]"
"""Replaces a hidden value."""
UNPROVEN = tuple(name for name in OUTSIDE if name != MEMBER)
"""Members that no seal covers, so a redacted copy leaves them out."""
_DIGEST_BYTES = 32
_CHECK_BYTES = 3


class Leaf(NamedTuple):
    """A field of a copy, with the digest that its proof leads to."""

    digest: bytes
    field: Field
    is_shown: bool


class Recomputed(NamedTuple):
    """The commitment that a copy and its proofs lead to."""

    root: bytes
    leaves: list[Leaf]


def hide_values(record: Mapping[str, Json], is_hidden: Callable[[Field], bool]) -> dict[str, Json]:
    """Return a copy of a record with some values replaced by `[redacted]`, without members that no seal covers.

    `is_hidden` is called for objects and arrays before it is called for what they contain.
    """
    try:
        copy = _copy(committed(record), (), is_hidden)
    except RecursionError:
        raise NotCanonicalError from None
    assert isinstance(copy, dict)
    return copy


def prove_record(
    archive: Archive, session: str, original: Mapping[str, Json], copy: Mapping[str, Json]
) -> dict[str, Json]:
    """Return a redacted copy with its proof: the hash of each hidden value, the salt of each value that is shown.

    Raises `PolluxError` if the original is not what was sealed.
    """
    bodies = [body for _, body in seals.entries(archive.database)]
    salts = Salts(seals.known_secret(archive.database) or b"", session)
    root_hex = commitment(original, salts).root.hex()
    for place in reversed(range(len(bodies))):
        match entry_from(bodies[place]):
            case SessionEntry(session=id_, root=sealed, form=form) if (id_, sealed, form) == (session, root_hex, TREE):
                proof = prove_entries(archive, session, bodies, [place])
                fields = prove_fields(original, copy, salts)
                return {**copy, MEMBER: {**proof, "fields": fields, "checks": checks(recompute(copy, fields).leaves)}}
    raise PolluxError(
        f"Session {session} has changed since it was sealed. "
        f"Run `pollux archive seal {quoted(session)}`, then redact it again."
    )


def verify_record(record: Mapping[str, Json], keys: Sequence[PublicKey], *, is_signed: bool = False) -> Verdict:
    """Check a redacted record: that everything it shows was sealed, and that hidden values say `[redacted]`.

    If the record as a whole `is_signed`, the signer vouches for members that no seal covers, and for other text in
    place of `[redacted]`.
    """
    verdict = Verdict("redacted record")
    opened = open_proof(record.get(MEMBER), keys, verdict)
    if opened is None:
        return verdict
    proof, entries = opened
    session = session_entry(proof, entries, verdict)
    if session is None:
        return verdict
    if len(entries) > 1:
        verdict.add_error("leaf", f"its proof has {len(entries)} entries instead of only that of its session")
    if session.form != TREE:
        verdict.add_error(
            "leaf",
            "its session was sealed by another version of Pollux, in a form that this version does not accept; "
            f"run `pollux archive seal {session.session}` and redact it again",
        )
        return verdict
    try:
        copy = recompute(record, proof.fields or ())
    except (ValueError, PolluxError) as error:
        verdict.add_error("field", str(error).rstrip("."))
        return verdict
    if copy.root.hex() != session.root:
        wrong = _pointers(changed(copy.leaves, proof.checks or ""))
        verdict.add_error("field", f"it shows something else than was sealed: {wrong or 'its proof was changed'}")
    n_shown = sum(leaf.is_shown for leaf in copy.leaves)
    verdict.facts |= {"fields": str(session.fields), "shown": str(n_shown), "hidden": str(len(copy.leaves) - n_shown)}
    _check_placeholders(copy, verdict, is_signed=is_signed)
    _list_unproven(record, verdict, is_signed=is_signed)
    return verdict


def prove_fields(original: Mapping[str, Json], copy: Mapping[str, Json], salts: Salts) -> list[FieldProof]:
    """Return the proof of each field of a copy: its salt if it is shown, else the digest of the hidden value.

    Raises `PolluxError` if the copy has other members than the original.
    """
    try:
        return [*_field_proofs(Field((), committed(original)), Field((), committed(copy)), salts)]
    except RecursionError:
        raise NotCanonicalError from None


def recompute(record: Mapping[str, Json], proofs: Sequence[FieldProof]) -> Recomputed:
    """Return the commitment that a copy leads to. Raises `ValueError` if the proofs do not belong to the copy."""
    remaining = iter(proofs)
    leaves: list[Leaf] = []

    def digest(field: Field) -> bytes:
        leaves.append(_leaf(field, next(remaining, None)))
        return leaves[-1].digest

    recomputed_root = root(Field((), committed(record)), digest)
    if next(remaining, None) is not None:
        raise ValueError(f"it has {len(leaves)} fields, but proofs of {len(proofs)}")
    return Recomputed(recomputed_root, leaves)


def checks(leaves: Sequence[Leaf]) -> str:
    """Return the first bytes of each digest. They prove nothing; they only help to name the field that was changed."""
    return b64encode(b"".join(leaf.digest[:_CHECK_BYTES] for leaf in leaves)).decode()


def changed(leaves: Sequence[Leaf], recorded: str) -> list[Field]:
    """Return the shown fields whose digests differ from the recorded checks."""
    try:
        data = b64decode(recorded, validate=True)
    except ValueError:
        return []
    different = []
    for number, (digest, field, is_shown) in enumerate(leaves):
        if is_shown and digest[:_CHECK_BYTES] != data[number * _CHECK_BYTES : (number + 1) * _CHECK_BYTES]:
            different.append(field)
    return different


def _copy(value: Json, path: Path, is_hidden: Callable[[Field], bool]) -> Json:
    if path and is_hidden(Field(path, value)):
        return REDACTED
    if isinstance(value, dict):
        return {name: _copy(inner, (*path, name), is_hidden) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(inner, (*path, place), is_hidden) for place, inner in enumerate(value)]
    return value


def _field_proofs(original: Field, copy: Field, salts: Salts) -> Iterator[FieldProof]:
    """Yield the proofs of a part of a copy, in canonical order."""
    original_children, copy_children = children_of(original), children_of(copy)
    if copy_children is None:
        if original_children is None and json_bytes(leaf(original).value) == json_bytes(leaf(copy).value):
            yield {"salt": salts.salt(leaf(original))}
        else:
            yield {"hidden": root(original, salts.digest).hex()}
        return
    originals, copies = [*(original_children or ())], [*copy_children]
    is_same_kind = isinstance(original.value, dict) == isinstance(copy.value, dict)
    if not is_same_kind or [child.path for child in originals] != [child.path for child in copies]:
        raise PolluxError(
            f"The copy has other members than the original in {copy.pointer or 'the record'}, which cannot be proven; "
            f"to hide a value, replace it by {REDACTED}."
        )
    for pair in zip(originals, copies, strict=True):
        yield from _field_proofs(*pair, salts)


def _leaf(field: Field, proof: FieldProof | None) -> Leaf:
    match proof:
        case {"salt": str(salt), **more} if not more:
            return Leaf(leaf_digest(salt, field.value), field, is_shown=True)
        case {"hidden": str(digest), **more} if not more:
            return Leaf(_digest_from(digest), field, is_shown=False)
        case None:
            raise ValueError(f"nothing proves the field {field.pointer}")
        case _:
            raise ValueError(f"the proof of {field.pointer} is neither a `salt` nor a `hidden` digest")


def _digest_from(text: str) -> bytes:
    data = bytes.fromhex(text)
    if len(data) != _DIGEST_BYTES:
        raise ValueError(f"a digest has {len(data)} bytes instead of {_DIGEST_BYTES}")
    return data


def _check_placeholders(copy: Recomputed, verdict: Verdict, *, is_signed: bool) -> None:
    """Check that hidden values say `[redacted]` and nothing else."""
    others = [leaf.field for leaf in copy.leaves if not leaf.is_shown and leaf.field.value != REDACTED]
    if others and is_signed:
        verdict.notes.append(f"hidden fields show other text, for which only the signer vouches: {_pointers(others)}")
    elif others:
        verdict.add_error("field", f"hidden fields show other text, which nothing proves: {_pointers(others)}")


def _list_unproven(record: Mapping[str, Json], verdict: Verdict, *, is_signed: bool) -> None:
    names = [name for name in UNPROVEN if name in record]
    if names and is_signed:
        verdict.notes.append(f"no seal covers these members, for which only the signer vouches: {', '.join(names)}")
    elif names:
        sentence = "Nothing proves these members, which no seal covers and anyone can have set"
        verdict.leave_unproven(names, f"{sentence}: {', '.join(names)}")


def _pointers(fields: Sequence[Field]) -> str:
    return join_names([field.pointer for field in fields])
