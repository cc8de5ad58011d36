"""Typed prompts are read word for word, and no other text is read as a prompt."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from tests.corpus.exceptions import PROMPTS, reason, row
from tests.corpus.trees import Tree, every_release, every_tree, groups, history, manifest

from pollux.formats import prompts
from pollux.formats.operations import PROMPT_LENGTH
from pollux.model import Message, Origin

FIRST_WITH_FILES = (0, 4)


@every_tree
def test_prompts_of_a_tree_are_those_typed(tree: Tree) -> None:
    typed = [prompt["text"] for prompt in manifest(tree)["prompts"]]
    texts = logged(tree) if tree.version < FIRST_WITH_FILES else [message.text for message in human(tree)]
    expected = row(PROMPTS, tree.name)
    if expected is None:
        if tree.folder.name == "concurrent":  # the order of the two is unknown
            typed, texts = sorted(typed), sorted(texts)
        assert texts == typed
        return
    assert Counter(texts) == Counter(typed) - Counter(expected.missing) + Counter(expected.instead), reason(
        PROMPTS, tree.name
    )
    assert Counter(expected.missing) <= Counter(typed)


@every_release
def test_interactive_prompts_are_logged(trees: list[Tree]) -> None:
    for tree in trees:
        typed = [prompt["text"] for prompt in manifest(tree)["prompts"] if prompt["mode"] == "interactive"]
        assert logged(tree) == [text for text in typed if not text.startswith("/")], tree.name


@every_release
def test_list_shows_the_same_prompts(trees: list[Tree]) -> None:
    for tree in trees:
        for session, group in groups(tree):
            texts = [message.text.strip() for message in group.messages() if message.origin == Origin.HUMAN]
            assert session.counts["user"] == len(texts), tree.name
            if texts:
                ends = texts[0][:PROMPT_LENGTH], texts[-1][:PROMPT_LENGTH]
                assert (session.first_prompt, session.last_prompt) == ends, tree.name


def human(tree: Tree) -> list[Message]:
    """Return the prompts of all main sessions by time; those of an imported session are not typed twice."""
    by_id: dict[str, Message] = {}
    for session, group in groups(tree):
        if session.kind == "main":
            for message in group.messages():
                if message.origin == Origin.HUMAN:
                    by_id.setdefault(message.id, message)
    return sorted(by_id.values(), key=_at)


def logged(tree: Tree) -> list[str]:
    """Return what was typed according to `logs.json`, without slash commands and shell mode; copies count once."""
    paths = [folder.logs for folder in history(tree).located.folders if folder.logs]
    entries = {entry for path in paths for entry in _entries(prompts.read(path.read_bytes()))}
    return [text for _, text in sorted(entries) if not text.startswith("/") and text != "ls"]


def _entries(logged_prompts: prompts.Prompts) -> list[tuple[datetime, str]]:
    assert not logged_prompts.problems
    return [(prompt.at, prompt.text) for prompt in logged_prompts.prompts if prompt.at]


def _at(message: Message) -> datetime:
    assert message.at
    return message.at
