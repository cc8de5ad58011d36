"""The files that sessions touched, and the history of one file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import NAME, OTHER, ROOT, SESSION, Wire, call, chats, gemini, header, log, put, rewind, tokens, user

from pollux.library.config import configure
from pollux.library.file_history import FileHistory
from pollux.library.filters import Filter
from pollux.library.library import Library
from pollux.library.values import Page
from pollux.views.diffs import LineChange


def edit(id_: str, path: str, old: str, new: str, **more: object) -> Wire:
    """Return an edit as the client records it."""
    patch = f"Index: x\n--- x\n+++ x\n@@ -1,1 +1,1 @@\n-{old}\n+{new}\n"
    shown = {"fileDiff": patch, "fileName": "x", "filePath": path, "originalContent": old, "newContent": new}
    return call(id_, "replace", args={"file_path": path}, resultDisplay=shown, **more)


@pytest.fixture(params=["archive", "files"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Library]:
    """Open a library of two sessions that touch a file by its absolute and by its relative path."""
    home = tmp_path / "home"
    first = log(
        header(),
        user("u1", "read it"),
        gemini("g1", "", second=2, tokens=tokens(), toolCalls=[call("c1", args={"file_path": "src/a.py"})]),
        gemini(
            "g2",
            "",
            second=4,
            tokens=tokens(11),
            toolCalls=[
                edit("c2", f"{ROOT}/src/a.py", "one", "two"),
                edit("c3", f"{ROOT}/src/b.py", "x", "y"),
                edit("c4", f"{ROOT}/src/a.py", "two", "never", status="error"),
            ],
        ),
        user("u2", "wrong", second=5),
        gemini("g3", "", second=6, tokens=tokens(12), toolCalls=[edit("c5", f"{ROOT}/src/a.py", "two", "three")]),
        rewind("u2"),
    )
    put(chats(home) / f"{NAME}.jsonl", first)
    replaced = call("d1", "replace", args={"file_path": "src/a.py", "old_string": "two", "new_string": "ten\neleven"})
    second = log(header(OTHER), user("x1", "again", second=8), gemini("y1", "", second=9, toolCalls=[replaced]))
    put(chats(home) / "session-2026-11-15T19-40-b3e2640d.jsonl", second)
    archive = tmp_path / "archive.db" if request.param == "archive" else None
    with Library(configure(named_homes=[home], archive=archive)) as library:
        yield library


def test_a_file_is_listed_once_with_all_its_touches(library: Library) -> None:
    a, b = library.used_files().rows
    assert (a.use.path, b.use.path) == ("src/a.py", "src/b.py")
    assert a.project.path == ROOT
    assert (a.use.n_reads, a.use.n_changes, a.use.n_sessions) == (1, 3, 2)
    assert (a.use.lines_added, a.use.lines_removed) == (2, 2)  # the last change was recorded without a diff
    assert (b.use.n_reads, b.use.n_changes, b.use.n_sessions) == (0, 1, 1)
    assert library.used_files().total == 2


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        ("A.PY", ["src/a.py"]),
        ("src b", ["src/b.py"]),
        ("*.py", ["src/a.py", "src/b.py"]),
        ("src/?.py", ["src/a.py", "src/b.py"]),
        ("*.rs", []),
        ("src [", []),
        ("' OR 1=1", []),
    ],
)
def test_words_choose_files(library: Library, words: str, paths: list[str]) -> None:
    assert [row.use.path for row in library.used_files(words).rows] == paths


def test_pages_of_files_go_on_until_their_end(library: Library) -> None:
    first = library.used_files(page=Page(1))
    assert first.next is not None
    second = library.used_files(page=Page(1, first.next))
    assert second.next is None
    assert [row.use.path for row in (*first.rows, *second.rows)] == ["src/a.py", "src/b.py"]


def added(history: FileHistory, number: int) -> list[str]:
    (diff,) = history.rows[number].diffs
    return [line.text for line in diff.lines if line.change is LineChange.ADD]


@pytest.mark.parametrize("path", ["src/a.py", f"{ROOT}/src/a.py"])
def test_history_has_every_touch_with_its_diff(library: Library, path: str) -> None:
    history = library.file_history(path)
    assert history.total == 4
    assert [(row.file.op, row.file.session_id, row.file.fate) for row in history.rows] == [
        ("edit", OTHER, "active"),
        ("edit", SESSION, "rewound"),
        ("edit", SESSION, "active"),
        ("read", SESSION, "active"),
    ]
    assert [added(history, number) for number in range(3)] == [["ten", "eleven"], ["three"], ["two"]]
    assert history.rows[3].diffs == ()
    assert history.rows[2].file.title == "read it"


def test_history_is_limited_to_a_filter_and_a_page(library: Library) -> None:
    first = library.file_history("src/a.py", Page(3))
    assert len(first.rows) == 3
    assert first.next == "3"
    rest = library.file_history("src/a.py", Page(3, first.next))
    assert [row.file.op for row in rest.rows] == ["read"]
    assert rest.next is None
    assert library.file_history("src/a.py", wanted=Filter(project=ROOT)).total == 4
    assert library.file_history("src/a.py", wanted=Filter(model="nothing-like-it")).total == 0
    assert library.file_history("no/such.py").rows == ()


def test_touches_are_those_of_the_list_for_programs(library: Library) -> None:
    every = [row for row in library.touched_files().rows if row.path.endswith("a.py")]
    assert list(library.touches_of_file("src/a.py").rows) == every
