from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pollux.sessions.projects.paths import project_hash
from pollux.sessions.projects.resolve import (
    PathClaim,
    ProjectClaims,
    load_project_paths,
    read_claims,
    save_project_paths,
)

WEBAPP = "/home/alice/dev/webapp"
WINDOWS = "C:\\Users\\Alice\\Dev\\WebApp"
DIGEST = project_hash(WEBAPP)
WINDOWS_DIGEST = project_hash(WINDOWS)
OTHER_DIGEST = project_hash("/elsewhere")


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_claims_are_read_from_markers_registry_and_trusted_folders(tmp_path: Path) -> None:
    put(tmp_path / "tmp" / "webapp" / ".project_root", f"{WEBAPP}\n")
    put(tmp_path / "tmp" / "a file", "")
    (tmp_path / "tmp" / "unmarked").mkdir()
    put(tmp_path / "history" / "old" / ".project_root", "/old")
    put(tmp_path / "projects.json", json.dumps({"projects": {WEBAPP: "webapp", "/lost": "lost"}}))
    (tmp_path / "trustedFolders.json").write_bytes(
        b'\xef\xbb\xbf{"relative": "TRUST_FOLDER", "/trusted": "TRUST_FOLDER"}'
    )
    claims = read_claims(tmp_path, tmp_path / "tmp", tmp_path)
    assert claims.claims == (
        PathClaim("project_root", WEBAPP, "webapp"),
        PathClaim("project_root", "/old", "old"),
        PathClaim("projects.json", WEBAPP, "webapp"),
        PathClaim("projects.json", "/lost", "lost"),
        PathClaim("trustedFolders.json", "/trusted"),
    )
    assert claims.by_folder["webapp"] == claims.by_hash[DIGEST] == PathClaim("project_root", WEBAPP, "webapp")
    assert claims.problems == ()


def test_empty_home_has_no_claims(tmp_path: Path) -> None:
    assert read_claims(tmp_path, tmp_path / "tmp", tmp_path) == ProjectClaims()


def test_broken_files_are_problems(tmp_path: Path) -> None:
    put(tmp_path / "tmp" / "empty" / ".project_root", "\n")
    (tmp_path / "tmp" / "folder" / ".project_root").mkdir(parents=True)
    put(tmp_path / "history", "")
    put(tmp_path / "projects.json", '{"projects": {"/lost": 1, "relative": "x", "/kept": "kept"}}')
    put(tmp_path / "trustedFolders.json", '{"/cut')
    claims = read_claims(tmp_path, tmp_path / "tmp", tmp_path)
    assert claims.claims == (PathClaim("projects.json", "/kept", "kept"),)
    assert sorted(
        (problem.code, Path(problem.file or "").relative_to(tmp_path).as_posix()) for problem in claims.problems
    ) == [
        ("broken-json", "trustedFolders.json"),
        ("broken-marker", "tmp/empty/.project_root"),
        ("broken-registry", "projects.json"),
        ("broken-registry", "projects.json"),
        ("unreadable-file", "tmp/folder/.project_root"),
        ("unreadable-folder", "history"),
    ]


@pytest.mark.parametrize(
    ("registry", "code"),
    [
        ('{"projects": []}', "broken-registry"),
        ("[]", "broken-json"),
        ("[" * 100_000, "broken-json"),
        ("\udcff", "broken-json"),
    ],
)
def test_a_broken_registry_is_a_problem(tmp_path: Path, registry: str, code: str) -> None:
    (tmp_path / "projects.json").write_bytes(registry.encode("utf-8", "surrogateescape"))
    assert [problem.code for problem in read_claims(tmp_path, tmp_path / "tmp", tmp_path).problems] == [code]


def test_an_unreadable_registry_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "projects.json").mkdir()
    claims = read_claims(tmp_path, tmp_path / "tmp", tmp_path)
    assert [problem.code for problem in claims.problems] == ["unreadable-file"]


def test_memory_keeps_only_paths_that_fit_their_hash(tmp_path: Path) -> None:
    file = tmp_path / "data" / "pollux" / "projects.json"
    assert load_project_paths(file) == {}
    assert save_project_paths(file, {DIGEST: WEBAPP, OTHER_DIGEST: "/wrong"}) is None
    assert save_project_paths(file, {WINDOWS_DIGEST: WINDOWS}) is None
    assert load_project_paths(file) == {DIGEST: WEBAPP, WINDOWS_DIGEST: WINDOWS}
    assert [path.name for path in file.parent.iterdir()] == ["projects.json"]
    if os.name == "posix":
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_memory_is_not_written_without_new_paths(tmp_path: Path) -> None:
    file = tmp_path / "projects.json"
    assert save_project_paths(file, {}) is None
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"paths": []}', f'{{"paths": {{"{DIGEST}": "/forged", "x": 1}}}}'])
def test_broken_memory_is_empty_and_replaced(tmp_path: Path, text: str) -> None:
    file = tmp_path / "projects.json"
    put(file, text)
    assert load_project_paths(file) == {}
    assert save_project_paths(file, {DIGEST: WEBAPP}) is None
    assert load_project_paths(file) == {DIGEST: WEBAPP}


def test_memory_of_a_newer_pollux_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "projects.json"
    put(file, '{"schema": "pollux.project-paths/2"}')
    problem = save_project_paths(file, {DIGEST: WEBAPP})
    assert problem is not None
    assert problem.code == "newer-memory"
    assert load_project_paths(file) == {}


def test_unwritable_memory_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path / "file", "")
    (tmp_path / "folder").mkdir()
    for file in (tmp_path / "file" / "projects.json", tmp_path / "folder"):
        problem = save_project_paths(file, {DIGEST: WEBAPP})
        assert problem is not None
        assert (problem.code, problem.file) == ("memory-not-stored", str(file))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
