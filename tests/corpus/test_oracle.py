"""The state that Pollux reads from a file equals the result of the client's own reader.

Its results for the selected trees and the hand-made files are stored beside them. With `POLLUX_ORACLE`, the folder of
an installed `@google/gemini-cli-core`, the tests run the reader itself, also on each file of the full corpus
(`make test-oracle`); with `POLLUX_REWRITE`, they store its results. `POLLUX_NODE` names another Node.js for it: since
24, the reader splits lines at U+2028 and U+2029, and the stored results are those of 20.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.edges import AT, EDGES, HEADER, USER, log, without
from tests.corpus.trees import SECOND, SELECTED, WHOLE, Tree, all_trees, needs_corpus

from pollux.exports import gemini
from pollux.formats.log import SEPARATORS, has_separator
from pollux.sessions import reader
from pollux.sessions.homes import homes
from pollux.sessions.replay.reading import read

ANSWERS = "oracle.jsonl"
EDGE_ANSWERS = SELECTED / "edges.jsonl"
N_FILES = 598
N_REFUSED = 11

ORACLE = os.environ.get("POLLUX_ORACLE")
NODE = os.environ.get("POLLUX_NODE") or "node"
needs_oracle = pytest.mark.skipif(not ORACLE, reason="set POLLUX_ORACLE to a folder with @google/gemini-cli-core")

_SKIPS = "the client stumbles over the content and skips the record; we keep the message"
_STUMBLES = "the client stumbles over the messages and refuses the document; we take it for readable"
_DEEP = "nested too deeply for our decoder: the line or the file is lost"

DIFFERENCES = {
    "deep nesting": _DEEP,
    "deep nesting in content": _DEEP,
    "deep nesting in a checkpoint": _DEEP,
    "number as text": _SKIPS,
    "number as text of an answer": _SKIPS,
    "number as text in a checkpoint": _SKIPS,
    "null function call": _SKIPS,
    "null function response in a list": _SKIPS,
    "null media": _SKIPS,
    "document with no text in a part": _STUMBLES,
    "document with deep nesting": _DEEP,
    "document with a header behind": "a log behind a document is not read as one",
}
"""The differences between our state and the client's; a row without a difference fails."""

ALL_TREES = [*all_trees(WHOLE), *all_trees(SECOND)]
selected_trees = [pytest.param(tree, id=tree.name) for tree in all_trees(SELECTED) if tree.files]


@pytest.mark.parametrize("tree", selected_trees)
def test_selected_tree(tree: Tree) -> None:
    answers = [json.loads(line) for line in (tree.folder / ANSWERS).read_bytes().splitlines()]
    assert [answer["file"] for answer in answers] == [_name(tree, path) for path in tree.files]
    for answer, path in zip(answers, tree.files, strict=True):
        check(path, answer["record"])


@needs_corpus
@needs_oracle
def test_selected_trees_are_complete(asked: dict[Path, Any]) -> None:
    first = {path: record for path, record in asked.items() if path.is_relative_to(WHOLE)}
    assert len(first) == N_FILES
    assert sum(record is None for record in first.values()) == N_REFUSED


@needs_corpus
@needs_oracle
@pytest.mark.parametrize("tree", [pytest.param(tree, id=tree.name) for tree in ALL_TREES if tree.files])
def test_state_of_a_tree_equals_that_of_the_client(tree: Tree, asked: dict[Path, Any], tmp_path: Path) -> None:
    for number, path in enumerate(tree.files):
        check(as_cut(path, tmp_path / str(number)), asked[path])


@pytest.mark.parametrize("name", [name for name in EDGES if name not in DIFFERENCES])
def test_state_of_an_edge_case_equals_that_of_the_client(name: str, tmp_path: Path) -> None:
    with deep():
        record = json.loads(_edge_answers()[name])["record"]
    check(edge_file(tmp_path, name), record)


@pytest.mark.parametrize("name", [name for name, why in DIFFERENCES.items() if why != _DEEP])
def test_listed_differences_still_exist(name: str, tmp_path: Path) -> None:
    record = json.loads(_edge_answers()[name])["record"]
    with pytest.raises(AssertionError):
        check(edge_file(tmp_path, name), record)


@pytest.mark.parametrize("name", [name for name, why in DIFFERENCES.items() if why == _DEEP])
def test_too_deep_nesting_is_reported(name: str, tmp_path: Path) -> None:
    reading = read(edge_file(tmp_path, name))
    with deep():  # newer Pythons read deeper nesting, and report nothing
        record = json.loads(_edge_answers()[name])["record"]
        is_same = bool(reading.replay.is_readable) and json.loads(b"".join(gemini.render_state(reading))) == record
    assert is_same or reading.replay.problems


@needs_oracle
def test_stored_answers_are_those_of_the_client(tmp_path: Path) -> None:
    paths = {name: edge_file(tmp_path / str(number), name) for number, name in enumerate(EDGES)}
    trees = all_trees(SELECTED)
    answers = ask([*paths.values(), *(path for tree in trees for path in tree.files)])
    cut = [name for name in paths if as_cut(paths[name], tmp_path / "cut") != paths[name]]
    kept_lines = []
    with deep():
        for name, path in paths.items():
            if name in cut:
                check(as_cut(path, tmp_path / "cut"), answers[path])
            kept_lines.append(_edge_answers()[name] + b"\n" if name in cut else _answer(name, answers[path]))
        kept = {EDGE_ANSWERS: b"".join(kept_lines)}
        for tree in trees:
            if any(has_separator(path.read_bytes()) for path in tree.files) and cuts_at_separators():
                continue  # its stored results are those of an older Node.js; the test of trees compares these files
            kept[tree.folder / ANSWERS] = b"".join(_answer(_name(tree, path), answers[path]) for path in tree.files)
    for path, data in kept.items():
        if "POLLUX_REWRITE" in os.environ and data:
            path.write_bytes(data)
        assert (path.read_bytes() if data else b"") == data, path


@pytest.mark.parametrize("name", EDGES)
def test_edge_cases_raise_nothing(name: str, tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    path = edge_file(home / "tmp" / "webapp" / "chats", name)
    history = reader.history(homes([home], {}, tmp_path))
    assert [ref.path for session in history.sessions for ref in session.files] == [path]
    for session in history.sessions:
        assert all(message.id is not None for message in reader.opened(session).messages())


def test_missing_times_are_taken_from_the_messages(tmp_path: Path) -> None:
    path = tmp_path / "session-2026-11-15T19-30-6ece72aa.jsonl"
    path.write_bytes(log(without("startTime", "lastUpdated"), USER))
    state = json.loads(b"".join(gemini.render_state(read(path))))
    assert (state["startTime"], state["lastUpdated"]) == (AT, AT)  # the client uses the current time
    assert state["sessionId"] == HEADER["sessionId"]


def check(path: Path, record: Any) -> None:  # noqa: ANN401  as decoded
    """Check that our reading of a file equals the client's."""
    reading = read(path)
    if record is None:
        assert not reading.replay.is_readable
        assert reading.replay.problems
        return
    assert reading.replay.is_readable
    rendered = b"".join(gemini.render_state(reading))
    with deep():
        ours, theirs = as_python(json.loads(rendered)), as_python(record)
        assert ours == theirs


def as_python(value: Any) -> Any:  # noqa: ANN401
    """Return a value rounded to the numbers of JavaScript."""
    match value:
        case dict():
            return {key: as_python(member) for key, member in value.items()}
        case list():
            return [as_python(member) for member in value]
        case bool():
            return value
        case int() | float():
            number = float(value) if abs(value) < 10**300 else float("inf")
            return None if number in (float("inf"), float("-inf")) else number
        case _:
            return value


@pytest.fixture(scope="module")
def asked() -> dict[Path, Any]:
    """Return the results of the client's reader for each file of the full corpus, computed once."""
    return ask([path for tree in ALL_TREES for path in tree.files])


def ask(paths: Iterable[Path]) -> dict[Path, Any]:
    script = Path(__file__).with_name("load.mjs")
    paths = list(paths)
    answers: dict[Path, Any] = {}
    with deep():
        for start in range(0, len(paths), 100):  # the length of a command line is limited
            command = [NODE, str(script), str(ORACLE), *map(str, paths[start : start + 100])]
            lines = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
            answers |= {Path(answer["file"]): answer["record"] for answer in map(json.loads, lines)}
    return answers


@cache
def cuts_at_separators() -> bool:
    """Return whether the client's reader cuts lines at U+2028 and U+2029 on this Node.js."""
    version = subprocess.run([NODE, "--version"], capture_output=True, check=True, text=True).stdout
    return int(version.lstrip("v").partition(".")[0]) >= 24


def as_cut(path: Path, folder: Path) -> Path:
    """Return the file as the asked Node.js reads it: from 24 on, a line ends at each separator."""
    data = path.read_bytes()
    if path.suffix != ".jsonl" or not has_separator(data) or not cuts_at_separators():
        return path
    for separator in SEPARATORS:
        data = data.replace(separator, b"\n")
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / path.name
    copy.write_bytes(data)
    return copy


@contextmanager
def deep() -> Iterator[None]:
    """Raise the recursion limit, so that Python compares values nested as deeply as the client reads."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def edge_file(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "session-2026-11-15T19-30-6ece72aa.jsonl"
    path.write_bytes(EDGES[name])
    return path


@cache
def _edge_answers() -> dict[str, bytes]:
    """Return the stored results undecoded, because some are nested too deeply for a normal decoder."""
    lines = EDGE_ANSWERS.read_bytes().splitlines()
    return dict(zip(EDGES, lines, strict=True))


def _answer(file: str, record: Any) -> bytes:  # noqa: ANN401
    return json.dumps({"file": file, "record": record}, separators=(",", ":")).encode() + b"\n"


def _name(tree: Tree, path: Path) -> str:
    return path.relative_to(tree.folder).as_posix()
