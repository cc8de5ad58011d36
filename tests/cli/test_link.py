"""`--link` adds addresses in the running viewer to lists and hits."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.terminal import in_pipe, on_terminal

from pollux.library.config import DEMO_HOME, configure
from pollux.library.viewer_files import RunningViewer, store_viewer, viewer_links

ID = "602c50c2"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(DEMO_HOME / ".gemini", tmp_path / ".gemini")
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("POLLUX_HOME", str(tmp_path))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(tmp_path / "archive.db"))
    return tmp_path


@pytest.fixture
def root(home: Path) -> Iterator[str]:
    """Describe a viewer of this home that listens."""
    assert home.is_dir()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        store_viewer(configure(), RunningViewer(1, port, "abcdefghij", "secret"))
        yield f"http://127.0.0.1:{port}/abcdefghij/"


def test_list_in_a_pipe_has_a_column_of_addresses(home: Path, root: str) -> None:
    first, *lines = in_pipe(home, "ls", "--link").stdout.splitlines()
    assert first.split("\t")[-1] == "link"
    for text in lines:
        assert text.split("\t")[-1] == f"{root}s/{text.split()[0]}"
    assert "http://" not in in_pipe(home, "ls").stdout


def test_hits_in_a_pipe_lead_to_their_message(home: Path, root: str) -> None:
    first, *lines = in_pipe(home, "search", "alerts", "--link").stdout.splitlines()
    assert lines
    place = first.split("\t").index("number")
    for text in lines:
        cells = text.split("\t")
        assert cells[-1] == f"{root}s/{cells[0]}" + (f"/{cells[place]}" if cells[place] else "")


def test_terminal_gets_hyperlinks_and_the_same_text(home: Path, root: str) -> None:
    for words in (("ls",), ("search", "alerts")):
        status, linked = on_terminal(home, *words, "--link")
        assert status == 0
        targets = re.findall(r"\x1b\]8;[^;]*;([^\x1b]+)\x1b\\", linked)
        assert targets
        assert all(target.startswith(f"{root}s/") for target in targets)
        bare = re.sub(r"\x1b\]8;[^\x1b]*\x1b\\|\x1b\[[0-9;]*m", "", linked)
        assert bare == re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(home, *words)[1])


def test_without_a_viewer_one_sentence_says_how_to_start_it(home: Path) -> None:
    for words in (("ls",), ("search", "alerts")):
        done = in_pipe(home, *words, "--link")
        assert (done.returncode, done.stdout) == (1, "")
        assert "No viewer is running, so there is no address to add. Start one with `pollux web`." in done.stderr


def test_a_viewer_that_was_killed_is_not_running(home: Path) -> None:
    assert home.is_dir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for number in (port, 99_999):
        store_viewer(configure(), RunningViewer(1, number, "abcdefghij", "secret"))
        assert in_pipe(home, "ls", "--link").returncode == 1


@pytest.mark.parametrize(
    "words", [("ls", "--json"), ("ls", "--saved"), ("search", "x", "--files"), ("search", "x", "--count")]
)
def test_lists_without_addresses_refuse_the_option(home: Path, words: tuple[str, ...]) -> None:
    done = in_pipe(home, *words, "--link")
    assert done.returncode == 2
    assert "--link" in done.stderr


def test_address_of_a_hostile_id_is_quoted(root: str) -> None:
    assert root
    links = viewer_links(configure())
    assert links.session('../"\x1b]8;;evil\n', 3) == f"{root}s/..%2F%22%1B%5D8%3B%3Bevil%0A/3"
