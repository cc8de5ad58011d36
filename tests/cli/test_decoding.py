"""A command on one session decodes that session, however many there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import chats, gemini, header, log, put, user
from tests.cli.running import Runner

from pollux.archive import load_sessions
from pollux.model import Session

N_SESSIONS = 300


def write_sessions(home: Path, count: int) -> None:
    for number in range(count):
        head = header(f"{number:08x}-0000-4000-8000-000000000000")
        name = f"session-2026-11-15T19-30-{number:08x}.jsonl"
        put(chats(home) / name, log(head, user(f"u{number}"), gemini(f"g{number}")))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which the IDs of decoded sessions are added."""
    ids: list[str] = []
    decode = load_sessions._decode

    def noting(body: bytes) -> Session:
        session = decode(body)
        ids.append(session.id)
        return session

    monkeypatch.setattr(load_sessions, "_decode", noting)
    return ids


def test_show_decodes_only_the_session_and_its_subagents(run: Runner, tmp_path: Path, decoded: list[str]) -> None:
    write_sessions(tmp_path, N_SESSIONS)
    parent = f"{7:08x}-0000-4000-8000-000000000000"
    put(chats(tmp_path) / parent / "kid.jsonl", log(header("kid", kind="subagent"), user("u9"), gemini("g9")))
    assert run("sync", home=tmp_path).status == 0
    decoded.clear()
    assert "hello" in run("show", parent).out
    assert sorted(decoded) == [parent, "kid"]


@pytest.mark.parametrize("command", ["show", "raw", "tree", "audit", "resume"])
def test_commands_on_one_session_decode_no_others(
    run: Runner, tmp_path: Path, decoded: list[str], command: str
) -> None:
    write_sessions(tmp_path, 9)
    assert run("sync", home=tmp_path).status == 0
    decoded.clear()
    run(command, "00000004")
    assert decoded == ["00000004-0000-4000-8000-000000000000"]
