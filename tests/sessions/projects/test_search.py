from __future__ import annotations

import os
from pathlib import Path

import pytest

from pollux.errors import AmbiguousProjectError
from pollux.model import Project
from pollux.sessions.projects.paths import project_hash
from pollux.sessions.projects.search import find, likely_roots, moved_to, rank, scan

WEBAPP = "/home/alice/dev/webapp"
WINDOWS = "C:\\Users\\Alice\\Dev\\WebApp"
DIGEST = project_hash(WEBAPP)
OTHER_DIGEST = project_hash("/elsewhere")


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def project(path: str | None = WEBAPP, **fields: str | None) -> Project:
    return Project(**{"hash": project_hash(path) if path else None, "path": path, **fields})  # type: ignore[arg-type]


def hashes(*paths: Path) -> dict[str, str]:
    return {project_hash(str(path)): str(path) for path in paths}


def test_scan_finds_folders_by_hash(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    searched = [root, root / "dev" / "webapp", root / ".dotfiles", root / "a" / "b" / "c" / "d"]
    hidden = [root / ".dotfiles" / "x", root / "node_modules" / "x", root / "a" / "b" / "c" / "d" / "e"]
    for folder in (*searched, *hidden):
        folder.mkdir(parents=True, exist_ok=True)
    put(root / "a" / "file", "")
    assert scan([root, root / "gone"], hashes(*searched, *hidden)) == hashes(*searched)
    assert scan([root], hashes(*searched), depth=1) == hashes(root, root / ".dotfiles")
    assert scan([root], hashes(*searched), limit=1) == hashes(root)
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
def test_find_matches_by_path_name_or_hash(query: str, cwd: Path, expected: list[int]) -> None:
    matches = find(PROJECTS, query, cwd, ALICE)
    assert [PROJECTS.index(match) for match in matches] == expected


def test_rank_is_lower_for_closer_matches() -> None:
    ranks = [rank(project(), query, DEV, ALICE) for query in ("webapp", DIGEST[:8], "dev", "x")]
    assert ranks == [1000, 1001, 1002, None]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_rank_follows_a_link_in_the_query(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert rank(project(str(tmp_path.resolve() / "real")), "./link", tmp_path, ALICE) == 0


def test_moved_project_is_found_only_if_unambiguous() -> None:
    existing = {"/new/webapp", "/new/other", "/also/webapp"}
    paths = [WEBAPP, "/new/webapp", "/new/webapp", "/new/other", "/gone/webapp"]
    assert moved_to(project(), paths, existing.__contains__) == "/new/webapp"
    assert moved_to(project(), [*paths, "/also/webapp"], existing.__contains__) is None
    assert moved_to(project(), ["/new/other"], existing.__contains__) is None
    assert moved_to(project("/new/webapp"), paths, existing.__contains__) is None
    assert moved_to(project(None), paths, existing.__contains__) is None
    assert moved_to(project(WINDOWS), ["D:\\webapp"], "D:\\webapp".__eq__) == "D:\\webapp"


NAMED = [Project(path=f"/src/{name}") for name in ("tide-tables", "My_App", "myapp.v2", "skywatch", "Büro Notizen")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tide tables", ["tide-tables"]),
        ("TideTables", ["tide-tables"]),
        ("tide_tab", ["tide-tables"]),
        ("my app", ["My_App", "myapp.v2"]),
        ("my-app-v2", ["myapp.v2"]),
        ("büro-notizen", ["Büro Notizen"]),
        ("tdtbl", ["tide-tables"]),
        ("SKW", ["skywatch"]),
        ("kyw", ["skywatch"]),
        ("sw", []),
        ("wsk", []),
        ("-", ["tide-tables"]),
        ("...", []),
    ],
)
def test_find_matches_approximate_names(query: str, expected: list[str]) -> None:
    assert [match.name for match in find(NAMED, query, Path("/"), Path("/a"))] == expected


def test_ambiguous_short_name_is_reported() -> None:
    several = [*NAMED, Project(path="/other/skylight-webcam"), Project(slug="sky-web-cache")]
    with pytest.raises(AmbiguousProjectError, match=r"'skwc'\. It may stand for sky-web-cache, sky"):
        find(several, "skwc", Path("/"), Path("/a"))
    twice = [Project(path="/a/skywatch"), Project(path="/b/skywatch")]
    assert find(twice, "skwc", Path("/"), Path("/a")) == tuple(twice)


def test_letters_of_a_hash_are_not_guessed_from_a_short_name() -> None:
    hidden = Project(hash=DIGEST)
    with pytest.raises(AmbiguousProjectError, match="skywatch"):
        find([*NAMED, hidden], "skwc", Path("/"), Path("/a"))
    assert find([*NAMED, hidden], "skywacth", Path("/"), Path("/a")) == (NAMED[3],)


def test_find_accepts_typing_errors_but_not_other_words() -> None:
    other = Project(path="/a/other")
    assert find([other], "nowhere", Path("/"), Path("/a")) == ()
    assert find([other], "othre", Path("/"), Path("/a")) == (other,)
