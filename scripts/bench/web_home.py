"""Write the home for the benchmark of the viewer: many small sessions, and two very long ones.

    python -m scripts.bench.web_home --sessions 100000 build/bench/home-web-100000

`truth.json` is written last, so that an unfinished home is written again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

Wire: TypeAlias = dict[str, Any]
TRUTH = "truth.json"
N_SESSIONS = 100_000
LONG_SESSIONS = {"5c0ffee5-0000-4000-8000-000000005000": 1_250, "50c0ffee-0000-4000-8000-000000050000": 12_500}
"""The turns of the long sessions, of four messages each, by ID."""
RARE = "zodiacal"
"""A word that is in one of a hundred answers of a long session."""
_SEED = 17
_START = datetime(2024, 12, 1, tzinfo=UTC)
_MODELS = ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3.1-pro-preview")
_PROJECTS = tuple(f"project-{number:02}" for number in range(40))
_VERBS = ("Explain", "Rename", "Test", "Speed up", "Document", "Delete", "Review", "Port")
_NOUNS = ("the parser", "the cache", "the login page", "the retry loop", "the importer", "the index", "the scheduler")
_PLACES = ("in the client", "on Windows", "for large files", "without the network", "in the nightly job")


def main() -> None:
    """Parse the arguments and write the home, unless it is complete."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, help="the folder that gets a .gemini")
    options.add_argument("--sessions", type=int, default=N_SESSIONS)
    arguments = options.parse_args()
    write_home(arguments.folder, arguments.sessions)


def write_home(folder: Path, n_sessions: int = N_SESSIONS) -> Path:
    """Write a home with this many sessions, unless there is one; return its folder."""
    if (folder / TRUTH).exists():
        return folder
    print(f"writing a home of {n_sessions:,} sessions …", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    temporary = folder / ".gemini" / "tmp"
    for project in _PROJECTS:
        (temporary / project / "chats").mkdir(parents=True)
        (temporary / project / ".project_root").write_text(_root_of(project), "utf-8")
    rng = random.Random(_SEED)  # noqa: S311  repeatable by intention
    step = timedelta(days=700) / max(1, n_sessions)
    for number in range(n_sessions):
        session_id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        _write_session(temporary, rng, session_id, _START + number * step, rng.choice((1, 1, 2, 3)))
    for session_id, n_turns in LONG_SESSIONS.items():
        _write_session(temporary, rng, session_id, _START + timedelta(days=701), n_turns)
    truth = {"sessions": n_sessions, "long": {id_: 4 * n_turns for id_, n_turns in LONG_SESSIONS.items()}}
    (folder / TRUTH).write_text(json.dumps(truth, indent=1, sort_keys=True), "utf-8")
    return folder


def _write_session(temporary: Path, rng: random.Random, session_id: str, start: datetime, n_turns: int) -> None:
    project = rng.choice(_PROJECTS)
    records = [*_turns(rng, session_id[:8], start, n_turns)]
    header = {
        "sessionId": session_id,
        "projectHash": hashlib.sha256(_root_of(project).encode()).hexdigest(),
        "startTime": _written(start),
        "lastUpdated": records[-1]["timestamp"],
        "kind": "main",
    }
    path = temporary / project / "chats" / f"session-{start:%Y-%m-%dT%H-%M}-{session_id[:8]}.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in (header, *records)))


def _turns(rng: random.Random, id8: str, start: datetime, n_turns: int) -> Iterator[Wire]:
    """Yield a prompt, an answer with a call, the tool's response and an answer for each turn."""
    at = start
    for turn in range(n_turns):
        at += timedelta(seconds=rng.randint(5, 60))
        stamp = _written(at)
        model = rng.choice(_MODELS)
        task = " ".join((rng.choice(_VERBS), rng.choice(_NOUNS), rng.choice(_PLACES)))
        path = f"src/{rng.choice(_NOUNS).split()[-1]}_{rng.randint(1, 30)}.py"
        call_id = f"read_file-{id8}-{turn}"
        lines = [f"{number}: value_{number} = load({rng.randint(1, 999)})" for number in range(rng.randint(3, 12))]
        part = {"functionResponse": {"id": call_id, "name": "read_file", "response": {"output": "\n".join(lines)}}}
        call = {"id": call_id, "name": "read_file", "args": {"file_path": path}, "result": [part], "status": "success"}
        rare = f" The {RARE} case is covered." if turn % 100 == 0 else ""
        answer = f"**{task}**: done in `{path}`.{rare}\n\n- one function changed\n- {rng.randint(2, 90)} tests pass\n"
        head = {"timestamp": stamp}
        yield {"id": f"{id8}-u{turn}", **head, "type": "user", "content": [{"text": f"{task}, please."}]}
        request = {"id": f"{id8}-g{turn}", **head, "type": "gemini", "content": "", "model": model}
        yield request | {"tokens": _tokens(rng), "toolCalls": [call | {"timestamp": stamp}]}
        yield {"id": f"{id8}-r{turn}", **head, "type": "user", "content": [part]}
        reply = {"id": f"{id8}-h{turn}", **head, "type": "gemini", "content": answer, "model": model}
        yield reply | {"tokens": _tokens(rng)}


def _tokens(rng: random.Random) -> Wire:
    n_input, n_output = rng.randint(9_000, 60_000), rng.randint(20, 1_500)
    cached = rng.randint(0, n_input)
    total = n_input + n_output
    return {"input": n_input, "output": n_output, "cached": cached, "thoughts": 0, "tool": 0, "total": total}


def _written(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.000Z"


def _root_of(project: str) -> str:
    return f"/home/dev/{project}"


if __name__ == "__main__":
    main()
