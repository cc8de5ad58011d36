"""Pollux JSON contains each message, call, result and count of each demo session."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests import builders
from tests.builders import PRICES

from pollux import __version__, homes
from pollux.cli.demo import HOME
from pollux.exports import EXPORTERS, pollux_json
from pollux.exports.source import export_source
from pollux.model import Message, Tokens
from pollux.sessions.reader import History, history, opened


@cache
def demo() -> History:
    return history(homes(HOME))


def exported(number: int, name: str) -> bytes:
    history = demo()
    session = history.sessions[number]
    by_id = {session.id: session for session in history.sessions}
    return b"".join(EXPORTERS[name].render(export_source(session, opened(session), by_id, opened, PRICES)))


@pytest.mark.parametrize("number", range(23))
def test_document_contains_all_values(number: int) -> None:
    session = demo().sessions[number]
    document = json.loads(exported(number, "json"))
    messages = [*opened(session).messages()]
    assert [msgspec.convert(entry, Message) for entry in document["timeline"]] == messages
    assert [entry["id"] for entry in document["timeline"]] == [message.id for message in messages]
    for written, message in zip(document["timeline"], messages, strict=True):
        assert "".join(part["text"] for part in written["parts"] if part["type"] == "text") == "".join(
            part.text for part in message.parts if hasattr(part, "text") and part.__class__.__name__ == "Text"
        )
        for call, made in zip(written["tool_calls"], message.tool_calls, strict=True):
            assert (call["args"], call["output"], call["error"]) == (made.args, made.output, made.error)
    total = sum((call.tokens for call in session.calls), Tokens())
    assert sum(call["tokens"]["total"] for call in document["usage"]) == total.total
    assert len(document["problems"]) == len(session.problems)


@pytest.mark.parametrize("number", range(0, 23, 5))
def test_lines_equal_the_document(number: int) -> None:
    document = json.loads(exported(number, "json"))
    records: list[dict[str, Any]] = [json.loads(line) for line in exported(number, "jsonl").splitlines()]
    by_type: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        by_type.setdefault(record.pop("type"), []).append(record)
    (head,) = by_type.pop("session")
    assert head == {key: value for key, value in document.items() if key not in ("timeline", "usage", "problems")}
    assert by_type.get("message", []) == document["timeline"]
    assert by_type.get("model_call", []) == document["usage"]
    assert by_type.get("problem", []) == document["problems"]


def test_sources_are_named_with_their_digests(tmp_path: Path) -> None:
    checkpoint = b'{"history": [{"role": "user", "parts": [{"text": "hello"}]}]}'
    for name, data in (
        ("log.jsonl", builders.log(builders.header(), builders.user())),
        ("checkpoint-a.json", checkpoint),
    ):
        file = builders.put(tmp_path / name, data)
        document = json.loads(b"".join(pollux_json.render_json(builders.subject(file))))
        assert document["pollux"] == __version__
        assert document["sources"] == [
            {"path": str(file), "role": "main", "sha256": hashlib.sha256(data).hexdigest()},
        ]


def test_lone_surrogate_is_kept(tmp_path: Path) -> None:
    file = builders.put(tmp_path / "log.jsonl", builders.log(builders.header(), builders.user("u", "half \ud83d")))
    document = json.loads(b"".join(pollux_json.render_json(builders.subject(file))))
    assert document["timeline"][0]["parts"][0]["text"] == "half \ud83d"
