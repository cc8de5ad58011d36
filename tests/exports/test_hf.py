"""Traces for the Hub contain each call, thought and error, under the right author."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.builders import PRICES, call, gemini, header, log, notice, preamble, rewind, tokens, user
from tests.exports import family

from pollux.exports import EXPORTERS, ExportedSession, hf
from pollux.exports.source import ExportSource


def entries(made: ExportSource) -> list[Any]:
    return [json.loads(line) for line in b"".join(hf.render(made)).decode().splitlines()]


def of_log(folder: Path, *records: object) -> ExportSource:
    return builders.subject(builders.put(folder / f"{builders.NAME}.jsonl", log(header(), *records)))


def messages(made: ExportSource) -> list[Any]:
    return [entry["message"] for entry in entries(made) if entry["type"] == "message"]


def test_export_equals_its_snapshot(tmp_path: Path) -> None:
    made = family.of_home(family.put(tmp_path))
    family.same("hf.jsonl", b"".join(hf.render(made)), tmp_path)


def test_header_names_the_session_and_its_client(tmp_path: Path) -> None:
    head = entries(family.of_home(family.put(tmp_path), family.AGENT))[0]
    assert (head["type"], head["version"], head["harness"]) == ("session", 3, "gemini-cli")
    assert head["parentSession"] == builders.SESSION
    assert len(head["pollux"]["source_sha256"][0]) == 64


def test_each_entry_names_its_predecessor(tmp_path: Path) -> None:
    _, first, *others = entries(family.of_home(family.put(tmp_path)))
    assert first["parentId"] is None
    before = first["id"]
    for entry in others:
        assert entry["parentId"] == before
        before = entry["id"]
    assert len({entry["id"] for entry in (first, *others)}) == len(others) + 1


def test_calls_thoughts_and_errors_are_exported(tmp_path: Path) -> None:
    asked, answer, *results = messages(family.of_home(family.put(tmp_path)))[:5]
    assert asked == {"role": "user", "content": [{"type": "text", "text": "What is in a.txt and b.txt?"}]} | {
        "timestamp": asked["timestamp"]
    }
    assert [part["type"] for part in answer["content"]] == ["thinking", "toolCall", "toolCall", "toolCall"]
    assert answer["content"][0]["thinking"] == "Plan\nLook first."
    assert [(result["toolCallId"], result["isError"]) for result in results] == [
        ("c1", False),
        ("c2", True),
        ("c3", False),
    ]
    assert results[1]["content"][0]["text"] == "File not found: b.txt"


def test_usage_separates_cached_input(tmp_path: Path) -> None:
    counts = tokens(100) | {"tool": 7, "total": 112}
    _, counted, bare = messages(of_log(tmp_path, user(), gemini("g1", tokens=counts), gemini("g2")))
    assert {key: counted["usage"][key] for key in ("input", "cacheRead", "output", "totalTokens")} == {
        "input": 106,
        "cacheRead": 1,
        "output": 5,
        "totalTokens": 112,
    }
    assert "usage" not in bare


def test_tool_tokens_are_input_even_if_more_tokens_are_cached(tmp_path: Path) -> None:
    counts = {"input": 5, "output": 1, "cached": 9, "thoughts": 0, "tool": 3, "total": 9}
    subject = of_log(tmp_path, user(), gemini(tokens=counts))
    [record] = [json.loads(line) for line in EXPORTERS["calls"].render(subject)]
    assert messages(subject)[1]["usage"]["input"] == record["input_tokens"] == 3


def test_texts_of_the_client_are_not_messages_of_a_user(tmp_path: Path) -> None:
    made = of_log(
        tmp_path,
        preamble(),
        notice(),
        gemini("x1", "Got it. Thanks for the context!", model=None),
        user(),
        user("s1", "<state_snapshot>all so far</state_snapshot>"),
        gemini(),
    )
    kinds = [(entry["type"], entry.get("customType")) for entry in entries(made)[1:]]
    assert kinds == [
        ("custom_message", "gemini-cli.session_context"),
        ("custom", "gemini-cli.notice"),
        ("custom", "gemini-cli.synthetic"),
        ("message", None),
        ("compaction", None),
        ("model_change", None),
        ("message", None),
    ]


def test_dropped_messages_are_only_counted(tmp_path: Path) -> None:
    made = of_log(tmp_path, user("u1"), gemini("g1"), user("u2", "secret"), gemini("g2"), rewind("u2"), user("u3"))
    exported = entries(made)
    (left_out,) = [entry for entry in exported if entry["type"] == "branch_summary"]
    assert (left_out["summary"][:10], left_out["fromId"]) == ("2 messages", "g1")
    assert "secret" not in json.dumps(exported)
    assert made.losses["a retracted message"] == 2


def test_unicode_line_separators_do_not_split_a_line(tmp_path: Path) -> None:
    text = "one\u2028two\u2029three\x85four\x0bfive"
    data = b"".join(hf.render(of_log(tmp_path, user("u1", text)))).decode()
    assert len(data.splitlines()) == data.count("\n") == 2
    assert json.loads(data.splitlines()[1])["message"]["content"][0]["text"] == text


def test_calls_with_odd_arguments_are_exported(tmp_path: Path) -> None:
    odd = [{"name": "shell", "args": "ls"}, call("c1", result=None, status="cancelled")]
    answer = messages(of_log(tmp_path, gemini("g1", toolCalls=odd)))
    (exported,) = answer
    assert [(part["id"], part["arguments"]) for part in exported["content"] if part["type"] == "toolCall"] == [
        ("g1#0", {"value": "ls"}),
        ("c1", {"file_path": "a.txt"}),
    ]
    assert exported["stopReason"] == "aborted"


def test_pictures_are_left_out_and_counted(tmp_path: Path) -> None:
    made = family.of_home(family.put(tmp_path))
    assert family.PIXEL not in json.dumps(entries(made))
    assert made.losses["an attachment"] == 1


def test_card_contains_only_counts(tmp_path: Path) -> None:
    made = [family.of_home(family.put(tmp_path), id_) for id_ in (builders.SESSION, family.AGENT)]
    ((name, data),) = hf.pages([ExportedSession(item.session, "x.jsonl") for item in made], PRICES)
    text = data.decode()
    assert name == "README.md"
    assert text.startswith("---\n")
    assert "\n- agent-traces\n" in text
    for row in (
        "| sessions | 2 |",
        "| of them subagents | 1 |",
        "| prompts | 3 |",
        "| model calls | 5 |",
        "| tokens | 1,082 |",
    ):
        assert row in text
    for private in ("a.txt", "webapp", "Forget", str(tmp_path), builders.SESSION):
        assert private not in text


def test_format_is_always_redacted_and_never_one_stream() -> None:
    assert EXPORTERS["hf"].is_public
    assert not EXPORTERS["hf"].is_stream


@pytest.mark.parametrize("records", [[], [notice()]])
def test_session_without_messages_has_a_header_and_settings(tmp_path: Path, records: list[builders.Wire]) -> None:
    assert [entry["type"] for entry in entries(of_log(tmp_path, *records))] == ["session", *(["custom"] * len(records))]


def test_summary_is_the_name_and_unassigned_counts_are_a_loss(tmp_path: Path) -> None:
    made = of_log(tmp_path, user("u1"), gemini("g1", tokens=tokens()), builders.updates(summary="Counting things"))
    assert entries(made)[-1]["name"] == "Counting things"
    made.group.timeline.clear()
    assert [entry["type"] for entry in entries(made)] == ["session", "session_info"]
    assert made.losses["the counts of a model call without a message"] == 1


def test_clashing_ids_are_made_unique_after_a_rewind_at_the_end(tmp_path: Path) -> None:
    made = of_log(tmp_path, user("g1~model"), gemini("g1"), user("u2"), rewind("u2"))
    assert [entry["id"] for entry in entries(made)[1:]] == ["g1~model", "g1~model~", "g1", "u2~left-out"]


def test_result_that_is_not_a_text_is_json(tmp_path: Path) -> None:
    odd = [{"functionResponse": {"id": "c1", "name": "x", "response": {"rows": [1]}}}]
    *_, exported = messages(of_log(tmp_path, gemini(toolCalls=[call(result=odd)])))
    assert json.loads(exported["content"][0]["text"]) == {"rows": [1]}
