"""Redacted copies of a record, and the proof that each of them is a copy of the record that was sealed.

A copy has the structure of the original. Each of its fields is either shown, and then the proof gives its salt, or it
says `[redacted]` in place of a value, and then the proof gives that value's digest. From both anyone can compute the
commitment, which was sealed with the session.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs.canonical import NotCanonicalError, json_bytes
from pollux.proofs.commitment import MEMBER, OUTSIDE, Salts, committed, leaf_digest, root
from pollux.proofs.fields import Field, Path, children_of, leaf

REDACTED = "[redacted]"
"""Stands in place of a hidden value."""
UNPROVEN = tuple(name for name in OUTSIDE if name != MEMBER)
"""Members that no seal covers, so a redacted copy leaves them out."""
_DIGEST = 32
_CHECK = 3

Proof: TypeAlias = dict[str, str]


class Leaf(NamedTuple):
    """A field of a copy, with the digest that its proof leads to."""

    digest: bytes
    field: Field
    is_shown: bool


class Recomputed(NamedTuple):
    """What a copy and its proofs lead to."""

    root: bytes
    leaves: list[Leaf]


def redacted(record: Mapping[str, Json], is_hidden: Callable[[Field], bool]) -> dict[str, Json]:
    """Copy a record and hide some of its values.

    `is_hidden` is asked about objects and arrays before it is asked about what is in them. Members that no seal covers
    are left out.
    """
    try:
        copy = _copied(committed(record), (), is_hidden)
    except RecursionError:
        raise NotCanonicalError("its values are nested too deeply") from None
    assert isinstance(copy, dict)
    return copy


def disclosed(original: Mapping[str, Json], copy: Mapping[str, Json], salts: Salts) -> list[Proof]:
    """Return the proof of each field of a copy: its salt where it is shown, else the digest of the hidden value.

    Raises `PolluxError` where the copy has other members than the original.
    """
    try:
        return [*_proofs(Field((), committed(original)), Field((), committed(copy)), salts)]
    except RecursionError:
        raise NotCanonicalError("its values are nested too deeply") from None


def recomputed(record: Mapping[str, Json], proofs: Sequence[Proof]) -> Recomputed:
    """Compute the commitment that a copy leads to. Raises `ValueError` where the proofs do not fit the copy."""
    waiting = iter(proofs)
    leaves: list[Leaf] = []

    def digest(field: Field) -> bytes:
        leaves.append(_proven(field, next(waiting, None)))
        return leaves[-1].digest

    found = root(Field((), committed(record)), digest)
    if next(waiting, None) is not None:
        raise ValueError(f"it has {len(leaves)} fields, but {len(proofs)} are to be proven")
    return Recomputed(found, leaves)


def checks(leaves: Sequence[Leaf]) -> str:
    """Return the first bytes of each digest. They prove nothing; they only help to name the field that was changed."""
    return b64encode(b"".join(one.digest[:_CHECK] for one in leaves)).decode()


def changed(leaves: Sequence[Leaf], said: str) -> list[Field]:
    """Return the shown fields whose digests differ from the checks."""
    try:
        data = b64decode(said, validate=True)
    except ValueError:
        return []
    return [
        one.field
        for number, one in enumerate(leaves)
        if one.is_shown and one.digest[:_CHECK] != data[number * _CHECK : (number + 1) * _CHECK]
    ]


def _proven(field: Field, proof: Proof | None) -> Leaf:
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
    if len(data) != _DIGEST:
        raise ValueError(f"a digest has {len(data)} bytes instead of {_DIGEST}")
    return data


def _proofs(original: Field, copy: Field, salts: Salts) -> Iterator[Proof]:
    """Yield the proofs of a part of a copy, in canonical order."""
    inner, shown = children_of(original), children_of(copy)
    if shown is None:
        if inner is None and json_bytes(leaf(original).value) == json_bytes(leaf(copy).value):
            yield {"salt": salts.salt(leaf(original))}
        else:
            yield {"hidden": root(original, salts.digest).hex()}
        return
    for pair in _pairs(original, copy, inner or iter(()), shown):
        yield from _proofs(*pair, salts)


def _pairs(
    original: Field, copy: Field, inner: Iterator[Field], shown: Iterator[Field]
) -> Iterator[tuple[Field, Field]]:
    ours, theirs = [*inner], [*shown]
    is_same_kind = isinstance(original.value, dict) == isinstance(copy.value, dict)
    if not is_same_kind or [one.path for one in ours] != [one.path for one in theirs]:
        raise PolluxError(
            f"The copy has other members than the original in {copy.pointer or 'the record'}, which nothing can prove; "
            f"put {REDACTED} in place of what is to be hidden."
        )
    return zip(ours, theirs, strict=True)


def _copied(value: Json, path: Path, is_hidden: Callable[[Field], bool]) -> Json:
    if path and is_hidden(Field(path, value)):
        return REDACTED
    if isinstance(value, dict):
        return {name: _copied(inner, (*path, name), is_hidden) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(inner, (*path, place), is_hidden) for place, inner in enumerate(value)]
    return value
