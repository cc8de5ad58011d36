"""Trajectories are valid for the models of `atif`, and Inspect Scout imports them."""

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
        trajectory = atif.Trajectory.model_validate_json(b"".join(render(made)))
        assert trajectory.trajectory_id == made.session.id
        assert trajectory.steps
        _check_references(trajectory)


def test_demo_and_its_side_files_are_trajectories(atif: Any, tmp_path: Path) -> None:  # noqa: ANN401
    for made in of_demo(with_agents=True):
        atif.Trajectory.model_validate_json(b"".join(render(made)))
    made = family.placed(family.of_home(family.put(tmp_path)), tmp_path / "out")
    trajectory = atif.Trajectory.model_validate_json(b"".join(render(made)))
    assert trajectory.has_multimodal_content()
    (picture,) = [
        part for step in trajectory.steps if isinstance(step.message, list) for part in step.message if part.source
    ]
    assert (tmp_path / "out" / picture.source.path).is_file()


def _check_references(trajectory: Any) -> None:  # noqa: ANN401
    inside = {inner.trajectory_id for inner in trajectory.subagent_trajectories or ()}
    results = [result for step in trajectory.steps if step.observation for result in step.observation.results]
    assert {ref.trajectory_id for result in results for ref in result.subagent_trajectory_ref or ()} <= inside
    for inner in trajectory.subagent_trajectories or ():
        _check_references(inner)


@pytest.fixture
def scout(atif: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    """Return Scout's importer, with the models of `atif` in place of those of Harbor, which needs a newer Python."""
    for name in ("harbor", "harbor.models"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, MODELS, atif)
    return import_module("inspect_scout.sources").atif


@needs("inspect_scout", "inspect-scout")
@every_release
def test_inspect_imports_all_sessions(scout: Any, trees: list[Tree], tmp_path: Path) -> None:  # noqa: ANN401
    files = written(tmp_path / "in", _files(trees))
    transcripts = {transcript.source_uri: transcript for transcript in asyncio.run(_imported(scout, tmp_path / "in"))}
    assert len(transcripts) == len(files)
    for file in files:
        trajectory, imported = json.loads(file.read_bytes()), transcripts[str(file)]
        roles = [role for step in trajectory["steps"] for role in _roles(step)]
        assert [message.role for message in imported.messages] == roles
        calls = [call_["tool_call_id"] for step in trajectory["steps"] for call_ in step.get("tool_calls", ())]
        assert [
            call_.id for message in imported.messages for call_ in getattr(message, "tool_calls", None) or ()
        ] == calls
        final = trajectory["final_metrics"]
        total = final.get("total_prompt_tokens", 0) + final.get("total_completion_tokens", 0)
        assert imported.total_tokens == (total or None)


def _files(trees: list[Tree]) -> Iterator[tuple[str, bytes]]:
    for number, made in enumerate(of_trees(trees, with_agents=False)):
        yield f"{number}.json", b"".join(render(made))


def _roles(step: Any) -> Iterator[str]:  # noqa: ANN401
    yield {"agent": "assistant"}.get(step["source"], step["source"])
    yield from ("tool" for _ in step.get("observation", {}).get("results", ()))


async def _imported(scout: Any, folder: Path) -> list[Any]:  # noqa: ANN401
    return [one async for one in scout(folder)]
