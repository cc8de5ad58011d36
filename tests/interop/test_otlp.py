"""Traces fit OpenTelemetry's messages and the types of its conventions, and a real receiver accepts them."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.trees import Tree, every_release
from tests.exports import family
from tests.interop.subjects import needs, of_demo, of_trees

from pollux.exports.otlp import INCLUDABLE, render
from pollux.exports.otlp.attributes import CONVENTIONS, OPENINFERENCE

pytestmark = [pytest.mark.filterwarnings("default"), needs("opentelemetry.proto", "opentelemetry-proto")]

OPTIONS: list[dict[str, Any]] = [{}, {"semconv": "dev"}, {"include": frozenset(INCLUDABLE)}]
PATIENCE = 120
"""Seconds for the receiver to start, and to store the traces."""


def parsed(line: bytes) -> Any:  # noqa: ANN401  a message without types
    """Parse a line of OTLP as JSON, whose IDs are hexadecimal, while the general parser expects base64."""
    json_format = import_module("google.protobuf.json_format")
    trace_pb2 = import_module("opentelemetry.proto.trace.v1.trace_pb2")
    document = json.loads(line)
    for span in spans_in(document):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return json_format.ParseDict(document, trace_pb2.TracesData())


def spans_in(document: Any) -> list[Any]:  # noqa: ANN401
    return [
        span for resource in document["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]
    ]


def spans_of(message: Any) -> list[Any]:  # noqa: ANN401
    return [span for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans]


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "dev", "all"])
@every_release
def test_all_sessions_are_messages_of_the_protocol(trees: list[Tree], options: dict[str, Any]) -> None:
    for made in of_trees(trees, with_agents=False, **options):
        exported = spans_of(parsed(b"".join(render(made))))
        assert {len(span.trace_id) for span in exported} == {16}
        assert {len(span.span_id) for span in exported} == {8}
        ids = {span.span_id for span in exported}
        assert len(ids) == len(exported)
        assert {span.parent_span_id for span in exported} <= ids | {b""}
        assert all(0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in exported)


@needs("opentelemetry.semconv", "opentelemetry-semantic-conventions")
def test_names_are_those_of_the_conventions() -> None:
    semconv = import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    documented_names = {value for value in vars(semconv).values() if isinstance(value, str)} | {"error.type"}
    for convention in CONVENTIONS.values():
        assert set(convention.names.values()) <= documented_names


@needs("openinference", "openinference-semantic-conventions")
def test_names_are_those_of_openinference() -> None:
    trace = import_module("openinference.semconv.trace")
    assert set(OPENINFERENCE.values()) <= {
        value for value in vars(trace.SpanAttributes).values() if isinstance(value, str)
    }


@needs("opentelemetry.util.genai", "opentelemetry-util-genai")
@every_release
def test_content_has_the_parts_of_the_conventions(trees: list[Tree]) -> None:
    types = import_module("opentelemetry.util.genai.types")
    parts: dict[str, Any] = {
        field.default: value
        for value in vars(types).values()
        if dataclasses.is_dataclass(value)
        for field in dataclasses.fields(value)
        if field.name == "type" and isinstance(field.default, str)
    }
    assert {"text", "reasoning", "tool_call", "tool_call_response", "uri"} <= set(parts)
    for made in of_trees(trees, with_agents=False, include=frozenset({"content"})):
        for part in (part for span in spans_in(json.loads(b"".join(render(made)))) for part in _parts(span)):
            parts.get(part["type"], dict)(**part)


def _parts(span: Any) -> Iterator[Any]:  # noqa: ANN401
    for attribute in span["attributes"]:
        if attribute["key"] in {"gen_ai.input.messages", "gen_ai.output.messages"}:
            for message in json.loads(attribute["value"]["stringValue"]):
                assert message["role"] in {"user", "assistant", "tool"}
                yield from message["parts"]


# A real receiver


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start Phoenix, which accepts OTLP over HTTP and reads `gen_ai` attributes, and stop it at the end."""
    program = Path(sys.executable).with_name("phoenix")
    folder = tmp_path_factory.mktemp("phoenix")
    port, other = _free_port(), _free_port()
    settings = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(other),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve"], env={**os.environ, **settings}, stdout=log, stderr=log, cwd=folder
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(lambda: _answers(f"{address}/healthz"), (folder / "log").read_text)
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


@needs("phoenix", "arize-phoenix")
def test_receiver_accepts_all_traces(phoenix: str, tmp_path: Path) -> None:
    lines = [b"".join(render(made)) for made in of_demo(with_agents=False, include=frozenset({"content"}))]
    lines.append(b"".join(render(family.of_home(family.put(tmp_path), include=frozenset({"content"})))))
    sent: dict[str, Any] = {}
    for line in lines:
        sent |= {span["spanId"]: span for span in spans_in(json.loads(line))}
        body = parsed(line).SerializeToString()
        request = urllib.request.Request(  # noqa: S310  our own server
            f"{phoenix}/v1/traces", body, {"content-type": "application/x-protobuf"}
        )
        assert urllib.request.urlopen(request).status == 200  # noqa: S310
    _wait(lambda: len(_stored(phoenix)) >= len(sent), lambda: f"{len(_stored(phoenix))} of {len(sent)} spans stored")
    stored = _stored(phoenix)
    assert set(stored) == set(sent)
    kinds = {"invoke_agent": "AGENT", "generate_content": "LLM", "execute_tool": "TOOL"}
    for id_, span in sent.items():
        named = {attribute["key"]: next(iter(attribute["value"].values())) for attribute in span["attributes"]}
        received = stored[id_]
        assert received["span_kind"] == kinds[named["gen_ai.operation.name"]]
        assert received["parent_id"] == span.get("parentSpanId")
        if "gen_ai.usage.input_tokens" in named:
            assert received["attributes"]["llm.token_count.prompt"] == int(named["gen_ai.usage.input_tokens"])
            assert received["attributes"]["llm.token_count.completion"] == int(named["gen_ai.usage.output_tokens"])


def _stored(address: str) -> dict[str, Any]:
    by_id: dict[str, Any] = {}
    more: str | None = ""
    while more is not None:
        page = _fetched(f"{address}/v1/projects/default/spans?limit=1000" + (f"&cursor={more}" if more else ""))
        by_id |= {byte["context"]["span_id"]: byte for byte in page["data"]}
        more = page.get("next_cursor")
    return by_id


def _fetched(address: str) -> Any:  # noqa: ANN401
    with urllib.request.urlopen(address) as answer:  # noqa: S310
        return json.load(answer)


def _answers(address: str) -> bool:
    try:
        return bool(urllib.request.urlopen(address).status == 200)  # noqa: S310
    except (urllib.error.URLError, OSError):
        return False


def _wait(is_done: Any, why: Any) -> None:  # noqa: ANN401
    end = time.monotonic() + PATIENCE
    while not is_done():
        assert time.monotonic() < end, why()
        time.sleep(0.5)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
