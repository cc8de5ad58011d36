"""What is possible on this machine: the files read, decoded whole, and decoded for the needed fields alone.

Run by the interpreter that has orjson and msgspec, and nothing of Pollux: `limits.py read|orjson|msgspec FOLDER`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import GenericAlias
from typing import Any, TypeAlias

Count: TypeAlias = Callable[[bytes, bool], int]
"""Takes the bytes of a file and whether it is a log; returns some number, so that nothing is left out."""


def main() -> None:
    """Do one of them."""
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
    line_of, document_of = (msgspec.json.Decoder(one).decode for one in (message, document))

    def count(data: bytes, is_log: bool) -> int:  # noqa: FBT001  one of a family
        found = map(line_of, data.splitlines()) if is_log else document_of(data).messages
        return sum(_total(one) for one in found)

    return count


def _total(message: Any) -> int:  # noqa: ANN401  made above
    return message.tokens.total if message.tokens else 0


_COUNTS = ("input", "cached", "output", "thoughts", "tool", "total")
COUNTS: dict[str, Callable[[], Count]] = {"read": _read, "orjson": _whole, "msgspec": _typed}


if __name__ == "__main__":
    main()
