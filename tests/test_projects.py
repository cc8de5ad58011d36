from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Never

import pytest

from pollux.locate import Home
from pollux.model import Json, Project
from pollux.projects import (
    Claim,
    Known,
    argument_paths,
    find,
    known_from_claims,
    known_paths,
    likely_roots,
    load_memory,
    moved_to,
    project_hash,
    rank,
    remember,
    resolve,
    scan,
    slug,
    workspace_directories,
)

WEBAPP = "/home/alice/dev/webapp"
WINDOWS = "C:\\Users\\Alice\\Dev\\WebApp"
DIGEST = project_hash(WEBAPP)
WINDOWS_DIGEST = project_hash(WINDOWS)
OTHER_DIGEST = project_hash("/elsewhere")

CONTEXT = f"""<session_context>
This is the Gemini CLI. We are setting up the context for our chat.
My operating system is: linux
The project's temporary directory is: /home/alice/.gemini/tmp/webapp
- **Workspace Directories:**
  - {WEBAPP}
  - /home/alice/Büro - Notizen
- **Directory Structure:**

Showing up to 200 items (files + folders).
</session_context>"""

OLD_CONTEXT = f"""This is the Gemini CLI. We are setting up the context for our chat.
  My operating system is: linux
  I'm currently working in the directory: {WEBAPP}
  Showing up to 200 items (files + folders)."""


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def home(root: Path) -> Home:
    return Home(root, root / "tmp", "--home")


def project(path: str | None = WEBAPP, **fields: str | None) -> Project:
    return Project(**{"hash": project_hash(path) if path else None, "path": path, **fields})  # type: ignore[arg-type]


def unread() -> Iterator[Never]:
    raise AssertionError
    yield


def test_the_hash_is_the_clients() -> None:
    path = "/tmp/corpus/home/carol/dev/webapp"  # noqa: S108  # where the corpus was made
    assert project_hash(path) == "8d46cd8ee49a82f63b11dc3dd3d68d5ba59f6ab5cf0bbc4eceedd1954c23904e"
    assert project_hash("/caf\udce9") == project_hash("/caf\ufffd")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (WEBAPP, "webapp"),
        (f"{WEBAPP}/", "webapp"),
        ("/home/alice/Büro Notizen", "b-ro-notizen"),
        ("/home/alice/--My__App--", "my-app"),
        ("/home/alice/日本語", "project"),
        ("/", "project"),
        (WINDOWS, "webapp"),
        ("C:\\", "project"),
    ],
)
def test_slug(path: str, expected: str) -> None:
    assert slug(path) == expected


def test_what_a_home_says(tmp_path: Path) -> None:
    put(tmp_path / "tmp" / "webapp" / ".project_root", f"{WEBAPP}\n")
    put(tmp_path / "tmp" / "a file", "")
    (tmp_path / "tmp" / "unmarked").mkdir()
    put(tmp_path / "history" / "old" / ".project_root", "/old")
    put(tmp_path / "projects.json", json.dumps({"projects": {WEBAPP: "webapp", "/lost": "lost"}}))
    (tmp_path / "trustedFolders.json").write_bytes(
        b'\xef\xbb\xbf{"relative": "TRUST_FOLDER", "/trusted": "TRUST_FOLDER"}'
    )
    known = known_paths(home(tmp_path))
    assert known.claims == (
        Claim("project_root", WEBAPP, "webapp"),
        Claim("project_root", "/old", "old"),
        Claim("projects.json", WEBAPP, "webapp"),
        Claim("projects.json", "/lost", "lost"),
        Claim("trustedFolders.json", "/trusted"),
    )
    assert known.by_folder["webapp"] == known.by_hash[DIGEST] == Claim("project_root", WEBAPP, "webapp")
    assert known.problems == ()


def test_an_empty_home_says_nothing(tmp_path: Path) -> None:
    assert known_paths(home(tmp_path)) == Known()


def test_broken_files_are_problems(tmp_path: Path) -> None:
    put(tmp_path / "tmp" / "empty" / ".project_root", "\n")
    (tmp_path / "tmp" / "folder" / ".project_root").mkdir(parents=True)
    put(tmp_path / "history", "")
    put(tmp_path / "projects.json", '{"projects": {"/lost": 1, "relative": "x", "/kept": "kept"}}')
    put(tmp_path / "trustedFolders.json", '{"/cut')
    known = known_paths(home(tmp_path))
    assert known.claims == (Claim("projects.json", "/kept", "kept"),)
    assert [
        (problem.code, Path(problem.file or "").relative_to(tmp_path).as_posix()) for problem in known.problems
    ] == [
        ("broken-marker", "tmp/empty/.project_root"),
        ("unreadable-marker", "tmp/folder/.project_root"),
        ("unreadable-folder", "history"),
        ("broken-registry", "projects.json"),
        ("broken-registry", "projects.json"),
        ("broken-json", "trustedFolders.json"),
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
    assert [problem.code for problem in known_paths(home(tmp_path)).problems] == [code]


def test_an_unreadable_registry_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "projects.json").mkdir()
    assert [problem.code for problem in known_paths(home(tmp_path)).problems] == ["unreadable-file"]


CLAIMS = [
    Claim("project_root", WEBAPP, "webapp"),
    Claim("projects.json", WEBAPP, "webapp"),
    Claim("trustedFolders.json", WEBAPP),
]


@pytest.mark.parametrize("skipped", range(4))
def test_order_of_what_a_home_proves(skipped: int) -> None:
    expected = [*CLAIMS, Claim("directories", WEBAPP)][skipped]
    known = known_from_claims(CLAIMS[skipped:])
    assert resolve(
        DIGEST, DIGEST, known, directories=[WEBAPP], session_context=[WEBAPP], arguments=unread()
    ) == Project(DIGEST, expected.folder, WEBAPP, expected.how, proven=True)


def test_order_of_what_else_proves() -> None:
    found = []
    told = {
        "session_context": ["/first", WEBAPP],
        "scanned": {DIGEST: WEBAPP},
        "arguments": ["/first/x", f"{WEBAPP}/app/../app/board.py"],
        "memory": {DIGEST: WEBAPP},
    }
    for kind in tuple(told):
        found.append(resolve(DIGEST, DIGEST, **told))  # type: ignore[arg-type]
        del told[kind]
    assert [one.how for one in found] == ["session_context", "scan", "arguments", "memory"]
    assert {(one.path, one.proven) for one in found} == {(WEBAPP, True)}
    assert resolve(DIGEST, DIGEST) == Project(DIGEST)


def test_a_proof_beats_the_marker() -> None:
    known = known_from_claims([Claim("project_root", "/moved/webapp", "webapp")])
    assert resolve(DIGEST, "webapp", known) == Project(DIGEST, "webapp", "/moved/webapp", "project_root")
    assert resolve(DIGEST, "webapp", known, session_context=[WEBAPP]) == Project(
        DIGEST, "webapp", WEBAPP, "session_context", proven=True
    )


def test_the_registry_of_windows_is_in_lower_case() -> None:
    known = known_from_claims([Claim("projects.json", WINDOWS.lower(), "webapp")])
    assert resolve(WINDOWS_DIGEST, "webapp", known) == Project(
        WINDOWS_DIGEST, "webapp", WINDOWS.lower(), "projects.json"
    )
    assert resolve(WINDOWS_DIGEST, "webapp", known, arguments=["C:/Users/Alice/Dev/WebApp/src/x.ts"]) == Project(
        WINDOWS_DIGEST, "webapp", WINDOWS, "arguments", proven=True
    )


def test_a_drive_has_two_spellings() -> None:
    spelled = f"c{WINDOWS[1:]}"
    assert resolve(WINDOWS_DIGEST, None, directories=[spelled]).path == WINDOWS
    assert resolve(project_hash("\\\\host\\share\\x"), None, directories=["\\\\host\\share\\x\\"]).proven


def test_the_folder_stands_in_for_a_missing_hash() -> None:
    assert resolve(None, DIGEST, directories=[WEBAPP]).proven


def test_a_path_is_believed_if_its_slug_fits() -> None:
    assert resolve(None, "webapp-1", session_context=["/skills/x", WEBAPP]) == Project(
        None, "webapp-1", WEBAPP, "session_context"
    )
    assert resolve(OTHER_DIGEST, "notes", directories=[WEBAPP]) == Project(OTHER_DIGEST, "notes")
    assert resolve(None, "webapp", arguments=[f"{WEBAPP}/a", f"{WEBAPP}/b"]) == Project(
        None, "webapp", WEBAPP, "arguments"
    )
    assert resolve(None, "webapp", arguments=[WEBAPP, "/old/webapp"]) == Project(None, "webapp")


def test_a_path_is_not_believed_against_its_hash() -> None:
    assert resolve(OTHER_DIGEST, OTHER_DIGEST, session_context=[WEBAPP]).path is None
    assert resolve(OTHER_DIGEST, OTHER_DIGEST, session_context=[WINDOWS]).path == WINDOWS
    assert resolve(None, None, session_context=["relative"], arguments=["relative"]) == Project()
    assert resolve(None, None, session_context=[WEBAPP]) == Project(None, None, WEBAPP, "session_context")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CONTEXT, (WEBAPP, "/home/alice/Büro - Notizen")),
        (CONTEXT.replace("\n", "\r\n").replace(WEBAPP, WINDOWS), (WINDOWS, "/home/alice/Büro - Notizen")),
        (f"- **Workspace Directories:**\n  - {WEBAPP}", (WEBAPP,)),
        (OLD_CONTEXT, (WEBAPP,)),
        (f"I'm currently working in the following directories:\n  - {WEBAPP}\n  - /b\nHere is the", (WEBAPP, "/b")),
        ("I'm currently working in the directory: nowhere", ()),
        ("Which are my **Workspace Directories:**\n  - /a", ()),
        ("", ()),
    ],
)
def test_workspace_directories(text: str, expected: tuple[str, ...]) -> None:
    assert workspace_directories(text) == expected


def test_argument_paths() -> None:
    arguments: Json = {
        "file_path": f"{WEBAPP}/app.py",
        "paths": ["relative", WINDOWS, {"deep": "/deep"}],
        "content": "/* a\n comment */",
        "command": f"cd {WEBAPP} && curl https://host/x -o=/out/y 'C:/Dev' a/b ~/c $HOME/d",
        "limit": 3,
        "empty": None,
    }
    assert list(argument_paths(arguments)) == [f"{WEBAPP}/app.py", WINDOWS, "/deep", WEBAPP, "/out/y", "C:/Dev"]
    assert list(argument_paths({"command": ["/x"]})) == ["/x"]


def test_memory_keeps_what_is_proven(tmp_path: Path) -> None:
    file = tmp_path / "data" / "pollux" / "projects.json"
    assert load_memory(file) == {}
    assert remember(file, {DIGEST: WEBAPP, OTHER_DIGEST: "/wrong"}) is None
    assert remember(file, {WINDOWS_DIGEST: WINDOWS}) is None
    assert load_memory(file) == {DIGEST: WEBAPP, WINDOWS_DIGEST: WINDOWS}
    assert [path.name for path in file.parent.iterdir()] == ["projects.json"]
    if os.name == "posix":
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_memory_is_left_alone_if_there_is_nothing_new(tmp_path: Path) -> None:
    file = tmp_path / "projects.json"
    assert remember(file, {}) is None
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"paths": []}', f'{{"paths": {{"{DIGEST}": "/forged", "x": 1}}}}'])
def test_a_broken_memory_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "projects.json"
    put(file, text)
    assert load_memory(file) == {}
    assert remember(file, {DIGEST: WEBAPP}) is None
    assert load_memory(file) == {DIGEST: WEBAPP}


def test_the_memory_of_a_newer_pollux_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "projects.json"
    put(file, '{"schema": "pollux.project-paths/2"}')
    problem = remember(file, {DIGEST: WEBAPP})
    assert problem is not None
    assert problem.code == "newer-memory"
    assert load_memory(file) == {}


def test_a_memory_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path / "file", "")
    (tmp_path / "folder").mkdir()
    for file in (tmp_path / "file" / "projects.json", tmp_path / "folder"):
        problem = remember(file, {DIGEST: WEBAPP})
        assert problem is not None
        assert (problem.code, problem.file) == ("memory-not-kept", str(file))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def hashes(*paths: Path) -> dict[str, str]:
    return {project_hash(str(path)): str(path) for path in paths}


def test_scan_finds_folders_by_hash(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    wanted = [root, root / "dev" / "webapp", root / ".dotfiles", root / "a" / "b" / "c"]
    hidden = [root / ".dotfiles" / "x", root / "node_modules" / "x", root / "a" / "b" / "c" / "d"]
    for folder in (*wanted, *hidden):
        folder.mkdir(parents=True, exist_ok=True)
    put(root / "a" / "file", "")
    assert scan([root, root / "gone"], hashes(*wanted, *hidden)) == hashes(*wanted)
    assert scan([root], hashes(*wanted), depth=1) == hashes(root, root / ".dotfiles")
    assert scan([root], hashes(*wanted), limit=1) == hashes(root)
    assert scan([root, root / "a"], hashes(hidden[-1])) == hashes(hidden[-1])
    assert scan([root, root], {OTHER_DIGEST}) == {}


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_scan_follows_no_links(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "real" / "webapp").mkdir(parents=True)
    (root / "dev").mkdir()
    (root / "dev" / "link").symlink_to("../real")
    assert scan([root / "dev"], hashes(root / "dev" / "link", root / "real" / "webapp")) == {}
    assert scan([root / "dev" / "link"], hashes(root / "real" / "webapp")) == hashes(root / "real" / "webapp")


def test_likely_roots(tmp_path: Path) -> None:
    for name in ("Projects", "dev", "Music", ".git"):
        (tmp_path / name).mkdir()
    assert likely_roots(tmp_path) == (tmp_path / "Projects", tmp_path / "dev", tmp_path)


DEV = Path("/home/alice/dev")
ALICE = Path("/home/alice")
PROJECTS = (
    project(),
    project("/home/alice/old/webapp", slug="webapp-1"),
    project(f"{WEBAPP}/packages/api"),
    project("/home/alice"),
    project(WINDOWS),
    Project(hash=project_hash("/home/alice/dev/secret"), slug=None),
    Project(slug="orphan"),
)


@pytest.mark.skipif(os.name == "nt", reason="these are POSIX paths")
@pytest.mark.parametrize(
    ("query", "cwd", "expected"),
    [
        (".", DEV / "webapp", [0]),
        (".", DEV / "secret", [5]),
        (".", DEV / "webapp" / "packages", [2]),
        (".", DEV / "webapp" / "src" / "deep", [0]),
        (".", DEV, [0, 2]),
        (".", DEV / "secret" / "src", [5]),
        (".", ALICE / "Music", [3]),
        (".", Path("/srv"), []),
        ("..", DEV / "webapp" / "src", [0]),
        ("./webapp", DEV, [0]),
        ("../old/webapp", DEV, [1]),
        ("~", DEV, [3]),
        ("~/dev/webapp/", DEV, [0]),
        ("~/dev/webap", DEV, []),
        ("~alice/dev", DEV, []),
        (f"{WEBAPP}/packages", DEV, [2]),
        ("/", DEV, [0, 1, 2, 3]),
        ("c:/users/alice/dev/webapp", DEV, [4]),
        ("c:\\users", DEV, [4]),
        ("webapp/packages", DEV, [2]),
        ("alice/dev", DEV, [0, 2, 4]),
        ("webapp", DEV, [0, 1, 4]),
        ("webapp-1", DEV, [1]),
        ("PACKAGES", DEV, [2]),
        (DIGEST[:4], DEV, [0]),
        (f"[{PROJECTS[5].hash}]"[:9] + "]", DEV, [5]),
        ("orph", DEV, [6]),
        ("orhpan", DEV, [6]),
        ("nothing like it", DEV, []),
        ("", DEV, []),
    ],
)
def test_find(query: str, cwd: Path, expected: list[int]) -> None:
    found = find(PROJECTS, query, cwd, ALICE)
    assert [PROJECTS.index(one) for one in found] == expected


def test_rank_orders_what_fits() -> None:
    ranks = [rank(project(), query, DEV, ALICE) for query in ("webapp", DIGEST[:8], "dev", "x")]
    assert ranks == [1000, 1001, 1002, None]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_a_typed_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert rank(project(str(tmp_path.resolve() / "real")), "./link", tmp_path, ALICE) == 0


def test_a_project_that_moved() -> None:
    there = {"/new/webapp", "/new/other", "/also/webapp"}
    paths = [WEBAPP, "/new/webapp", "/new/webapp", "/new/other", "/gone/webapp"]
    assert moved_to(project(), paths, there.__contains__) == "/new/webapp"
    assert moved_to(project(), [*paths, "/also/webapp"], there.__contains__) is None
    assert moved_to(project(), ["/new/other"], there.__contains__) is None
    assert moved_to(project("/new/webapp"), paths, there.__contains__) is None
    assert moved_to(project(None), paths, there.__contains__) is None
    assert moved_to(project(WINDOWS), ["D:\\webapp"], "D:\\webapp".__eq__) == "D:\\webapp"
