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


def found_in(tree: Tree, rules: Iterable[str] = ()) -> Counter[str]:
    found = redactor(rules=rules)
    for session, group in groups(tree):
        found.session(session)
        for message in group.messages():
            found.message(message)
    return Counter({one.rule: one.count for one in found.report().replaced})


@pytest.mark.parametrize("tree", [*all_trees(SELECTED)], ids=lambda tree: tree.name)
def test_selected_trees_have_no_matches(tree: Tree) -> None:
    assert found_in(tree) == {}


@needs_corpus
def test_false_positives_in_the_corpus() -> None:
    found: Counter[str] = Counter()
    for tree in all_trees(WHOLE):
        found += found_in(tree)
    assert found == FALSE_POSITIVES


@needs_corpus
def test_false_positives_of_optional_rules() -> None:
    found: Counter[str] = Counter()
    for tree in all_trees(WHOLE):
        found += found_in(tree, [rule.id for rule in OPTIONAL_RULES])
    assert found == FALSE_POSITIVES


@needs_corpus
def test_false_positives_on_the_wire() -> None:
    found = redactor()
    for tree in all_trees(WHOLE):
        for path in tree.files:
            for value in wire_values(path):
                found.json(value)
    assert {one.rule: one.count for one in found.report().replaced} == FALSE_POSITIVES


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
    assert {one.rule for one in made.report().replaced} <= {"home-path", "windows-home-path", "user"}
    assert [(one.what, one.media_type) for one in made.report().unscanned] == [("attachment", "image/png")]
