"""The usage of a tree is what the API was asked for: every finished call once, with all six counts."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from tests.corpus.exceptions import AGENT_MERGED, BROKEN_OFF, TAKEN_FOR_SUMMARY, USAGE, Counted, reason, row
from tests.corpus.trees import Tree, every_release, every_tree, history, manifest, raw_messages

from pollux.model import Tokens

Counts: TypeAlias = "Counter[Tokens]"

TORN = {"0.38.2/diskfull": Tokens(input=11007, output=27, thoughts=5, total=11039)}
"""What stands whole in a file that is no JSON as a whole."""

EMPTY_ANSWERS = ("0.47.0/oddstream",)
"""Where an answer without words was recorded without its model, too."""


@every_tree
def test_tree(tree: Tree) -> None:
    ours, truth = usage(tree), asked_for(tree)
    expected = row(USAGE, tree.name)
    if expected is None:
        assert ours == truth
        return
    assert counted(ours) == expected, reason(USAGE, tree.name)
    assert ours != truth, "no exception any more"
    assert ours <= truth or reason(USAGE, tree.name) in (BROKEN_OFF, TAKEN_FOR_SUMMARY)


@every_release
def test_what_is_not_counted_is_not_in_the_files(trees: list[Tree]) -> None:
    for tree in trees:
        torn = [TORN[tree.name]] if tree.name in TORN else []
        missing = Counter([*recorded(tree).values(), *torn]) - usage(tree)
        if reason(USAGE, tree.name) == AGENT_MERGED:  # the first chunk of an answer stands beside it
            (chunk,) = missing
            assert any(chunk.input == one.input and chunk.output < one.output for one in usage(tree)), tree.name
        else:
            assert not missing, tree.name
        assert usage(tree) <= Counter([*recorded(tree).values(), *torn]), tree.name


@every_release
def test_every_call_knows_its_model_and_its_time(trees: list[Tree]) -> None:
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
    finished = [one for one in calls if one["kind"] in ("main", "subagent") and one.get("finished")]
    usages = [one["usage"] for one in finished if one.get("usage")]  # an error that the API sent has none
    return Counter(
        Tokens(
            input=one["promptTokenCount"],
            cached=one.get("cachedContentTokenCount", 0),
            output=one.get("candidatesTokenCount", 0),
            thoughts=one.get("thoughtsTokenCount", 0),
            tool=one.get("toolUsePromptTokenCount", 0),
            total=one["totalTokenCount"],
        )
        for one in usages
    )


def recorded(tree: Tree) -> dict[str, Tokens]:
    """Return the counts that stand in the files, the last for each message, read in the simplest way."""
    messages = (message for path in tree.files for message in raw_messages(path))
    return {message["id"]: Tokens(**message["tokens"]) for message in messages if message.get("tokens")}


def counted(counts: Counts) -> Counted:
    return Counted(counts.total(), sum(tokens.total for tokens in counts.elements()))
