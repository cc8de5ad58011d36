"""Only regular files are read, and none through a link that leads out of its folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pollux.disk import read
from pollux.disk.read import LinkOutsideError, is_within, open_regular, problem_of, read_named, read_side_file

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no pipes and no links without a privilege on Windows")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"text")
    assert read_side_file(path) == b"text"
    with open_regular(str(path)) as file:
        assert file.read() == b"text"


def test_a_pipe_is_refused_without_waiting_for_its_writer(pipe: Path) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        read_named(pipe)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused_also_through_a_link(tmp_path: Path, device: str) -> None:
    link = tmp_path / "link"
    link.symlink_to(device)
    for path in (Path(device), link):
        with pytest.raises(OSError, match="not a regular file"):
            read_side_file(path)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_no_file_can_have_is_missing(tmp_path: Path, name: str) -> None:
    for within in (None, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_side_file(tmp_path / name, within=within)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / name)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_side_file(tmp_path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(read.SIDE_FILE + 1)  # takes no room on the disk
    with pytest.raises(OSError, match="larger than 4 MB"):
        read_side_file(path)
    assert len(read_side_file(path, limit=read.SIDE_FILE + 1)) == read.SIDE_FILE + 1


def test_a_link_may_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    home, private = tmp_path / "home", tmp_path / "private"
    (home / "inner").mkdir(parents=True)
    private.write_bytes(b"secret")
    (home / "real").write_bytes(b"text")
    (home / "inner" / "good").symlink_to("../real")
    (home / "inner" / "bad").symlink_to(private)
    (home / "folder").symlink_to(tmp_path)
    assert read_side_file(home / "inner" / "good", within=home) == b"text"
    for path in (home / "inner" / "bad", home / "folder" / "private"):
        with pytest.raises(LinkOutsideError, match="it is a link out of") as caught:
            read_side_file(path, within=home)
        assert problem_of(caught.value, path).code == "link-outside"


def test_a_folder_with_a_longer_name_is_not_inside(tmp_path: Path) -> None:
    assert is_within(tmp_path / "home" / "file", tmp_path / "home")
    assert not is_within(tmp_path / "home2" / "file", tmp_path / "home")
    assert is_within("/etc/hosts", "/")


def test_a_stream_that_the_shell_opened_is_read_up_to_a_limit() -> None:
    readable, writable = os.pipe()
    os.write(writable, b"from a pipe")
    os.close(writable)
    assert read_named(f"/dev/fd/{readable}") == b"from a pipe"
    os.close(readable)
    descriptor = os.open("/dev/zero", os.O_RDONLY)
    with pytest.raises(OSError, match="larger than"):
        read_named(f"/dev/fd/{descriptor}", limit=1 << 20)
    os.close(descriptor)
