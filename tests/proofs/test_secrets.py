"""Wherever a record can hold a secret, the value that holds it is hidden, and what holds none stays."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any

import pytest
from tests.proofs.samples import SECRET, record
from tests.redaction.samples import ROWS, Sample, samples
from tests.redaction.test_places import PLACES, message

from pollux.exports.vac.messages import Answers, message_entry
from pollux.exports.vac.values import sound
from pollux.model import Attachment, Json, Message, Text
from pollux.proofs import secrets as module
from pollux.proofs.commitment import Salts, commitment, committed
from pollux.proofs.disclosure import REDACTED, disclosed, recomputed, redacted
from pollux.proofs.secrets import secrets
from pollux.redaction import RULES, Kind

SECRETS = {rule.id for rule in RULES if rule.kind is Kind.SECRET}


def record_with(*messages: Message) -> dict[str, Any]:
    entries = [sound(message_entry(one, "gemini", Answers(), {}), Counter()) for one in messages]
    return record(session=record()["session"] | {"entries": json.loads(json.dumps(entries))})


def hidden(original: dict[str, Json]) -> dict[str, Json]:
    places = secrets(original).places
    return redacted(original, lambda field: field.path in places)


@pytest.mark.parametrize("several", [pytest.param([*samples(id_)], id=id_) for id_ in ROWS if id_ in SECRETS])
def test_a_secret_is_hidden_wherever_it_stands(several: list[Sample]) -> None:
    for sample in several:
        for place, made in PLACES.items():
            shown = hidden(record_with(made(f"see {sample.text} there"), message(Text("and what stands beside"))))
            told = json.dumps(shown, ensure_ascii=False)
            assert not any(line in told for line in sample.secret.split("\n") if len(line) > 6), place
            assert REDACTED in told, place
            assert "and what stands beside" in told, place


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_secret_stays(place: str) -> None:
    text = "mara@example.org works in /home/mara/src/webapp, with TOKEN=${TOKEN} and a key under the mat"
    original = record_with(PLACES[place](text))
    assert hidden(original) == committed(original)


def test_a_secret_in_a_name_hides_the_object_that_it_stands_in() -> None:
    (sample, *_) = samples("github-token")
    original = record_with(PLACES["key"](sample.secret))
    assert secrets(original).places == {("session", "entries", 0, "children", 0, "input")}


def test_only_the_pieces_that_hold_a_secret_are_hidden() -> None:
    (sample, *_) = samples("github-token")
    half = len(sample.secret) // 2
    original = record_with(message(Text("first"), Text(f"see {sample.secret[:half]}"), Text(sample.secret[half:])))
    assert secrets(original).places == {("session", "entries", 0, "content", place, "text") for place in (1, 2)}


def test_a_long_row_of_secrets_comes_to_its_end() -> None:
    several = [sample.secret for sample in samples("github-token")] * 20
    original = record_with(message(*map(Text, several), Text("the end")))
    assert not any(one in json.dumps(hidden(original)) for one in several)


def test_what_cannot_be_told_apart_is_hidden_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROUNDS", 1)
    (sample, *_) = samples("github-token")
    original = record_with(message(Text("first"), Text(sample.secret)))
    assert {path[-2] for path in secrets(original).places} == {0, 1}


def test_the_copy_still_leads_to_what_was_sealed() -> None:
    (sample, *_) = samples("github-token")
    original = record_with(*(made(f"see {sample.text} there") for made in PLACES.values()))
    shown = hidden(original)
    salts = Salts(SECRET, "s")
    assert recomputed(shown, disclosed(original, shown, salts)).root == commitment(original, salts).root


def test_what_was_found_is_counted_and_what_cannot_be_read_is_told() -> None:
    (sample, *_) = samples("github-token")
    binary = base64.b64encode(bytes(range(128, 256)) * 4).decode()
    said = Text(f"{sample.secret} {sample.secret} {binary}")
    found = secrets(record_with(message(said, Attachment("image/png", 3, None, "AAAA"))))
    assert [(what.endswith("(github-token)"), count) for what, count in found.counts.items()] == [(True, 2)]
    assert found.unread == {"image/png attachment": 1, "base64 in a text": 1}
    assert secrets(record()) == (frozenset(), {}, {})
