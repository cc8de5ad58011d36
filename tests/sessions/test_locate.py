from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import pytest

from pollux.sessions.homes import Home, homes
from pollux.sessions.locate import HomeScan, ProjectFolder, locate, name_facts

HASH = "8d46cd8ee49a82f63b11dc3dd3d68d5ba59f6ab5cf0bbc4eceedd1954c23904e"
SESSION = "session-2026-11-15T19-30-6ece72aa.jsonl"
PARENT = "6ece72aa-5955-4bdb-8380-88eda48ac048"

needs_links = pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")


def put(path: Path, text: str = "{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def session(tmp: Path, project: str = "webapp", name: str = SESSION) -> Path:
    return put(tmp / project / "chats" / name)


def located(tmp: Path) -> HomeScan:
    return locate([Home(tmp.parent, tmp, "--home")])


def only_folder(tmp: Path) -> ProjectFolder:
    (folder,) = located(tmp).folders
    return folder


def names(tmp: Path) -> list[str]:
    return [folder.name for folder in located(tmp).folders]


def files(tmp: Path) -> list[tuple[str, str]]:
    return [(file.path.relative_to(tmp).as_posix(), file.what) for file in located(tmp).files]


def test_files_of_a_project_are_classified_by_name(tmp_path: Path) -> None:
    names = [
        SESSION,
        "session-1794771517802-6ece72aa.json",
        f"{SESSION}.unreadable-1794771517802",
        f"{SESSION}.tmp-4711",
        f"{PARENT}/k3x9qa.json",
        f"{PARENT}/k3x9qa.jsonl.tmp-4711",
        f"{PARENT}/notes.txt",
        f"{PARENT}/deeper/k3x9qa.json",
        "other.json",
        "session-notes.txt",
    ]
    for name in names:
        session(tmp_path, name=name)
    assert files(tmp_path) == [
        (f"webapp/chats/{PARENT}/k3x9qa.json", "subagent"),
        (f"webapp/chats/{PARENT}/k3x9qa.jsonl.tmp-4711", "leftover"),
        ("webapp/chats/session-1794771517802-6ece72aa.json", "session"),
        (f"webapp/chats/{SESSION}", "session"),
        (f"webapp/chats/{SESSION}.tmp-4711", "leftover"),
        (f"webapp/chats/{SESSION}.unreadable-1794771517802", "leftover"),
    ]
    assert [file.parent for file in only_folder(tmp_path).files] == [PARENT, PARENT, None, None, None, None]
    assert not located(tmp_path).problems


def test_located_file_has_size_time_and_inode(tmp_path: Path) -> None:
    path = session(tmp_path)
    (file,) = only_folder(tmp_path).files
    status = path.stat()
    assert (file.path, file.folder, file.home) == (path, "webapp", Home(tmp_path.parent, tmp_path, "--home"))
    assert (file.size, file.mtime_ns) == (2, status.st_mtime_ns)
    assert file.inode in {status.st_ino, 0}  # Windows does not return it while listing


def test_other_files_of_a_project_are_sorted_by_kind(tmp_path: Path) -> None:
    project = tmp_path / HASH
    kept = {
        "logs": ["logs.json"],
        "checkpoints": ["checkpoint-my%20tag.json", "checkpoint.json"],
        "restore_points": ["checkpoints/2026-11-15T19-59-25_650Z-made.txt-write_file.json"],
        "tool_outputs": [f"tool-outputs/session-{PARENT}", "tool_output/glob_1.txt", "call.output", "glob_1.txt"],
        "shell_history": ["shell_history"],
        "activity_logs": [f"logs/session-{PARENT}.jsonl"],
        "others": ["bug-report-history-1.json", "chats-notes", "logs.json.invalid_json.1.bak", "plans"],
    }
    put(project / "tool-outputs" / f"session-{PARENT}" / "call.txt")
    put(project / "plans" / "plan.md")
    put(project / "checkpoints" / "notes.md")
    for name in chain.from_iterable(kept.values()):
        if not (project / name).exists():
            put(project / name)
    folder = only_folder(tmp_path)
    assert (folder.path, folder.name, folder.has_marker) == (project, HASH, False)
    for field, expected in kept.items():
        value = getattr(folder, field)
        paths = value if isinstance(value, tuple) else (value,)
        assert [path.relative_to(project).as_posix() for path in paths] == expected


def test_folders_with_sessions_or_markers_are_projects(tmp_path: Path) -> None:
    put(tmp_path / "marked" / ".project_root", "/p")
    put(tmp_path / "bin" / "logs.json")
    put(tmp_path / "background-processes" / "background-1.log")
    put(tmp_path / "logged" / "logs.json")
    put(tmp_path / "saved" / "checkpoint-tag.json")
    put(tmp_path / "stranger" / "chats")
    put(tmp_path / "a file")
    (tmp_path / HASH).mkdir()
    session(tmp_path, "chatty")
    assert names(tmp_path) == [HASH, "chatty", "logged", "marked", "saved"]
    put(tmp_path / "bin" / ".project_root", "/home/me/bin")
    assert names(tmp_path) == [HASH, "bin", "chatty", "logged", "marked", "saved"]


def test_unlistable_folder_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(tmp_path, "locked")
    session(tmp_path)
    scandir = os.scandir

    def refuse(path: str) -> Iterator[os.DirEntry[str]]:
        if path.endswith(f"locked{os.sep}chats"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    scan = located(tmp_path)
    assert [(folder.name, len(folder.files)) for folder in scan.folders] == [("locked", 0), ("webapp", 1)]
    (problem,) = scan.problems
    assert problem.code == "unreadable-folder"
    assert problem.message == "cannot be listed: Permission denied"
    assert problem.file == str(tmp_path / "locked" / "chats")


def test_tmp_that_is_a_file_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path / "tmp")
    assert [problem.code for problem in located(tmp_path / "tmp").problems] == ["unreadable-folder"]


@needs_links
def test_broken_links_and_pipes_are_problems(tmp_path: Path) -> None:
    path = session(tmp_path)
    (path.parent / "session-gone.json").symlink_to("nowhere")
    os.mkfifo(path.parent / "session-pipe.json")
    scan = located(tmp_path)
    assert [file.path for file in scan.files] == [path]
    assert [problem.code for problem in scan.problems] == ["vanished-file", "not-a-file"]


@needs_links
def test_loop_of_links_is_a_problem(tmp_path: Path) -> None:
    session(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "webapp" / "chats" / "up").symlink_to("..")
    assert homes([tmp_path], {}, tmp_path)[0].tmp == tmp_path
    scan = located(tmp_path)
    assert [file.path.name for file in scan.files] == [SESSION]
    assert [(problem.code, problem.file) for problem in scan.problems] == [
        ("unreadable-folder", str(tmp_path / "loop")),
    ]


@needs_links
def test_linked_file_belongs_to_the_folder_of_its_target(tmp_path: Path) -> None:
    tmp = tmp_path / "tmp"
    path = session(tmp, "webapp")
    (tmp / "alias").symlink_to("webapp")
    put(tmp / "borrower" / "logs.json")
    (tmp / "borrower" / "chats").symlink_to("../webapp/chats")
    (path.parent / "session-again.jsonl").symlink_to(SESSION)
    scan = located(tmp)
    assert [(folder.name, len(folder.files)) for folder in scan.folders] == [("borrower", 0), ("webapp", 1)]
    assert [file.path for file in scan.files] == [path]


@needs_links
def test_link_out_of_the_home_is_a_problem_and_not_followed(tmp_path: Path) -> None:
    tmp = tmp_path / ".gemini" / "tmp"
    own = session(tmp, "own")
    put(tmp_path / "private" / "chats" / SESSION)
    put(tmp / "chats-linked" / "logs.json")
    links = {
        tmp / "chats-linked" / "chats": tmp_path / "private" / "chats",
        tmp / "own" / "chats" / "session-2026-11-15T19-30-aaaaaaaa.jsonl": tmp_path / "private" / "chats" / SESSION,
        tmp / ("0" * 64): tmp_path / "private",
    }
    for link, target in links.items():
        link.symlink_to(target)
    scan = located(tmp)
    assert [file.path for file in scan.files] == [own]
    assert {(problem.code, problem.file) for problem in scan.problems} == {
        ("link-outside", str(link)) for link in links
    }


@needs_links
def test_link_inside_the_home_is_followed_once(tmp_path: Path) -> None:
    tmp = tmp_path / ".gemini" / "tmp"
    put(tmp_path / ".gemini" / "disk" / SESSION)
    for project in ("one", "two"):
        put(tmp / project / "logs.json")
        (tmp / project / "chats").symlink_to(tmp_path / ".gemini" / "disk")
    scan = located(tmp)
    assert [file.path for file in scan.files] == [tmp / "one" / "chats" / SESSION]
    assert scan.problems == ()


@needs_links
def test_linked_tmp_is_read_without_problems(tmp_path: Path) -> None:
    path = session(tmp_path / "disk")
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "tmp").symlink_to(tmp_path / "disk")
    scan = located(tmp_path / ".gemini" / "tmp")
    assert [file.path.resolve() for file in scan.files] == [path]
    assert scan.problems == ()


@pytest.mark.parametrize(
    ("name", "at", "id8"),
    [
        (SESSION, datetime(2026, 11, 15, 19, 30, tzinfo=UTC), "6ece72aa"),
        ("session-2025-09-18T02-45-3b44bc68.json", datetime(2025, 9, 18, 2, 45, tzinfo=UTC), "3b44bc68"),
        ("session-2025-09-18T02-45-59-3b44bc68.json", datetime(2025, 9, 18, 2, 45, tzinfo=UTC), "3b44bc68"),
        ("session-2025-09-18T02-45-my-run.json", datetime(2025, 9, 18, 2, 45, tzinfo=UTC), "my-run"),
        ("session-2025-09-18T02-45-12-34567.json", datetime(2025, 9, 18, 2, 45, tzinfo=UTC), "12-34567"),
        ("session-1794771517802-a.jsonl", datetime(2026, 11, 15, 19, 38, 37, 802000, tzinfo=UTC), "a"),
        (f"{SESSION}.unreadable-1794771517802", datetime(2026, 11, 15, 19, 30, tzinfo=UTC), "6ece72aa"),
        ("session-2026-13-15T19-30-6ece72aa.jsonl", None, "6ece72aa"),
        ("session-2026-11-15T19-30-6ece72aa1.jsonl", datetime(2026, 11, 15, 19, 30, tzinfo=UTC), None),
        ("session-2026-11-15T19-30.json", datetime(2026, 11, 15, 19, 30, tzinfo=UTC), None),
        ("session-2026-11-15T19-301-6ece72aa.json", None, None),
        ("k3x9qa.json", None, None),
    ],
)
def test_name_facts_are_the_time_and_the_short_id(name: str, at: datetime | None, id8: str | None) -> None:
    assert name_facts(name) == (at, id8)
