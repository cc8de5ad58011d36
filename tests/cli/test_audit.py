"""`audit` lets a reader recompute a session's cost by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.builders import chats, gemini, header, log, put, tokens, user
from tests.cli.running import Runner


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a home with a session, its subagent and an import of it."""
    one = gemini("g1", tokens=tokens(1000))
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), one, one))
    kid = gemini("s1", second=4, tokens=tokens(300_000) | {"total": 1}, model="gemini-2.5-pro")
    put(chats(tmp_path) / builders.SESSION / "kid.jsonl", log(header("kid", kind="subagent"), user("us"), kid))
    unknown = gemini("g9", second=70, tokens=tokens(9), model="gemini-9.9-ultra")
    head = header(builders.OTHER, startTime=builders.at(60))
    name = f"session-2026-11-15T19-31-{builders.OTHER[:8]}.jsonl"
    put(chats(tmp_path) / name, log(head, user("import-1"), one, unknown))
    return tmp_path


@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])
def test_json_lists_calls_prices_and_duplicates(run: Runner, root: Path, how: tuple[str, ...]) -> None:
    found = run("audit", builders.SESSION, "--json", *how, home=root).json
    assert found["schema"] == "pollux.audit/1"
    first, second = found["calls"]
    assert first["recorded"] == tokens(1000)
    assert [(one["line"], one["reason"], one["session"]) for one in first["not_counted"]] == [
        (3, "recorded again", None),
        (3, "repeated by another session", builders.OTHER),
    ]
    assert (second["session"], second["price"]["prompt_above"], second["consistent"]) == ("kid", 200_000, False)
    assert found["cost_nanousd"] == sum(one["cost_nanousd"] for one in found["calls"])
    usage = run("usage", "--by", "session", "--json", *how).json["rows"]
    assert found["cost_nanousd"] == next(row["cost_nanousd"] for row in usage if row["key"] == builders.SESSION)
    assert (found["counted"], found["not_counted"], found["unpriced_calls"]) == (2, 2, 0)


@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])
def test_session_that_repeats_a_call_is_named(run: Runner, tmp_path: Path, how: tuple[str, ...]) -> None:
    one = gemini("g1", tokens=tokens(1000))
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), one))
    name = f"session-2026-11-15T19-31-{builders.OTHER[:8]}.jsonl"
    put(chats(tmp_path) / name, log(header(builders.OTHER, startTime=builders.at(1)), user(), one))
    found = run("audit", builders.SESSION, "--json", *how, home=tmp_path).json
    assert [repeat["session"] for repeat in found["calls"][0]["not_counted"]] == [builders.OTHER]
    assert run("audit", builders.OTHER, "--json", *how).json["calls"][0]["counted_in"] == builders.SESSION


def test_import_names_the_session_that_owns_each_call(run: Runner, root: Path) -> None:
    found = run("audit", builders.OTHER, "--json", home=root).json
    assert [one["counted_in"] for one in found["calls"]] == [builders.SESSION, builders.OTHER]
    assert (found["cost_nanousd"], found["counted"], found["unpriced_calls"]) == (None, 1, 1)
    said = run("audit", builders.OTHER).out
    assert f"not counted here: it belongs to session {builders.SESSION}" in said
    assert "no price for this model" in said
    assert "without 1 call of a model that has no price" in said


def test_text_shows_how_each_amount_is_computed(run: Runner, root: Path) -> None:
    for columns in (None, 80):
        said = run("audit", builders.SESSION, columns=columns, home=root).out
        assert "999 × $1.25 per million = $0.00124875" in said
        assert "1 × $0.125 per million = $0.000000125" in said
        assert "amount    $0.001298875" in said
        assert "the total is not input + output + thoughts + tool" in said
        assert "prompt above 200,000 tokens" in said
        assert "not counted again" in said
        assert "genai-prices" in said


def test_file_can_be_audited(run: Runner, root: Path) -> None:
    file = chats(root) / f"{builders.NAME}.jsonl"
    found = run("audit", str(file), "--json", home=root).json
    assert (found["session"], found["counted"], found["cost_nanousd"]) == (builders.SESSION, 1, 1_298_875)


def test_session_without_calls_costs_nothing(run: Runner, tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), b'{"id":"x'))
    ended = run("audit", "latest", "--json", home=tmp_path)
    assert (ended.status, ended.json["cost_nanousd"], ended.json["problems"][0]["code"]) == (1, 0, "torn-line")
    assert "total     $0.00  0 calls" in run("audit").out
