"""Lists are complete, and no process fails, while another process archives a growing home."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests import builders
from tests.builders import gemini, header, log, put, tokens, user

N_SESSIONS, N_LISTS, AT_ONCE = 200, 40, 4


def start(command: str, home: Path, *args: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "pollux", command, "--home", str(home), "--archive", str(home / "archive.db"), *args]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def write_session(home: Path, number: int, n_turns: int) -> None:
    session_id = f"{number:08x}-1111-4222-8333-444455556666"
    records = [header(session_id)]
    for turn in range(n_turns):
        records += [user(f"u{turn}-{number}"), gemini(f"g{turn}-{number}", tokens=tokens(turn))]
    put(builders.chats(home) / f"session-2026-11-15T19-30-{number:08x}.jsonl", log(*records))


def test_lists_beside_a_sync_are_whole(tmp_path: Path) -> None:
    for number in range(N_SESSIONS):
        write_session(tmp_path, number, 2)
    for first in range(0, N_LISTS, AT_ONCE):
        for number in range(first, first + AT_ONCE):
            write_session(tmp_path, number, 4)
            write_session(tmp_path, N_SESSIONS + number, 2)
        sync = start("sync", tmp_path)
        lists = [start("ls", tmp_path, "--json", "--all") for _ in range(AT_ONCE)]
        for process in lists:
            printed, errors = process.communicate()
            assert process.returncode in (0, 1), errors
            assert "Traceback" not in errors
            for row in json.loads(printed)["sessions"]:
                assert row["calls"] == row["messages"]["user"]
        assert "Traceback" not in sync.communicate()[1]
