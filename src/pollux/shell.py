"""Shell command lines → the commands in them, quotes respected."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SEPARATOR = re.compile(
    r"""
    ( '[^']*'? | "(?:\\.|[^"\\])*"? | \\. | \$\( (?:[^()]|\([^()]*\))* \)? )   # what is quoted, or runs inside another
    | ( \|\|? | && | ; | \n | (?<![<>&\d])&(?![&>]) )                          # what ends a command
    """,
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PREFIXES = frozenset({"sudo", "env", "time", "nohup", "exec", "command", "nice", "("})


def commands(line: str) -> tuple[str, ...]:
    """Split a line at pipes, `;`, `&&`, `||`, `&` and line ends, but not inside quotes or `$(…)`."""
    found, start = [], 0
    for match in _SEPARATOR.finditer(line):
        if match[2]:
            found.append(line[start : match.start()])
            start = match.end()
    return tuple(command for one in (*found, line[start:]) if (command := one.strip()))


def program(command: str) -> str:
    """Name the program that a command starts: no assignments before it, no path, no `sudo`."""
    word = next(_words(command), "")
    return word.strip("'\"").replace("\\", "/").rpartition("/")[2] or word


def _words(command: str) -> Iterator[str]:
    for word in command.lstrip("({ ").split():
        if not _ASSIGNMENT.match(word) and word not in _PREFIXES:
            yield word
