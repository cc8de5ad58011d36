"""A session with its subagents."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pollux import prices
from pollux.model import Project, Session
from pollux.sessions.family import (
    build_tree,
    children,
    descendants,
    find_children,
    find_roots,
    link_children,
    root,
    walk,
    with_subagents,
)
from pollux.views.contracts import to_json
from pollux.views.contracts.sessions import TreeDocument

_ids = st.sampled_from("abcdef")
links = st.dictionaries(_ids, st.none() | _ids | st.just("missing"), max_size=6)


def session(id_: str, parent: str | None = None, *below: str) -> Session:
    return Session(id=id_, kind="main", project=Project(), parent=parent, parent_call="call", children=below)


def test_root_is_found_from_any_member_even_in_a_circle() -> None:
    by_id = {"a": session("a", None, "b"), "b": session("b", "a", "c"), "c": session("c", "b")}
    assert root(by_id["c"], by_id).id == "a"
    assert root(session("x", "gone"), by_id).id == "x"
    circle = {"a": session("a", "b"), "b": session("b", "a"), "c": session("c", "b")}
    assert [root(member, circle).id for member in circle.values()] == ["a", "b", "b"]


@given(links)
def test_all_functions_of_a_family_agree(parents: dict[str, str | None]) -> None:
    linked = link_children(session(id_, parent) for id_, parent in parents.items())
    by_id = {member.id: member for member in linked}
    roots = find_roots(parents)
    below = find_children(parents)
    assert {member.id: root(member, by_id).id for member in linked} == roots
    assert {member.id: [*member.children] for member in linked if member.children} == {
        id_: sorted(ids) for id_, ids in below.items()
    }
    for top in set(roots.values()):
        family = [member.id for member in with_subagents(by_id[top], by_id)]
        assert sorted(family) == sorted(id_ for id_ in parents if roots[id_] == top)
        assert family[1:] == [member.id for member in descendants(by_id[top], by_id)]
        assert set(walk([top], lambda id_: below.get(id_, ()))) == set(family)


def test_each_subagent_follows_its_parent_exactly_once() -> None:
    by_id = {"a": session("a", None, "b", "d"), "b": session("b", "a", "c"), "c": session("c"), "d": session("d")}
    assert [member.id for member in with_subagents(by_id["a"], by_id)] == ["a", "b", "c", "d"]
    circle = {"a": session("a", None, "b"), "b": session("b", None, "a", "b")}
    assert [member.id for member in with_subagents(circle["a"], circle)] == ["a", "b"]
    assert [*children(session("a", None, "a", "gone"), by_id)] == []


def test_tree_contains_each_session_once() -> None:
    by_id = {"a": session("a", None, "b", "gone"), "b": session("b", "a", "a")}
    tree = build_tree(by_id["a"], by_id)
    assert (tree.session.id, [child.session.id for child in tree.children]) == ("a", ["b"])
    assert tree.children[0].children == ()


def test_family_may_be_deeper_than_the_recursion_limit() -> None:
    linked = link_children(session(f"{n:05}", f"{n - 1:05}") for n in range(5000))
    by_id = {member.id: member for member in linked}
    assert len([*with_subagents(by_id["00000"], by_id)]) == 5000
    assert build_tree(by_id["00000"], by_id).children[0].session.id == "00001"


def test_tree_document_omits_missing_children() -> None:
    by_id = {"a": session("a", None, "b", "gone"), "b": session("b", "a")}
    tree: Any = to_json(TreeDocument(build_tree(by_id["a"], by_id), prices.load()))["tree"]
    assert [(child["id"], child["call"]) for child in tree["children"]] == [("b", "call")]
    assert [*children(session("a", None, "a"), by_id)] == []


def test_circular_family_contains_each_member_once() -> None:
    by_id = {"a": session("a", None, "b", "c"), "b": session("b", "a", "c"), "c": session("c", "b", "a")}
    assert sorted(member.id for member in with_subagents(by_id["a"], by_id)) == ["a", "b", "c"]
    assert [member.id for member in with_subagents(by_id["a"], {})] == ["a"]
