"""Every tool call that was asked for is found once, and ended as the scenario made it end."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.corpus.exceptions import FAILED, NO_CALLS, STATUSES, TOOLS, reason, row
from tests.corpus.trees import Tree, every_release, every_tree, groups, manifest, raw_messages, tree_of

from pollux.formats.tools import tool
from pollux.model import ToolCall

FIRST_WITH_CALLS = (0, 10)
TORN = {"0.38.2/diskfull": ("read_file", "success")}
"""What stands whole in a file that is no JSON as a whole."""
LOADED = ("0.47.0/i-chat", "0.60.0/i-chat", "0.61.0/i-chat", "0.61.0/i-chat2", "0.61.0/i-chatsame")
"""Where a call was brought by /chat resume: it has no record there, and so no time."""
README = "# webapp\n\nA tiny task board.  Run `python3 -m unittest` for the tests.\n"


@every_tree
def test_tree(tree: Tree) -> None:
    asked = Counter(call["name"] for call in manifest(tree)["ground_truth"]["tool_calls_requested"])
    found = Counter(call.name for call in calls(tree))
    expected = row(TOOLS, tree.name)
    if tree.version < FIRST_WITH_CALLS:
        assert not found, NO_CALLS
    elif expected is None:
        assert found == asked
    else:
        assert asked - found == Counter(expected.missing), reason(TOOLS, tree.name)
        assert found - asked == Counter(expected.extra), reason(TOOLS, tree.name)


def test_calls_belong_to_the_answers_that_made_them() -> None:
    """Over ACP they are all recorded in one message."""
    messages = [message for _, group in groups(tree_of("0.61.0/acp-tools")) for message in group.messages()]
    answers = [message for message in messages if message.kind == "gemini"]
    assert [(message.text, [call.name for call in message.tool_calls]) for message in answers] == [
        ("I read.", []),
        ("", ["read_file", "list_directory"]),  # the message that ACP made for them
        ("One done.", []),
        ("Writing.", ["write_file"]),
        ("", ["read_file"]),
        ("Two done.", []),
        ("", ["read_file"]),
        ("Three done.", []),
    ]


@every_release
def test_statuses(trees: list[Tree]) -> None:
    for tree in trees:
        failed = [(_short(call), call.status) for call in calls(tree) if not _is_loaded(tree, call)]
        failed = [one for one in failed if one[1] != "success"]
        deviating = row(STATUSES, tree.name)
        expected = FAILED.get(tree.folder.name, ()) if deviating is None else deviating
        has_calls = tree.version >= FIRST_WITH_CALLS
        assert sorted(failed) == (sorted(expected) if has_calls else []), (tree.name, reason(STATUSES, tree.name))


@every_release
def test_statuses_are_those_of_the_files(trees: list[Tree]) -> None:
    for tree in trees:
        expected = Counter(recorded(tree).values()) + Counter([TORN[tree.name]] if tree.name in TORN else [])
        found = Counter((call.name, call.status) for call in calls(tree) if not _is_loaded(tree, call))
        assert found == expected, tree.name


@every_release
def test_a_list_counts_the_same_calls(trees: list[Tree]) -> None:
    for tree in trees:
        for session, group in groups(tree) if tree.name not in LOADED else ():
            own = [message for entry, message in zip(group.entries, group.messages(), strict=True) if entry.is_own]
            assert session.tool_calls == sum(len(message.tool_calls) for message in own), tree.name


@pytest.mark.parametrize("name", LOADED)
def test_a_list_does_not_count_a_call_that_was_made_elsewhere(name: str) -> None:
    shown = sum(len(message.tool_calls) for _, group in groups(tree_of(name)) for message in group.messages())
    assert sum(session.tool_calls for session, _ in groups(tree_of(name))) == shown - 1


@pytest.mark.parametrize("name", LOADED)
def test_a_loaded_call_has_the_response_that_was_loaded_with_it(name: str) -> None:
    tree = tree_of(name)
    (loaded,) = [call for call in calls(tree) if _is_loaded(tree, call)]
    assert (loaded.name, loaded.status, loaded.output) == ("read_file", "success", README)


@every_release
def test_lists_count_the_recorded_calls_once(trees: list[Tree]) -> None:
    for tree in trees:
        expected = len(recorded(tree)) + (tree.name in TORN)
        assert sum(session.tool_calls for session, _ in groups(tree)) == expected, tree.name


def calls(tree: Tree) -> list[ToolCall]:
    """Return the calls of all sessions; those of an imported session were not made twice."""
    found: dict[tuple[str, int], ToolCall] = {}
    for _, group in groups(tree):
        for message in group.messages():
            for index, call in enumerate(message.tool_calls):
                found.setdefault((message.id, index), call)
    return list(found.values())


def recorded(tree: Tree) -> dict[tuple[str, str], tuple[str, str]]:
    """Give name and status of the calls that stand in the files, the last for each, read in the simplest way."""
    return {
        (message["id"], call["id"]): (call["name"], call["status"])
        for path in tree.files
        for message in raw_messages(path)
        for call in message.get("toolCalls", ())
    }


def _is_loaded(tree: Tree, call: ToolCall) -> bool:
    return tree.name in LOADED and call.at is None


def _short(call: ToolCall) -> str:
    """Name a call as the scenarios do, whatever the release calls it."""
    known = tool(call.name, call.display_name)
    return "agent" if known.is_agent else known.mcp_tool or call.name
