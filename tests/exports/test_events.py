"""Normalised events have the specified types, names and rules, with the IDs and times of the session."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.builders import (
    PRICES,
    answers,
    asks,
    call,
    checkpoint,
    gemini,
    header,
    log,
    notice,
    preamble,
    rewind,
    tokens,
    user,
)
from tests.cli.running import Runner, same
from tests.corpus.exceptions import PROMPTS, TOOLS, row
from tests.corpus.test_prompts import FIRST_WITH_FILES
from tests.corpus.test_tools import FIRST_WITH_CALLS
from tests.corpus.trees import Tree, every_tree, groups, manifest
from tests.growth import EVERYTHING, Events, lines_of

from pollux import __version__, homes
from pollux.cli.demo import HOME
from pollux.errors import InvalidFilterError
from pollux.exports import events
from pollux.exports.events.drafts import history_drafts
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.model import Fate, Kind, Message, Origin, Session, Text
from pollux.sessions import reader
from pollux.sessions.reader import history, opened

TYPES = {"session_start", "user_prompt", "tool_use", "tool_result", "session_end"}
SESSION = builders.SESSION


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


def events_from(path: Path, *include: str) -> Events:
    """Return the events without `session_start` and `session_end`."""
    result = lines_of(events.render(builders.subject(path, options=ExportOptions(include=frozenset(include)))))
    assert (result[0]["type"], result[-1]["type"]) == ("session_start", "session_end")
    return result[1:-1]


def events_of(folder: Path, *records: object, include: tuple[str, ...] = ()) -> Events:
    return events_from(builders.put(folder / f"{builders.NAME}.jsonl", log(header(), *records)), *include)


def brief(result: Events) -> list[tuple[str, str]]:
    return [(event["type"], event["id"]) for event in result]


def test_events_of_a_session_are_complete(tmp_path: Path) -> None:
    records = [
        preamble(),
        user("u1", "fix the test"),
        gemini("g1", "I look.", toolCalls=[call("c1", timestamp=builders.at(4)), call("c2", timestamp=builders.at(4))]),
        gemini("g2", "Done.", second=6),
    ]
    path = builders.put(tmp_path / f"{builders.NAME}.jsonl", log(header(), *records))
    common = {"harness": "gemini_cli", "session_id": SESSION, "cwd": builders.ROOT}
    tool = {"message_id": "g1", "raw_tool_name": "read_file", "category": "Read"}
    output = {"success": True, "output": "text of the file"}
    assert lines_of(events.render(builders.subject(path))) == [
        {
            "id": f"{SESSION}/start",
            "timestamp": builders.at(0),
            "type": "session_start",
            "metadata": {"stem": builders.NAME, "synthesised": ["id"], "pollux": __version__},
            **common,
        },
        {
            "id": "u1",
            "timestamp": builders.at(1),
            "type": "user_prompt",
            "message": "fix the test",
            "metadata": {"content_index": 1},
            **common,
        },
        *(
            {
                "id": id_,
                "timestamp": builders.at(2),
                "type": "tool_use",
                "tool_name": "file_read",
                "tool_input": {"file_path": "a.txt"},
                "metadata": {"content_index": 2, **tool, "call_id": id_},
                **common,
            }
            for id_ in ("c1", "c2")
        ),
        *(
            {
                "id": f"{id_}/result",
                "timestamp": builders.at(4),
                "type": "tool_result",
                "tool_name": "file_read",
                "tool_result": output,
                "metadata": {"content_index": 2, **tool, "call_id": id_, "status": "success"},
                **common,
            }
            for id_ in ("c1", "c2")
        ),
        {
            "id": f"{SESSION}/end",
            "timestamp": builders.at(6),
            "type": "session_end",
            "metadata": {
                "synthesised": ["id", "timestamp"],
                "sources": [
                    {"path": str(path), "role": "main", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
                ],
            },
            **common,
        },
    ]


def answered(response: object) -> list[builders.Wire]:
    return [{"functionResponse": {"id": "c1", "name": "read_file", "response": response}}]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"success": True, "output": "text of the file"}),
        (
            {"result": answered({"error": "no such file"}), "status": "error"},
            {"success": False, "error": "no such file"},
        ),
        ({"result": answered({"error": "no such file"})}, {"success": False, "error": "no such file"}),
        ({"result": answered({"content": {"error": "gone"}})}, {"success": False, "error": "gone"}),
        ({"result": None, "status": "error"}, {"success": False}),
        ({"result": None, "status": "cancelled"}, {"success": False}),
        ({"result": None, "status": "success"}, {"success": True}),
        (
            {"result": answered({"error": "[Operation Cancelled] x", "output": "so far"}), "status": "cancelled"},
            {"success": False, "output": "so far", "error": "[Operation Cancelled] x"},
        ),
        ({"result": answered({"content": [{"type": "text"}]})}, {"success": True, "output": '[{"type":"text"}]'}),
        ({"result": answered({"rows": 3})}, {"success": True, "output": '{"rows":3}'}),
        ({"result": answered({})}, {"success": True}),
        ({"result": None, "resultDisplay": "shown", "status": "success"}, {"success": True, "output": "shown"}),
        ({"result": "old text"}, {"success": True, "output": "old text"}),
    ],
)
def test_outcome_of_a_call_follows_its_status(tmp_path: Path, more: builders.Wire, expected: dict[str, Any]) -> None:
    use, result = events_of(tmp_path, gemini("g1", toolCalls=[call("c1", **more)]))
    assert (use["type"], result["type"], result["tool_result"]) == ("tool_use", "tool_result", expected)
    assert result["metadata"]["status"] == more.get("status", "success")


@pytest.mark.parametrize("status", ["executing", "scheduled", "awaiting_approval", None])
def test_unfinished_call_has_no_result(tmp_path: Path, status: str | None) -> None:
    result = events_of(tmp_path, gemini("g1", toolCalls=[call("c1", status=status, result=None)]))
    assert brief(result) == [("tool_use", "c1")]


def test_exit_code_is_exported_beside_success(tmp_path: Path) -> None:
    output = "Output: nothing\nExit Code: 2"
    shell = call("c1", "run_shell_command", args={"command": "make"}, result=[answers("c1", "x", output)])
    _, result = events_of(tmp_path, gemini("g1", toolCalls=[shell]))
    assert result["tool_result"] == {"success": True, "output": output}
    assert result["metadata"]["exit_code"] == 2


def test_servers_and_unknown_tools_are_named(tmp_path: Path) -> None:
    calls = [call("c1", "mcp_jira_Lookup", args={}), call("c2", "My_Own", args={})]
    result = events_of(tmp_path, gemini("g1", toolCalls=calls))
    names = [(event["tool_name"], event["metadata"]["raw_tool_name"]) for event in result]
    assert names == [("mcp_jira_lookup", "mcp_jira_Lookup"), ("my_own", "My_Own")] * 2
    assert [event["metadata"].get("mcp_server") for event in result[:2]] == ["jira", None]
    assert not any("tool_input" in event for event in result)


def test_batches_of_calls_are_exported_in_order(tmp_path: Path) -> None:
    batches = [call(f"c{number}", timestamp=builders.at(second)) for number, second in ((1, 5), (2, 5), (3, 9))]
    result = events_of(tmp_path, gemini("g1", second=2, toolCalls=batches))
    assert [(event["id"], event["timestamp"][17:19], event["metadata"].get("synthesised")) for event in result] == [
        ("c1", "02", None),
        ("c2", "02", None),
        ("c1/result", "05", None),
        ("c2/result", "05", None),
        ("c3", "05", ["timestamp"]),
        ("c3/result", "09", None),
    ]


def test_response_without_a_record_is_a_result(tmp_path: Path) -> None:
    result = events_of(
        tmp_path,
        gemini("g1", [asks("read_file__a")], toolCalls=[call("read_file__a")]),
        user(
            "r1", [answers("a"), {"text": "."}, answers("b", output="orphan"), {"functionResponse": {"name": "glob"}}]
        ),
    )
    assert brief(result) == [
        ("tool_use", "read_file__a"),
        ("tool_result", "read_file__a/result"),
        ("tool_result", "b/result"),
        ("tool_result", "r1/3"),
    ]
    assert result[2]["tool_result"] == {"success": True, "output": "orphan"}
    assert result[3]["metadata"]["synthesised"] == ["id"]


def test_only_typed_messages_are_prompts(tmp_path: Path) -> None:
    texts = [
        "<hook_context>be careful</hook_context>",
        "<state_snapshot>so far</state_snapshot>",
        "I ran the following shell command:\n```sh\nls\n```",
        "typed",
    ]
    records = [preamble(), *(user(f"u{number}", [{"text": text}]) for number, text in enumerate(texts))]
    pushed = user("u9", [{"text": "Please continue."}], displayContent=[{"text": "typed"}])
    assert brief(events_of(tmp_path, *records, pushed, notice())) == [("user_prompt", "u3")]
    picture = user("u5", [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}])
    (event,) = events_of(tmp_path, picture)
    assert (event["message"], event["metadata"]["attachments"]) == ("", ["image/png"])


def test_prompt_is_the_typed_text_and_not_the_sent_one(tmp_path: Path) -> None:
    sent = [{"text": "look at @a.txt"}, {"text": "\n--- Content from referenced files ---"}, {"text": "long"}]
    (event,) = events_of(tmp_path, user("u1", sent, displayContent=[{"text": "look at @a.txt"}]))
    assert event["message"] == "look at @a.txt"


def test_loaded_prompts_and_agent_prompts_are_marked(tmp_path: Path) -> None:
    (event,) = events_of(tmp_path, checkpoint(preamble(), user("u1", "from elsewhere")))
    assert event["metadata"]["origin"] == "loaded"
    path = builders.put(tmp_path / "agent.jsonl", log(header(kind="subagent"), user("u1", "do it"), user("u2", "stop")))
    assert [event["metadata"].get("origin") for event in events_from(path)] == ["agent_prompt"]


FULL = gemini(
    "g1",
    "words",
    thoughts=[
        {"subject": "Plan", "description": "think", "timestamp": builders.at(1)},
        {"subject": "", "description": "more"},
    ],
    tokens=tokens(7),
    toolCalls=[call("c1")],
)


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("text", {"type": "text", "id": "g1", "message": "words", "metadata": {"model": "gemini-2.5-pro"}}),
        ("usage", {"type": "usage", "id": "g1/usage", "metadata": {"tokens": tokens(7), "model": "gemini-2.5-pro"}}),
        ("notices", {"type": "notice", "id": "i1", "message": "Stop", "metadata": {"kind": "warning"}}),
        ("fates", {"type": "compaction", "id": "u9/compaction", "metadata": {"fate": "active"}}),
        ("thoughts", {"type": "thought", "id": "g1/thought/0", "message": "think", "metadata": {"subject": "Plan"}}),
    ],
)
def test_optional_events_are_exported_on_demand(tmp_path: Path, include: str, expected: dict[str, Any]) -> None:
    snapshot = user("u9", [{"text": "<state_snapshot>so far</state_snapshot>"}])
    records = [user("u1", "go"), FULL, notice("i1", "Stop", kind="warning"), snapshot]
    assert {event["type"] for event in events_of(tmp_path, *records)} == TYPES - {"session_start", "session_end"}
    result = events_of(tmp_path, *records, include=(include,))
    event = next(event for event in result if event["type"] == expected["type"])
    assert {key: event.get(key) for key in expected if key != "metadata"} == {
        key: value for key, value in expected.items() if key != "metadata"
    }
    assert event["metadata"].items() >= expected["metadata"].items()


def test_events_of_an_answer_are_in_order(tmp_path: Path) -> None:
    result = events_of(tmp_path, FULL, include=("text", "thoughts", "usage"))
    assert [event["id"] for event in result] == [
        *("g1/thought/0", "g1/thought/1", "g1", "g1/usage", "c1", "c1/result"),
    ]
    assert [event["timestamp"] for event in result[:3]] == [builders.at(1), builders.at(2), builders.at(2)]


def test_blank_texts_are_left_out_and_unknown_kinds_are_notices(tmp_path: Path) -> None:
    records = [gemini("g1", " \n"), {"id": "x1", "timestamp": builders.at(3), "type": "riddle", "content": "?"}]
    result = events_of(tmp_path, *records, include=("text", "notices"))
    assert [(event["type"], event["metadata"]["kind"], event["message"]) for event in result] == [
        ("notice", "unknown", "?")
    ]


def test_rewound_messages_are_events_and_their_fate_is_exported_on_demand(tmp_path: Path) -> None:
    records = [user("u1", "one"), user("u2", "two"), rewind("u2"), user("u3", "three")]
    assert [event["id"] for event in events_of(tmp_path, *records)] == ["u1", "u2", "u3"]
    result = events_of(tmp_path, *records, include=("fates",))
    assert [event["metadata"]["fate"] for event in result] == ["active", "rewound", "active"]


@pytest.mark.parametrize("include", [{"everything"}, {"text", "fate"}])
def test_unknown_value_of_include_raises(tmp_path: Path, include: set[str]) -> None:
    path = builders.put(tmp_path / "a.jsonl", log(header(), user()))
    subject = builders.subject(path, options=ExportOptions(include=frozenset(include)))
    with pytest.raises(InvalidFilterError, match="Use text, thoughts, usage, notices, fates"):
        next(events.render(subject))


def without(wire: builders.Wire, *names: str) -> builders.Wire:
    return {name: value for name, value in wire.items() if name not in names}


def test_missing_times_are_derived_in_order_and_marked(tmp_path: Path) -> None:
    prompt_ids = without(gemini("g1", toolCalls=[call("c1")]), "timestamp")
    result = events_of(
        tmp_path, user("u1", second=3), without(user("u2", "two"), "timestamp"), prompt_ids, user("u3", second=9)
    )
    assert [(event["id"], event["timestamp"][17:23], event["metadata"].get("synthesised")) for event in result] == [
        ("u1", "03.000", None),
        ("u2", "03.001", ["timestamp"]),
        ("c1", "03.002", ["timestamp"]),
        ("c1/result", "03.003", ["timestamp"]),
        ("u3", "09.000", None),
    ]


def test_missing_ids_are_derived_and_marked(tmp_path: Path) -> None:
    prompt_ids = gemini("g1", toolCalls=[without(call(), "id"), without(call(), "id")])
    result = events_of(tmp_path, without(user("u1", "hello"), "id"), prompt_ids)
    assert [(event["id"], event["metadata"].get("synthesised")) for event in result] == [
        ("line-2", ["id"]),
        ("g1/0", ["id"]),
        ("g1/1", ["id"]),
        ("g1/0/result", ["id", "timestamp"]),
        ("g1/1/result", ["id", "timestamp"]),
    ]


def test_repeated_ids_get_a_number(tmp_path: Path) -> None:
    result = events_of(tmp_path, gemini("g1", toolCalls=[call("c1"), call("c1")]), gemini("g2", toolCalls=[call("c1")]))
    ids = [event["id"] for event in result]
    assert ids == ["c1", "c1#2", "c1/result", "c1/result#2", "c1#3", "c1/result#3"]
    assert [event["metadata"]["call_id"] for event in result] == ["c1"] * 6
    assert result[1]["metadata"]["synthesised"] == ["id"]
    assert "id" in result[3]["metadata"]["synthesised"]


def test_captured_output_keeps_its_times_and_call_ids() -> None:
    result = events_from(Path(__file__).parents[1] / "data" / "stream" / "tools.jsonl", "text")
    marks = {event["type"]: event["metadata"].get("synthesised") for event in reversed(result)}
    assert marks == {"user_prompt": ["id"], "text": ["id"], "tool_use": None, "tool_result": None}
    results = [event["tool_result"] for event in result if event["type"] == "tool_result"]
    assert results[0] == {"success": True, "output": "README.md"}
    assert results[1]["success"] is False


def test_captured_object_has_derived_times(tmp_path: Path) -> None:
    path = builders.put(tmp_path / "out.json", b'{"session_id": "s", "response": "hi", "stats": {}}')
    (event,) = events_from(path, "text")
    assert (event["session_id"], event["metadata"]["synthesised"]) == ("s", ["id", "timestamp"])


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"])
def test_derived_times_do_not_exceed_the_last_date(tmp_path: Path, at: str) -> None:
    result = events_of(tmp_path, user("u1", timestamp=at), without(user("u2", "two"), "timestamp"))
    assert len(result) == 2
    late = Message("a#0", Kind.USER, Origin.HUMAN, Fate.ACTIVE, datetime.max.replace(tzinfo=UTC), (Text("hi"),))
    assert [draft.at for draft in history_drafts(late, ())] == [late.at]


def test_lone_surrogate_is_kept(tmp_path: Path) -> None:
    (event,) = events_of(tmp_path, user("u1", "half \ud83d"))
    assert event["message"] == "half \ud83d"


def test_agent_of_an_old_release_is_named_by_the_call_that_started_it(tmp_path: Path) -> None:
    path = builders.put(tmp_path / "a.jsonl", log(header(), gemini("g1", toolCalls=[call("c1"), call("c2")])))
    session, group = reader.from_file(path)
    child = Session("child", "subagent", session.project, parent=session.id, parent_call="c2")
    parent = Session(
        **{**{name: getattr(session, name) for name in session.__struct_fields__}, "children": ("child", "?")}
    )
    exported = lines_of(events.render(export_source(parent, group, {"child": child}, opened, PRICES)))
    assert {event["id"]: event["metadata"].get("agent_session_id") for event in exported[1:-1]} == {
        "c1": None,
        "c2": "child",
        "c1/result": None,
        "c2/result": "child",
    }


# The demo and the corpus


@cache
def demo() -> reader.History:
    return history(homes(HOME))


def demo_subject(session: Session, include: frozenset[str] = frozenset()) -> ExportSource:
    by_id = {session.id: session for session in demo().sessions}
    return export_source(session, opened(session), by_id, opened, PRICES, options=ExportOptions(include=include))


def prompt_ids(messages: list[Message]) -> list[str]:
    return [message.id for message in messages if message.origin in ("human", "agent_prompt", "loaded")]


def check_events(exported: Events, messages: list[Message]) -> None:
    """Check that events contain each prompt and call of the messages once and in order, and a result of each call."""
    by_type: dict[str, Events] = {}
    for event in exported:
        by_type.setdefault(event["type"], []).append(event)
    calls = [call for message in messages if message.origin == "model" for call in message.tool_calls]
    assert [event["id"] for event in by_type.get("user_prompt", [])] == prompt_ids(messages)
    assert Counter(event["metadata"].get("call_id") for event in by_type.get("tool_use", [])) == Counter(
        call.id for call in calls
    )
    done = {call.id: call.status == "success" and call.error is None for call in calls if call.status != "pending"}
    results = {
        event["metadata"]["call_id"]: event["tool_result"]["success"] for event in by_type.get("tool_result", [])
    }
    assert {id_: results.get(id_) for id_ in done} == done
    assert len({event["id"] for event in exported}) == len(exported)
    assert by_type.keys() <= TYPES


@pytest.mark.parametrize("number", range(23))
def test_events_of_the_demo_are_complete(number: int) -> None:
    session = demo().sessions[number]
    exported = lines_of(events.render(demo_subject(session)))
    check_events(exported, list(opened(session).messages()))
    assert {event["session_id"] for event in exported} == {session.id}
    assert exported[0]["metadata"].get("parent_session_id") == session.parent


def of_tree(tree: Tree) -> Events:
    exported: Events = []
    for session, group in groups(tree):
        own = lines_of(events.render(export_source(session, group, {}, opened, PRICES)))
        check_events(own, list(group.messages()))
        exported += own
    return exported


@every_tree
def test_events_of_the_corpus_contain_typed_prompts_and_requested_calls(tree: Tree) -> None:
    exported = of_tree(tree)
    if tree.version >= FIRST_WITH_CALLS and row(TOOLS, tree.name) is None:
        options = Counter(request["name"] for request in manifest(tree)["ground_truth"]["tool_calls_requested"])
        used = {event["id"]: event["metadata"]["raw_tool_name"] for event in exported if event["type"] == "tool_use"}
        assert Counter(used.values()) == options  # an import repeats calls, with their ids
    if tree.version >= FIRST_WITH_FILES and row(PROMPTS, tree.name) is None:
        typed = {
            event["id"]: event["message"]
            for event in exported
            if event["type"] == "user_prompt" and "origin" not in event["metadata"]
        }
        assert Counter(typed.values()) == Counter(prompt["text"] for prompt in manifest(tree)["prompts"])


def test_events_of_the_demo_equal_their_snapshot(run: Runner) -> None:
    exported = lines_of([run("export", "--all", "--format", "events").out.encode()])
    rows = (
        (
            event["session_id"][:8],
            event["timestamp"],
            event["type"],
            event.get("tool_name", ""),
            str(event.get("tool_result", {}).get("success", "")),
            json.dumps(event.get("message", event.get("tool_input", "")), ensure_ascii=False)[:60],
        )
        for event in exported
    )
    same("events.txt", "".join("  ".join(filter(None, row)) + "\n" for row in rows))


def test_each_kind_of_event_equals_its_snapshot(run: Runner) -> None:
    kinds: dict[str, str] = {}
    everything = ",".join(events.INCLUDABLE)
    for line in run("export", "--all", "--format", "events", "--include", everything).out.splitlines():
        event = json.loads(line)
        kind = f"{event['type']} {event.get('tool_result', {}).get('success', '')}".strip()
        kinds.setdefault(kind, json.dumps(event, ensure_ascii=False, indent=1) + "\n")
    assert {kind.split()[0] for kind in kinds} == TYPES | {"text", "thought", "usage", "notice", "compaction"}
    same("events-kinds.json", "".join(kinds[kind] for kind in sorted(kinds)))


def described(title: str) -> list[str]:
    """Return the first column of the table below a heading of the page on events."""
    page = (Path(__file__).parents[2] / "docs" / "events.md").read_text("utf-8")
    rows = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0].splitlines()
    return [row.split("`")[1] for row in rows if row.startswith("| `")]


def keys(event: dict[str, Any]) -> set[str]:
    inner = {f"{name}.{key}" for name in ("metadata", "tool_result") for key in event.get(name, {})}
    return inner | (event.keys() - {"metadata", "tool_result"})


def test_page_describes_each_field_type_and_word() -> None:
    exported = [event for session in demo().sessions for event in lines_of(events.render(demo_subject(session)))]
    assert set(described("Fields")) == {key for event in exported for key in keys(event)}
    assert set(described("Types")) == {event["type"] for event in exported} == TYPES
    assert tuple(described("More")) == events.INCLUDABLE


def test_same_session_gives_same_bytes() -> None:
    for session in demo().sessions[:5]:
        first, second = (b"".join(events.render(demo_subject(session, EVERYTHING))) for _ in range(2))
        assert first == second
