from __future__ import annotations

import os
from pathlib import Path

import pytest

from pollux.sessions.homes import Home, homes
from pollux.sessions.locate import HomeScan, locate

HASH = "8d46cd8ee49a82f63b11dc3dd3d68d5ba59f6ab5cf0bbc4eceedd1954c23904e"
SESSION = "session-2026-11-15T19-30-6ece72aa.jsonl"


def put(path: Path, text: str = "{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def session(tmp: Path, project: str = "webapp", name: str = SESSION) -> Path:
    return put(tmp / project / "chats" / name)


@pytest.fixture
def user(tmp_path: Path) -> Path:
    (tmp_path / "user").mkdir()
    return tmp_path / "user"


def test_user_home_is_the_default(user: Path) -> None:
    assert homes([], {"POLLUX_HOME": "", "GEMINI_CLI_HOME": ""}, user) == (
        Home(user / ".gemini", user / ".gemini" / "tmp", "user home"),
    )


def test_option_precedes_environment_variables_in_order(tmp_path: Path, user: Path) -> None:
    for name in "abcde":
        session(tmp_path / name / ".gemini" / "tmp")
    environ = {
        "POLLUX_HOME": str(tmp_path / "b"),
        "GEMINI_CLI_HOME": str(tmp_path / "c"),
        "GEMINI_DIR": str(tmp_path / "d" / ".gemini"),
        "GEMINI_SESSIONS_DIR": str(tmp_path / "e" / ".gemini" / "tmp"),
    }
    decided = [homes([tmp_path / "a"], environ, user)]
    for variable in tuple(environ):
        decided.append(homes([], environ, user))
        del environ[variable]
    expected = ("--home", "POLLUX_HOME", "GEMINI_CLI_HOME", "GEMINI_DIR", "GEMINI_SESSIONS_DIR")
    assert decided == [
        (Home(tmp_path / name / ".gemini", tmp_path / name / ".gemini" / "tmp", how),)
        for name, how in zip("abcde", expected, strict=True)
    ]


@pytest.mark.parametrize("project", [HASH, "webapp"])
@pytest.mark.parametrize("name", [".gemini", "gemini", "copy of it"])
def test_home_is_recognised_by_its_contents(tmp_path: Path, user: Path, name: str, project: str) -> None:
    root = tmp_path / name
    session(root / "tmp", project)
    for path in (root, root / "tmp"):
        assert homes([path], {}, user) == (Home(root, root / "tmp", "--home"),)


def test_folder_with_a_project_marker_is_a_tmp(tmp_path: Path, user: Path) -> None:
    put(tmp_path / "kept" / "webapp" / ".project_root", "/p")
    put(tmp_path / "kept" / "a file")
    assert homes([tmp_path / "kept"], {}, user) == (Home(tmp_path, tmp_path / "kept", "--home"),)


def test_dot_gemini_is_preferred_to_a_tmp_beside_it(user: Path) -> None:
    session(user / "tmp")
    session(user / ".gemini" / "tmp")
    assert homes([user], {}, user)[0].root == user / ".gemini"


def test_settings_of_a_workspace_do_not_make_dot_gemini_a_container(user: Path) -> None:
    put(user / ".gemini" / ".gemini" / "settings.json")
    assert homes([user / ".gemini"], {}, user)[0].root == user / ".gemini"


def test_homes_without_sessions_are_recognised(tmp_path: Path, user: Path) -> None:
    put(tmp_path / "kept" / "installation_id")
    (tmp_path / "kept" / "tmp").mkdir()
    assert homes([tmp_path / "kept"], {}, user)[0].root == tmp_path / "kept"
    assert homes([tmp_path / "kept" / "tmp"], {}, user)[0].root == tmp_path / "kept"
    (tmp_path / "fresh" / ".gemini").mkdir(parents=True)
    put(tmp_path / "fresh" / "projects.json")
    assert homes([tmp_path / "fresh"], {}, user)[0].root == tmp_path / "fresh" / ".gemini"
    put(user / "app" / "chats" / "friends.txt")
    (user / "empty").mkdir()
    assert homes([user], {}, user)[0].root == user / ".gemini"


@pytest.mark.parametrize(("name", "reason"), [("missing", "does not exist"), ("file", "is not a folder")])
def test_missing_home_is_an_error(tmp_path: Path, user: Path, name: str, reason: str) -> None:
    put(tmp_path / "file")
    with pytest.raises(FileNotFoundError, match=f"{name} {reason}: name the folder"):
        homes([tmp_path / name], {}, user)


def test_missing_home_in_a_variable_is_an_empty_home(tmp_path: Path, user: Path) -> None:
    (home,) = homes([], {"POLLUX_HOME": str(tmp_path / "gone")}, user)
    assert home.root == tmp_path / "gone" / ".gemini"
    assert locate([home]) == HomeScan((home,), ())


def test_several_names_of_a_home_count_once(tmp_path: Path, user: Path) -> None:
    for name in "ab":
        session(tmp_path / name / ".gemini" / "tmp")
    listed = [
        tmp_path / "b",
        tmp_path / "a" / ".gemini",
        tmp_path / "b" / ".gemini" / "tmp",
        tmp_path / "x" / ".." / "a",
    ]
    expected = [tmp_path / "b" / ".gemini", tmp_path / "a" / ".gemini"]
    environ = {"POLLUX_HOME": os.pathsep.join(["", *map(str, listed)])}
    assert [home.root for home in homes(listed, {}, user)] == expected
    assert [home.root for home in homes([], environ, user)] == expected


def test_tilde_is_expanded_to_the_user_home(user: Path) -> None:
    session(user / "backup" / "tmp")
    assert homes([Path("~/backup")], {}, user)[0].root == user / "backup"
    assert homes([], {"GEMINI_DIR": "~"}, user)[0].root == user


def test_gemini_cli_home_may_be_dot_gemini_itself(user: Path) -> None:
    session(user / ".gemini" / "tmp")
    for value in (user, user / ".gemini"):
        assert homes([], {"GEMINI_CLI_HOME": str(value)}, user)[0].root == user / ".gemini"


def test_home_of_the_macos_sandbox_is_added(user: Path) -> None:
    root = user / ".cache" / ".gemini"
    root.mkdir(parents=True)
    sandbox = Home(root, root / "tmp", "user home, sandbox")
    assert homes([], {}, user) == (Home(user / ".gemini", user / ".gemini" / "tmp", "user home"), sandbox)
    assert [home.source for home in homes([user], {}, user)] == ["--home", "--home, sandbox"]
    session(user / "backup" / "tmp")
    assert len(homes([user / "backup"], {}, user)) == 1
