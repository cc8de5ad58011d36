"""Trajectories before their judges: the models of `atif`, and Inspect Scout, which imports them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.corpus.trees import Tree, every_release
from tests.exports import family
from tests.interop.subjects import needs, of_demo, of_trees, written

from pollux.exports.atif import render
from pollux.views.transcript import Branches

pytestmark = [pytest.mark.filterwarnings("default"), needs("atif", "atif")]

MODELS = "harbor.models.trajectories"


@pytest.fixture
def atif() -> ModuleType:
    return import_module("atif")


@pytest.mark.parametrize("branches", Branches)
@every_release
def test_all_sessions_are_trajectories(atif: Any, trees: list[Tree], branches: Branches) -> None:  # noqa: ANN401
    for made in of_trees(trees, with_agents=True, branches=branches):
        whole = atif.Trajectory.model_validate_json(b"".join(render(made)))
        assert whole.trajectory_id == made.session.id
        assert whole.steps
        _references_lead_somewhere(whole)


def test_demo_and_files_beside(atif: Any, tmp_path: Path) -> None:  # noqa: ANN401
    for made in of_demo(with_agents=True):
        atif.Trajectory.model_validate_json(b"".join(render(made)))
    made = family.placed(family.of_home(family.put(tmp_path)), tmp_path / "out")
    whole = atif.Trajectory.model_validate_json(b"".join(render(made)))
    assert whole.has_multimodal_content()
    (picture,) = [
        part for step in whole.steps if isinstance(step.message, list) for part in step.message if part.source
    ]
    assert (tmp_path / "out" / picture.source.path).is_file()


def _references_lead_somewhere(whole: Any) -> None:  # noqa: ANN401
    inside = {one.trajectory_id for one in whole.subagent_trajectories or ()}
    results = [one for step in whole.steps if step.observation for one in step.observation.results]
    assert {ref.trajectory_id for one in results for ref in one.subagent_trajectory_ref or ()} <= inside
    for inner in whole.subagent_trajectories or ():
        _references_lead_somewhere(inner)


@pytest.fixture
def scout(atif: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    """Give Scout's importer; it asks Harbor for the models, which needs a newer Python than we do and has the same."""
    for name in ("harbor", "harbor.models"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, MODELS, atif)
    return import_module("inspect_scout.sources").atif


@needs("inspect_scout", "inspect-scout")
@every_release
def test_inspect_imports_all_sessions(scout: Any, trees: list[Tree], tmp_path: Path) -> None:  # noqa: ANN401
    files = written(tmp_path / "in", _files(trees))
    transcripts = {one.source_uri: one for one in asyncio.run(_imported(scout, tmp_path / "in"))}
    assert len(transcripts) == len(files)
    for file in files:
        whole, found = json.loads(file.read_bytes()), transcripts[str(file)]
        roles = [role for step in whole["steps"] for role in _roles(step)]
        assert [one.role for one in found.messages] == roles
        calls = [one["tool_call_id"] for step in whole["steps"] for one in step.get("tool_calls", ())]
        assert [one.id for message in found.messages for one in getattr(message, "tool_calls", None) or ()] == calls
        final = whole["final_metrics"]
        total = final.get("total_prompt_tokens", 0) + final.get("total_completion_tokens", 0)
        assert found.total_tokens == (total or None)


def _files(trees: list[Tree]) -> Iterator[tuple[str, bytes]]:
    for number, made in enumerate(of_trees(trees, with_agents=False)):
        yield f"{number}.json", b"".join(render(made))


def _roles(step: Any) -> Iterator[str]:  # noqa: ANN401
    yield {"agent": "assistant"}.get(step["source"], step["source"])
    yield from ("tool" for _ in step.get("observation", {}).get("results", ()))


async def _imported(scout: Any, folder: Path) -> list[Any]:  # noqa: ANN401
    return [one async for one in scout(folder)]
