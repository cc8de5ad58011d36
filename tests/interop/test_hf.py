"""`datasets` and `teich` load traces for the Hub with each call, thought and error."""

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
    module = import_module("datasets")
    module.disable_progress_bars()
    return module


def answers(made: ExportSource) -> list[Message]:
    return [
        message
        for message in made.messages()
        if message.fate not in TAKEN_BACK and message.kind is Kind.GEMINI and message.origin is not Origin.SYNTHETIC
    ]


@every_release
def test_each_call_thought_and_error_is_exported(teich: Any, trees: list[Tree], tmp_path: Path) -> None:  # noqa: ANN401
    subjects = [*of_trees(trees, with_agents=True)]
    files = written(tmp_path / "in", _files(subjects))
    for made, file in zip(subjects, files, strict=True):
        (row,) = teich.convert_traces_to_training_data(file)
        messages, calls = row["messages"], [call for each in answers(made) for call in each.tool_calls]
        exported_calls = [call_["function"] for message in messages for call_ in message.get("tool_calls", ())]
        assert [exported["name"] for exported in exported_calls] == [call.name for call in calls]
        assert [exported["arguments"] for exported in exported_calls] == [_sound(call.args) for call in calls]
        thoughts = [message["reasoning_content"] for message in messages if "reasoning_content" in message]
        assert thoughts == [
            _sound(reasoning_text).strip() for answer in answers(made) if (reasoning_text := reasoning(answer))
        ]
        failed = [
            call for call in calls if call.status in {"error", "cancelled"} and (call.output or call.error) is not None
        ]
        assert sum(bool(message.get("is_error")) for message in messages) == len(failed)
        assert row["metadata"]["session_id"] == made.session.id


def _files(subjects: list[ExportSource]) -> Iterator[tuple[str, bytes]]:
    for number, made in enumerate(subjects):
        yield f"{number:03}.jsonl", b"".join(render(made))


def _sound(value: Any) -> Any:  # noqa: ANN401
    """Return a text with lone surrogates replaced, as the export does."""
    return json.loads(re.sub("[\ud800-\udfff]", "\ufffd", json.dumps(value, ensure_ascii=False)))


@every_release
def test_files_are_loaded_as_traces(datasets: Any, trees: list[Tree], tmp_path: Path) -> None:  # noqa: ANN401
    subjects = [*of_trees(trees, with_agents=True)]
    if not subjects:
        pytest.skip("this release wrote no session")
    written(tmp_path / "in", _files(subjects))
    dataset = datasets.load_dataset(
        "json", data_files=str(tmp_path / "in" / "*.jsonl"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert set(dataset["harness"]) == {"pi"}
    assert sorted(dataset["session_id"]) == sorted(subject.session.id for subject in subjects)
    assert sum(dataset["num_tool_calls"]) == sum(
        len(answer.tool_calls) for made in subjects for answer in answers(made)
    )


def test_each_file_alone_is_recognised(datasets: Any, tmp_path: Path) -> None:  # noqa: ANN401
    subjects = [*of_demo(with_agents=True)]
    for file in written(tmp_path / "in", _files(subjects)):
        dataset = datasets.load_dataset("json", data_files=str(file), split="train", cache_dir=str(tmp_path / "cache"))
        assert dataset["harness"] == ["pi"]


def test_card_is_a_valid_dataset_card(tmp_path: Path) -> None:
    hub: Any = import_module("huggingface_hub")
    ((name, data),) = hf.pages(
        [ExportedSession(source.session, "x.jsonl") for source in of_demo(with_agents=True)], PRICES
    )
    (tmp_path / name).write_bytes(data)
    card = hub.DatasetCard.load(tmp_path / name)
    assert "agent-traces" in card.data.tags
