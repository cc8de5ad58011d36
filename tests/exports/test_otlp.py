"""Traces: ids that stay, times that are honest, names of the version asked for, and no words unless asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.builders import PRICES, call, gemini, header, log, tokens, user
from tests.corpus.trees import Tree, every_release, history
from tests.exports import family

from pollux.cli.export import command
from pollux.errors import InvalidFilterError
from pollux.exports import otlp
from pollux.exports.otlp.attributes import CONVENTIONS, DEFAULT
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.model import Tokens
from pollux.sessions.reader import opened

CONTENT = frozenset({"content"})


def line(made: ExportSource) -> Any:  # noqa: ANN401  as decoded
    data = b"".join(otlp.render(made))
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    return json.loads(data)


def spans(made: ExportSource) -> list[Any]:
    (resource,) = line(made)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    found: list[Any] = scope["spans"]
    return found


def named(span: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the attributes by name; each value has one field."""
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def of_log(folder: Path, *records: object, **options: Any) -> ExportSource:  # noqa: ANN401
    file = builders.put(folder / f"{builders.NAME}.jsonl", log(header(), *records))
    return builders.subject(file, options=ExportOptions(**options))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("otlp.jsonl", {}),
        ("otlp-dev.jsonl", {"semconv": "dev"}),
        ("otlp-content.jsonl", {"include": frozenset({"content", "openinference"})}),
    ],
)
def test_snapshot(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    made = family.of_home(family.put(tmp_path), **options)
    family.same(name, b"".join(otlp.render(made)), tmp_path)


def test_nothing_that_was_said_is_there_unless_asked_for(tmp_path: Path) -> None:
    made = family.of_home(family.put(tmp_path))
    text = b"".join(otlp.render(made)).decode()
    for said in ("a.txt", "b.txt", "Forget", "Look first", "welcome", "Update", "webapp", str(tmp_path)):
        assert said not in text
    assert made.losses["the text of an answer (--include content adds it)"] == 6
    asked = b"".join(otlp.render(family.of_home(family.put(tmp_path), include=CONTENT))).decode()
    for said in ("File not found: b.txt", "Forget it.", "Look first.", "You are welcome.", "Update available"):
        assert said in asked


def test_spans_form_a_tree_below_the_agent(tmp_path: Path) -> None:
    found = spans(family.of_home(family.put(tmp_path)))
    by_id = {one["spanId"]: one for one in found}
    assert len(by_id) == len(found)
    assert {one["traceId"] for one in found} == {found[0]["traceId"]}
    (root,) = [one for one in found if "parentSpanId" not in one]
    assert (root["name"], root["kind"]) == ("invoke_agent gemini-cli", 1)
    parents = {one["name"]: by_id[one["parentSpanId"]]["name"] for one in found if one is not root}
    assert parents["invoke_agent codebase_investigator"] == "execute_tool codebase_investigator"
    assert parents["execute_tool read_file"] == root["name"]
    assert all(len(one["traceId"]) == 32 and len(one["spanId"]) == 16 for one in found)


def test_subagent_alone_has_the_ids_it_has_in_its_family(tmp_path: Path) -> None:
    whole = {one["spanId"]: one for one in spans(family.of_home(family.put(tmp_path)))}
    for one in spans(family.of_home(tmp_path, family.AGENT)):
        assert one["traceId"] == whole[one["spanId"]]["traceId"]
        assert one.get("parentSpanId") == whole[one["spanId"]].get("parentSpanId")


def test_counts_are_texts_and_follow_the_rule(tmp_path: Path) -> None:
    counts = tokens(100) | {"tool": 7, "total": 112}
    (call_,) = [one for one in spans(of_log(tmp_path, user(), gemini("g1", tokens=counts))) if one["kind"] == 3]
    found = named(call_)
    assert found["gen_ai.usage.input_tokens"] == "107"
    assert found["gen_ai.usage.output_tokens"] == "5"
    assert (found["gen_ai.usage.cache_read.input_tokens"], found["gen_ai.usage.reasoning.output_tokens"]) == ("1", "3")
    assert found["pollux.cost.nano_usd"] == str(106 * 1250 + 125 + 5 * 10000)
    assert call_["endTimeUnixNano"] == str(int(builders.instant_of(2).timestamp()) * 10**9)


def test_no_counts_no_usage(tmp_path: Path) -> None:
    (call_,) = [one for one in spans(of_log(tmp_path, user(), gemini("g1"))) if one["kind"] == 3]
    assert not [name for name in named(call_) if "usage" in name or "cost" in name]


def test_start_is_where_the_one_before_ended_and_says_so(tmp_path: Path) -> None:
    made = of_log(tmp_path, user(second=3), gemini(second=9, toolCalls=[call(timestamp=builders.at(11))]))
    model, tool, agent = spans(made)
    seconds = [
        tuple(
            int(one[key]) // 10**9 - int(builders.instant_of(0).timestamp())
            for key in ("startTimeUnixNano", "endTimeUnixNano")
        )
        for one in (model, tool, agent)
    ]
    assert seconds == [(3, 9), (9, 11), (0, 11)]
    assert [named(one)["pollux.start_time_source"] for one in (model, tool, agent)] == [
        "derived",
        "derived",
        "recorded",
    ]


def test_failed_calls_are_failed_spans(tmp_path: Path) -> None:
    calls = [call("c1", status="error"), call("c2", status="cancelled"), call("c3"), call("c3")]
    found = [one for one in spans(of_log(tmp_path, gemini(toolCalls=calls))) if one["name"].startswith("execute_tool")]
    assert [(one.get("status"), named(one).get("error.type")) for one in found] == [
        ({"code": 2}, "tool_error"),
        ({"code": 2}, "cancelled"),
        (None, None),
        (None, None),
    ]
    assert len({one["spanId"] for one in found}) == 4


def test_versions_differ_where_the_conventions_do(tmp_path: Path) -> None:
    old, new = (line(family.of_home(family.put(tmp_path), semconv=one, include=CONTENT)) for one in CONVENTIONS)
    scopes = [one["resourceSpans"][0]["scopeSpans"][0] for one in (old, new)]
    assert [one.get("schemaUrl") for one in scopes] == ["https://opentelemetry.io/schemas/1.41.0", None]
    agents = [named(next(span for span in one["spans"] if "parentSpanId" not in span)) for one in scopes]
    assert set(agents[0]) - set(agents[1]) == {"gen_ai.provider.name", "gen_ai.agent.id"}
    outputs = [
        named(next(span for span in one["spans"] if span["kind"] == 3))["gen_ai.output.messages"] for one in scopes
    ]
    assert [json.loads(one)[0].get("finish_reason") for one in outputs] == ["tool_call", None]


def test_input_is_what_is_new_since_the_last_call(tmp_path: Path) -> None:
    found = spans(family.of_home(family.put(tmp_path), include=CONTENT))
    second = next(one for one in found if named(one).get("pollux.message.id") == "g2")
    asked = json.loads(named(second)["gen_ai.input.messages"])
    assert [one["role"] for one in asked] == ["tool", "tool", "tool"]
    assert asked[1]["parts"][0] == {"type": "tool_call_response", "id": "c2", "response": "File not found: b.txt"}


def test_openinference_stands_beside(tmp_path: Path) -> None:
    plain = spans(family.of_home(family.put(tmp_path)))
    both = spans(family.of_home(tmp_path, include=frozenset({"openinference"})))
    for one, other in zip(plain, both, strict=True):
        assert named(one).items() <= named(other).items()
    kinds = {named(one)["openinference.span.kind"] for one in both}
    assert kinds == {"AGENT", "LLM", "TOOL"}


def test_unknown_things_to_include_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InvalidFilterError, match="content or openinference"):
        [*otlp.render(of_log(tmp_path, user(), include=frozenset({"words"})))]


def test_option_offers_the_versions_there_are() -> None:
    (option,) = [one for one in command.params if one.name == "semconv"]
    assert list(option.type.choices) == list(CONVENTIONS)  # type: ignore[attr-defined]
    assert ExportOptions().semconv == DEFAULT


def test_session_without_any_time_has_none(tmp_path: Path) -> None:
    file = builders.put(
        tmp_path / "odd.jsonl", log({"sessionId": "x", "projectHash": "y"}, gemini() | {"timestamp": "?"})
    )
    for one in spans(builders.subject(file)):
        assert (one["startTimeUnixNano"], named(one)["pollux.start_time_source"]) == ("0", "unknown")


@every_release
def test_all_that_was_paid_is_there_once(trees: list[Tree]) -> None:
    for tree in trees:
        found = history(tree)
        by_id = {one.id: one for one in found.sessions}
        total, told = Tokens(), 0
        for session in found.sessions:
            total += sum((one.tokens for one in session.calls), Tokens())
            if session.parent is None or session.parent not in by_id:
                made = spans(export_source(session, opened(session), by_id, opened, PRICES))
                assert len({one["spanId"] for one in made}) == len(made)
                told += sum(int(named(one).get("pollux.usage.total_tokens", 0)) for one in made)
        assert told == total.total


def test_content_keeps_every_part(tmp_path: Path) -> None:
    parts = [
        {"text": "Look: "},
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://bucket/film"}},
        {"inlineData": {"mimeType": "image/png", "data": family.PIXEL}},
        {"somethingNew": [1]},
        builders.asks(),
    ]
    odd = [{"functionResponse": {"id": "c1", "name": "x", "response": {"rows": [1]}}}]
    made = of_log(
        tmp_path, user(), gemini("g1", parts, toolCalls=[call(result=odd), call("c2", result=None)]), include=CONTENT
    )
    model, tool, pending, _ = spans(made)
    (answer,) = json.loads(named(model)["gen_ai.output.messages"])
    assert [one["type"] for one in answer["parts"]] == [
        *("text", "executable_code", "code_result", "uri", "attachment", "unknown", "tool_call", "tool_call")
    ]
    assert json.loads(named(tool)["gen_ai.tool.call.result"]) == {"rows": [1]}
    assert "gen_ai.tool.call.result" not in named(pending)
    assert made.losses["the bytes of an attachment"] == 1


def test_call_without_a_message_is_a_span(tmp_path: Path) -> None:
    made = of_log(tmp_path, user(), gemini("g1", tokens=tokens()))
    made.group.timeline.clear()
    model, _ = spans(made)
    assert (named(model)["pollux.message.id"], named(model)["gen_ai.usage.input_tokens"]) == ("g1", "10")


def test_subagent_without_its_parent_has_the_trace_of_both(tmp_path: Path) -> None:
    whole = spans(family.of_home(family.put(tmp_path)))
    alone = family.of_home(tmp_path, family.AGENT)
    orphan = export_source(alone.session, alone.group, {}, opened, PRICES)
    assert spans(orphan)[0]["traceId"] == whole[0]["traceId"]
