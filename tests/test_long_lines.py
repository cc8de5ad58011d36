"""Memory that commands take for a session with one very long line.

`POLLUX_LONG=1` takes a line of 200 MB instead of 40.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.builders import NAME, at, header, line, put, user

IS_LONG = bool(os.environ.get("POLLUX_LONG"))
MEGABYTES = 200 if IS_LONG else 40
LISTED = 100 if IS_LONG else 70
READ = 500 if IS_LONG else 110

# A process of its own waits for the command: the peak of a child counts the memory of the one that started it.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "pollux", *sys.argv[1:]], capture_output=True, stdin=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(done.returncode, peak // (1 << 20 if sys.platform == "darwin" else 1 << 10), len(done.stdout))
sys.stderr.buffer.write(done.stderr[-2000:])
"""
WORDS = b"lorem ipsum dolor sit amet, "
TOKENS = b'"model":"m","tokens":{"input":1,"output":2,"cached":0,"thoughts":0,"tool":0,"total":3}'


def peak(*arguments: str) -> int:
    """Run a command, and return the megabytes that it had at once."""
    command = [sys.executable, "-c", MEASURE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    status, megabytes, n_output = map(int, done.stdout.split())
    assert status == 0, done.stderr
    assert 0 < n_output < 300_000 or arguments[0] == "sync"
    return megabytes


def write(path: Path, before: bytes, after: bytes) -> Path:
    put(path, before)
    with path.open("ab") as file:
        for _ in range(MEGABYTES):
            file.write(WORDS * ((1 << 20) // len(WORDS)))
        file.write(after)
    return path


def answer(home: Path) -> Path:
    message = b'{"id":"g1","type":"gemini","timestamp":"%s",%s,"content":"' % (at(2).encode(), TOKENS)
    return write(home / f"{NAME}.jsonl", line(header()) + b"\n" + line(user()) + b"\n" + message, b'"}\n')


def tool_output(home: Path) -> Path:
    message = b'{"id":"g1","type":"gemini","timestamp":"%s",%s,"content":"",' % (at(2).encode(), TOKENS)
    call = b'"toolCalls":[{"id":"c1","name":"run_shell_command","args":{"command":"ls"},"status":"success",'
    result = b'"result":[{"functionResponse":{"id":"c1","response":{"output":"'
    before = line(header()) + b"\n" + line(user()) + b"\n" + message + call + result
    return write(home / f"{NAME}.jsonl", before, b'\\nExit Code: 3"}}}]}]}\n')


def old_document(home: Path) -> Path:
    head = line(header()).removesuffix(b"}").removeprefix(b"{").replace(b',"', b',\n  "')
    message = b'{\n      "id": "g1",\n      "type": "gemini",\n      "timestamp": "%s",\n      %s,\n      "content": "'
    before = b"{\n  " + head + b',\n  "messages": [\n    ' + line(user()) + b",\n    "
    return write(home / f"{NAME}.json", before + message % (at(2).encode(), TOKENS), b'"\n    }\n  ]\n}')


@pytest.mark.parametrize("make", [answer, tool_output, old_document])
def test_a_long_line_takes_little_memory(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    folder = tmp_path / ".gemini" / "tmp" / "webapp" / "chats"
    make(folder)
    home = ("--home", str(tmp_path / ".gemini"))
    for command in ("ls", "usage"):
        assert peak(command, "--no-archive", *home) <= LISTED
    assert peak("show", "latest", "--no-archive", *home) <= READ
    archive = ("--archive", str(tmp_path / "archive.db"), *home)
    assert peak("sync", *archive) <= LISTED
    for command in ("ls", "usage"):
        assert peak(command, *archive) <= LISTED
    assert peak("show", "latest", *archive) <= READ
