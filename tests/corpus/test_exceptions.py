"""Each exception matches a tree; others are out of date."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from tests.corpus import exceptions
from tests.corpus.trees import SECOND, WHOLE, all_trees, manifest, needs_corpus

TABLES = ("USAGE", "PROMPTS", "TOOLS", "STATUSES", "AGENTS")
N_TREES = 464


@needs_corpus
@pytest.mark.parametrize("table", TABLES)
def test_each_row_matches_a_tree(table: str) -> None:
    names = [tree.name for tree in (*all_trees(WHOLE), *all_trees(SECOND))]
    for rows in getattr(exceptions, table).values():
        for pattern in rows:
            assert any(fnmatchcase(name, pattern) for name in names), pattern


@needs_corpus
def test_corpus_is_complete() -> None:
    trees = all_trees(WHOLE)
    assert len(trees) == N_TREES
    assert all(manifest(tree)["prompts"] for tree in trees)
