"""No output replaces the archive, a key or a file of the client, however its path is spelled."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner

from pollux.library import outputs, project_memory
from pollux.library.config import keys_folder
from pollux.sessions.homes import Home

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no links without a privilege on Windows")


@dataclass(frozen=True, slots=True)
class Desk:
    """A home with a session, its archive with a seal, and a key."""

    root: Path
    run: Runner

    @property
    def archive(self) -> Path:
        return project_memory.memory_path().with_name("archive.db")

    @property
    def key(self) -> Path:
        return keys_folder() / "default.pem"

    @property
    def session(self) -> Path:
        return builders.chats(self.root) / f"{builders.NAME}.jsonl"

    def contents(self) -> dict[Path, bytes]:
        files = [self.key, self.key.with_suffix(".pub"), self.session, project_memory.memory_path()]
        return {path: path.read_bytes() for path in files}

    def is_ok(self) -> bool:
        return self.archive.read_bytes().startswith(b"SQLite format 3") and self.run("verify").status == 0


@pytest.fixture
def desk(run: Runner, tmp_path: Path) -> Desk:
    found = Desk(tmp_path, run)
    data = builders.log(builders.header(), builders.user(), builders.gemini(tokens=builders.tokens()))
    builders.put(found.session, data)
    assert run("keys", "create", home=tmp_path).status == 0
    assert run("archive", "seal").status == 0
    assert run("ls").status == 0  # which remembers the path of the project
    return found


WRITERS = {
    "export": ("export", "latest", "-o", "OUT"),
    "export html": ("export", "latest", "-f", "html", "-o", "OUT"),
    "export stream": ("export", "--all", "-f", "calls", "-o", "OUT"),
    "seal": ("archive", "seal", "-o", "OUT"),
    "prove": ("archive", "prove", "latest", "-o", "OUT"),
    "backup": ("archive", "backup", "OUT"),
    "backup --force": ("archive", "backup", "--force", "OUT"),
    "create": ("record", "create", "latest", "-o", "OUT"),
    "redact": ("record", "redact", "latest", "--hide", "output", "-o", "OUT"),
    "sign": ("record", "sign", "--raw", "latest", "-o", "OUT"),
}

TARGETS: dict[str, Callable[[Desk], Path]] = {
    "archive": lambda desk: desk.archive,
    "journal": lambda desk: desk.archive.with_name("archive.db-wal"),
    "lock": lambda desk: desk.archive.with_name("archive.db.lock"),
    "memory": lambda _desk: project_memory.memory_path(),
    "private key": lambda desk: desk.key,
    "public key": lambda desk: desk.key.with_suffix(".pub"),
    "a new key": lambda desk: desk.key.with_name("new.pub"),
    "session": lambda desk: desk.session,
    "beside a session": lambda desk: desk.session.with_name("new.json"),
    "settings": lambda desk: desk.root / ".gemini" / "settings.json",
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("target", TARGETS)
def test_protected_files_are_not_written(desk: Desk, writer: str, target: str) -> None:
    before, path = desk.contents(), TARGETS[target](desk)
    was_there = path.exists()
    ended = desk.run(*(word.replace("OUT", str(path)) for word in WRITERS[writer]))
    assert ended.status == 2
    assert (ended.out, ended.err.count("\n")) == ("", 1)
    assert "; name another place." in ended.err
    assert desk.contents() == before
    assert path.exists() == was_there
    assert desk.is_ok()


@pytest.mark.parametrize("writer", WRITERS)
def test_other_files_are_written(desk: Desk, writer: str) -> None:
    path = desk.root / "out.dat"
    assert desk.run(*(word.replace("OUT", str(path)) for word in WRITERS[writer])).status == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert desk.is_ok()


def spelled_with_dots(desk: Desk, target: Path) -> Path:
    del desk
    return target.parent / "nowhere" / ".." / target.name


def spelled_large(desk: Desk, target: Path) -> Path:
    del desk
    return target.with_name(target.name.upper())


def soft_link(desk: Desk, target: Path) -> Path:
    link = desk.root / "soft"
    link.symlink_to(target)
    return link


def hard_link(desk: Desk, target: Path) -> Path:
    link = desk.root / "hard"
    link.hardlink_to(target)
    return link


def linked_folder(desk: Desk, target: Path) -> Path:
    (desk.root / "folder").symlink_to(target.parent)
    return desk.root / "folder" / target.name


@pytest.mark.parametrize("target", ["archive", "private key", "public key"])
@pytest.mark.parametrize("spell", [spelled_with_dots, spelled_large, soft_link, hard_link, linked_folder])
def test_protection_ignores_spelling(desk: Desk, target: str, spell: Callable[[Desk, Path], Path]) -> None:
    path = spell(desk, TARGETS[target](desk))
    ended = desk.run("export", "latest", "-o", str(path))
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert desk.is_ok()


def test_named_archive_and_own_archive_are_protected(desk: Desk) -> None:
    other = desk.root / "other.db"
    assert desk.run("sync", "--archive", str(other)).status == 0
    for path in (other, desk.archive):
        assert desk.run("export", "latest", "--archive", str(other), "-o", str(path)).status == 2
    assert desk.run("export", "latest", "--no-archive", "-o", str(desk.archive)).status == 2
    assert desk.is_ok()


def test_target_of_a_lock_link_is_protected(desk: Desk) -> None:
    precious = desk.root / "precious"
    precious.write_bytes(b"precious")
    lock = desk.archive.with_name("archive.db.lock")
    lock.unlink()
    lock.symlink_to(precious)
    assert desk.run("export", "latest", "--no-archive", "-o", str(precious)).status == 2
    assert precious.read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n", 2),
        (b"\n-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n-----BEGIN RSA PRIVATE KEY-----\nMII\n", 2),
        (b"PuTTY-User-Key-File-3: ssh-ed25519\n", 2),
        (b"-----BEGIN CERTIFICATE-----\nMII\n", 0),
        (b"# A session\n\n```\n-----BEGIN PRIVATE KEY-----\nMII\n```\n", 0),
    ],
)
def test_private_keys_are_protected_anywhere(desk: Desk, data: bytes, status: int) -> None:
    path = builders.put(desk.root / "file", data)
    assert desk.run("export", "latest", "-o", str(path)).status == status
    assert (path.read_bytes() == data) == bool(status)


@pytest.mark.parametrize("form", ["json", "html", "parquet"])
def test_folder_below_a_home_is_not_created(desk: Desk, form: str) -> None:
    for folder in (desk.root / ".gemini" / "tmp" / "out", desk.root / "elsewhere" / ".Gemini" / "tmp" / "out"):
        ended = desk.run("export", "--all", "-f", form, "-o", f"{folder}/")
        assert (ended.status, ended.err.count("\n")) == (2, 1)
        assert not folder.exists()


@pytest.mark.parametrize("form", ["json", "html", "parquet"])
def test_link_in_an_export_folder_does_not_reach_the_archive(desk: Desk, form: str) -> None:
    folder = desk.root / "out"
    assert desk.run("export", "--all", "-f", form, "-o", f"{folder}/").status == 0
    exported, *_ = sorted(path for path in folder.iterdir() if path.suffix == f".{form}")
    shutil.rmtree(folder)
    folder.mkdir()
    exported.symlink_to(desk.archive)
    assert desk.run("export", "--all", "-f", form, "-o", f"{folder}/").status == 2
    assert desk.is_ok()


@pytest.mark.parametrize("form", ["json", "html", "parquet"])
def test_files_and_folders_are_private(desk: Desk, form: str) -> None:
    before = os.umask(0)
    try:
        folder = desk.root / "made" / "for" / "this"
        assert desk.run("export", "--all", "-f", form, "-o", f"{folder}/").status == 0
    finally:
        os.umask(before)
    made = [desk.root / "made", *(desk.root / "made").rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}


def test_protected_paths_are_computed_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export of thousands of sessions writes thousands of files."""
    calls: list[int] = []
    real = outputs.protected

    def counted(*args: object) -> outputs.OutputGuard:
        calls.append(1)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(outputs, "protected", counted)
    assert desk.run("export", "--all", "-f", "html", "-o", f"{desk.root / 'out'}/").status == 0
    assert calls == [1]


def test_home_with_another_name_is_protected_below_tmp(tmp_path: Path) -> None:
    home = Home(tmp_path / "data", tmp_path / "data" / "sessions", "GEMINI_SESSIONS_DIR")
    guard = outputs.protected([], tmp_path / "memory", [], [home])
    assert guard.reason(tmp_path / "data" / "sessions" / "p" / "chats" / "x.json")
    assert guard.reason(tmp_path / "data" / "export.json") is None
    assert guard.reason(tmp_path / "data" / "sessions-exported" / "x.json") is None
