"""Exports have one record per model call, with the fields that usage dashboards expect and correct counts."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.builders import call, gemini, header, log, user

from pollux.exports.calls import COLUMNS, MAX_PROMPT, render_csv, render_lines


def counts(input_: int, output: int, cached: int, thoughts: int, tool: int = 0) -> builders.Wire:
    return {
        "input": input_,
        "output": output,
        "cached": cached,
        "thoughts": thoughts,
        "tool": tool,
        "total": input_ + output + thoughts + tool,
    }


def records(folder: Path, data: bytes, name: str = f"{builders.NAME}.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in render_lines(builders.subject(builders.put(folder / name, data)))]


def test_each_answer_of_a_document_is_a_record(tmp_path: Path) -> None:
    shell = {"name": "run_command", "args": {"command": "cargo test | tail -5"}}
    data = builders.document(
        user("u1", "run the tests"),
        gemini("g1", "ok", second=2, tokens=counts(120, 30, 20, 5), toolCalls=[shell]),
        user("u2", "again", second=3),
        gemini("g2", "fine", second=5, tokens=counts(10, 1, 0, 0)),
    )
    first, second = records(tmp_path, data, f"{builders.NAME}.json")
    assert {name: first[name] for name in ("input_tokens", "output_tokens", "cached_input_tokens")} == {
        "input_tokens": 100,
        "output_tokens": 35,
        "cached_input_tokens": 20,
    }
    assert (first["cache_read_input_tokens"], first["cache_creation_input_tokens"], first["reasoning_tokens"]) == (
        *(20, 0),
        5,
    )
    assert (first["tools"], first["bash_commands"]) == (["Bash"], ["cargo test", "tail -5"])
    assert (first["user_message"], first["prompt_chars"], first["response_chars"]) == ("run the tests", 13, 2)
    assert (first["elapsed_ms"], second["elapsed_ms"]) == (1000, 2000)
    assert first["dedup_key"] == f"gemini:{builders.SESSION}:g1"
    assert (first["timestamp"], first["timestamp_from"]) == (builders.at(2), "message")
    assert first["cost_nanousd"] == 100 * 1250 + 20 * 125 + 35 * 10000
    assert len(first["source_sha256"]) == 64


def test_long_prompt_is_shortened_and_lines_of_code_are_counted(tmp_path: Path) -> None:
    answer = "Look:\n```rust\nfn main() {\n}\n```\n"
    data = log(header(), user("u1", "x" * 600), gemini("g1", answer, tokens=counts(1, 1, 0, 0)))
    (record,) = records(tmp_path, data)
    assert (len(record["user_message"]), record["prompt_chars"]) == (MAX_PROMPT, 600)
    assert record["code_blocks"] == [{"language": "rust", "loc": 2}]


def test_input_is_never_negative_and_arguments_may_be_text(tmp_path: Path) -> None:
    args = json.dumps({"cmd": "make; make install"})
    answer = gemini("g1", tokens=counts(10, 1, 15, 0), toolCalls=[{"name": "Shell", "args": args}])
    (record,) = records(tmp_path, log(header(), user(), answer))
    assert (record["input_tokens"], record["cached_input_tokens"]) == (0, 15)
    assert record["bash_commands"] == ["make", "make install"]


@pytest.mark.parametrize("args", ["no JSON", {"command": 7}, [], {}])
def test_arguments_without_a_command_give_no_command(tmp_path: Path, args: object) -> None:
    answer = gemini("g1", tokens=counts(1, 1, 0, 0), toolCalls=[{"name": "run_shell_command", "args": args}])
    (record,) = records(tmp_path, log(header(), answer))
    assert (record["tools"], record["bash_commands"]) == (["Bash"], [])


def test_missing_time_is_that_of_the_session(tmp_path: Path) -> None:
    answer = gemini("g1", tokens=counts(1, 1, 0, 0)) | {"timestamp": "not a time"}
    (record,) = records(tmp_path, log(header(), answer))
    assert (record["timestamp"], record["timestamp_from"], record["elapsed_ms"]) == (builders.at(0), "session", None)


def test_tool_tokens_are_input_tokens(tmp_path: Path) -> None:
    (record,) = records(tmp_path, log(header(), gemini("g1", tokens=counts(100, 20, 10, 3, tool=5))))
    assert (record["input_tokens"], record["output_tokens"], record["tool_prompt_tokens"]) == (95, 23, 5)


def test_total_that_differs_from_the_sum_is_flagged(tmp_path: Path) -> None:
    (record,) = records(tmp_path, log(header(), gemini("g1", tokens=counts(100, 20, 10, 3, tool=5) | {"total": 150})))
    assert (record["output_tokens"], record["total_tokens"], record["total_is_consistent"]) == (23, 150, False)


@pytest.mark.parametrize("data", [b"", b"no JSON at all\n", log(header()), log(header(), user(), gemini())])
def test_messages_without_counts_have_no_records(tmp_path: Path, data: bytes) -> None:
    assert records(tmp_path, data) == []


def test_keys_of_records_are_the_same_after_the_session_grows(tmp_path: Path) -> None:
    data = log(header(), gemini("g1", tokens=counts(1, 1, 0, 0)))
    more = data + log(gemini("g2", second=3, tokens=counts(1, 1, 0, 0)))
    seen = {record["dedup_key"] for record in records(tmp_path, data)}
    assert [record["message_id"] for record in records(tmp_path, more) if record["dedup_key"] not in seen] == ["g2"]


def test_message_without_id_has_a_key(tmp_path: Path) -> None:
    answer = gemini(tokens=counts(120, 30, 20, 5))
    del answer["id"]
    (record,) = records(tmp_path, builders.document(user(), answer), f"{builders.NAME}.json")
    assert record["dedup_key"] == f"gemini:{builders.SESSION}:{builders.at(2)}:gemini-2.5-pro:120:30:20:5:0:155"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        *(("read_file", "Read"), ("ReadFile", "Read"), ("write_file", "Write"), ("create_file", "Write")),
        *(("WriteFile", "Write"), ("edit_file", "Edit"), ("EditFile", "Edit"), ("replace", "Edit")),
        *(("delete_file", "Delete"), ("list_dir", "LS"), ("ListDir", "LS"), ("grep_search", "Grep")),
        *(("search_files", "Grep"), ("SearchText", "Grep"), ("find_files", "Glob"), ("run_command", "Bash")),
        *(("Shell", "Bash"), ("run_shell_command", "Bash"), ("web_search", "WebSearch"), ("my_own", "my_own")),
    ],
)
def test_tools_are_exported_by_label(tmp_path: Path, name: str, label: str) -> None:
    (record,) = records(tmp_path, log(header(), gemini("g1", tokens=counts(1, 1, 0, 0), toolCalls=[call(name=name)])))
    assert record["tools"] == [label]


def test_tool_calls_recorded_after_the_counts_are_exported(tmp_path: Path) -> None:
    bare = gemini("g1", tokens=counts(1, 1, 0, 0))
    stopped = call("c2", "run_shell_command", args={"command": "sleep 9"}, status="cancelled")
    (record,) = records(tmp_path, log(header(), user(), bare, bare | {"toolCalls": [call(), stopped]}))
    assert (record["tools"], record["bash_commands"], record["is_canceled"]) == (["Read", "Bash"], ["sleep 9"], True)


def test_model_without_a_price_has_no_cost(tmp_path: Path) -> None:
    (record,) = records(tmp_path, log(header(), gemini("g1", tokens=counts(1, 1, 0, 0), model="gemini-9.9-ultra")))
    assert (record["model"], record["cost_nanousd"], record["price_id"]) == ("gemini-9.9-ultra", None, None)


def test_csv_equals_json_lines(tmp_path: Path) -> None:
    prompt = '=HYPERLINK("x"), "quoted"\nnext line'
    answer = gemini("g1", tokens=counts(120, 30, 20, 5), toolCalls=[call()])
    nobody = gemini("g2", second=3, tokens=counts(1, 1, 0, 0), model=None)
    subject = builders.subject(
        builders.put(tmp_path / f"{builders.NAME}.jsonl", log(header(), user("u1", prompt), answer, nobody))
    )
    text = b"".join(render_csv(subject)).decode()
    names, first, second = csv.reader(io.StringIO(text))
    assert tuple(names) == COLUMNS
    row = dict(zip(names, first, strict=True))
    assert (row["input_tokens"], row["tools"], row["user_message"]) == ("100", '["Read"]', f"'{prompt}")
    assert (row["is_canceled"], dict(zip(names, second, strict=True))["cost_nanousd"]) == ("false", "")
    (lines, *_) = [json.loads(line) for line in render_lines(subject)]
    assert tuple(lines) == COLUMNS


def test_call_recorded_under_the_id_of_a_copy_is_exported(tmp_path: Path) -> None:
    subject = builders.subject(
        builders.put(
            tmp_path / f"{builders.NAME}.jsonl", log(header(), user(), gemini("g1", tokens=counts(1, 1, 0, 0)))
        )
    )
    subject.group.timeline.clear()
    (record,) = [json.loads(line) for line in render_lines(subject)]
    assert (record["message_id"], record["tools"], record["user_message"]) == ("g1", [], "")


def test_docs_list_every_column_in_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text("utf-8")
    section = page.partition("## `pollux export --format calls`")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == COLUMNS
