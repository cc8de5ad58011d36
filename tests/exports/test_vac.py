"""A session exported as a verifiable agent record is complete and fits the schema."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import cbor2
import msgspec
import pytest
import rfc8785
from tests import builders
from tests.builders import call, checkpoint, gemini, header, log, notice, put, rewind, tokens, user
from tests.corpus.trees import SELECTED, Tree, all_trees, raw_messages
from tests.corpus.trees import history as history_of
from tests.exports.vac_records import ALL, decoded, entries_of, home_record, record_of, subject_of, walked
from tests.exports.vac_schema import problems

from pollux import __version__, homes
from pollux.cli.demo import HOME
from pollux.exports.source import ExportOptions
from pollux.exports.vac.encode import cbor_pieces, json_pieces, record, render_json
from pollux.exports.vac.plan import MAX_NESTING
from pollux.exports.vac.values import MAX_DEPTH, LazyEntries, LazyMap, representable
from pollux.formats.messages import KNOWN_FIELDS
from pollux.formats.tool_calls import KNOWN_FIELDS_OF_CALLS
from pollux.model import Fate, Json, Message, Session
from pollux.sessions.reader import History, history
from pollux.views.contracts import calls_of

DATA = Path(__file__).parents[1] / "data"
SEEDS = sorted((DATA / "seeds").glob("*.json"))
PAGE = Path(__file__).parents[2] / "docs" / "vac.md"


@cache
def demo() -> History:
    return history(homes(HOME))


def of_demo(number: int, options: ExportOptions | None = None) -> Any:  # noqa: ANN401
    return decoded(subject_of(demo(), demo().sessions[number], options))


# The mapping of the specification


def mapped(message: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a message as the specification maps it."""
    children = [
        {"type": "reasoning", "content": thought["description"], "subject": thought["subject"]}
        for thought in message.get("thoughts", [])
    ]
    for call_ in message.get("toolCalls", []):
        shared = {"call-id": call_["id"], "timestamp": call_.get("timestamp", message["timestamp"])}
        children.append({"type": "tool-call", "name": call_["name"], "input": call_["args"], **shared})
        if call_.get("result") is not None:
            children.append({"type": "tool-result", "output": call_["result"], "status": call_["status"], **shared})
    entry = {"type": "assistant" if message["type"] == "gemini" else "user", "children": children or None}
    entry |= {name: message.get(name) for name in ("id", "timestamp", "content")} | {"model-id": message.get("model")}
    return {name: value for name, value in entry.items() if value is not None}


def assert_within(part: Any, whole: Any) -> None:  # noqa: ANN401
    """Check that each value of a part equals that of the whole, which may contain more."""
    if isinstance(part, dict):
        for name, value in part.items():
            assert_within(value, whole[name])
    elif isinstance(part, list) and part and "type" in part[0]:
        assert len(part) == len(whole)
        for inner_part, inner_whole in zip(part, whole, strict=True):
            assert_within(inner_part, inner_whole)
    else:
        assert part == whole


def test_record_of_the_example_has_the_specified_values() -> None:
    file = next(file for file in SEEDS if "08c1f87b" in file.name)
    native, made = json.loads(file.read_bytes()), decoded(builders.subject(file))
    assert_within([mapped(message) for message in native["messages"]], made["session"]["entries"])
    assert made["id"] == made["session"]["session-id"] == native["sessionId"]
    assert made["session"]["session-start"] == native["startTime"]
    assert_within(
        {"model-id": "gemini-3-pro-preview", "model-provider": "google", "cli-name": "gemini-cli"},
        made["session"]["agent-meta"],
    )


def test_values_missing_in_the_specification_are_exported() -> None:
    file = next(file for file in SEEDS if "08c1f87b" in file.name)
    native, session = json.loads(file.read_bytes()), decoded(builders.subject(file))["session"]
    assert [session[name] for name in ("projectHash", "lastUpdated")] == [
        native[name] for name in ("projectHash", "lastUpdated")
    ]
    _, called, answer = session["entries"]
    thought, asked, answered = called["children"]
    assert thought["timestamp"] == "2026-02-10T17:28:03.479Z"
    seed_call = native["messages"][1]["toolCalls"][0]
    assert (asked["displayName"], asked["description"]) == (seed_call["displayName"], seed_call["description"])
    assert (answered["display"]["text"], answered["renderOutputAsMarkdown"]) == ("Found 22 matches", True)
    assert answer["token-usage"] == {
        "input": 154032,
        "output": 1282,
        "cached": 142880,
        "reasoning": 10978,
        "thoughts": 10978,
        "tool": 0,
        "total": 166292,
    }


@pytest.mark.parametrize("file", SEEDS, ids=lambda file: file.stem)
def test_specified_examples_fit_the_schema(file: Path) -> None:
    assert problems(decoded(builders.subject(file))) == []


# Complete sessions


@pytest.mark.parametrize("options", [None, ALL], ids=["active", "all"])
@pytest.mark.parametrize("number", range(23))
def test_each_demo_session_fits_the_schema(number: int, options: ExportOptions | None) -> None:
    assert problems(of_demo(number, options)) == []


def selected() -> list[tuple[Tree, Session]]:
    return [(tree, session) for tree in all_trees(SELECTED) for session in history_of(tree).sessions]


@pytest.mark.parametrize(("tree", "session"), selected(), ids=lambda case: getattr(case, "name", None))
def test_each_session_of_the_corpus_is_complete(tree: Tree, session: Session) -> None:
    made = subject_of(history_of(tree), session, ALL)
    exported = decoded(made)
    assert problems(exported) == []
    kept = [entry for _, entry in walked(exported["session"]["entries"])]
    used = (entry["token-usage"] for entry in kept if "token-usage" in entry)
    total = sum(usage["total"] for usage in used if "repeated" not in usage)
    assert total == sum(model_call.tokens.total for model_call in calls_of(session, made.by_id))
    results = {json.dumps(child["output"]) for child in kept if child["type"] == "tool-result"}
    recorded = [
        call_
        for ref in session.files
        for message in raw_messages(ref.path)
        for call_ in message.get("toolCalls") or ()
        if len(call_.get("result") or ()) == 1 and "tool_output_masked" not in str(call_["result"])
    ]
    assert {json.dumps(call_["result"]) for call_ in recorded} <= results


def test_json_is_canonical_as_in_rfc_8785() -> None:
    data = b"".join(render_json(subject_of(demo(), demo().sessions[0])))
    assert data == rfc8785.dumps(json.loads(data))


def test_same_session_gives_same_bytes_in_any_order_of_its_fields(tmp_path: Path) -> None:
    written = []
    for name, order in (("a", 1), ("b", -1)):
        message = dict([*user("u", "hello").items()][::order])
        file = put(tmp_path / name / "s.jsonl", log(dict([*header().items()][::order]), message))
        made = record(builders.subject(file))
        del made["sources"]  # the bytes of the files do differ
        written.append((b"".join(json_pieces(made)), b"".join(cbor_pieces(made))))
    assert written[0] == written[1]


def test_sources_are_named_with_their_digests(tmp_path: Path) -> None:
    made = record_of(tmp_path, user("u", "hello"))
    file = tmp_path / f"{builders.NAME}.jsonl"
    assert made["sources"] == [
        {
            "path": str(file),
            "role": "main",
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            "session-id": builders.SESSION,
        }
    ]
    assert made["session"]["entries"][0]["source"] == {"file": 0, "line": 2}
    assert made["recording-agent"] == {"name": "pollux", "version": __version__}
    assert (made["version"], made["profile"]) == ("3.0.0-draft", "vac-00")


def test_export_time_and_version_control_are_written_if_given(tmp_path: Path) -> None:
    file = put(tmp_path / "s.jsonl", log(header(), user()))
    made = record(builders.subject(file), created=datetime(2026, 11, 15, tzinfo=UTC), vcs={"type": "git"})
    exported = json.loads(b"".join(json_pieces(made)))
    assert (exported["created"], exported["vcs"]) == ("2026-11-15T00:00:00.000Z", {"type": "git"})
    assert problems(exported) == []
    assert not {"created", "vcs"} & set(decoded(builders.subject(file)))


def test_problems_are_exported(tmp_path: Path) -> None:
    made = record_of(tmp_path, user(), b'{"id":"torn","type":"us')
    assert [(problem["code"], problem["line"]) for problem in made["problems"]] == [("torn-line", 3)]


# Fields of the session


def test_folder_is_exported_only_when_proven(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    put(chats / f"{builders.NAME}.jsonl", log(header(), user()))
    put(chats / "session-2026-11-15T19-31-b3e2640d.jsonl", log(header(builders.OTHER, projectHash="0" * 64), user()))
    proven, unproven = (home_record(tmp_path, id_)["session"] for id_ in (builders.SESSION, builders.OTHER))
    assert proven["environment"] == {"working-dir": builders.ROOT}
    assert "environment" not in unproven
    assert (unproven["project"]["path"], unproven["project"]["proven"]) == (builders.ROOT, False)


def test_unknown_metadata_is_exported_separately(tmp_path: Path) -> None:
    head = header(summary="A title", directories=["/x"], entries="no") | {"session-end": None}
    file = put(tmp_path / "s.jsonl", log(head, user()))
    session = decoded(builders.subject(file))["session"]
    assert (session["summary"], session["directories"]) == ("A title", ["/x"])
    assert session["native"] == {"entries": "no", "session-end": None}
    assert (len(session["entries"]), session["session-end"]) == (1, builders.at(1))


@pytest.mark.parametrize(
    ("models", "first", "provider"),
    [
        ([], "unknown", "unknown"),
        (["gemini-2.5-pro"], "gemini-2.5-pro", "google"),
        (["gemma-4-31b", "gemini-2.5-pro"], "gemma-4-31b", "google"),
        (["auto"], "auto", "google"),
        (["qwen-3"], "qwen-3", "unknown"),
    ],
)
def test_models_have_their_provider(tmp_path: Path, models: list[str], first: str, provider: str) -> None:
    answers = [gemini(f"g{n}", "x", model=model, tokens=None if n else tokens()) for n, model in enumerate(models)]
    meta = record_of(tmp_path, user(), *answers)["session"]["agent-meta"]
    assert (meta["model-id"], meta["model-provider"]) == (first, provider)
    assert meta.get("models", [first]) == (models or ["unknown"])


# Fields of messages


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (user("u", "hello"), "user"),
        (user("u", "I ran the following shell command:\n```sh\nls\n```"), "user"),
        (user("u", "Please continue."), "continue"),
        (builders.preamble(), "session-context"),
        (user("u", "<hook_context>x</hook_context>"), "hook-context"),
        (user("u", "<state_snapshot>x</state_snapshot>"), "state-snapshot"),
        (gemini("g", "hi"), "assistant"),
        (gemini("g", "Got it. Thanks for the additional context!", model=None), "synthetic"),
        (notice("i", "Update available"), "info"),
        (notice("i", "Careful", kind="warning"), "warning"),
        (notice("i", "Broken", kind="error"), "error"),
        (notice("i", "Who knows", kind="telepathy"), "telepathy"),
        (user("u", "hello") | {"type": "human"}, "user"),
    ],
)
def test_only_texts_of_users_and_models_are_turns(tmp_path: Path, message: dict[str, Any], kind: str) -> None:
    (entry,) = entries_of(tmp_path, message)
    assert entry.get("event-type", entry["type"]) == kind
    assert entry["id"] == message["id"]
    content = entry.get("data", entry)["content"]
    assert content == (message["content"] if isinstance(message["content"], str) else message["content"][0]["text"])


def test_content_is_text_or_parts_as_the_client_writes_them(tmp_path: Path) -> None:
    parts = [
        {"text": "look"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"fileData": {"fileUri": "gs://a", "mimeType": "video/mp4"}},
        {"executableCode": {"language": "python", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"odd": [1]},
    ]
    single, several = entries_of(tmp_path, user("u1", [{"text": "one"}]), user("u2", parts))
    assert (single["content"], several["content"]) == ("one", parts)


def test_thoughts_in_a_typed_message_are_marked(tmp_path: Path) -> None:
    typed = [{"text": "see"}, {"text": "hm", "thought": True}]
    (entry,) = entries_of(tmp_path, user("u", "see it", displayContent=typed))
    assert entry["displayContent"] == typed


def test_typed_text_is_exported_beside_the_sent_one(tmp_path: Path) -> None:
    (entry,) = entries_of(tmp_path, user("u", [{"text": "see @a"}, {"text": "text of a"}], displayContent="see @a"))
    assert (entry["content"], entry["displayContent"]) == ([{"text": "see @a"}, {"text": "text of a"}], "see @a")


@pytest.mark.parametrize(
    ("fields", "status", "is_error"),
    [
        ({}, "success", False),
        ({"status": "error"}, "error", True),
        ({"status": "error", "result": None}, "error", True),
        ({"status": "cancelled", "result": None}, "cancelled", False),
        (
            {"result": [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"error": "no"}}}]},
            "success",
            True,
        ),
    ],
)
def test_status_and_errors_are_exported(tmp_path: Path, fields: dict[str, Any], status: str, *, is_error: bool) -> None:
    failed_call = call(**fields)
    (entry,) = entries_of(tmp_path, gemini("g", "", toolCalls=[failed_call]))
    asked, answered = entry["children"]
    assert asked["status"] == answered["status"] == status
    assert answered["is-error"] is is_error
    assert answered["output"] == (failed_call["result"] or [])


def test_unanswered_call_has_no_result(tmp_path: Path) -> None:
    (entry,) = entries_of(tmp_path, gemini("g", [builders.asks("c1", file_path="a")], model=None))
    (asked,) = entry["children"]
    assert (asked["type"], asked["status"], asked["input"]) == ("tool-call", "pending", {"file_path": "a"})
    assert entry["content"] == ""


def test_requests_in_the_content_are_exported_once(tmp_path: Path) -> None:
    words = [{"text": "now"}, builders.asks("c1", file_path="a.txt"), builders.asks("c2", file_path="b.txt")]
    (entry,) = entries_of(tmp_path, gemini("g", words, toolCalls=[call("c1")]))
    assert entry["content"] == [{"text": "now"}, builders.asks("c2", file_path="b.txt")]


def test_results_that_are_recorded_twice_are_exported_once(tmp_path: Path) -> None:
    recorded = [
        gemini("g", "", toolCalls=[call("c1"), call("c2")]),
        user("r", [builders.answers("c1"), builders.answers("c2", output="another text")]),
    ]
    entry = entries_of(tmp_path, *recorded)[1]
    assert entry["event-type"] == "tool-response"
    assert entry["data"] == {
        "role": "user",
        "call-ids": ["c1"],
        "content": [builders.answers("c2", output="another text")],
    }


def test_extras_of_messages_and_calls_are_exported_separately(tmp_path: Path) -> None:
    message = gemini("g", "", children="no", toolCalls=[call("c1", is_error="no", agentId="a1")], **{"token-usage": 5})
    (entry,) = entries_of(tmp_path, message)
    asked = entry["children"][0]
    assert entry["native"] == {"children": "no", "token-usage": 5}
    assert (asked["native"], asked["agentId"]) == ({"is_error": "no"}, "a1")


def test_tokens_billed_in_another_session_are_marked(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    paid = [user("u"), gemini("g", "hi", tokens=tokens())]
    put(chats / f"{builders.NAME}.jsonl", log(header(), *paid))
    copy = [notice("import-1", "Imported session"), *paid, gemini("h", "more", second=9, tokens=tokens(20))]
    started = header(builders.OTHER, startTime=builders.at(60))
    put(chats / "session-1794771160000-b3e2640d.jsonl", log(started, *copy))
    entries = home_record(tmp_path, builders.OTHER)["session"]["entries"]
    assert [entry["token-usage"].get("repeated") for entry in entries if "token-usage" in entry] == [True, None]
    entries = home_record(tmp_path, builders.SESSION)["session"]["entries"]
    assert [entry["token-usage"].get("repeated") for entry in entries if "token-usage" in entry] == [None]


def test_model_call_without_a_message_is_exported_at_the_end(tmp_path: Path) -> None:
    file = put(tmp_path / "s.jsonl", log(header(), user(), gemini("g", "hi", tokens=tokens())))
    subject = builders.subject(file)
    calls = [msgspec.structs.replace(subject.session.calls[0], message_id=id_) for id_ in ("g", "copy")]
    calls[1] = msgspec.structs.replace(calls[1], fate=Fate.REWOUND)
    made = replace(subject, session=msgspec.structs.replace(subject.session, calls=tuple(calls)))
    event = decoded(made)["session"]["entries"][2]
    assert (event["event-type"], event["timestamp"]) == ("model-call", builders.at(2))
    assert event["data"] == {
        "message-id": "copy",
        "model-id": "gemini-2.5-pro",
        "fate": "rewound",
        "token-usage": event["data"]["token-usage"],
    }
    assert event["data"]["token-usage"]["total"] == 15


# Fates of messages


REWOUND = (
    user("u1"),
    gemini("g1", "one", tokens=tokens(10)),
    user("u2", "again"),
    gemini("g2", "two", tokens=tokens(20), toolCalls=[call()]),
    rewind("u2"),
    user("u3", "better"),
)


def test_rewound_messages_are_left_out_and_counted(tmp_path: Path) -> None:
    first, second, event, last = entries_of(tmp_path, *REWOUND)
    assert [first["id"], second["id"], last["id"]] == ["u1", "g1", "u3"]
    assert (event["type"], event["event-type"]) == ("system-event", "rewind")
    assert (event["data"]["messages"], event["data"]["left-out"]) == (2, ["u2", "g2"])
    assert event["data"]["token-usage"]["total"] == 25
    assert "children" not in event


def test_rewound_messages_are_exported_on_demand(tmp_path: Path) -> None:
    event = entries_of(tmp_path, *REWOUND, options=ALL)[2]
    assert [(child["id"], child["fate"]) for child in event["children"]] == [("u2", "rewound"), ("g2", "rewound")]
    assert [child["type"] for child in event["children"][1]["children"]] == ["tool-call", "tool-result"]
    assert event["data"] == {"messages": 2, "token-usage": event["data"]["token-usage"]}


def test_compression_and_rollback_are_events_of_their_own(tmp_path: Path) -> None:
    begun = (user("u1"), gemini("g1", "one"), user("u2", "again"), gemini("g2", "two"))
    summed = (
        user("s1", "<state_snapshot>x</state_snapshot>"),
        gemini("s2", "Got it. Thanks for the additional context!", model=None),
    )
    compressed = entries_of(tmp_path, *begun, checkpoint(*summed), options=ALL)
    assert [event.get("event-type") for event in compressed] == ["compression", "state-snapshot", "synthetic"]
    assert len(compressed[0]["children"]) == 4
    rolled_back = entries_of(tmp_path, *begun, checkpoint(*begun[:2]), options=ALL)
    assert [event.get("event-type") for event in rolled_back] == [None, None, "rollback"]
    replaced = entries_of(tmp_path, *begun, checkpoint(user("x1", "elsewhere")), options=ALL)
    assert [event.get("event-type") for event in replaced] == ["replacement", None]


# Subagents


def family(root: Path, depth: int) -> None:
    """Write a session that starts a subagent, which starts another, and so on, all in one folder."""
    chats = builders.chats(root)
    put(chats / f"{builders.NAME}.jsonl", log(header(), user(), asking(1)))
    for number in range(1, depth + 1):
        head = header(f"agent-{number}", kind="subagent")
        answer = gemini(f"a{number}", "done", tokens=tokens(number), model=f"gemini-{number}")
        put(
            chats / builders.SESSION / f"agent-{number}.jsonl",
            log(head, user(f"p{number}", "task"), *([asking(number + 1)] if number < depth else []), answer),
        )


def asking(number: int) -> dict[str, Any]:
    return gemini(f"g{number}", "", toolCalls=[call(f"c{number}", "invoke_agent", agentId=f"agent-{number}")])


def test_subagent_is_below_its_call(tmp_path: Path) -> None:
    family(tmp_path, 1)
    made = home_record(tmp_path, builders.SESSION)
    asked, answered = made["session"]["entries"][1]["children"]
    assert (asked["type"], answered["type"]) == ("tool-call", "tool-result")
    assert [child["id"] for child in asked["children"]] == ["p1", "a1"]
    assert asked["children"][0]["origin"] == "agent_prompt"
    agent = asked["agent-session"]
    assert (agent["session-id"], agent["kind"]) == ("agent-1", "subagent")
    assert (agent["parent-session-id"], agent["parent-call-id"]) == (builders.SESSION, "c1")
    assert made["session"]["agent-meta"]["models"] == ["gemini-2.5-pro", "gemini-1"]
    assert [source["session-id"] for source in made["sources"]] == [builders.SESSION, "agent-1"]
    assert asked["children"][0]["source"] == {"file": 1, "line": 2}


def test_subagent_of_a_left_out_message_is_left_out(tmp_path: Path) -> None:
    family(tmp_path, 1)
    file = builders.chats(tmp_path) / f"{builders.NAME}.jsonl"
    file.write_bytes(file.read_bytes() + log(rewind("g1")))
    event = home_record(tmp_path, builders.SESSION)["session"]["entries"][1]
    assert event["data"]["subagents"] == ["agent-1"]
    event = home_record(tmp_path, builders.SESSION, ALL)["session"]["entries"][1]
    assert [child["id"] for child in event["children"][0]["children"][0]["children"]] == ["p1", "a1"]


def test_subagent_without_a_known_call_is_last(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    put(chats / f"{builders.NAME}.jsonl", log(header(), user()))
    put(chats / builders.SESSION / "x1.jsonl", log(header("x1", kind="subagent"), user("p", "task")))
    event = home_record(tmp_path, builders.SESSION)["session"]["entries"][1]
    assert (event["event-type"], event["agent-session"]["session-id"]) == ("subagent", "x1")
    assert [child["id"] for child in event["children"]] == ["p"]


def test_nesting_is_bounded_and_all_entries_are_exported(tmp_path: Path) -> None:
    family(tmp_path, 20)
    made = home_record(tmp_path, builders.SESSION)
    exported = [*walked(made["session"]["entries"])]
    assert max(depth for depth, _ in exported) <= 2 * MAX_NESTING + 2
    assert sorted(entry["id"] for _, entry in exported if entry["type"] == "user") == sorted(
        ["u1", *(f"p{number}" for number in range(1, 21))]
    )
    assert sum(entry["token-usage"]["total"] for _, entry in exported if "token-usage" in entry) == sum(range(6, 26))
    assert problems(made) == []
    apart = [entry["agent-session"] for entry in made["session"]["entries"] if "agent-session" in entry]
    assert (apart[0]["session-id"], apart[0]["parent-call-id"]) == (f"agent-{MAX_NESTING + 1}", f"c{MAX_NESTING + 1}")


def test_subagents_with_circular_parents_are_exported_once(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    put(chats / f"{builders.NAME}.jsonl", log(header(), user()))
    for number, other in ((1, 2), (2, 1)):
        head = header(f"agent-{number}", kind="subagent")
        put(chats / builders.SESSION / f"agent-{number}.jsonl", log(head, user(f"p{number}", "task"), asking(other)))
    for id_ in (builders.SESSION, "agent-1", "agent-2"):
        assert problems(home_record(tmp_path, id_)) == []


# Values that do not fit


def test_lone_surrogates_are_replaced_and_counted(tmp_path: Path) -> None:
    file = put(tmp_path / "s.jsonl", log(header(), user("u", "half \ud83d"), gemini("g", "\ud83d\ude00")))
    subject = builders.subject(file)
    assert [entry["content"] for entry in decoded(subject)["session"]["entries"]] == ["half \ufffd", "\U0001f600"]
    assert subject.losses["text with an unpaired surrogate, replaced"] == 2  # once for each form


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (12.0, 12),
        (-0.0, 0),
        (0.1, 0.1),
        (2**53 - 1, 2**53 - 1),
        (12345678901234567000, 12345678901234567000),  # as the client writes numbers
        (2**53 + 1, "9007199254740993"),
        (10**21, 1e21),
        (10**400, str(10**400)),
    ],
)
def test_numbers_are_written_as_the_client_does(tmp_path: Path, value: Json, kept: Json) -> None:
    (entry,) = entries_of(tmp_path, gemini("g", "", toolCalls=[call(args={"n": value})]))
    assert entry["children"][0]["input"]["n"] == kept
    assert type(entry["children"][0]["input"]["n"]) is type(kept)


def test_values_that_are_nested_too_deeply_become_text(tmp_path: Path) -> None:
    deep: Any = "end"
    for _ in range(300):
        deep = [deep]
    file = put(tmp_path / "s.jsonl", log(header(), gemini("g", "", toolCalls=[call(args={"deep": deep})])))
    subject = builders.subject(file)
    value = decoded(subject)["session"]["entries"][0]["children"][0]["input"]["deep"]
    depth = 0
    while isinstance(value, list):
        (value,), depth = value, depth + 1
    assert depth < MAX_DEPTH
    assert value == "[" * (300 - depth) + '"end"' + "]" * (300 - depth)
    assert subject.losses


def test_infinite_values_do_not_stop_an_export() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    losses = Counter[str]()
    assert "[nested too deeply]" in json.dumps(representable(deep, losses))
    assert sum(losses.values()) == 1


def test_objects_that_are_not_values_raise() -> None:
    with pytest.raises(TypeError, match="Path cannot be part of a record"):
        representable({"a": Path()}, Counter())


@pytest.mark.parametrize("count", [0, 23, 24, 255, 256, 65535, 65536])
def test_counts_of_entries_equal_those_of_the_library(count: int) -> None:
    made = LazyMap(entries=LazyEntries(count, lambda: iter([{"a": 1}] * count)))
    assert b"".join(cbor_pieces(made)) == cbor2.dumps({"entries": [{"a": 1}] * count}, canonical=True)
    assert json.loads(b"".join(json_pieces(made))) == {"entries": [{"a": 1}] * count}


def test_missing_counts_are_omitted(tmp_path: Path) -> None:
    (entry,) = entries_of(tmp_path, gemini("g", "hi", tokens=tokens() | {"input": -5}))
    assert "input" not in entry["token-usage"]
    assert entry["token-usage"]["total"] == 15


# Secrets


class Masking:
    """A redactor that removes one word everywhere."""

    def json(self, value: Json) -> Json:
        return json.loads(json.dumps(value).replace("hunter2", "[hidden]"))  # type: ignore[no-any-return]

    def message(self, message: Message) -> Message:
        plain = self.json(msgspec.to_builtins(message))
        return msgspec.convert(plain, Message)

    def session(self, session: Session) -> Session:
        plain = json.dumps(msgspec.to_builtins(session, enc_hook=str)).replace("hunter2", "[hidden]")
        return msgspec.json.decode(plain, type=Session, dec_hook=lambda type_, value: type_(value))


def test_secrets_are_redacted_everywhere(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    display = {
        "fileDiff": "@@ -0,0 +1 @@\n+hunter2",
        "filePath": "/hunter2/a",
        "originalContent": "",
        "newContent": "hunter2",
    }
    records = [
        header(summary="hunter2", odd={"hunter2": "hunter2"}, projectHash="hunter2"),
        user("hunter2", "hunter2"),
        notice("n", "x", kind="hunter2"),
        gemini(
            "g",
            "hunter2",
            model="hunter2",
            hunter2="hunter2",
            thoughts=[{"subject": "hunter2", "description": "hunter2"}],
            toolCalls=[
                call("hunter2 \u00fc", "write_file", args={"content": "hunter2"}, resultDisplay=display, x="hunter2")
            ],
            tokens=tokens(),
        ),
        user("hunter2-2", "rewound hunter2"),
        rewind("hunter2-2"),
        b'{"hunter2',
    ]
    put(chats / f"{builders.NAME}.jsonl", log(*records))
    for options in (None, ALL):
        exported = home_record(tmp_path, builders.SESSION, options, Masking())  # type: ignore[arg-type]
        assert "hunter2" not in json.dumps(exported)
        assert exported["redacted"] is True
        (file,) = exported["file-attribution"]["files"]
        assert file["path"] == "/[hidden]/a"
        assert "content-hash" not in file["conversations"][0]["ranges"][0]
        assert problems(exported) == []


# The documentation


def test_each_field_is_in_the_table_of_the_docs() -> None:
    _, _, table = PAGE.read_text("utf-8").partition("| In the file | In the record | |\n| --- | --- | --- |\n")
    rows = table.partition("\n\n")[0].splitlines()
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])}
    fields = {re.split(r"[:.\[]", name.removeprefix("messages[]."))[0] for name in named}
    assert fields >= KNOWN_FIELDS
    assert {name.rpartition("toolCalls[].")[2] for name in named} >= KNOWN_FIELDS_OF_CALLS
