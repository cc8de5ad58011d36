"""A redacted copy proves the commitment of its original; hidden values cannot be guessed, nor shown ones changed."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import values
from tests.proofs.samples import SECRET, record

from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import redacted
from pollux.proofs.commitment import OUTSIDE, Field, Salts, children_of, commitment, committed, leaf, leaf_digest
from pollux.proofs.redacted import REDACTED, hide_values, prove_fields, recompute

SALTS = Salts(SECRET, "s")
objects = st.dictionaries(st.text(max_size=5), values, max_size=5)


def fields(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[Field]:
    """Yield the leaves of a value."""
    children = children_of(Field(path, value))
    if children is None:
        yield leaf(Field(path, value))
    else:
        for child in children:
            yield from fields(child.value, child.path)


def hidden_copy(original: dict[str, Any], *names: object) -> tuple[dict[str, Any], list[Any]]:
    shown = hide_values(original, lambda field: field.path[-1] in names)
    return shown, prove_fields(original, shown, SALTS)


def commitment_of(shown: dict[str, Any], proofs: list[Any]) -> bytes:
    return recompute(shown, proofs).root


def sealed(original: dict[str, Any]) -> bytes:
    return commitment(original, SALTS).root


def test_fields_are_all_leaves_in_canonical_order() -> None:
    value: dict[str, Any] = {
        "b": [1, {"z": None, "a": True}],
        "a": {"": {}, "/~": []},
        "\U0001f600": 0.5,
        "\ufb33": "x",
    }
    leaves = {field.pointer: field.value for field in fields(value)}
    assert list(leaves.items()) == [
        ("/a/", {}),
        ("/a/~1~0", []),
        ("/b/0", 1),
        ("/b/1/a", True),
        ("/b/1/z", None),
        ("/\U0001f600", 0.5),
        ("/\ufb33", "x"),
    ]
    assert [*fields([])] == [Field((), [])]


@dataclass(frozen=True)
class _Many:
    """Entries that are generated while they are read, as by an exporter."""

    values: list[Any]

    @property
    def count(self) -> int:
        return len(self.values)

    def each(self) -> Iterator[Any]:
        return iter(self.values)


def test_lazy_arrays_give_the_same_commitment() -> None:
    late = {"a": _Many([1, {"b": _Many([])}]), "c": "d"}
    listed: dict[str, Any] = {"a": [1, {"b": []}], "c": "d"}
    assert commitment(late, SALTS) == commitment(listed, SALTS)  # type: ignore[arg-type]


def test_commitment_can_be_computed_from_the_documentation() -> None:
    """Only SHA-256, JSON and the documentation are needed."""
    original: dict[str, Any] = {"id": "ä", "n": [3, []]}
    proofs = prove_fields(original, original, SALTS)

    def digest(*parts: object) -> str:
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()

    name, first, second = (
        digest("value", proof["salt"], value) for proof, value in zip(proofs, ("ä", 3, []), strict=True)
    )
    assert sealed(original).hex() == digest("object", "id", name, "n", digest("array", first, second))
    assert all(len(urlsafe_b64decode(f"{proof['salt']}==")) == 16 for proof in proofs)


def test_commitment_does_not_depend_on_the_encoding() -> None:
    other = record(created="2027-01-01T00:00:00Z", vcs={"type": "git"}, redacted=True)
    assert commitment(record(), SALTS) == commitment(other, SALTS)
    assert commitment(record(), SALTS) != commitment(record(id="x"), SALTS)


@given(objects, st.sets(st.text(max_size=5)))
def test_redacted_copy_has_the_commitment_of_its_original(original: dict[str, Any], names: set[str]) -> None:
    shown, proofs = hidden_copy(original, *names)
    assert commitment_of(shown, proofs) == sealed(original)


def test_hidden_value_leaves_no_trace() -> None:
    shown, proofs = hidden_copy(record(), "children", "content")
    published = json.dumps([shown, proofs])
    for word in ("hunter2", "read_file", "tool-call", "b~c", "mat", "lines"):
        assert word in json.dumps(record())
        assert word not in published
    assert shown["session"]["entries"][1]["children"] == REDACTED
    assert commitment_of(shown, proofs) == sealed(record())
    assert not {*OUTSIDE} & {*shown}, "no commitment covers these members, so a copy omits them"


def test_salts_are_secret_and_unique() -> None:
    proofs = prove_fields(record(), record(), SALTS)
    salts = [proof["salt"] for proof in proofs]
    assert len({*salts}) == len(salts)
    assert not {*salts} & {field["salt"] for field in prove_fields(record(), record(), Salts(b"x" * 32, "s"))}
    assert not {*salts} & {field["salt"] for field in prove_fields(record(), record(), Salts(SECRET, "t"))}


def test_published_salt_does_not_reveal_a_later_value() -> None:
    """A field is shown in one copy, changes, and is hidden in a later copy."""
    before = prove_fields({"pin": "1234"}, {"pin": "1234"}, SALTS)[0]["salt"]
    _, (proof,) = hidden_copy({"pin": "9876"}, "pin")
    assert proof["hidden"] != leaf_digest(before, "9876").hex()


@given(st.data())
def test_no_shown_value_can_be_changed(data: st.DataObject) -> None:
    shown, proofs = hidden_copy(record(), "output")
    leaves = [field for field in fields(committed(shown)) if field.value != REDACTED]
    field = data.draw(st.sampled_from(leaves))
    value = data.draw(values.filter(lambda candidate: json.dumps(candidate) != json.dumps(field.value)))
    changed = deepcopy(shown)
    _put(changed, field, value)
    with suppress(ValueError):  # the changed value has other fields
        assert commitment_of(changed, proofs) != sealed(record())


@given(st.data())
def test_changed_fields_are_named(data: st.DataObject) -> None:
    shown, proofs = hidden_copy(record(), "output")
    recorded_checks = redacted.checks(recompute(shown, proofs).leaves)
    assert redacted.changed(recompute(shown, proofs).leaves, recorded_checks) == []
    leaves = [field for field in fields(committed(shown)) if field.value not in (REDACTED, [], {})]
    field = data.draw(st.sampled_from(leaves))
    other = deepcopy(shown)
    _put(other, field, "something else")
    assert [field.path for field in redacted.changed(recompute(other, proofs).leaves, recorded_checks)] == [field.path]
    assert redacted.changed(recompute(other, proofs).leaves, "!") == []


def _put(value: Any, field: Field, new: object) -> None:  # noqa: ANN401
    *way, last = field.path
    for key in way:
        value = value[key]
    value[last] = new


def test_array_and_object_with_numbers_have_different_commitments() -> None:
    assert commitment({"a": [1]}, SALTS) != commitment({"a": {"0": 1}}, SALTS)


def test_other_text_in_place_of_hidden_values_is_reported() -> None:
    shown = deepcopy(record())
    shown["session"]["entries"][0]["content"] = "where is the [SECRET]?"
    proofs = prove_fields(record(), shown, SALTS)
    assert commitment_of(shown, proofs) == sealed(record())
    hidden = [leaf.field for leaf in recompute(shown, proofs).leaves if not leaf.is_shown]
    assert hidden == [Field(("session", "entries", 0, "content"), "where is the [SECRET]?")]


def test_copy_with_other_members_is_rejected() -> None:
    fewer, more = deepcopy(record()), deepcopy(record())
    del fewer["session"]["entries"][1]
    more["session"]["more"] = 1
    with pytest.raises(PolluxError, match="other members than the original in /session/entries, which cannot"):
        prove_fields(record(), fewer, SALTS)
    with pytest.raises(PolluxError, match="other members than the original in /session, which cannot be proven"):
        prove_fields(record(), more, SALTS)
    with pytest.raises(PolluxError, match="other members than the original in /a, which cannot be proven"):
        prove_fields({"a": [1]}, {"a": {"0": 1}}, SALTS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda proofs: proofs[:-1], "nothing proves the field /version"),
        (lambda proofs: [*proofs, {"salt": "x"}], "fields, but proofs of"),
        (lambda proofs: [{"pepper": "1"}, *proofs[1:]], "proof of /id is neither a `salt` nor a `hidden` digest"),
        (lambda proofs: [{**proofs[0], "hidden": "00" * 32}, *proofs[1:]], "neither a `salt` nor a `hidden` digest"),
        (lambda proofs: [{"omitted": "00" * 32}, *proofs], "neither a `salt` nor a `hidden` digest"),
        (lambda proofs: [{"hidden": "zz"}, *proofs[1:]], "non-hexadecimal"),
        (lambda proofs: [{"hidden": "00"}, *proofs[1:]], "a digest has 1 bytes"),
    ],
)
def test_proofs_of_another_shape_are_rejected(change: Any, words: str) -> None:  # noqa: ANN401
    shown, proofs = hidden_copy(record(), "output")
    with pytest.raises(ValueError, match=words):
        recompute(shown, change(proofs))


def test_values_nested_too_deeply_are_rejected() -> None:
    value: Any = 0
    for _ in range(100_000):
        value = [value]
    assert commitment({"a": 1}, SALTS).n_fields == 1
    with pytest.raises(PolluxError, match="nested"):
        commitment({"a": value}, SALTS)
    with pytest.raises(PolluxError, match="nested"):
        hide_values({"a": value}, lambda _: False)
