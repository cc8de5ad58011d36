"""The model writes the same records with the same keys, in the same order, as the client.

Each script below repeats the scenario of a real tree; texts, times and counts differ, but not the structure.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.recorder.model import (
    CHECKPOINTS,
    DOCUMENT,
    FUSING,
    LOG,
    NEWEST,
    Action,
    Ask,
    Call,
    Clear,
    Compress,
    ImportSession,
    Load,
    ModelAnswer,
    Notice,
    RecorderModel,
    Release,
    Resume,
    Rewind,
    Save,
    Shell,
    Start,
)

READ = Call()
END = (ModelAnswer("Fine."),)
TEXT = (ModelAnswer("Text."),)


def _steps(*answers: ModelAnswer, end: str = "Fine.") -> tuple[ModelAnswer, ...]:
    return (*answers, ModelAnswer(end))


def _read(text: str = "Text.", n_thoughts: int = 0) -> tuple[ModelAnswer, ...]:
    return _steps(ModelAnswer(text, (READ,), n_thoughts))


def _asks(*answers: tuple[ModelAnswer, ...]) -> list[Action]:
    return [Ask(f"Question {n}.", answer) for n, answer in enumerate(answers)]


CUT = (ModelAnswer(end="cut"),)
DECLINED = Call(outcome="declined")
STOPPED = (ModelAnswer("I sleep now.", (Call("run_shell_command", "cancelled"),)),)
THOUGHT = (ModelAnswer("Text.", n_thoughts=1),)

_ABORT: list[Action] = [Ask("Write.", CUT), Ask("Sleep.", STOPPED), Ask("Still there.", TEXT)]
_ABORT_THINKING: list[Action] = [
    Ask("Write.", CUT),
    Ask("Sleep.", (ModelAnswer("I sleep now.", STOPPED[0].calls, 1),)),
    Ask("Still.", TEXT),
]
_BASIC: list[Action] = [
    Ask("What.", THOUGHT),
    Ask("Add.", (ModelAnswer("I add.", (READ,)), ModelAnswer("", (DECLINED,), 1))),
    Ask("Never mind.", TEXT),
    Shell("ls"),
    Save("one"),
]
_COMPRESS: list[Action] = [Ask("1", THOUGHT), Ask("2", _read("")), Ask("3", TEXT), Compress(1), Ask("4", TEXT)]
_MULTI: list[Action] = [Ask("1", THOUGHT), Resume(0), Ask("2", _read("")), Resume(0), Ask("3", TEXT)]
_LATER: list[Action] = [
    Ask("1", THOUGHT),
    Resume(0, is_later=True),
    Ask("2", _read("")),
    Resume(0, is_later=True),
    Ask("3", TEXT),
]
_REWIND: list[Action] = [
    Ask("1", TEXT),
    Ask("2", _read("")),
    Ask("3", _read("", 1)),
    Rewind(0),
    Ask("4", TEXT),
    Rewind(2),
    Ask("5", TEXT),
    Ask("6", TEXT),
    Rewind(0),
    Ask("7", TEXT),
]
_LOADED: list[Action] = [
    Ask("1", _read("One.", 1)),
    Save("a"),
    Save("second"),
    Start(),
    Load("second"),
    Ask("3", TEXT),
    *[Notice("x")] * 3,
]

SCRIPTS: dict[str, tuple[Release, list[Action]]] = {
    "corpus2/0.61.0/i-decline2": (
        NEWEST,
        [
            Ask("Hello.", TEXT),
            Ask("do it", (ModelAnswer("I read.", (READ,)), ModelAnswer("I write.", (DECLINED,)))),
            Ask("do it", TEXT),
            Ask("do it", (ModelAnswer("A command.", (DECLINED,)),)),
            Ask("do it", TEXT),
            Ask("do it", _read("Writing.")),
            Ask("Enough.", TEXT),
        ],
    ),
    "corpus2/0.61.0/i-chatsame": (
        NEWEST,
        [
            *_asks(TEXT, _read("Two.")),
            Save("here"),
            Ask("Three.", TEXT),
            Load("here"),
            Ask("Three.", TEXT),
            Load("here"),
            Ask("Two.", TEXT),
            Start(is_later=True),
            Load("here"),
            Ask("Two.", TEXT),
        ],
    ),
    "corpus2/0.61.0/i-chat2": (
        NEWEST,
        [
            Ask("A1", _read("A one.")),
            Ask("A2", TEXT),
            Save("alpha"),
            Ask("A3", TEXT),
            Start(is_later=True),
            Ask("B1", TEXT),
            Load("alpha"),
            Ask("B2", TEXT),
            Save("beta"),
            Ask("B3", TEXT),
            Load("beta"),
            Ask("B4", TEXT),
            Load("alpha"),
            Ask("B5", TEXT),
        ],
    ),
    "corpus2/0.61.0/i-rewind2": (
        NEWEST,
        [
            Ask("1", _read("", 1)),
            Ask("2", TEXT),
            Ask("same", _read("", 1)),
            Ask("same", TEXT),
            Ask("5", _read("", 1)),
            Rewind(0),
            Ask("same", TEXT),
            Rewind(2),
            Rewind(0),
            Ask("after", _read("", 1)),
            Resume(0, is_later=True),
            Ask("resumed", TEXT),
            Rewind(1),
            Ask("8", _read("", 1)),
            Rewind(15),
            Ask("anew", TEXT),
        ],
    ),
    "corpus2/0.61.0/i-compress3": (
        NEWEST,
        [*[Ask("continue", _read("Part.", 1))] * 6, Compress(1), Ask("continue", TEXT), Ask("The end.", TEXT)],
    ),
    "corpus2/0.61.0/i-abort2": (
        NEWEST,
        [
            Ask("Hello.", TEXT),
            Ask("Three.", (ModelAnswer("1", (READ,)), ModelAnswer("2", (READ,)), ModelAnswer(end="cut"))),
            Ask("Nothing.", CUT),
            Ask("Nothing.", CUT),
            Ask("Three.", _read("Fine.")),
            Compress(1),
            Ask("After.", TEXT),
        ],
    ),
    "corpus2/0.61.0/i-clear2": (
        NEWEST,
        [
            Ask("0", TEXT),
            Clear(),
            Ask("1", TEXT),
            Clear(),
            Ask("2", TEXT),
            Clear(),
            Ask("3", TEXT),
            Resume(0, is_later=True),
            Ask("Resumed.", TEXT),
            Clear(),
            Ask("After.", TEXT),
        ],
    ),
    "corpus/0.61.0/i-basic": (NEWEST, _BASIC),
    "corpus/0.61.0/i-abort": (NEWEST, _ABORT),
    "corpus/0.61.0/i-error": (NEWEST, [Ask("1", TEXT), Ask("2", (ModelAnswer(end="failed"),)), Ask("3", TEXT)]),
    "corpus/0.61.0/i-compress": (NEWEST, _COMPRESS),
    "corpus/0.61.0/multi": (NEWEST, _MULTI),
    "corpus/0.61.0/multi-later": (NEWEST, _LATER),
    "corpus/0.61.0/sessionfile": (NEWEST, [Ask("One?", _read()), ImportSession(0, is_later=True), Ask("Two?", TEXT)]),
    "corpus/0.61.0/legacy-resume": (
        DOCUMENT,
        [
            Ask("Old?", _read("Old.", 1)),
            Resume(0, is_later=True, release=4),
            Ask("New?", TEXT),
            Resume(0, release=4),
            Ask("Third?", TEXT),
        ],
    ),
    "corpus/0.55.1/i-abort": (FUSING, _ABORT),
    "corpus/0.55.1/i-basic": (FUSING, _BASIC),
    "corpus/0.55.1/i-compress": (FUSING, _COMPRESS),
    "corpus/0.55.1/multi": (FUSING, _MULTI),
    "corpus/0.47.0/i-abort": (CHECKPOINTS, _ABORT_THINKING),
    "corpus/0.47.0/i-basic": (CHECKPOINTS, _BASIC),
    "corpus/0.47.0/i-chat": (CHECKPOINTS, _LOADED),
    "corpus/0.47.0/multi": (CHECKPOINTS, _MULTI),
    "corpus/0.40.1/i-abort": (LOG, _ABORT_THINKING),
    "corpus/0.40.1/i-basic": (LOG, _BASIC),
    "corpus/0.40.1/i-chat": (LOG, _LOADED),
    "corpus/0.40.1/i-compress": (LOG, _COMPRESS),
    "corpus/0.40.1/i-rewind": (LOG, _REWIND),
    "corpus/0.40.1/multi": (LOG, _MULTI),
    "corpus/0.38.2/i-abort": (DOCUMENT, _ABORT_THINKING),
    "corpus/0.38.2/i-basic": (DOCUMENT, _BASIC),
    "corpus/0.38.2/i-chat": (DOCUMENT, _LOADED),
    "corpus/0.38.2/i-rewind": (DOCUMENT, _REWIND),
    "corpus/0.38.2/multi": (DOCUMENT, _MULTI),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_model_writes_the_structure_of_real_files(corpus: Path, name: str) -> None:
    folder = corpus.parent / name
    if not folder.is_dir():
        pytest.skip(f"no tree {name} beside the corpus")
    release, script = SCRIPTS[name]
    client = RecorderModel(release)
    for action in script:
        assert client.do(action), action
    real = {path.name: path.read_bytes() for path in folder.glob("gemini/tmp/*/chats/**/*") if path.is_file()}
    ours = {path.rpartition("/")[2]: data for path, data in client.files.items()}
    assert _structures(ours) == _structures(real)


def _structures(files: dict[str, bytes]) -> list[list[Any]]:
    """Return the structure of each file, in the order of their start."""
    structures = []
    for name, data in files.items():
        records = [json.loads(data)] if name.endswith(".json") else [json.loads(line) for line in data.splitlines()]
        started = next(record["startTime"] for record in records if "startTime" in record)
        structures.append((started, _structure(records)))
    return [structure for _, structure in sorted(structures, key=lambda pair: (pair[0], len(pair[1])))]


def _structure(records: list[Any]) -> list[Any]:
    numbers: dict[str, int] = {}
    return [shape for record in records if (shape := _shape(record, numbers))]


_AFTER_THE_END = {"summary", "memoryScratchpad"}
"""Fields that a later process writes into an earlier session when it summarises it."""


def _shape(record: dict[str, Any], numbers: dict[str, int]) -> Any:  # noqa: ANN401  nested lists
    if "$rewindTo" in record:
        return "rewind", numbers[record["$rewindTo"]]
    if "$set" in record:
        fields = record["$set"]
        listed = [_message(message, numbers) for message in fields.get("messages", ())]
        return ("set", sorted(fields), listed) if fields.keys().isdisjoint(_AFTER_THE_END) else None
    if "id" in record:
        return _message(record, numbers)
    listed = [_message(message, numbers) for message in record.get("messages", ())]
    helpers = {"userMessageCount", "firstUserMessage", *_AFTER_THE_END}
    return "header", sorted(record.keys() - helpers), listed


def _message(message: dict[str, Any], numbers: dict[str, int]) -> Any:  # noqa: ANN401
    number = numbers.setdefault(message["id"], len(numbers))
    content = message["content"]
    parts = type(content).__name__ if isinstance(content, str) else [_part(part) for part in content]
    calls = [(call["status"], len(call["result"])) for call in message.get("toolCalls", ())]
    counts = (len(message.get("thoughts") or ()), bool(message.get("tokens")))
    is_suffixed = message["id"].endswith("_response")
    return number, is_suffixed, message["type"], sorted(message), parts, calls, counts


def _part(part: dict[str, Any]) -> str:
    return "thought" if part.get("thought") else next(key for key in part if key != "thoughtSignature")
