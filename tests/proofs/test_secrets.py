"""Each value of a record that contains a secret is hidden, and other values are kept."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any

import pytest
from tests.proofs.samples import SECRET, record
from tests.redaction.samples import ROWS, Sample, samples
from tests.redaction.test_places import PLACES, message

from pollux.exports.vac.messages import AnsweredCalls, message_entry
from pollux.exports.vac.values import representable
from pollux.model import Attachment, Json, Message, Text
from pollux.proofs import secrets as module
from pollux.proofs.commitment import Salts, commitment, committed
from pollux.proofs.redacted import REDACTED, hide_values, prove_fields, recompute
from pollux.proofs.secrets import find_secrets
from pollux.redaction import RULES, RuleKind

SECRETS = {rule.id for rule in RULES if rule.kind is RuleKind.SECRET}


def record_with(*messages: Message) -> dict[str, Any]:
    entries = [representable(message_entry(message, "gemini", AnsweredCalls(), {}), Counter()) for message in messages]
    return record(session=record()["session"] | {"entries": json.loads(json.dumps(entries))})


def hide_secrets(original: dict[str, Json]) -> dict[str, Json]:
    places = find_secrets(original).places
    return hide_values(original, lambda field: field.path in places)


@pytest.mark.parametrize("several", [pytest.param([*samples(id_)], id=id_) for id_ in ROWS if id_ in SECRETS])
def test_secret_is_hidden_in_each_place(several: list[Sample]) -> None:
    for sample in several:
        for place, made in PLACES.items():
            shown = hide_secrets(record_with(made(f"see {sample.text} there"), message(Text("and what stands beside"))))
            text = json.dumps(shown, ensure_ascii=False)
            assert not any(line in text for line in sample.secret.split("\n") if len(line) > 6), place
            assert REDACTED in text, place
            assert "and what stands beside" in text, place


@pytest.mark.parametrize("place", PLACES)
def test_values_without_secrets_are_kept(place: str) -> None:
    text = "mara@example.org works in /home/mara/src/webapp, with TOKEN=${TOKEN} and a key under the mat"
    original = record_with(PLACES[place](text))
    assert hide_secrets(original) == committed(original)


def test_secret_in_a_member_name_hides_its_object() -> None:
    (sample, *_) = samples("github-token")
    original = record_with(PLACES["key"](sample.secret))
    assert find_secrets(original).places == {("session", "entries", 0, "children", 0, "input")}


def test_only_texts_that_contain_part_of_a_secret_are_hidden() -> None:
    (sample, *_) = samples("github-token")
    half = len(sample.secret) // 2
    original = record_with(message(Text("first"), Text(f"see {sample.secret[:half]}"), Text(sample.secret[half:])))
    assert find_secrets(original).places == {("session", "entries", 0, "content", place, "text") for place in (1, 2)}


def test_many_secrets_in_a_row_are_all_hidden() -> None:
    several = [sample.secret for sample in samples("github-token")] * 20
    original = record_with(message(*map(Text, several), Text("the end")))
    assert not any(sample in json.dumps(hide_secrets(original)) for sample in several)


def test_values_are_all_hidden_if_rounds_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROUNDS", 1)
    (sample, *_) = samples("github-token")
    original = record_with(message(Text("first"), Text(sample.secret)))
    assert {path[-2] for path in find_secrets(original).places} == {0, 1}


def test_redacted_copy_has_the_sealed_root() -> None:
    (sample, *_) = samples("github-token")
    original = record_with(*(made(f"see {sample.text} there") for made in PLACES.values()))
    shown = hide_secrets(original)
    salts = Salts(SECRET, "s")
    assert recompute(shown, prove_fields(original, shown, salts)).root == commitment(original, salts).root


def test_secrets_and_unreadable_content_are_counted() -> None:
    (sample, *_) = samples("github-token")
    binary = base64.b64encode(bytes(range(128, 256)) * 4).decode()
    text = Text(f"{sample.secret} {sample.secret} {binary}")
    findings = find_secrets(record_with(message(text, Attachment("image/png", 3, None, "AAAA"))))
    assert [(what.endswith("(github-token)"), count) for what, count in findings.counts.items()] == [(True, 2)]
    assert findings.unread == {"image/png attachment": 1, "base64 in a text": 1}
    assert find_secrets(record()) == (frozenset(), {}, {})
