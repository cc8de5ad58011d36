"""Pipes, devices and links in place of files are reported and never read without end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner

from pollux.disk import read

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no pipes and no links without a privilege on Windows")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a home with one session of a project that exists."""
    (tmp_path / "web").mkdir()
    data = builders.log(builders.header(), builders.user(), builders.gemini(tokens=builders.tokens()))
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", data)
    (tmp_path / ".gemini" / "tmp" / "webapp" / ".project_root").write_text(str(tmp_path / "web"))
    return tmp_path


@pytest.mark.parametrize("command", ["ls", "projects", "status", "doctor"])
@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize(
    "place",
    ["projects.json", "trustedFolders.json", "settings.json", "tmp/webapp/logs.json", "tmp/other/.project_root"],
)
def test_named_pipe_in_place_of_a_file_stops_no_command(
    run: Runner, root: Path, command: str, *, archive: bool, place: str
) -> None:
    path = root / ".gemini" / place
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    ended = run(command, *(() if archive else ("--no-archive",)), home=root)
    assert ended.status in (0, 1)
    assert ended.out or "1 session" in ended.err


def trusted(root: Path) -> Path:
    """Make the client trust the project; return the path of the project's settings."""
    (root / ".gemini" / "trustedFolders.json").write_text(json.dumps({str(root / "web"): "TRUST_FOLDER"}))
    path = root / "web" / ".gemini" / "settings.json"
    path.parent.mkdir()
    return path


@pytest.mark.parametrize("target", ["/dev/zero", "../../private", "pipe"])
def test_project_settings_outside_the_project_are_not_read(run: Runner, root: Path, target: str) -> None:
    (root / "private").write_text('{"general": {"sessionRetention": {"enabled": false}}}')
    path = trusted(root)
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(target)
    ended = run("status", home=root)
    assert ended.status == 0
    assert f"Settings: {path} cannot be read" in ended.err
    assert run("status", "--json").json["policies"][0]["settings"]["maxAge"] == "30d"


def test_project_settings_may_be_a_link_within_the_project(run: Runner, root: Path) -> None:
    trusted(root).symlink_to("../shared.json")
    (root / "web" / "shared.json").write_text('{"general": {"sessionRetention": {"maxAge": "7d"}}}')
    ended = run("status", home=root)
    assert "cannot be read" not in ended.err
    assert run("status", "--json").json["policies"][0]["settings"]["maxAge"] == "7d"


@pytest.mark.parametrize(
    "args",
    [
        ("show", "FILE"),
        ("raw", "FILE"),
        ("tree", "FILE"),
        ("export", "FILE"),
        ("record", "create", "FILE"),
        ("record", "sign", "FILE"),
        ("record", "sign", "--raw", "FILE"),
        ("record", "verify", "FILE"),
        ("record", "verify", "GOOD", "--file", "FILE"),
        ("record", "verify", "GOOD", "--key", "FILE"),
        ("usage", "--prices", "FILE"),
        ("archive", "prove", "--consistent-with", "FILE"),
        ("verify", "--seal", "FILE"),
        ("ls", "--archive", "FILE"),
    ],
)
@pytest.mark.parametrize("kind", ["device", "pipe", "link"])
def test_named_file_must_be_a_regular_file(run: Runner, root: Path, args: tuple[str, ...], kind: str) -> None:
    run("keys", "create")
    (root / "good").write_bytes(b"{}")
    pipe, link = root / "pipe", root / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    file = {"device": "/dev/zero", "pipe": str(pipe), "link": str(link)}[kind]
    ended = run(*(word.replace("FILE", file).replace("GOOD", str(root / "good")) for word in args), home=root)
    assert ended.status in (1, 2)
    assert ended.err.count("\n") == 1
    assert "regular file" in ended.err


def test_named_link_is_followed(run: Runner, root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(next((root / ".gemini").rglob("session-*.jsonl")))
    assert run("show", str(link), home=root).status == 0


def test_standard_input_can_be_named_as_a_file(root: Path) -> None:
    prices = b'[[price]]\nmodel = "gemini-2.5-pro"\ninput = 1\noutput = 1\n'
    command = [sys.executable, "-m", "pollux", "usage", "--no-archive", "--home", str(root), "--prices", "/dev/stdin"]
    ended = subprocess.run(command, input=prices, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr.count(b"cannot be read")) == (0, 0)


def test_settings_that_are_too_large_are_not_read(run: Runner, root: Path) -> None:
    path = root / ".gemini" / "settings.json"
    with path.open("wb") as file:
        file.truncate(read.SIDE_FILE + 1)
    ended = run("status", home=root)
    assert f"{path} cannot be read (it is larger than 4 MB)" in ended.err


@pytest.mark.parametrize("args", [("sync",), ("ls",)])
def test_link_in_place_of_the_lock_is_refused(run: Runner, root: Path, args: tuple[str, ...]) -> None:
    archive = root / "a.db"
    assert run("sync", "--archive", str(archive), home=root).status == 0
    precious = builders.put(root / "precious", b"precious")
    lock = root / "a.db.lock"
    lock.unlink()
    lock.symlink_to(precious)
    ended = run(*args, "--archive", str(archive))
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert run("archive", "info", "--archive", str(archive)).status == 0
    assert f"a.db.lock is a link to {precious}" in ended.err
    assert precious.read_bytes() == b"precious"
