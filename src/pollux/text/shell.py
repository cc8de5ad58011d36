"""Take shell command lines apart, and write words so that a shell takes them as they are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_SEPARATOR = re.compile(
    r"""
    ( '[^']*'? | "(?:\\.|[^"\\])*"? | \\. | \$\( (?:[^()]|\([^()]*\))* \)? )   # what is quoted, or runs inside another
    | ( \|\|? | && | ; | \n | (?<![<>&\d])&(?![&>]) )                          # what ends a command
    """,
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_POWERSHELL_PLAIN = re.compile(r"[A-Za-z0-9_=-]+")
_POWERSHELL_QUOTES = re.compile("(['\u2018-\u201b])")
"""All of these end a string in single quotation marks there."""
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


def quoted(word: str) -> str:
    """Write a word for a POSIX shell; what cannot be printed as an escape, so that a terminal does not act on it."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def powershell_quoted(word: str) -> str:
    """Write a word for PowerShell."""
    if _POWERSHELL_PLAIN.fullmatch(word):
        return word
    if word.isprintable():
        doubled = _POWERSHELL_QUOTES.sub(r"\1\1", word)
        return f"'{doubled}'"
    codes = ",".join(str(code) for code in _utf16(word))
    return f"(-join [char[]]({codes}))"


def _escaped(char: str) -> str:
    if char.isprintable() and char not in "'\\":
        return char
    try:
        data = char.encode("utf-8", "surrogateescape")  # a byte of a file's name that is no UTF-8
    except UnicodeEncodeError:
        data = b"?"  # half of a character, which no name can have
    return "".join(f"\\{byte:03o}" for byte in data)


def _utf16(word: str) -> Iterator[int]:
    data = word.encode("utf-16-le", "surrogatepass")
    return (int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2))


def _words(command: str) -> Iterator[str]:
    for word in command.lstrip("({ ").split():
        if not _ASSIGNMENT.match(word) and word not in _PREFIXES:
            yield word
