"""`pollux export --follow` writes every event of a running session once, in order, within a second."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests import builders
from tests.builders import call, gemini, header, log, rewind, tokens, user
from tests.cli.live import NAME, PATIENCE, Step, appended, program, stepping, wait_for
from tests.cli.running import Runner

from pollux.cli import output, signals
from pollux.cli.demo import HOME as DEMO
from pollux.library import follow

ANSWER = gemini("g1", "", tokens=tokens())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    builders.put(builders.chats(tmp_path) / NAME, log(header(), user("u1", "fix the door")))
    return tmp_path


def ids(out: str) -> list[str]:
    return [json.loads(line)["id"].replace(builders.SESSION, "S") for line in out.splitlines()]


@pytest.mark.parametrize("archived", [True, False], ids=["archive", "no archive"])
def test_existing_and_new_events_are_written(
    run: Runner,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    archived: bool,  # noqa: FBT001
) -> None:
    monkeypatch.setenv("POLLUX_ARCHIVE", str(home / "archive.db") if archived else "-")
    log_ = builders.chats(home) / NAME
    stepping(
        monkeypatch,
        appended(log_, ANSWER),
        lambda: None,
        appended(log_, ANSWER | {"toolCalls": [call("c1")]}),
        appended(log_, user("u2", "two", second=8)),
    )
    ended = run("export", "latest", "--format", "events", "--follow", home=home)
    assert (ended.status, ended.err) == (0, "")
    assert ids(ended.out) == ["S/start", "u1", "c1", "c1/result", "u2"]
    assert ids(run("export", "latest", "--format", "events", home=home).out) == [*ids(ended.out), "S/end"]


def test_export_options_apply(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_ = builders.chats(home) / NAME
    stepping(monkeypatch, appended(log_, ANSWER, user("u2", "two")), appended(log_, rewind("u2")))
    ended = run("export", NAME[:-6], "-f", "events", "--include", "usage,fates", "--follow", home=home)
    assert ids(ended.out) == ["S/start", "u1", "g1/usage", "u2", "u2/fate/1"]
    assert json.loads(ended.out.splitlines()[-1])["metadata"]["fate"] == "rewound"


def test_named_file_is_followed(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = builders.put(home / "elsewhere.jsonl", log(header(), user("u1", "one")))
    steps: list[Step] = [appended(path, user("u2", "two")), lambda: None]

    def sleep(_seconds: float) -> None:
        if not steps:
            raise KeyboardInterrupt
        steps.pop(0)()

    monkeypatch.setattr(time, "sleep", sleep)
    ended = run("export", str(path), "-f", "events", "--follow")
    assert (ended.status, ids(ended.out)) == (0, ["S/start", "u1", "u2"])


def doubting(monkeypatch: pytest.MonkeyPatch, *steps: Step) -> list[float]:
    """Run one step of the client in each pause; return the pauses."""
    pauses: list[float] = []
    coming = iter(steps)

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        next(coming, lambda: None)()

    monkeypatch.setattr(time, "sleep", sleep)
    return pauses


def test_uncertain_events_are_delayed(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_ = builders.chats(home) / NAME
    pauses = doubting(monkeypatch, appended(log_, gemini("g2", "yes", tokens=tokens(20))))
    again = [user(f"u{number}", "fix the door", second=4 * number) for number in (2, 3)]
    stepping(monkeypatch, *(appended(log_, one) for one in again))
    ended = run("export", "latest", "-f", "events", "--follow", home=home)
    assert ids(ended.out) == ["S/start", "u1", "u2", "u3"]
    assert len(pauses) == 2  # one until the answer, one until it was clear that nothing came
    assert max(pauses) < 1


def test_events_wait_until_history_is_rewritten(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_ = builders.chats(home) / NAME
    again = [user("x1", "fix the door"), gemini("x2", [{"text": "I look."}], model=None), user("x3", "two")]
    pauses = doubting(
        monkeypatch, appended(log_, again[1]), appended(log_, again[2]), appended(log_, builders.checkpoint(*again))
    )
    turns = gemini("g1", "I look.", tokens=tokens()), user("u2", "two")
    stepping(monkeypatch, appended(log_, *turns), appended(log_, again[0]))
    ended = run("export", "latest", "-f", "events", "--follow", home=home)
    assert ids(ended.out) == ["S/start", "u1", "u2"]
    assert len(pauses) == 3


def test_delay_is_limited(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_ = builders.chats(home) / NAME
    more = (appended(log_, user(f"v{number}", f"number {number}")) for number in range(99))
    pauses = doubting(monkeypatch, *more)
    stepping(monkeypatch, appended(log_, user("u2", "fix the door")))
    ended = run("export", "latest", "-f", "events", "--follow", home=home)
    assert len(ids(ended.out)) == 3 + len(pauses)
    assert len(pauses) == follow._PATIENCE


@pytest.fixture
def gone(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a session file that was deleted after it was archived."""
    monkeypatch.setenv("POLLUX_ARCHIVE", str(home / "archive.db"))
    run("sync", home=home)
    path = builders.chats(home) / NAME
    path.unlink()
    return path


def test_deleted_session_continues_when_it_is_restored(
    run: Runner, home: Path, gone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepping(monkeypatch, appended(gone, header(), user("u1", "fix the door"), user("u2", "two")))
    ended = run("export", builders.SESSION, "-f", "events", "--follow", home=home)
    assert ids(ended.out) == ["S/start", "u1", "u2"]


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (("@1", "-f", "json"), 2, "--follow has no effect on json. Use it with `--format events`"),
        (("@1", "@2", "-f", "events"), 2, "--follow needs exactly one session"),
        (("--all", "-f", "events"), 2, "--follow needs exactly one session"),
        (("@1", "-f", "events", "-o", "a.jsonl"), 2, "Redirect it with `>` instead of -o"),
        (("none-such", "-f", "events"), 1, "No session matches 'none-such'"),
        (("@1", "-f", "events", "--include", "none"), 2, "Invalid value for --include: 'none'. Use text, thoughts"),
    ],
)
def test_wrong_usage_is_reported(run: Runner, args: tuple[str, ...], status: int, words: str) -> None:
    ended = run("export", *args, "--follow", home=DEMO)
    assert (ended.status, ended.out) == (status, "")
    assert words in ended.err


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe there tells nobody that it is closed")
def test_closed_pipe_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        signals._interrupt_when_pipe_closes(threading.Event())
        threading.Timer(0.1, os.close, [read]).start()
        before = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(PATIENCE)
        assert time.monotonic() - before < PATIENCE / 2
        monkeypatch.undo()


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe there tells nobody that it is closed")
def test_closed_pipe_does_not_interrupt_a_finished_command(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    is_over = threading.Event()
    before = {*threading.enumerate()}
    with os.fdopen(write, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        signals._interrupt_when_pipe_closes(is_over)
        monkeypatch.undo()
        (waiting,) = {*threading.enumerate()} - before
        is_over.set()
        os.close(read)
        waiting.join(PATIENCE)
        assert not waiting.is_alive()


def test_system_without_poll_is_supported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = threading.active_count()
    with (tmp_path / "out").open("w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.delattr(select, "poll", raising=False)
        signals._interrupt_when_pipe_closes(threading.Event())
        monkeypatch.undo()
    assert threading.active_count() == before


def test_broken_pipe_ends_quietly(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stepping(monkeypatch)

    def write(_pieces: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(output, "write", write)
    ended = run("export", "latest", "-f", "events", "--follow", home=home)
    assert (ended.status, ended.out, ended.err) == (0, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to end it")
@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM"])
def test_running_client_is_followed(home: Path, ending: str) -> None:
    path = builders.chats(home) / NAME
    with program(home, "export", "latest", "-f", "events", "--follow") as (process, lines):
        wait_for(lines, 2)
        time.sleep(1)
        took = []
        for number in range(3):
            data = log(user(f"v{number}", f"more {number}", second=number + 5))
            with path.open("ab", buffering=0) as stream:
                stream.write(data[:20])
                time.sleep(0.3)
                began = time.monotonic()
                stream.write(data[20:])
            took.append(wait_for(lines, number + 3) - began)
        path.replace(path.with_name("old"))
        path.write_bytes(log(header(), user("v9", "another file", second=30)))
        wait_for(lines, 6)
        process.send_signal(getattr(signal, ending))
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert min(took) < 1
    assert [json.loads(line).get("message") for line in lines] == [
        None,
        "fix the door",
        "more 0",
        "more 1",
        "more 2",
        "another file",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe there tells nobody that it is closed")
def test_program_ends_with_its_reader(home: Path) -> None:
    words = [sys.executable, "-m", "pollux", "export", "latest", "-f", "events", "--follow", "--home", str(home)]
    with subprocess.Popen([*words, "--no-archive"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""
