"""The keys of `--json` and of the exports are a contract: all of them are listed here and compared with samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import Runner, pretty, same

TOKENS = {"input", "cached", "output", "thoughts", "tool", "total"}
SESSION = {
    "id",
    "kind",
    "parent",
    "title",
    "project",
    "started",
    "ended",
    "updated",
    "messages",
    "tool_calls",
    "models",
    "tokens",
    "calls",
    "active",
    "cost_nanousd",
    "files",
    "deleted",
    "problems",
}
MESSAGE = {
    "id",
    "kind",
    "origin",
    "fate",
    "at",
    "model",
    "text",
    "thoughts",
    "tool_calls",
    "tokens",
    "attachments",
}
CALL = {
    "id",
    "name",
    "canonical",
    "category",
    "mcp_server",
    "status",
    "exit_code",
    "args",
    "output",
    "error",
    "at",
    "agent",
}
SAMPLES = {
    "ls.json": ("ls", "--project", "tide-tables", "--all", "--json"),
    "show-imported.json": ("show", "451ea5d6", "--json"),
    "show-broken.json": ("show", "5ee350e2", "--json"),
    "tree.json": ("tree", "d3fa28cb", "--json"),
    "projects.json": ("projects", "--json"),
    "doctor.json": ("doctor", "--json"),
    "export.json": ("export", "f688da5c", "--format", "json"),
}


def has_session(row: dict[str, Any]) -> None:
    assert row.keys() >= SESSION
    assert row["project"].keys() >= {"path", "hash", "slug", "source", "proven"}
    assert row["messages"].keys() >= {"user", "gemini", "info", "warning", "error"}
    assert row["active"].keys() >= {"calls", "tokens"}
    assert all(file.keys() >= {"path", "role", "format"} for file in row["files"])
    for tokens in (row["tokens"], row["active"]["tokens"]):
        assert tokens.keys() == TOKENS
    for at in (row["started"], row["ended"], row["updated"]):
        assert at is None or at.endswith("Z")


@pytest.mark.parametrize("name", SAMPLES)
def test_json_equals_the_stored_sample(run: Runner, name: str) -> None:
    same(name, pretty(run(*SAMPLES[name]).json))


def test_json_lines_equal_the_stored_sample(run: Runner) -> None:
    records = [json.loads(line) for line in run("export", "f688da5c", "--format", "jsonl").out.splitlines()]
    assert {record["type"] for record in records} == {"session", "message", "model_call"}
    same("export.jsonl", "".join(pretty(record) for record in records))


def test_exported_state_equals_the_stored_sample(run: Runner) -> None:
    same("export-gemini.json", run("export", "f688da5c", "--format", "gemini").out)


def test_ls_has_the_documented_keys(run: Runner) -> None:
    found = run("ls", "--all", "--json").json
    assert found["schema"] == "pollux.sessions/1"
    assert len(found["sessions"]) == 23
    for row in found["sessions"]:
        has_session(row)
    assert found["problems"]
    assert all(problem.keys() == {"code", "message", "file", "line"} for problem in found["problems"])


@pytest.mark.parametrize("wanted", ["@1", "@2", "@6", "7ffa9413"])
def test_show_has_the_documented_keys(run: Runner, wanted: str) -> None:
    found = run("show", wanted, "--json").json
    assert found["schema"] == "pollux.session/1"
    assert isinstance(found["children"], list)
    has_session(found["session"])
    for message in found["timeline"]:
        assert message.keys() >= MESSAGE
        assert message["tokens"] is None or message["tokens"].keys() == TOKENS
        assert all(call.keys() >= CALL for call in message["tool_calls"])


def test_tree_has_the_documented_keys(run: Runner) -> None:
    found = run("tree", "d3fa28cb", "--json").json
    assert found["schema"] == "pollux.tree/1"
    has_session(found["tree"])
    (child,) = found["tree"]["children"]
    has_session(child)
    assert child["parent"] == found["tree"]["id"]
    assert child["call"]


def test_projects_has_the_documented_keys(run: Runner) -> None:
    found = run("projects", "--json").json
    assert found["schema"] == "pollux.projects/1"
    keys = {"path", "hash", "slug", "source", "proven", "sessions", "prompts", "tokens", "last"}
    assert all(row.keys() >= keys for row in found["projects"])


def test_doctor_has_the_documented_keys(run: Runner) -> None:
    found = run("doctor", "--json").json
    assert found["schema"] == "pollux.doctor/1"
    assert found.keys() >= {"homes", "folders", "files", "sessions", "unknown", "lost", "problems"}
    assert found["unknown"].keys() == {"operators", "fields", "kinds", "tools"}
    assert found["homes"][0]["source"] == "POLLUX_HOME"


def test_json_is_printed_without_results(run: Runner, tmp_path: Path) -> None:
    for home in (None, tmp_path):
        ended = run("ls", "--json", "--model", "none-such", home=home)
        assert (ended.status, ended.json["sessions"]) == (1, [])
