from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.shell import commands, program


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
