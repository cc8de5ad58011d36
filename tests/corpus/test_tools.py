"""Each requested tool call is found once, with the status that the scenario produced."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.corpus.exceptions import FAILED, NO_CALLS, STATUSES, TOOLS, reason, row
from tests.corpus.trees import Tree, every_release, every_tree, groups, manifest, raw_messages, tree_of

from pollux.formats.tools import tool
from pollux.model import ToolCall

FIRST_WITH_CALLS = (0, 10)
TORN = {"0.38.2/diskfull": ("read_file", "success")}
"""The calls in complete records of a file that is not valid JSON."""
LOADED = ("0.47.0/i-chat", "0.60.0/i-chat", "0.61.0/i-chat", "0.61.0/i-chat2", "0.61.0/i-chatsame")
"""The trees in which a call was loaded by /chat resume, which records neither the call nor its time."""
README = "# webapp\n\nA tiny task board.  Run `python3 -m unittest` for the tests.\n"


@every_tree
def test_calls_of_a_tree_are_those_requested(tree: Tree) -> None:
    asked = Counter(call["name"] for call in manifest(tree)["ground_truth"]["tool_calls_requested"])
    counts = Counter(call.name for call in calls(tree))
    expected = row(TOOLS, tree.name)
    if tree.version < FIRST_WITH_CALLS:
        assert not counts, NO_CALLS
    elif expected is None:
        assert counts == asked
    else:
        assert asked - counts == Counter(expected.missing), reason(TOOLS, tree.name)
        assert counts - asked == Counter(expected.extra), reason(TOOLS, tree.name)


def test_calls_belong_to_the_answers_that_made_them() -> None:
    """Over ACP, the client records all calls in one message."""
    messages = [message for _, group in groups(tree_of("0.61.0/acp-tools")) for message in group.messages()]
    answers = [message for message in messages if message.kind == "gemini"]
    assert [(message.text, [call.name for call in message.tool_calls]) for message in answers] == [
        ("I read.", []),
        ("", ["read_file", "list_directory"]),  # the message in which ACP records them
        ("One done.", []),
        ("Writing.", ["write_file"]),
        ("", ["read_file"]),
        ("Two done.", []),
        ("", ["read_file"]),
        ("Three done.", []),
    ]


@every_release
def test_statuses_are_those_of_the_scenario(trees: list[Tree]) -> None:
    for tree in trees:
        failed = [(_short(call), call.status) for call in calls(tree) if not _is_loaded(tree, call)]
        failed = [call_ for call_ in failed if call_[1] != "success"]
        deviating = row(STATUSES, tree.name)
        expected = FAILED.get(tree.folder.name, ()) if deviating is None else deviating
        has_calls = tree.version >= FIRST_WITH_CALLS
        assert sorted(failed) == (sorted(expected) if has_calls else []), (tree.name, reason(STATUSES, tree.name))


@every_release
def test_statuses_are_those_of_the_files(trees: list[Tree]) -> None:
    for tree in trees:
        expected = Counter(recorded(tree).values()) + Counter([TORN[tree.name]] if tree.name in TORN else [])
        counts = Counter((call.name, call.status) for call in calls(tree) if not _is_loaded(tree, call))
        assert counts == expected, tree.name


@every_release
def test_list_counts_the_same_calls(trees: list[Tree]) -> None:
    for tree in trees:
        for session, group in groups(tree) if tree.name not in LOADED else ():
            own = [message for entry, message in zip(group.entries, group.messages(), strict=True) if entry.is_own]
            assert session.tool_calls == sum(len(message.tool_calls) for message in own), tree.name


@pytest.mark.parametrize("name", LOADED)
def test_list_does_not_count_loaded_calls(name: str) -> None:
    shown = sum(len(message.tool_calls) for _, group in groups(tree_of(name)) for message in group.messages())
    assert sum(session.tool_calls for session, _ in groups(tree_of(name))) == shown - 1


@pytest.mark.parametrize("name", LOADED)
def test_loaded_call_has_its_loaded_response(name: str) -> None:
    tree = tree_of(name)
    (loaded,) = [call for call in calls(tree) if _is_loaded(tree, call)]
    assert (loaded.name, loaded.status, loaded.output) == ("read_file", "success", README)


@every_release
def test_lists_count_the_recorded_calls_once(trees: list[Tree]) -> None:
    for tree in trees:
        expected = len(recorded(tree)) + (tree.name in TORN)
        assert sum(session.tool_calls for session, _ in groups(tree)) == expected, tree.name


def calls(tree: Tree) -> list[ToolCall]:
    """Return the calls of all sessions, those of an imported session once."""
    by_place: dict[tuple[str, int], ToolCall] = {}
    for _, group in groups(tree):
        for message in group.messages():
            for index, call in enumerate(message.tool_calls):
                by_place.setdefault((message.id, index), call)
    return list(by_place.values())


def recorded(tree: Tree) -> dict[tuple[str, str], tuple[str, str]]:
    """Return name and last status of each call in the files, read without Pollux."""
    return {
        (message["id"], call["id"]): (call["name"], call["status"])
        for path in tree.files
        for message in raw_messages(path)
        for call in message.get("toolCalls", ())
    }


def _is_loaded(tree: Tree, call: ToolCall) -> bool:
    return tree.name in LOADED and call.at is None


def _short(call: ToolCall) -> str:
    """Return the name of a call in the scenarios, which is the same for all releases."""
    info = tool(call.name, call.display_name)
    return "agent" if info.is_agent else info.mcp_tool or call.name
