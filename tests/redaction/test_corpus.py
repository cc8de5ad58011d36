"""What is found in sessions that hold no secrets: in the corpus, in the demo, in the samples of the tests."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.trees import SELECTED, WHOLE, Tree, all_trees, groups, needs_corpus

from pollux.cli.demo import HOME as DEMO
from pollux.redaction import Redactor, redactor
from pollux.redaction.messages import texts
from pollux.sessions import reader

FALSE_POSITIVES: dict[str, int] = {}
"""By rule, with the reason in docs/redaction.md: there are none."""
USERS = ("alice", "bob", "carol")
"""Their homes lie where no homes lie, so that nobody knows them by their paths alone."""


def found_in(tree: Tree) -> Counter[str]:
    found = redactor()
    for session, group in groups(tree):
        found.session(session)
        for message in group.messages():
            found.message(message)
    return Counter({one.rule: one.count for one in found.report().replaced})


@pytest.mark.parametrize("tree", [*all_trees(SELECTED)], ids=lambda tree: tree.name)
def test_nothing_is_found_in_the_selected_trees(tree: Tree) -> None:
    assert found_in(tree) == {}


@needs_corpus
def test_false_positives_in_the_corpus() -> None:
    found: Counter[str] = Counter()
    for tree in all_trees(WHOLE):
        found += found_in(tree)
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
def test_who_was_here_is_not_told() -> None:
    for tree in all_trees(WHOLE)[::7]:
        made = redactor(extra_names=USERS)
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


def test_the_demo_tells_of_one_person_and_no_secrets() -> None:
    history = reader.history(reader.homes(DEMO))
    made: Redactor = redactor(user_name="mara")
    for session in history.sessions:
        shown = [made.session(session), *map(made.message, reader.opened(session).messages())]
        assert not re.search(r"\bmara\b", "\n".join(all_texts(shown)), re.IGNORECASE)
    assert {one.rule for one in made.report().replaced} <= {"home-path", "windows-home-path", "user"}
    assert [(one.what, one.media_type) for one in made.report().unscanned] == [("attachment", "image/png")]
