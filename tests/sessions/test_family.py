"""A session with its subagents."""

from __future__ import annotations

from pollux import prices
from pollux.model import Project, Session
from pollux.sessions.family import children, root, tree_json


def session(id_: str, parent: str | None = None, *below: str) -> Session:
    return Session(id=id_, kind="main", project=Project(), parent=parent, parent_call="call", children=below)


def test_root_is_found_from_below_even_in_a_circle() -> None:
    by_id = {"a": session("a", None, "b"), "b": session("b", "a", "c"), "c": session("c", "b")}
    assert root(by_id["c"], by_id).id == "a"
    assert root(session("x", "gone"), by_id).id == "x"
    circle = {"a": session("a", "b"), "b": session("b", "a")}
    assert root(circle["a"], circle).id == "b"


def test_tree_holds_what_is_there() -> None:
    by_id = {"a": session("a", None, "b", "gone"), "b": session("b", "a")}
    found = tree_json(by_id["a"], by_id, prices.load())
    assert isinstance(found["children"], list)
    assert [(one["id"], one["call"]) for one in found["children"]] == [("b", "call")]
    assert [*children(session("a", None, "a"), by_id)] == []
