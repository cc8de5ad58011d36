"""The trees of the corpus: real `.gemini` folders, each with a manifest of its prompts, calls and answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pollux.model import Session
from pollux.sessions import reader
from pollux.sessions.grouping import OpenSession
from pollux.sessions.homes import homes

SELECTED = Path(__file__).parents[1] / "data" / "corpus"
WHOLE = Path(os.environ.get("POLLUX_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")
SECOND = WHOLE.parent / "corpus2"
"""Trees of the same form, recorded later to find faults."""


@dataclass(frozen=True)
class Tree:
    """One tree, named by its release and scenario."""

    folder: Path

    @property
    def name(self) -> str:
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def version(self) -> tuple[int, ...]:
        return tuple(int(number) for number in self.folder.parent.name.split("."))

    @property
    def files(self) -> list[Path]:
        """All session files, found without Pollux."""
        return sorted(path for path in self.folder.glob("gemini/tmp/*/chats/**/*") if path.is_file())


def all_trees(folder: Path) -> list[Tree]:
    return [Tree(path.parent) for path in sorted(folder.glob("*/*/manifest.json"))]


def _params(*folders: Path) -> Iterator[Any]:
    for tree in all_trees(SELECTED):
        yield pytest.param(tree, id=f"selected-{tree.name}")
    for tree in (tree for folder in folders for tree in all_trees(folder)):
        yield pytest.param(tree, id=tree.name)
    if not WHOLE.is_dir():
        yield pytest.param(None, id="whole", marks=pytest.mark.skip(reason=NO_CORPUS))


def _releases(*folders: Path) -> Iterator[Any]:
    """Return the trees of each release together, for tests that need no case for each tree."""
    trees = [tree for folder in folders for tree in all_trees(folder)] or all_trees(SELECTED)
    for release in sorted({tree.version for tree in trees}):
        name = ".".join(map(str, release))
        yield pytest.param([tree for tree in trees if tree.version == release], id=name)


NO_CORPUS = f"no corpus at {WHOLE}: set POLLUX_CORPUS to its folder"
needs_corpus = pytest.mark.skipif(not WHOLE.is_dir(), reason=NO_CORPUS)
each_tree = pytest.mark.parametrize("tree", list(_params(WHOLE)))
"""Runs a test with the selected trees in the repository, and with the full corpus if it exists."""
each_release = pytest.mark.parametrize("trees", list(_releases(WHOLE)))
"""Runs a test with all trees of a release, from the full corpus or else from the selection."""
every_tree = pytest.mark.parametrize("tree", list(_params(WHOLE, SECOND)))
"""Runs a test also with the second corpus, whose files are unusual."""
every_release = pytest.mark.parametrize("trees", list(_releases(WHOLE, SECOND)))


@cache
def manifest(tree: Tree) -> Any:  # noqa: ANN401  as decoded
    return json.loads((tree.folder / "manifest.json").read_bytes())


@cache
def history(tree: Tree) -> reader.History:
    home = tree.folder / "gemini"
    searched = homes([home], {}, tree.folder / "nowhere") if home.is_dir() else ()  # 0.3.4 wrote nothing when headless
    return reader.history(searched)


@cache
def groups(tree: Tree) -> tuple[tuple[Session, OpenSession], ...]:
    """Yield each session with its messages, oldest first."""
    return tuple((session, reader.opened(session)) for session in reversed(history(tree).sessions))


def tree_of(name: str) -> Tree:
    """Return a tree by its name, from the full corpus or the selection."""
    folder = next((top / name for top in (WHOLE, SECOND, SELECTED) if (top / name).is_dir()), None)
    if folder is None:
        pytest.skip(f"not one of the selected trees, and {NO_CORPUS}")
    return Tree(folder)


def raw_messages(path: Path) -> Iterator[dict[str, Any]]:
    """Yield each recording of each message of a file, read without Pollux."""
    data = path.read_bytes().decode("utf-8", "replace")
    try:
        records = [json.loads(data)]
    except ValueError:
        records = [record for line in data.split("\n") if (record := _record(line))]
    for record in records:
        inner = record.get("$set", record)
        listed = inner.get("messages", [record])
        yield from (message for message in listed if isinstance(message.get("id"), str))


def _record(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
