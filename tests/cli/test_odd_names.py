"""Names that are not valid Unicode, and numbers of more than 64 bits, stop no command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests import builders
from tests.builders import gemini, header, log, put, tokens, user
from tests.cli.running import Runner

HALF = "\ud83d"
COMMANDS = (
    ("ls", "--json"),
    ("usage", "--json"),
    ("usage", "--json", "--by", "session"),
    ("usage", "--json", "--by", "project"),
    ("stats", "--json"),
    ("projects", "--json"),
    ("status", "--json"),
    ("doctor", "--json"),
    ("show", "latest", "--json"),
    ("export", "latest", "-f", "events"),
)
TURN = (user("u1", "hello"), gemini("g1", "hi", tokens=tokens()))


def half_id(root: Path) -> None:
    put(builders.chats(root) / f"{builders.NAME}.jsonl", log(header(HALF + builders.SESSION), *TURN))


def half_hash(root: Path) -> None:
    put(builders.chats(root) / f"{builders.NAME}.jsonl", log(header(projectHash=f"a{HALF}"), *TURN))


def half_path(root: Path) -> None:
    put(builders.chats(root) / f"{builders.NAME}.jsonl", log(header(projectHash="a" * 64), *TURN))
    (root / ".gemini" / "tmp" / "webapp" / ".project_root").unlink(missing_ok=True)
    put(root / ".gemini" / "projects.json", json.dumps({"projects": {f"/home/al{HALF}": "webapp"}}).encode())


def no_utf8_folder(root: Path) -> None:
    folder = os.fsdecode(b"web\xff")
    put(builders.chats(root, folder) / f"{builders.NAME}.jsonl", log(header(), *TURN))


def no_utf8_file(root: Path) -> None:
    half_hash(root)
    put(builders.chats(root) / os.fsdecode(b"session-caf\xe9.jsonl"), log(header(builders.OTHER), *TURN[:1]))
    put(builders.chats(root).parent / os.fsdecode(b"notes\xff.txt"), b"do not forget\n")


def huge_counts(root: Path) -> None:
    many = tokens() | {"input": 2**62, "total": 2**62, "output": 10**30}
    answer = gemini("g1", "hi", tokens=many)
    put(builders.chats(root) / f"{builders.NAME}.jsonl", log(header(), TURN[0], answer))


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])
@pytest.mark.parametrize("build", [half_id, half_hash, half_path, no_utf8_folder, no_utf8_file, huge_counts])
def test_every_command_survives_odd_names(run: Runner, tmp_path: Path, build: object, how: tuple[str, ...]) -> None:
    assert callable(build)
    build(tmp_path)
    for args in COMMANDS:
        ended = run(*args, *how, home=tmp_path)
        assert ended.status in (0, 1), (args, ended.err)
        assert ended.out, args
    sessions = run("ls", "--json", *how, home=tmp_path).json["sessions"]
    assert "hello" in {one["title"] for one in sessions}
    billed = run("usage", "--json", *how, home=tmp_path).json["billed"]
    assert (billed["calls"], billed["tokens"]["output"]) == (1, 0 if build is huge_counts else 2)


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_files_with_names_outside_utf8_are_archived(run: Runner, tmp_path: Path) -> None:
    no_utf8_file(tmp_path)
    assert run("sync", home=tmp_path).status == 0
    assert run("sync", home=tmp_path).out.startswith("Nothing new")
    assert run("verify").status == 0
