"""Split shell command lines, and quote words for shells."""

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
"""All of these end a single-quoted string in PowerShell."""
_PREFIXES = frozenset({"sudo", "env", "time", "nohup", "exec", "command", "nice", "("})


def commands(line: str) -> tuple[str, ...]:
    """Split a line at pipes, `;`, `&&`, `||`, `&` and line ends, but not inside quotes or `$(…)`."""
    pieces, start = [], 0
    for match in _SEPARATOR.finditer(line):
        if match[2]:
            pieces.append(line[start : match.start()].strip())
            start = match.end()
    pieces.append(line[start:].strip())
    return tuple(filter(None, pieces))


def program(command: str) -> str:
    """Return the program that a command starts, without assignments, its path and prefixes such as `sudo`."""
    word = next(_words(command), "")
    return word.strip("'\"").replace("\\", "/").rpartition("/")[2] or word


def quoted(word: str) -> str:
    """Quote a word for a POSIX shell, with escapes for characters on which a terminal would act."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def powershell_quoted(word: str) -> str:
    """Quote a word for PowerShell."""
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
        data = char.encode("utf-8", "surrogateescape")  # a byte of a file name that is not UTF-8
    except UnicodeEncodeError:
        data = b"?"  # a lone surrogate, which no file name contains
    return "".join(f"\\{byte:03o}" for byte in data)


def _utf16(word: str) -> Iterator[int]:
    data = word.encode("utf-16-le", "surrogatepass")
    return (int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2))


def _words(command: str) -> Iterator[str]:
    for word in command.lstrip("({ ").split():
        if not _ASSIGNMENT.match(word) and word not in _PREFIXES:
            yield word
