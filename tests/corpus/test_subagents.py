"""Every subagent's session is found, and linked to the session and the call that started it."""

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
def test_tree(tree: Tree) -> None:
    expected = row(AGENTS, tree.name)
    assert len(agents(tree)) == (n_runs(tree) if expected is None else expected), reason(AGENTS, tree.name)

    check_links(tree)


def check_links(tree: Tree) -> None:
    by_id = {session.id: group for session, group in groups(tree)}
    started = set()
    for session in agents(tree):
        assert session.parent in by_id
        found = [call for message in by_id[session.parent].messages() for call in message.tool_calls]
        (starter,) = [call for call in found if call.id == session.parent_call]
        assert tool(starter.name, starter.display_name).is_agent
        assert starter.agent_id in (None, session.id)
        assert isinstance(starter.args, dict)
        told = starter.args.get("prompt") or starter.args.get("objective")
        assert isinstance(told, str)
        first = next(message for message in by_id[session.id].messages() if message.kind == "user")
        assert told in first.text
        started.add(starter.id)
    assert len(started) == len(agents(tree))


@every_release
def test_children(trees: list[Tree]) -> None:
    for tree in trees:
        of_parents = [(session.id, child) for session in history(tree).sessions for child in session.children]
        assert sorted(of_parents) == sorted((str(one.parent), one.id) for one in agents(tree)), tree.name


@every_release
def test_task_of_an_agent_is_no_prompt(trees: list[Tree]) -> None:
    for tree in trees:
        messages = [message for _, group in groups(tree) for message in group.messages()]
        n_told = sum(1 for message in messages if message.origin == Origin.AGENT_PROMPT)
        is_inside = reason(AGENTS, tree.name) == AGENT_INSIDE
        assert n_told == (n_runs(tree) if is_inside else len(agents(tree))), tree.name


@pytest.mark.parametrize("is_flat", [False, True], ids=["nested", "flat"])
def test_agents_of_all_layouts_are_found(tmp_path: Path, *, is_flat: bool) -> None:
    tree = turned_around(tmp_path, is_flat=is_flat)
    (main,) = [session for session in history(tree).sessions if session.kind == "main"]
    found = agents(tree)
    assert len(found) == n_runs(tree) == 3
    assert {session.parent for session in found} == {main.id}
    group = next(group for session, group in groups(tree) if session is main)
    asked = {call.id for message in group.messages() for call in message.tool_calls}
    assert {session.parent_call for session in found} == asked


@pytest.mark.parametrize("is_flat", [False, True], ids=["nested", "flat"])
def test_words_decide_and_not_the_order(tmp_path: Path, *, is_flat: bool) -> None:
    check_links(turned_around(tmp_path, is_flat=is_flat))


def turned_around(folder: Path, *, is_flat: bool) -> Tree:
    """Turn a real tree's agents around in time; flat, as 0.31 to 0.36 left those of another minute."""
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
    """Count the first calls of subagents: only these have nothing but a prompt to send."""
    calls = manifest(tree)["ground_truth"]["api_calls"]
    return sum(1 for call in calls if call["kind"] == "subagent" and call["contents"] == 1)
