"""A redacted record changed without a key fails, or all its shown values are still those of the original."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from random import Random

import pytest
from tests.proofs.forging import (
    SESSION,
    Cell,
    cells,
    change,
    change_proof,
    digest_of,
    is_truthful,
    random_value,
    rebuilt,
    sealed_copy,
)
from tests.proofs.samples import PUBLIC, record

from pollux.proofs.canonical import json_bytes
from pollux.proofs.commitment import MEMBER, committed
from pollux.proofs.redacted import REDACTED
from pollux.proofs.verify import NotAProofError, verify_data


def verdict_of(copy: object) -> str:
    """Return `good`, `not all proven` or `bad`."""
    try:
        verdict = verify_data(json_bytes(copy), None, [PUBLIC])  # type: ignore[arg-type]
    except NotAProofError:
        return "bad"
    if verdict.is_fully_proven:
        return "good"
    return "not all proven" if verdict.is_ok else "bad"


def test_record_rebuilt_without_changes_is_valid() -> None:
    copy = sealed_copy(record(), lambda field: field.path[-1] == "content")
    assert rebuilt(cells(copy), copy[MEMBER]) == copy
    assert verdict_of(copy) == "good"
    assert digest_of(cells(copy)) == copy[MEMBER]["entries"][0]["entry"]["root"]


@pytest.mark.parametrize("seed", range(8))
def test_only_further_redactions_of_a_record_are_good(seed: int) -> None:
    random, seen = Random(seed), Counter[str]()  # noqa: S311  the same numbers every time
    for _ in range(250):
        original = record(id=SESSION, session={"entries": [random_value(random) for _ in range(3)], "a": "b"})
        share = random.random() / 3
        copy = sealed_copy(original, lambda _, share=share: random.random() < share)  # type: ignore[misc]
        tree = cells(copy)
        for _ in range(random.choice([1, 1, 2, 3])):
            change(random, tree)
        forged = rebuilt(tree, deepcopy(copy[MEMBER]))
        if not random.randrange(3):
            change_proof(random, forged)
        verdict = verdict_of(forged)
        seen[verdict] += 1
        if verdict != "bad":
            assert is_truthful(committed(original), committed(forged)), forged
        if verdict == "good":
            assert committed(forged) == {name: forged[name] for name in forged if name != MEMBER}
    assert seen["good"] > 10, seen
    assert seen["bad"] > 50, seen


def test_values_hidden_later_are_visible_as_redactions() -> None:
    copy = sealed_copy(record(), lambda _: False)
    tree = cells(copy)
    entries = tree["session"]["entries"]
    entries[1] = Cell(REDACTED, {"hidden": digest_of(entries[1])})
    hidden = rebuilt(tree, copy[MEMBER])
    assert verdict_of(hidden) == "good"
    assert hidden["session"]["entries"][1] == REDACTED


def test_hidden_part_cannot_replace_its_neighbours() -> None:
    """The last two entries are replaced by one `[redacted]` with the digests of both."""
    copy = sealed_copy(record(), lambda _: False)
    entries = cells(copy)["session"]["entries"]
    for hidden in (digest_of(entries), digest_of(entries[0]), digest_of(entries[1])):
        tree = cells(copy)
        tree["session"]["entries"] = [Cell(REDACTED, {"hidden": hidden})]
        assert verdict_of(rebuilt(tree, copy[MEMBER])) == "bad"


def test_hidden_field_keeps_its_name() -> None:
    copy = sealed_copy(record(), lambda field: field.path[-1] == "session-end")
    tree = cells(copy)
    tree["session"]["session-ene"] = tree["session"].pop("session-end")
    assert verdict_of(rebuilt(tree, copy[MEMBER])) == "bad"
