"""Rules match nothing in sessions without secrets: the corpus, the demo, the samples of the tests."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.trees import SELECTED, WHOLE, Tree, all_trees, groups, needs_corpus

from pollux import homes
from pollux.cli.demo import HOME as DEMO
from pollux.redaction import OPTIONAL_RULES, Redactor, redactor
from pollux.redaction.messages import all_texts as texts
from pollux.sessions import reader

FALSE_POSITIVES: dict[str, int] = {}
"""By rule; docs/redaction.md says that there are none."""
USERS = ("alice", "bob", "carol")
"""Their homes are outside of /home, so that paths alone do not identify them."""


def count_matches(tree: Tree, rules: Iterable[str] = ()) -> Counter[str]:
    redaction = redactor(rules=rules)
    for session, group in groups(tree):
        redaction.session(session)
        for message in group.messages():
            redaction.message(message)
    return Counter({replacement.rule: replacement.count for replacement in redaction.report().replaced})


@pytest.mark.parametrize("tree", [*all_trees(SELECTED)], ids=lambda tree: tree.name)
def test_selected_trees_have_no_matches(tree: Tree) -> None:
    assert count_matches(tree) == {}


@needs_corpus
def test_corpus_has_no_other_false_positives() -> None:
    counts: Counter[str] = Counter()
    for tree in all_trees(WHOLE):
        counts += count_matches(tree)
    assert counts == FALSE_POSITIVES


@needs_corpus
def test_corpus_has_no_other_false_positives_of_optional_rules() -> None:
    counts: Counter[str] = Counter()
    for tree in all_trees(WHOLE):
        counts += count_matches(tree, [rule.id for rule in OPTIONAL_RULES])
    assert counts == FALSE_POSITIVES


@needs_corpus
def test_json_of_the_corpus_has_no_other_false_positives() -> None:
    redaction = redactor()
    for tree in all_trees(WHOLE):
        for path in tree.files:
            for value in wire_values(path):
                redaction.json(value)
    assert {replacement.rule: replacement.count for replacement in redaction.report().replaced} == FALSE_POSITIVES


@needs_corpus
def test_users_of_the_corpus_are_redacted_as_words() -> None:
    for tree in all_trees(WHOLE)[::7]:
        made = redactor(words=USERS)
        for session, group in groups(tree):
            shown = [made.session(session), *map(made.message, group.messages())]
            assert not re.search(rf"\b(?:{'|'.join(USERS)})\b", "\n".join(all_texts(shown)))


def all_texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        yield from texts(value)


def wire_values(path: Path) -> Iterator[Any]:
    data = path.read_bytes().decode("utf-8", "replace")
    try:
        yield json.loads(data)
    except ValueError:
        yield from filter(None, map(_decoded, data.split("\n")))


def _decoded(line: str) -> Any:  # noqa: ANN401  as decoded
    try:
        return json.loads(line)
    except ValueError:
        return line


def test_demo_contains_one_user_and_no_secrets() -> None:
    history = reader.history(homes(DEMO))
    made: Redactor = redactor(user_name="mara")
    for session in history.sessions:
        shown = [made.session(session), *map(made.message, reader.opened(session).messages())]
        assert not re.search(r"\bmara\b", "\n".join(all_texts(shown)), re.IGNORECASE)
    assert {replacement.rule for replacement in made.report().replaced} <= {"home-path", "windows-home-path", "user"}
    assert [(item.what, item.media_type) for item in made.report().unscanned] == [("attachment", "image/png")]
