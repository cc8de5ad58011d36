"""`pollux tail` prints new messages of a running session, on a terminal of any width and in a pipe."""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import builders
from tests.builders import call, gemini, header, log, preamble, rewind, tokens, user
from tests.cli.live import NAME, PATIENCE, appended, program, stepping, wait_for
from tests.cli.running import Runner, same

OTHER = f"session-2026-11-15T19-50-{builders.OTHER[:8]}.jsonl"
FOLLOWING = 'Following 6ece72aa in webapp: "fix the door". Press Ctrl-C to stop.\n'
"""What is said before."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    builders.put(builders.chats(tmp_path) / NAME, log(header(), user("u1", "fix the door"), gemini("g1", "I look.")))
    return tmp_path


@pytest.fixture(autouse=True)
def _no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_ARCHIVE", "-")


def lines(out: str) -> list[str]:
    return [" ".join(line.split()) for line in out.splitlines() if line.strip()]


def test_last_messages_are_followed_by_new_ones(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = builders.chats(home) / NAME
    asked = gemini("g2", "", toolCalls=[call("c1", status="executing", result=None)], second=5)
    stepping(
        monkeypatch,
        appended(path, asked),
        appended(path, asked | {"toolCalls": [call("c1")]}),
        appended(path, user("u2", "thanks", second=9)),
        appended(path, rewind("g2")),
        lambda: None,
    )
    ended = run("tail", "-n", "1", home=home)
    assert (ended.status, ended.err) == (0, FOLLOWING)
    assert lines(ended.out) == [
        "✦ I look.",
        "? Read a.txt · executing",
        "✓ Read a.txt",
        "▌ thanks 19:30",
        "⋯ 2 messages rewound",
    ]
    assert "\x1b" not in ended.out


@pytest.mark.parametrize("columns", [80, 40])
def test_screen_equals_the_stored_one(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    path = builders.chats(home) / NAME
    words = "The hinge of the door is loose, so it has to be **tightened** before anything else can be done about it."
    shell = call(
        "c2", "run_shell_command", args={"command": "make door"}, result=[builders.answers("c2", "x", "ok\ndone")]
    )
    stepping(
        monkeypatch,
        appended(path, gemini("g2", words, toolCalls=[call("c1"), shell], second=65)),
        appended(path, user("u2", "go on " * 20, second=70)),
    )
    ended = run("tail", columns=columns, home=home)
    assert ended.status == 0
    shown = [line.rstrip() for line in ended.out.splitlines()]
    assert max(map(len, shown)) <= columns
    same(f"tail-{columns}.txt", "\n".join(shown) + "\n")


def test_tail_waits_for_a_session(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = builders.chats(tmp_path) / NAME
    stepping(
        monkeypatch,
        lambda: None,
        appended(path, header(), preamble()),
        appended(path, user("u1", "fix the door")),
    )
    ended = run("tail", home=tmp_path)
    assert ended.status == 0
    assert ended.err == f"No session yet; waiting for one to start. Press Ctrl-C to stop.\n{FOLLOWING}"


def test_tail_with_an_archive_waits_for_a_session(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_ARCHIVE", str(tmp_path / "archive.db"))
    path = builders.chats(tmp_path) / NAME
    stepping(monkeypatch, appended(path, header(), preamble()), appended(path, user("u1", "fix the door")))
    assert run("tail", home=tmp_path).err.endswith(FOLLOWING)


def test_tail_waits_for_a_session_of_the_current_folder(
    run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    stepping(monkeypatch, lambda: None)
    ended = run("tail", "--project", ".", home=home)
    assert (ended.status, ended.out) == (0, "")
    assert "waiting for one to start" in ended.err
    ended = run("tail", "--project", "none-such", home=home)
    assert (ended.status, "No project matches 'none-such'" in ended.err) == (1, True)


def test_tail_does_not_wait_for_a_named_session(run: Runner, home: Path) -> None:
    ended = run("tail", "none-such", home=home)
    assert (ended.status, ended.out) == (1, "")
    assert "No session matches 'none-such'" in ended.err
    assert run("tail", "-n", "-1", home=home).status == 2


def test_other_sessions_are_mentioned_once(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = builders.chats(home) / OTHER
    third = builders.chats(home, "elsewhere") / OTHER.replace(builders.OTHER[:8], "cccccccc")
    begun = appended(other, header(builders.OTHER), user("v1", "something else", second=50))
    more = appended(other, user("v2", "and more", second=55))
    stepping(monkeypatch, begun, more, appended(third, header("cccccccc-1"), user("w1", "third")))
    ended = run("tail", "--project", "webapp", "-n", "0", home=home)
    said = "Session b3e2640d in webapp is running, too. Run `pollux tail b3e2640d` to follow it.\n"
    assert (ended.out, ended.err) == ("", FOLLOWING + said)
    stepping(monkeypatch, appended(third, user("w2", "fourth")))
    ended = run("tail", builders.SESSION[:6], "-n", "0", home=home)
    hint = "Session cccccccc in elsewhere is running, too. Run `pollux tail cccccccc` to follow it.\n"
    assert ended.err.endswith(hint)


def test_subagents_are_shown_as_they_work(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = builders.chats(home) / NAME
    old, new = (path.parent / builders.SESSION / f"{name}.jsonl" for name in ("oldagent", "newagent"))
    appended(old, header("oldagent", kind="subagent"), user("a1", "search"), gemini("a2", "found"))()
    asked = gemini("g2", "", toolCalls=[call("c1", "invoke_agent", agentId="newagent")], second=30)
    stepping(
        monkeypatch,
        appended(new, header("newagent", kind="subagent"), user("b1", "look at the hinge")),
        appended(new, gemini("b2", "It is loose.")),
        appended(path, asked),
    )
    ended = run("tail", "-n", "1", home=home)
    assert lines(ended.out)[:5] == [
        "✦ I look.",
        "• in subagent newagent",
        "▌ task for the agent 19:30",
        "▌ look at the hinge",
        "✦ It is loose.",
    ]
    assert lines(ended.out)[5] == "• back in the session"
    assert "found" not in ended.out


def test_json_has_one_message_per_line(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = builders.chats(home) / NAME
    stepping(
        monkeypatch,
        appended(path, user("u2", "two")),
        appended(path, gemini("g1", "I look.", tokens=tokens())),
    )
    ended = run("tail", "--json", "-n", "1", home=home)
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert [(row["schema"], row["session"], row["id"], row["text"]) for row in rows] == [
        ("pollux.message/1", builders.SESSION, "g1", "I look."),
        ("pollux.message/1", builders.SESSION, "u2", "two"),
        ("pollux.message/1", builders.SESSION, "g1", "I look."),
    ]
    assert [row["tokens"] is None for row in rows] == [True, True, False]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--detail", "prompts"), ["▌ fix the door 19:30"]),
        (("--detail", "dialogue"), ["▌ fix the door 19:30", "✦ I look."]),
        (("--thoughts",), ["▌ fix the door 19:30", "✦ I look.", "✻ Plan", "think"]),
    ],
)
def test_transcript_options_apply(
    run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], expected: list[str]
) -> None:
    thought = {"subject": "Plan", "description": "think"}
    step = appended(builders.chats(home) / NAME, gemini("g2", "", thoughts=[thought], toolCalls=[call()]))
    stepping(monkeypatch, step)
    assert lines(run("tail", *args, home=home).out)[: len(expected)] == expected


def test_escape_sequences_are_not_printed(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07"
    stepping(monkeypatch, appended(builders.chats(home) / NAME, user("u2", evil), gemini("g2", evil)))
    ended = run("tail", columns=80, home=home)
    assert "\x1b[2J" not in ended.out
    assert "\x1b]0" not in ended.out


def test_file_without_a_prompt_is_followed(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = builders.put(home / "elsewhere.jsonl", log(header(), gemini("g1", "hi")))

    def sleep(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    ended = run("tail", str(path))
    assert (lines(ended.out), ended.err) == (
        ["✦ hi"],
        f'Following 6ece72aa in [{builders.HASH[:8]}]: "(no prompt)". Press Ctrl-C to stop.\n',
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to end it")
def test_pipe_receives_messages_at_once(home: Path) -> None:
    with program(home, "tail", "-n", "1") as (process, found):
        wait_for(found, 1)
        time.sleep(1)
        began = time.monotonic()
        appended(builders.chats(home) / NAME, user("u2", "thanks"))()
        assert wait_for(found, 3) - began < PATIENCE
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert [line.split() for line in found] == [["✦".encode(), b"I", b"look."], [], ["▌".encode(), b"thanks", b"19:30"]]


@pytest.mark.skipif(sys.platform == "win32", reason="no such terminals")
def test_terminal_is_restored_after_ctrl_c(home: Path) -> None:
    """Run the command on a terminal of 60 columns, type Ctrl-C, and compare the terminal's settings."""
    import fcntl  # noqa: PLC0415  not on Windows
    import termios  # noqa: PLC0415

    screen, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    before = termios.tcgetattr(terminal)
    tail = [sys.executable, "-m", "pollux", "tail", "--home", str(home), "--no-archive"]
    words = ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(terminal), *tail]  # who opens it, owns it
    with subprocess.Popen(words, start_new_session=True) as process:
        seen = _until(screen, "I look.")
        os.write(screen, b"\x03")
        assert process.wait(PATIENCE) == 0
        seen += _rest(screen)
    assert termios.tcgetattr(terminal) == before
    os.close(terminal)
    os.close(screen)
    assert "Following 6ece72aa in webapp" in seen
    assert "\x1b[?" not in seen  # neither another screen nor a hidden cursor
    assert seen.endswith("^C\r\n")


def _until(screen: int, words: str) -> str:
    end, seen = time.monotonic() + PATIENCE, ""
    while words not in seen:
        assert time.monotonic() < end, seen
        seen += _rest(screen, 0.1)
    return seen


def _rest(screen: int, seconds: float = 0.5) -> str:
    seen = b""
    while select.select([screen], [], [], seconds)[0]:
        try:
            seen += os.read(screen, 4096)
        except OSError:  # the other end is closed
            break
    return seen.decode()
