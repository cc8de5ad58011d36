"""Export sources for other programs: the sessions of a release of the corpus, and those of the demo."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.builders import PRICES
from tests.corpus.trees import Tree, history

from pollux import homes
from pollux.cli.demo import HOME
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.sessions import reader


def needs(module: str, package: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test without a package, which is not imported because that may take seconds."""
    is_there = find_spec(module.partition(".")[0]) is not None and find_spec(module) is not None
    return pytest.mark.skipif(not is_there, reason=f"no {package}: `make test-interop` fetches it")


def of_trees(trees: list[Tree], *, with_agents: bool, **options: Any) -> Iterator[ExportSource]:  # noqa: ANN401
    """Yield the sessions of trees, with those of subagents only on demand."""
    for tree in trees:
        yield from _opened(history(tree), with_agents=with_agents, options=ExportOptions(**options))


def of_demo(*, with_agents: bool, **options: Any) -> Iterator[ExportSource]:  # noqa: ANN401
    """Yield the sessions of the demo."""
    history = reader.history(homes(HOME))
    yield from _opened(history, with_agents=with_agents, options=ExportOptions(**options))


def _opened(history: reader.History, *, with_agents: bool, options: ExportOptions) -> Iterator[ExportSource]:
    by_id = {session.id: session for session in history.sessions}
    for session in history.sessions:
        if with_agents or session.parent not in by_id:
            yield export_source(session, reader.opened(session), by_id, reader.opened, PRICES, options=options)


def written(folder: Path, made: Iterator[tuple[str, bytes]]) -> list[Path]:
    """Write files into a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, data in made:
        (folder / name).write_bytes(data)
        files.append(folder / name)
    return files
