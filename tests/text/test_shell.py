from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.text.shell import commands, powershell_quoted, program, quoted


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cargo test", ("cargo test",)),
        ("cat a | grep b", ("cat a", "grep b")),
        ("a && b || c; d", ("a", "b", "c", "d")),
        ("a &\nb", ("a", "b")),
        ("echo 'x | y; z'", ("echo 'x | y; z'",)),
        ('echo "a && b" | wc', ('echo "a && b"', "wc")),
        (r"echo a\;b", (r"echo a\;b",)),
        ("echo $(ls | wc -l); pwd", ("echo $(ls | wc -l)", "pwd")),
        ("make 2>&1 | tee log", ("make 2>&1", "tee log")),
        ("run &> log", ("run &> log",)),
        ('echo "open', ('echo "open',)),
        (" ; ", ()),
        ("", ()),
    ],
)
def test_line_is_split_where_a_command_ends(line: str, found: tuple[str, ...]) -> None:
    assert commands(line) == found


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("cargo test", "cargo"),
        ("/usr/bin/env python3 -m x", "env"),
        ("sudo apt-get update", "apt-get"),
        ("RUST_LOG=debug ./target/app --x", "app"),
        (r"C:\tools\node.exe x.js", "node.exe"),
        ("( cd x", "cd"),
        ("'my tool' -v", "my"),
        ("A=1", ""),
        ("", ""),
    ],
)
def test_program_is_what_a_command_starts(command: str, name: str) -> None:
    assert program(command) == name


@given(st.text())
def test_any_text_is_split_without_loss(line: str) -> None:
    kept = "".join(commands(line))
    assert set(kept) <= set(line)
    for command in commands(line):
        assert command in line
        program(command)


_bash = shutil.which("bash")


@pytest.mark.skipif(_bash is None, reason="needs bash")
@given(st.lists(st.binary(min_size=1, max_size=8).map(lambda data: data.replace(b"\0", b"'\n")), max_size=20))
def test_a_quoted_word_is_one_word_for_a_shell(words: list[bytes]) -> None:
    line = " ".join(["printf '%s\\0'", *(quoted(os.fsdecode(word)) for word in words)])
    assert line.isprintable()
    ended = subprocess.run([str(_bash), "-c", line], capture_output=True, check=True)
    assert ended.stdout.split(b"\0")[:-1] == (words or [b""])


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("--resume=abc-1", "--resume=abc-1"),
        ("it's", "'it''s'"),
        ("it\u2019s; calc", "'it\u2019\u2019s; calc'"),
        ("a\x1bb", "(-join [char[]](97,27,98))"),
        ("\U0001f600\n", "(-join [char[]](55357,56832,10))"),
    ],
)
def test_a_word_for_powershell(word: str, expected: str) -> None:
    assert powershell_quoted(word) == expected
