"""Only files inside a home are archived, each once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests import builders
from tests.refreshing import refresh

from pollux.archive.inventory import inventory
from pollux.archive.store import open_archive
from pollux.model import Problem
from pollux.sessions.homes import Home
from pollux.sessions.locate import ScanCache, locate

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no pipes and no links without a privilege on Windows")


def listed(home: Home) -> tuple[list[str], list[Problem]]:
    look = ScanCache()
    items = inventory(locate([home], look), look)
    return sorted(item.path for item in items), look.problems


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project folder with a session, beside a private file outside of the home."""
    builders.put(tmp_path / "private", b"secret")
    return builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header())).parents[1]


OWN = ["tmp/webapp/.project_root", f"tmp/webapp/chats/{builders.NAME}.jsonl"]


@pytest.mark.parametrize(
    "place",
    [
        "tmp/webapp/shell_history",
        "tmp/webapp/tool-outputs/output.txt",
        "tmp/webapp/chats/session-2026-11-15T20-00-aaaaaaaa.jsonl",
        "tmp/webapp/chats/notes.txt",
        "settings.json",
        "projects.json",
        "history/webapp/.project_root",
    ],
)
@pytest.mark.usefixtures("project")
def test_a_file_outside_of_the_home_is_not_archived(tmp_path: Path, place: str) -> None:
    link = tmp_path / ".gemini" / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "private")
    paths, problems = listed(builders.home(tmp_path))
    assert paths == OWN
    assert [(problem.code, problem.file) for problem in problems] == [("link-outside", str(link))]


@pytest.mark.parametrize("place", ["tmp/webapp/plans", "tmp/webapp/chats/deeper", f"tmp/{'0' * 64}"])
@pytest.mark.usefixtures("project")
def test_a_folder_outside_of_the_home_is_not_archived(tmp_path: Path, place: str) -> None:
    builders.put(tmp_path / "keys" / "id_ed25519", b"secret")
    link = tmp_path / ".gemini" / place
    link.symlink_to(tmp_path / "keys")
    paths, problems = listed(builders.home(tmp_path))
    assert paths == OWN
    assert [(problem.code, problem.file) for problem in problems] == [("link-outside", str(link))]


def test_a_real_file_is_archived_once(tmp_path: Path, project: Path) -> None:
    builders.put(project / "plan.md", b"plan")
    builders.put(tmp_path / ".gemini" / "GEMINI.md", b"text")
    (project / "again.md").symlink_to("plan.md")
    (project / "one.md").symlink_to("../../GEMINI.md")
    (project / "two.md").symlink_to("../../GEMINI.md")
    paths, problems = listed(builders.home(tmp_path))
    assert paths == sorted([*OWN, "tmp/webapp/one.md", "tmp/webapp/plan.md"])
    assert problems == []


@pytest.mark.parametrize(
    "place", ["tmp/webapp/shell_history", "tmp/webapp/chats/session-2026-11-15T20-00-aaaaaaaa.jsonl", "projects.json"]
)
@pytest.mark.usefixtures("project")
def test_a_pipe_is_one_problem(tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / ".gemini" / place)
    paths, problems = listed(builders.home(tmp_path))
    assert paths == OWN
    assert [(problem.code, problem.file) for problem in problems] == [
        ("not-a-file", str(tmp_path / ".gemini" / place)),
    ]


@pytest.mark.usefixtures("project")
def test_settings_of_the_users_own_home_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / ".gemini" / "settings.json").symlink_to(tmp_path / "private")
    own = Home(tmp_path / ".gemini", tmp_path / ".gemini" / "tmp", "user home")
    assert listed(own) == (["settings.json", *OWN], [])


def test_files_hidden_by_a_link_do_not_count_as_deleted(tmp_path: Path, project: Path) -> None:
    """The user, not the client, moved a project folder to another disk."""
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)])
        project.rename(tmp_path / "disk")
        project.symlink_to(tmp_path / "disk")
        result = refresh(archive, [builders.home(tmp_path)])
    assert result.n_deleted == 0
    assert [problem.code for problem in result.problems] == ["link-outside"]
