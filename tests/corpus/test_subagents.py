"""Each session of a subagent is found and linked to the session and the call that started it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.corpus.exceptions import AGENT_INSIDE, AGENTS, reason, row
from tests.corpus.trees import SELECTED, Tree, every_release, every_tree, groups, history, manifest

from pollux.formats.tools import tool
from pollux.model import Origin, Session


@every_tree
def test_subagents_of_a_tree_are_linked(tree: Tree) -> None:
    expected = row(AGENTS, tree.name)
    assert len(agents(tree)) == (n_runs(tree) if expected is None else expected), reason(AGENTS, tree.name)

    check_links(tree)


def check_links(tree: Tree) -> None:
    by_id = {session.id: group for session, group in groups(tree)}
    started = set()
    for session in agents(tree):
        assert session.parent in by_id
        calls = [call for message in by_id[session.parent].messages() for call in message.tool_calls]
        (starter,) = [call for call in calls if call.id == session.parent_call]
        assert tool(starter.name, starter.display_name).is_agent
        assert starter.agent_id in (None, session.id)
        assert isinstance(starter.args, dict)
        prompt = starter.args.get("prompt") or starter.args.get("objective")
        assert isinstance(prompt, str)
        first = next(message for message in by_id[session.id].messages() if message.kind == "user")
        assert prompt in first.text
        started.add(starter.id)
    assert len(started) == len(agents(tree))


@every_release
def test_each_subagent_is_a_child_of_its_parent(trees: list[Tree]) -> None:
    for tree in trees:
        of_parents = [(session.id, child) for session in history(tree).sessions for child in session.children]
        assert sorted(of_parents) == sorted((str(agent.parent), agent.id) for agent in agents(tree)), tree.name


@every_release
def test_task_of_a_subagent_is_not_a_prompt(trees: list[Tree]) -> None:
    for tree in trees:
        messages = [message for _, group in groups(tree) for message in group.messages()]
        n_told = sum(1 for message in messages if message.origin == Origin.AGENT_PROMPT)
        is_inside = reason(AGENTS, tree.name) == AGENT_INSIDE
        assert n_told == (n_runs(tree) if is_inside else len(agents(tree))), tree.name


@pytest.mark.parametrize("is_flat", [False, True], ids=["nested", "flat"])
def test_agents_of_all_layouts_are_found(tmp_path: Path, *, is_flat: bool) -> None:
    tree = turned_around(tmp_path, is_flat=is_flat)
    (main,) = [session for session in history(tree).sessions if session.kind == "main"]
    subagents = agents(tree)
    assert len(subagents) == n_runs(tree) == 3
    assert {session.parent for session in subagents} == {main.id}
    group = next(group for session, group in groups(tree) if session is main)
    asked = {call.id for message in group.messages() for call in message.tool_calls}
    assert {session.parent_call for session in subagents} == asked


@pytest.mark.parametrize("is_flat", [False, True], ids=["nested", "flat"])
def test_subagents_are_linked_by_prompt_before_order(tmp_path: Path, *, is_flat: bool) -> None:
    check_links(turned_around(tmp_path, is_flat=is_flat))


def turned_around(folder: Path, *, is_flat: bool) -> Tree:
    """Write a real tree with its subagents in reverse order of time, and flat as in 0.31 to 0.36."""
    source = SELECTED / "0.38.2" / "i-subagent"
    tree = Tree(Path(shutil.copytree(source, folder / source.parent.name / source.name)))
    paths = sorted((path for path in tree.files if path.parent.name != "chats"), key=_started, reverse=True)
    for minute, path in enumerate(paths, 50):
        document = json.loads(path.read_bytes())
        document["startTime"] = f"2026-11-15T19:{minute}:00.000Z"
        for message in document["messages"]:
            message["timestamp"] = document["startTime"]
        target = path
        if is_flat:
            document["sessionId"] = path.parent.name
            target = path.parents[1] / f"session-2026-11-15T19-{minute}-{path.parent.name[:8]}.json"
            path.unlink()
        target.write_text(json.dumps(document, indent=2), encoding="utf-8")
    return tree


def _started(path: Path) -> str:
    return str(json.loads(path.read_bytes())["startTime"])


def agents(tree: Tree) -> list[Session]:
    return [session for session in history(tree).sessions if session.kind == "subagent"]


def n_runs(tree: Tree) -> int:
    """Return the number of first calls of subagents, the only ones that send just a prompt."""
    calls = manifest(tree)["ground_truth"]["api_calls"]
    return sum(1 for call in calls if call["kind"] == "subagent" and call["contents"] == 1)
