"""Traces have stable IDs, marked derived times, names of the chosen version, and content only on demand."""

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
    exported: list[Any] = scope["spans"]
    return exported


def attributes_of(span: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the attributes of a span by name; each value has one field."""
    return {attribute["key"]: next(iter(attribute["value"].values())) for attribute in span["attributes"]}


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
def test_export_equals_its_snapshot(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    made = family.of_home(family.put(tmp_path), **options)
    family.same(name, b"".join(otlp.render(made)), tmp_path)


def test_content_is_exported_only_on_demand(tmp_path: Path) -> None:
    made = family.of_home(family.put(tmp_path))
    text = b"".join(otlp.render(made)).decode()
    for phrase in ("a.txt", "b.txt", "Forget", "Look first", "welcome", "Update", "webapp", str(tmp_path)):
        assert phrase not in text
    assert made.losses["the text of an answer (--include content adds it)"] == 6
    asked = b"".join(otlp.render(family.of_home(family.put(tmp_path), include=CONTENT))).decode()
    for phrase in ("File not found: b.txt", "Forget it.", "Look first.", "You are welcome.", "Update available"):
        assert phrase in asked


def test_spans_form_a_tree_below_the_span_of_the_agent(tmp_path: Path) -> None:
    exported = spans(family.of_home(family.put(tmp_path)))
    by_id = {span["spanId"]: span for span in exported}
    assert len(by_id) == len(exported)
    assert {span["traceId"] for span in exported} == {exported[0]["traceId"]}
    (root,) = [span for span in exported if "parentSpanId" not in span]
    assert (root["name"], root["kind"]) == ("invoke_agent gemini-cli", 1)
    parents = {span["name"]: by_id[span["parentSpanId"]]["name"] for span in exported if span is not root}
    assert parents["invoke_agent codebase_investigator"] == "execute_tool codebase_investigator"
    assert parents["execute_tool read_file"] == root["name"]
    assert all(len(span["traceId"]) == 32 and len(span["spanId"]) == 16 for span in exported)


def test_subagent_exported_alone_has_the_same_ids(tmp_path: Path) -> None:
    family_spans = {span["spanId"]: span for span in spans(family.of_home(family.put(tmp_path)))}
    for span in spans(family.of_home(tmp_path, family.AGENT)):
        assert span["traceId"] == family_spans[span["spanId"]]["traceId"]
        assert span.get("parentSpanId") == family_spans[span["spanId"]].get("parentSpanId")


def test_counts_are_strings_and_add_up(tmp_path: Path) -> None:
    counts = tokens(100) | {"tool": 7, "total": 112}
    (call_,) = [span for span in spans(of_log(tmp_path, user(), gemini("g1", tokens=counts))) if span["kind"] == 3]
    attributes = attributes_of(call_)
    assert attributes["gen_ai.usage.input_tokens"] == "107"
    assert attributes["gen_ai.usage.output_tokens"] == "5"
    assert (attributes["gen_ai.usage.cache_read.input_tokens"], attributes["gen_ai.usage.reasoning.output_tokens"]) == (
        "1",
        "3",
    )
    assert attributes["pollux.cost.nano_usd"] == str(106 * 1250 + 125 + 5 * 10000)
    assert call_["endTimeUnixNano"] == str(int(builders.instant_of(2).timestamp()) * 10**9)


def test_missing_counts_are_omitted(tmp_path: Path) -> None:
    (call_,) = [span for span in spans(of_log(tmp_path, user(), gemini("g1"))) if span["kind"] == 3]
    assert not [name for name in attributes_of(call_) if "usage" in name or "cost" in name]


def test_missing_start_is_the_end_of_the_previous_span_and_marked(tmp_path: Path) -> None:
    made = of_log(tmp_path, user(second=3), gemini(second=9, toolCalls=[call(timestamp=builders.at(11))]))
    model, tool, agent = spans(made)
    seconds = [
        tuple(
            int(span[key]) // 10**9 - int(builders.instant_of(0).timestamp())
            for key in ("startTimeUnixNano", "endTimeUnixNano")
        )
        for span in (model, tool, agent)
    ]
    assert seconds == [(3, 9), (9, 11), (0, 11)]
    assert [attributes_of(span)["pollux.start_time_source"] for span in (model, tool, agent)] == [
        "derived",
        "derived",
        "recorded",
    ]


def test_failed_calls_have_an_error_status(tmp_path: Path) -> None:
    calls = [call("c1", status="error"), call("c2", status="cancelled"), call("c3"), call("c3")]
    exported = [
        span for span in spans(of_log(tmp_path, gemini(toolCalls=calls))) if span["name"].startswith("execute_tool")
    ]
    assert [(span.get("status"), attributes_of(span).get("error.type")) for span in exported] == [
        ({"code": 2}, "tool_error"),
        ({"code": 2}, "cancelled"),
        (None, None),
        (None, None),
    ]
    assert len({span["spanId"] for span in exported}) == 4


def test_versions_follow_their_conventions(tmp_path: Path) -> None:
    old, new = (line(family.of_home(family.put(tmp_path), semconv=version, include=CONTENT)) for version in CONVENTIONS)
    scopes = [trace["resourceSpans"][0]["scopeSpans"][0] for trace in (old, new)]
    assert [scope.get("schemaUrl") for scope in scopes] == ["https://opentelemetry.io/schemas/1.41.0", None]
    agents = [attributes_of(next(span for span in scope["spans"] if "parentSpanId" not in span)) for scope in scopes]
    assert set(agents[0]) - set(agents[1]) == {"gen_ai.provider.name", "gen_ai.agent.id"}
    outputs = [
        attributes_of(next(span for span in scope["spans"] if span["kind"] == 3))["gen_ai.output.messages"]
        for scope in scopes
    ]
    assert [json.loads(output)[0].get("finish_reason") for output in outputs] == ["tool_call", None]


def test_input_contains_messages_since_the_last_call(tmp_path: Path) -> None:
    exported = spans(family.of_home(family.put(tmp_path), include=CONTENT))
    second = next(span for span in exported if attributes_of(span).get("pollux.message.id") == "g2")
    asked = json.loads(attributes_of(second)["gen_ai.input.messages"])
    assert [message["role"] for message in asked] == ["tool", "tool", "tool"]
    assert asked[1]["parts"][0] == {"type": "tool_call_response", "id": "c2", "response": "File not found: b.txt"}


def test_openinference_attributes_are_added(tmp_path: Path) -> None:
    plain = spans(family.of_home(family.put(tmp_path)))
    both = spans(family.of_home(tmp_path, include=frozenset({"openinference"})))
    for plain_span, both_span in zip(plain, both, strict=True):
        assert attributes_of(plain_span).items() <= attributes_of(both_span).items()
    kinds = {attributes_of(span)["openinference.span.kind"] for span in both}
    assert kinds == {"AGENT", "LLM", "TOOL"}


def test_unknown_value_of_include_raises(tmp_path: Path) -> None:
    with pytest.raises(InvalidFilterError, match="content or openinference"):
        [*otlp.render(of_log(tmp_path, user(), include=frozenset({"words"})))]


def test_option_accepts_each_version() -> None:
    (option,) = [param for param in command.params if param.name == "semconv"]
    assert list(option.type.choices) == list(CONVENTIONS)  # type: ignore[attr-defined]
    assert ExportOptions().semconv == DEFAULT


def test_unknown_times_are_zero_and_marked(tmp_path: Path) -> None:
    file = builders.put(
        tmp_path / "odd.jsonl", log({"sessionId": "x", "projectHash": "y"}, gemini() | {"timestamp": "?"})
    )
    for span in spans(builders.subject(file)):
        assert (span["startTimeUnixNano"], attributes_of(span)["pollux.start_time_source"]) == ("0", "unknown")


@every_release
def test_tokens_of_the_corpus_are_exported_once(trees: list[Tree]) -> None:
    for tree in trees:
        read = history(tree)
        by_id = {session.id: session for session in read.sessions}
        total, exported = Tokens(), 0
        for session in read.sessions:
            total += sum((call.tokens for call in session.calls), Tokens())
            if session.parent is None or session.parent not in by_id:
                made = spans(export_source(session, opened(session), by_id, opened, PRICES))
                assert len({span["spanId"] for span in made}) == len(made)
                exported += sum(int(attributes_of(span).get("pollux.usage.total_tokens", 0)) for span in made)
        assert exported == total.total


def test_content_contains_each_part(tmp_path: Path) -> None:
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
    (answer,) = json.loads(attributes_of(model)["gen_ai.output.messages"])
    assert [part["type"] for part in answer["parts"]] == [
        *("text", "executable_code", "code_result", "uri", "attachment", "unknown", "tool_call", "tool_call")
    ]
    assert json.loads(attributes_of(tool)["gen_ai.tool.call.result"]) == {"rows": [1]}
    assert "gen_ai.tool.call.result" not in attributes_of(pending)
    assert made.losses["the bytes of an attachment"] == 1


def test_call_without_a_message_is_a_span(tmp_path: Path) -> None:
    made = of_log(tmp_path, user(), gemini("g1", tokens=tokens()))
    made.group.timeline.clear()
    model, _ = spans(made)
    assert (attributes_of(model)["pollux.message.id"], attributes_of(model)["gen_ai.usage.input_tokens"]) == (
        "g1",
        "10",
    )


def test_subagent_without_its_parent_has_the_same_trace(tmp_path: Path) -> None:
    family_spans = spans(family.of_home(family.put(tmp_path)))
    alone = family.of_home(tmp_path, family.AGENT)
    orphan = export_source(alone.session, alone.group, {}, opened, PRICES)
    assert spans(orphan)[0]["traceId"] == family_spans[0]["traceId"]
