"""Traces for the Hub before their judges: `datasets` and `teich` load them, with every call, thought and error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.builders import PRICES
from tests.corpus.trees import Tree, every_release
from tests.interop.subjects import needs, of_demo, of_trees, written

from pollux.exports import ExportedSession, hf
from pollux.exports.fields import reasoning
from pollux.exports.hf import render
from pollux.exports.source import ExportSource
from pollux.model import Fate, Kind, Message, Origin

pytestmark = [pytest.mark.filterwarnings("default"), needs("teich", "teich"), needs("datasets", "datasets")]

TAKEN_BACK = (Fate.REWOUND, Fate.ROLLED_BACK)


@pytest.fixture
def teich() -> Any:  # noqa: ANN401
    return import_module("teich")


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:  # noqa: ANN401
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    found = import_module("datasets")
    found.disable_progress_bars()
    return found


def answers(made: ExportSource) -> list[Message]:
    return [
        one
        for one in made.messages()
        if one.fate not in TAKEN_BACK and one.kind is Kind.GEMINI and one.origin is not Origin.SYNTHETIC
    ]


@every_release
def test_every_call_thought_and_error_is_exported(teich: Any, trees: list[Tree], tmp_path: Path) -> None:  # noqa: ANN401
    subjects = [*of_trees(trees, with_agents=True)]
    files = written(tmp_path / "in", _files(subjects))
    for made, file in zip(subjects, files, strict=True):
        (row,) = teich.convert_traces_to_training_data(file)
        messages, calls = row["messages"], [one for each in answers(made) for one in each.tool_calls]
        found = [one["function"] for message in messages for one in message.get("tool_calls", ())]
        assert [one["name"] for one in found] == [one.name for one in calls]
        assert [one["arguments"] for one in found] == [_sound(one.args) for one in calls]
        thoughts = [message["reasoning_content"] for message in messages if "reasoning_content" in message]
        assert thoughts == [_sound(told).strip() for one in answers(made) if (told := reasoning(one))]
        failed = [
            one for one in calls if one.status in {"error", "cancelled"} and (one.output or one.error) is not None
        ]
        assert sum(bool(one.get("is_error")) for one in messages) == len(failed)
        assert row["metadata"]["session_id"] == made.session.id


def _files(subjects: list[ExportSource]) -> Iterator[tuple[str, bytes]]:
    for number, made in enumerate(subjects):
        yield f"{number:03}.jsonl", b"".join(render(made))


def _sound(value: Any) -> Any:  # noqa: ANN401
    """Replace half characters, as the export does."""
    return json.loads(re.sub("[\ud800-\udfff]", "\ufffd", json.dumps(value, ensure_ascii=False)))


@every_release
def test_loads_as_traces(datasets: Any, trees: list[Tree], tmp_path: Path) -> None:  # noqa: ANN401
    subjects = [*of_trees(trees, with_agents=True)]
    if not subjects:
        pytest.skip("this release left no session")
    written(tmp_path / "in", _files(subjects))
    found = datasets.load_dataset(
        "json", data_files=str(tmp_path / "in" / "*.jsonl"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert set(found["harness"]) == {"pi"}
    assert sorted(found["session_id"]) == sorted(one.session.id for one in subjects)
    assert sum(found["num_tool_calls"]) == sum(len(one.tool_calls) for made in subjects for one in answers(made))


def test_each_file_alone_is_recognised(datasets: Any, tmp_path: Path) -> None:  # noqa: ANN401
    subjects = [*of_demo(with_agents=True)]
    for file in written(tmp_path / "in", _files(subjects)):
        found = datasets.load_dataset("json", data_files=str(file), split="train", cache_dir=str(tmp_path / "cache"))
        assert found["harness"] == ["pi"]


def test_card_is_one(tmp_path: Path) -> None:
    hub: Any = import_module("huggingface_hub")
    ((name, data),) = hf.pages([ExportedSession(one.session, "x.jsonl") for one in of_demo(with_agents=True)], PRICES)
    (tmp_path / name).write_bytes(data)
    found = hub.DatasetCard.load(tmp_path / name)
    assert "agent-traces" in found.data.tags
