"""Measure what is possible on this machine: read files, decode them whole, or decode only the needed fields.

    limits.py read|orjson|msgspec FOLDER

Runs in an interpreter that has orjson and msgspec, but not Pollux.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import GenericAlias
from typing import Any, TypeAlias

Count: TypeAlias = Callable[[bytes, bool], int]
"""Takes the bytes of a file and whether it is a log; returns a number that depends on everything decoded."""


def main() -> None:
    """Read all files in one of the three ways."""
    how, folder = sys.argv[1], Path(sys.argv[2])
    count = COUNTS[how]()
    files = sorted(path for path in folder.rglob("chats/**/*") if path.is_file())
    print(sum(count(path.read_bytes(), path.suffix == ".jsonl") for path in files))


def _read() -> Count:
    return lambda data, _: len(data)


def _whole() -> Count:
    loads = importlib.import_module("orjson").loads
    return lambda data, is_log: sum(map(len, map(loads, data.splitlines()))) if is_log else len(loads(data))


def _typed() -> Count:
    msgspec = importlib.import_module("msgspec")
    tokens = msgspec.defstruct("Tokens", [(name, int, 0) for name in _COUNTS])
    fields = [("id", str, ""), ("model", str | None, None), ("timestamp", str, ""), ("tokens", tokens | None, None)]
    message = msgspec.defstruct("Message", fields)
    document = msgspec.defstruct("Document", [("messages", GenericAlias(list, message), ())])
    line_of, document_of = (msgspec.json.Decoder(type_).decode for type_ in (message, document))

    def count(data: bytes, is_log: bool) -> int:  # noqa: FBT001  called as a `Count`
        messages = map(line_of, data.splitlines()) if is_log else document_of(data).messages
        return sum(_total(message) for message in messages)

    return count


def _total(message: Any) -> int:  # noqa: ANN401  its type is made at run time
    return message.tokens.total if message.tokens else 0


_COUNTS = ("input", "cached", "output", "thoughts", "tool", "total")
COUNTS: dict[str, Callable[[], Count]] = {"read": _read, "orjson": _whole, "msgspec": _typed}


if __name__ == "__main__":
    main()
