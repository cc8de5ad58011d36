"""Conversations for training have alternating roles, calls with results, and only turns useful for training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.builders import PRICES, answers, call, gemini, header, log, notice, preamble, rewind, tokens, user
from tests.corpus.trees import Tree, every_release, history
from tests.exports import family

from pollux.errors import InvalidFilterError
from pollux.exports import chat
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.sessions.reader import opened

OBJECTS = frozenset({"argument-objects"})


def of_log(folder: Path, *records: object, **options: Any) -> ExportSource:  # noqa: ANN401
    file = builders.put(folder / f"{builders.NAME}.jsonl", log(header(), *records))
    return builders.subject(file, options=ExportOptions(**options))


def row(made: ExportSource) -> Any:  # noqa: ANN401  as decoded
    return json.loads(b"".join(chat.render(made)))


def roles(made: ExportSource) -> str:
    """Return the first letters of the roles."""
    return "".join(message["role"][0] for message in row(made)["messages"])


def test_exports_equal_their_snapshots(tmp_path: Path) -> None:
    made = family.of_home(family.put(tmp_path))
    family.same("chat.jsonl", b"".join(chat.render(made)), tmp_path)
    family.same("sharegpt.jsonl", b"".join(chat.render_sharegpt(made)), tmp_path)


def test_arguments_are_text_or_objects(tmp_path: Path) -> None:
    for include, expected in ((frozenset[str](), '{"file_path":"a.txt"}'), (OBJECTS, {"file_path": "a.txt"})):
        made = family.of_home(family.put(tmp_path), include=include)
        (_, _, answer, *_) = row(made)["messages"]
        assert answer["tool_calls"][0]["function"] == {"name": "read_file", "arguments": expected}


def test_consecutive_answers_are_joined(tmp_path: Path) -> None:
    made = of_log(
        tmp_path,
        *(user(), gemini("g1", "One.", thoughts=family.THOUGHTS), gemini("g2", "", toolCalls=[call()])),
        gemini("g3", "Two."),
    )
    assert roles(made) == "uata"
    merged = row(made)["messages"][1]
    assert (merged["content"], merged["reasoning_content"]) == ("One.", "Plan\nLook first.")
    assert len(merged["tool_calls"]) == 1


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (
            [user("u2"), gemini("g2", toolCalls=[call(status="cancelled")])],
            "a turn that was cancelled or has no result",
        ),
        ([user("u2"), gemini("g2", toolCalls=[call(result=None)])], "a turn that was cancelled or has no result"),
        ([user("u2"), gemini("g2", toolCalls=[call()])], "a turn that was cancelled or has no result"),
        ([user("u2")], "a prompt without an answer"),
        ([user("u2"), gemini("g2", "", model=None)], "a prompt without an answer"),
        ([user("u2"), gemini("g2"), rewind("u2")], "a retracted message"),
    ],
)
def test_turns_without_a_useful_answer_are_left_out(tmp_path: Path, turn: list[builders.Wire], why: str) -> None:
    made = of_log(tmp_path, user("u1", "first"), gemini("g1"), *turn, user("u3", "last"), gemini("g3"))
    assert [message["content"] for message in row(made)["messages"]] == ["first", "hi", "last", "hi"]
    assert made.losses[why]


def test_results_at_the_end_are_kept(tmp_path: Path) -> None:
    assert roles(of_log(tmp_path, user(), gemini(toolCalls=[call()]))) == "uat"


def test_texts_of_the_client_are_in_the_prompts_that_the_model_received(tmp_path: Path) -> None:
    made = of_log(
        tmp_path,
        *(preamble(), user("u1"), gemini("g1")),
        user("h1", "<hook_context>Be brief.</hook_context>"),
        *(user("u2", "And?"), gemini("g2", "More"), user("c1", "Please continue."), gemini("g3", " and more.")),
        *(notice(), user("c2", "Please continue.")),
    )
    exported = row(made)["messages"]
    assert roles(made) == "suauaua"
    assert exported[0]["content"].startswith("<session_context>")
    assert exported[3]["content"] == "<hook_context>Be brief.</hook_context>\n\nAnd?"
    assert exported[5]["content"] == "Please continue."


def test_summary_is_left_out_if_all_its_messages_are_exported(tmp_path: Path) -> None:
    snapshot = user("s1", "<state_snapshot>all</state_snapshot>")
    ack = gemini("x1", "Got it. Thanks for the additional context!", model=None)
    made = of_log(
        tmp_path, user("u1"), gemini("g1"), builders.checkpoint(snapshot, ack), user("u2", "On."), gemini("g2")
    )
    assert [message["content"] for message in row(made)["messages"]] == ["hello", "hi", "On.", "hi"]


def test_tools_are_inferred_and_marked(tmp_path: Path) -> None:
    calls = [call("c1", args={"path": "a", "limit": 3}), call("c2", args={"path": "b", "limit": "4", "deep": True})]
    made = of_log(tmp_path, user(), gemini(toolCalls=calls), gemini("g2"))
    (tool,) = row(made)["tools"]
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": ["integer", "string"]},
            "deep": {"type": "boolean"},
        },
        "required": ["path", "limit"],
    }
    assert tool["function"]["description"].startswith("Inferred")
    assert row(made)["metadata"]["tool_schemas"] == "inferred"


def test_missing_counts_are_omitted_from_metadata(tmp_path: Path) -> None:
    assert row(of_log(tmp_path, user(), gemini()))["metadata"]["tokens"] is None
    assert row(of_log(tmp_path, user(), gemini(tokens=tokens(10))))["metadata"]["tokens"]["total"] == 15


@pytest.mark.parametrize("records", [[], [user()], [gemini()], [notice()]])
def test_session_without_useful_turns_has_no_row(tmp_path: Path, records: list[builders.Wire]) -> None:
    made = of_log(tmp_path, *records)
    assert b"".join(chat.render(made)) == b"".join(chat.render_sharegpt(made)) == b""


def test_unknown_value_of_include_raises(tmp_path: Path) -> None:
    with pytest.raises(InvalidFilterError, match="argument-objects"):
        [*chat.render(of_log(tmp_path, user(), include=frozenset({"words"})))]


@every_release
def test_roles_alternate_in_all_sessions(trees: list[Tree]) -> None:
    for tree in trees:
        read = history(tree)
        by_id = {session.id: session for session in read.sessions}
        for session in read.sessions:
            made = export_source(session, opened(session), by_id, opened, PRICES)
            data = b"".join(chat.render(made))
            if not data:
                continue
            exported = json.loads(data)["messages"]
            asked = [call_["id"] for message in exported for call_ in message.get("tool_calls", ())]
            assert [message["tool_call_id"] for message in exported if message["role"] == "tool"] == asked
            spoken = [message["role"] for message in exported if message["role"] not in {"tool", "system"}]
            turns = json.loads(b"".join(chat.render_sharegpt(made)))["conversations"]
            who = [turn["from"] for turn in turns if turn["from"] != "system"]
            assert spoken[0] == "user"
            assert set(who[::2]) <= {"human", "observation"}
            assert set(who[1::2]) <= {"gpt", "function_call"}


def test_answers_without_a_prompt_are_left_out(tmp_path: Path) -> None:
    made = of_log(tmp_path, gemini("g1", "Out of nowhere."), user("u1"), gemini("g2"))
    assert roles(made) == "ua"
    assert made.losses["answers without a prompt"] == 1


def test_continue_prompt_after_a_result_is_left_out(tmp_path: Path) -> None:
    asked = gemini("g1", "I read.", toolCalls=[call()])
    continuation = user("c1", "Please continue.")
    made = of_log(tmp_path, user("u1"), asked, user("r1", [answers()]), continuation, gemini("g2", "Fine."))
    assert roles(made) == "uata"
    assert made.losses["text of the client after the result of a call"] == 1


def test_continue_prompt_before_an_answer_is_one_message(tmp_path: Path) -> None:
    made = of_log(tmp_path, user("u1"), user("c1", "Please continue."), gemini("g1"))
    assert row(made)["messages"][0]["content"] == "hello\n\nPlease continue."
