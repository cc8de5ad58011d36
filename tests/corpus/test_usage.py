"""The usage of a tree contains each finished call to the API once, with all six counts."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from tests.corpus.exceptions import AGENT_MERGED, BROKEN_OFF, TAKEN_FOR_SUMMARY, USAGE, Counted, reason, row
from tests.corpus.trees import Tree, every_release, every_tree, history, manifest, raw_messages

from pollux.model import Tokens

Counts: TypeAlias = "Counter[Tokens]"

TORN = {"0.38.2/diskfull": Tokens(input=11007, output=27, thoughts=5, total=11039)}
"""The calls in complete records of a file that is not valid JSON."""

EMPTY_ANSWERS = ("0.47.0/oddstream",)
"""The trees in which an answer without text was also recorded without its model."""


@every_tree
def test_usage_of_a_tree_equals_the_calls_to_the_api(tree: Tree) -> None:
    ours, truth = usage(tree), asked_for(tree)
    expected = row(USAGE, tree.name)
    if expected is None:
        assert ours == truth
        return
    assert counted(ours) == expected, reason(USAGE, tree.name)
    assert ours != truth, "no exception any more"
    assert ours <= truth or reason(USAGE, tree.name) in (BROKEN_OFF, TAKEN_FOR_SUMMARY)


@every_release
def test_uncounted_calls_are_not_in_the_files(trees: list[Tree]) -> None:
    for tree in trees:
        torn = [TORN[tree.name]] if tree.name in TORN else []
        missing = Counter([*recorded(tree).values(), *torn]) - usage(tree)
        if reason(USAGE, tree.name) == AGENT_MERGED:  # the first chunk of an answer is recorded beside it
            (chunk,) = missing
            assert any(
                chunk.input == model_call.input and chunk.output < model_call.output for model_call in usage(tree)
            ), tree.name
        else:
            assert not missing, tree.name
        assert usage(tree) <= Counter([*recorded(tree).values(), *torn]), tree.name


@every_release
def test_each_call_has_its_model_and_time(trees: list[Tree]) -> None:
    for tree in trees:
        for session in history(tree).sessions:
            assert session.started, tree.name
            for call in session.calls:
                assert call.tokens.is_consistent, tree.name
                assert call.model or tree.name in EMPTY_ANSWERS, tree.name
                assert call.at, tree.name
                assert call.at >= session.started, tree.name


def usage(tree: Tree) -> Counts:
    return Counter(call.tokens for session in history(tree).sessions for call in session.calls)


def asked_for(tree: Tree) -> Counts:
    calls = manifest(tree)["ground_truth"]["api_calls"]
    finished = [call for call in calls if call["kind"] in ("main", "subagent") and call.get("finished")]
    usages = [call["usage"] for call in finished if call.get("usage")]  # an error from the API has none
    return Counter(
        Tokens(
            input=usage["promptTokenCount"],
            cached=usage.get("cachedContentTokenCount", 0),
            output=usage.get("candidatesTokenCount", 0),
            thoughts=usage.get("thoughtsTokenCount", 0),
            tool=usage.get("toolUsePromptTokenCount", 0),
            total=usage["totalTokenCount"],
        )
        for usage in usages
    )


def recorded(tree: Tree) -> dict[str, Tokens]:
    """Return the last counts of each message in the files, read without Pollux."""
    messages = (message for path in tree.files for message in raw_messages(path))
    return {message["id"]: Tokens(**message["tokens"]) for message in messages if message.get("tokens")}


def counted(counts: Counts) -> Counted:
    return Counted(counts.total(), sum(tokens.total for tokens in counts.elements()))
