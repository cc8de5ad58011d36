"""Sessions, messages and problems as JSON documents."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from pollux import prices
from pollux.model import (
    Attachment,
    Fate,
    Json,
    Kind,
    Message,
    ModelCall,
    Origin,
    Problem,
    Project,
    Session,
    Text,
    Thought,
    Tokens,
    ToolCall,
)
from pollux.views.contracts import (
    CONTRACTS,
    SESSION,
    calls_of,
    message_row,
    problem_row,
    rfc3339,
    session_row,
    to_json,
    total,
)

AT = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)


def session(id_: str, *children: str, calls: tuple[ModelCall, ...] = ()) -> Session:
    return Session(id=id_, kind="main", project=Project(), children=children, calls=calls)


def call(id_: str, n: int, fate: Fate = Fate.ACTIVE) -> ModelCall:
    return ModelCall("s", id_, AT, "gemini-2.5-pro", fate, Tokens(input=n, total=n))


def test_calls_of_subagents_count_once_however_they_are_linked() -> None:
    by_id = {
        "a": session("a", "b", "c", "gone", calls=(call("1", 1),)),
        "b": session("b", "c", "a", calls=(call("2", 2),)),
        "c": session("c", "c", calls=(call("3", 4),)),
    }
    assert sorted(call_.message_id for call_ in calls_of(by_id["a"], by_id)) == ["1", "2", "3"]
    assert total(calls_of(by_id["a"], by_id)).total == 7


def test_rewound_calls_are_not_active() -> None:
    row = session_row(session("a", calls=(call("1", 1), call("2", 2, Fate.REWOUND))), {}, prices.load())
    assert row["calls"] == 2
    assert row["tokens"] == {"input": 3, "cached": 0, "output": 0, "thoughts": 0, "tool": 0, "total": 3}
    assert row["active"] == {
        "calls": 1,
        "tokens": {**dict.fromkeys(("cached", "output", "thoughts", "tool"), 0), "input": 1, "total": 1},
    }
    assert row["cost_nanousd"] == 3750
    assert row["started"] is None


def test_message_contains_thoughts_calls_and_attachments() -> None:
    made = ToolCall("c1", "read_file", "file_read", "Read", "read", "Read", "success", {"file_path": "a"}, output="x")
    message = Message(
        "m",
        Kind.GEMINI,
        Origin.MODEL,
        Fate.ACTIVE,
        AT,
        (Text("words"), Attachment("image/png", 3)),
        (Thought("because", "Why", AT),),
        (made,),
        tokens=Tokens(total=1),
    )
    row = message_row(message)
    assert row["text"] == "words"
    assert row["thoughts"] == [{"subject": "Why", "text": "because", "at": "2026-11-15T12:00:00.123Z"}]
    assert row["attachments"] == [{"media_type": "image/png", "size": 3, "uri": None}]
    assert isinstance(row["tool_calls"], list)
    assert row["tool_calls"][0]["output"] == "x"
    assert message_row(Message("m", Kind.USER, Origin.HUMAN, Fate.ACTIVE, None))["tokens"] is None


def test_times_have_a_zone() -> None:
    assert rfc3339(None) is None
    assert rfc3339(AT.astimezone(timezone(timedelta(hours=1)))) == "2026-11-15T13:00:00.123+01:00"


def test_problem_has_a_file_and_a_line() -> None:
    assert problem_row(Problem("torn-line", "not JSON", "f", 3)) == {
        "code": "torn-line",
        "message": "not JSON",
        "file": "f",
        "line": 3,
    }


def test_cost_is_that_of_the_priced_calls_and_null_if_none_has_a_price() -> None:
    table = prices.load()
    priced = msgspec.structs.replace(call("1", 1), tokens=Tokens(input=1000, output=10, total=1010))
    unpriced = msgspec.structs.replace(priced, message_id="2", model="nobody-knows")

    def cost(*calls: ModelCall) -> Json:
        return session_row(session("a", calls=calls), {}, table)["cost_nanousd"]

    assert cost() == 0
    assert cost(priced, unpriced) == cost(priced) == 1000 * 1250 + 10 * 10_000
    assert cost(unpriced) is None


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_names_a_type_and_what_builds_its_document(name: str) -> None:
    module, _, kind = name.rpartition(".")
    assert isinstance(getattr(import_module(f"pollux.{module}"), kind), type)
    module, _, function = CONTRACTS[name].builder.rpartition(".")
    assert callable(getattr(import_module(f"pollux.views.contracts.{module}"), function))


def test_every_contract_is_described() -> None:
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md"))
    schemas = {SESSION, *(contract.schema for contract in CONTRACTS.values())}
    assert [schema for schema in schemas if f"`{schema}`" not in pages] == []


def test_a_value_without_a_contract_has_no_document() -> None:
    with pytest.raises(KeyError, match=r"model\.Project"):
        to_json(Project())


def test_front_ends_and_reports_build_no_documents() -> None:
    """A dictionary with a `schema` is a document, and belongs to the contracts."""
    builders = set()
    for room in ("cli", "library", "reports", "render", "sessions", "archive"):
        for path in (ROOT / "src" / "pollux" / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Dict) and any(ast.unparse(key) == "'schema'" for key in node.keys if key):
                    builders.add(path.name)
    assert builders == {"resolve.py"}, "which writes a file of our own and prints nothing"
