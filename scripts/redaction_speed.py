"""Measure redaction: how fast it reads the sessions of some homes, or the files below a folder, and what it finds.

`python scripts/redaction_speed.py ~/.gemini some/sources` prints characters, seconds and findings for each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from pollux import sessions
from pollux.model import Message
from pollux.redaction import Redactor, redactor
from pollux.redaction.messages import texts

_Work = tuple[int, Callable[[Redactor], object]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each of the folders; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folders", nargs="+", type=Path)
    for folder in parser.parse_args(arguments).folders:
        works = [*(_messages(folder) if sessions.history(sessions.homes(folder)).sessions else _files(folder))]
        found = redactor()
        start = time.process_time()
        for _, work in works:
            work(found)
        seconds = time.process_time() - start
        n_chars = sum(length for length, _ in works)
        speed = n_chars / max(seconds, 1e-9) / 1e6
        print(f"{folder}: {n_chars:,} characters, {seconds:.2f} s, {speed:.0f} million a second")
        for row in found.report().replaced:
            print(f"  {row.count:6} × {row.rule} ({row.distinct} different)")
    return 0


def _messages(folder: Path) -> Iterator[_Work]:
    for session in sessions.history(sessions.homes(folder)).sessions:
        for message in sessions.opened(session).messages():
            yield sum(map(len, texts(message))), partial(_redact_message, message)


def _files(folder: Path) -> Iterator[_Work]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_bytes().decode("utf-8", "replace")
        if "\0" not in text:
            yield len(text), partial(_redact_text, text)


def _redact_message(message: Message, found: Redactor) -> None:
    found.message(message)


def _redact_text(text: str, found: Redactor) -> None:
    found.text(text)


if __name__ == "__main__":
    sys.exit(main())
