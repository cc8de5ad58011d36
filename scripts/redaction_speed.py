"""Measure redaction: how fast it reads the sessions of some homes, or the files below a folder, and what it finds.

`python scripts/redaction_speed.py ~/.gemini some/sources` prints million characters a second of processor time for
each: the best of some rounds, each of which remembers nothing of the one before.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pollux.model import Message, Session
from pollux.redaction import Redactor, clean_cache, messages, redactor
from pollux.redaction.joined_text import Pieces
from pollux.sessions import reader

_HOME = Path("/home/mara")
_Opened = tuple[Session, Sequence[Message]]


class Work(NamedTuple):
    """Something to be redacted."""

    name: str
    n_chars: int
    redactors: Callable[[], Iterator[Redactor]]
    """Do it piece by piece, and give the redactors that did it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each of the folders; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--together", action="store_true", help="measure all homes as if they were one")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args(arguments)
    for folders in [given.folders] if given.together else [[folder] for folder in given.folders]:
        print(*folders[:1], f"and {len(folders) - 1} more" if folders[1:] else "")
        _measure(home_works([one for folder in folders for one in opened(folder)]) or file_works(folders), given.rounds)
    return 0


def _measure(works: Sequence[Work], n_rounds: int) -> None:
    for work in works:
        seconds = min(processor_seconds(work) for _ in range(n_rounds))
        speed = work.n_chars / max(seconds, 1e-9) / 1e6
        print(f"  {speed:6.1f}  {work.name}: {work.n_chars:,} characters, {seconds * 1000:,.1f} ms")
    counts = Counter[str]()
    for found in works[0].redactors():
        counts.update({row.rule: row.count for row in found.report().replaced})
    for rule, count in counts.most_common():
        print(f"  {count:6}  × {rule}")


def processor_seconds(work: Work) -> float:
    """Do a work, and say how long it kept the processor busy; what was read before is no matter of the collector's."""
    clean_cache.forget()
    gc.freeze()
    start = time.process_time()
    deque(work.redactors(), maxlen=0)
    seconds = time.process_time() - start
    gc.unfreeze()
    return seconds


def opened(folder: Path) -> list[_Opened]:
    """Read all sessions of a home."""
    found = reader.history(reader.homes(folder)).sessions
    return [(session, [*reader.opened(session).messages()]) for session in found]


def home_works(found: Sequence[_Opened]) -> list[Work]:
    """Say what can be measured with sessions."""
    n_chars = sum(_n_chars(message) for _, several in found for message in several)
    n_more = sum(_n_chars(session) for session, _ in found)
    handed = [text for _, several in found for message in several for text in _handed(message)]
    if not found:
        return []
    return [
        Work("sessions, as an export redacts them", n_chars + n_more, lambda: (_exported(*one) for one in found)),
        Work("messages, a redactor for each session", n_chars, lambda: (_redacted(several) for _, several in found)),
        _each(handed),
    ]


def file_works(folders: Iterable[Path]) -> list[Work]:
    """Say what can be measured with files."""
    texts = [text for folder in folders for text in _texts(folder)]
    return [Work("texts, one redactor", sum(map(len, texts)), lambda: iter([_read(texts)])), _each(texts)]


def _each(texts: Sequence[str]) -> Work:
    return Work("texts, a redactor for each", sum(map(len, texts)), lambda: (_read((text,)) for text in texts))


def _exported(session: Session, several: Iterable[Message]) -> Redactor:
    found = redactor(user_home=_HOME, user_name="mara")
    for message in several:
        found.learn(message)
    found.session(session)
    for message in several:
        found.message(message)
    return found


def _redacted(several: Iterable[Message]) -> Redactor:
    found = redactor()
    for message in several:
        found.message(message)
    return found


def _read(texts: Iterable[str]) -> Redactor:
    found = redactor()
    for text in texts:
        found.text(text)
    return found


def _n_chars(value: Message | Session) -> int:
    return sum(map(len, messages.texts(value)))


def _handed(message: Message) -> list[str]:
    """List the texts of a message that are redacted."""
    listener = _Listener()
    messages.redacted(message, listener)
    return listener.texts


class _Listener:
    drop_binary = False

    def __init__(self) -> None:
        self.texts: list[str] = []

    def one(self, text: str, where: str) -> str:
        del where
        self.texts.append(text)
        return text

    def pieces(self, pieces: Pieces, where: str) -> Sequence[str]:
        del where
        self.texts.append(pieces.whole)
        return pieces.texts

    def note_unscanned(self, media_type: str, size: int) -> None:
        pass


def _texts(folder: Path) -> Iterator[str]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_bytes().decode("utf-8", "replace")
        if "\0" not in text:
            yield text


if __name__ == "__main__":
    sys.exit(main())
