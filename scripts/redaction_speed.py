"""Measure redaction: its speed on the sessions of homes or on the files in folders, and what it finds there.

`python scripts/redaction_speed.py ~/.gemini some/sources` prints million characters per second of processor time: the
best of several rounds, each of which starts with empty caches.
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

from pollux import homes
from pollux.model import Message, Session
from pollux.redaction import OPTIONAL_RULES, Redactor, messages, redactor, scan
from pollux.redaction.joined_text import JoinedText
from pollux.sessions import reader

_HOME = Path("/home/mara")
_LoadedSession = tuple[Session, Sequence[Message]]


class Work(NamedTuple):
    """Texts to redact."""

    name: str
    n_chars: int
    redactors: Callable[[], Iterator[Redactor]]
    """Redacts the texts part by part, and yields the redactor of each part."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each of the folders; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--together", action="store_true", help="measure all homes as if they were one")
    parser.add_argument("--rounds", type=int, default=9)
    rules = [rule.id for rule in OPTIONAL_RULES]
    parser.add_argument("--rule", action="append", choices=rules, default=[], help="switch an optional rule on")
    options = parser.parse_args(arguments)
    for folders in [options.folders] if options.together else [[folder] for folder in options.folders]:
        print(*folders[:1], f"and {len(folders) - 1} more" if folders[1:] else "")
        sessions = [session for folder in folders for session in load_sessions(folder)]
        works = home_works(sessions, options.rule) or file_works(folders, options.rule)
        _measure(works, options.rounds)
    return 0


def _measure(works: Sequence[Work], n_rounds: int) -> None:
    for work in works:
        seconds = min(processor_seconds(work) for _ in range(n_rounds))
        speed = work.n_chars / max(seconds, 1e-9) / 1e6
        print(f"  {speed:6.1f}  {work.name}: {work.n_chars:,} characters, {seconds * 1000:,.1f} ms")
    counts = Counter[str]()
    for used in works[0].redactors():
        counts.update({row.rule: row.count for row in used.report().replaced})
    for rule, count in counts.most_common():
        print(f"  {count:6}  × {rule}")


def processor_seconds(work: Work) -> float:
    """Return the processor time of a work, without that of collecting objects that existed before."""
    scan.clear_caches()
    gc.freeze()
    start = time.process_time()
    deque(work.redactors(), maxlen=0)
    seconds = time.process_time() - start
    gc.unfreeze()
    return seconds


def load_sessions(folder: Path) -> list[_LoadedSession]:
    """Return all sessions of a home with their messages."""
    sessions = reader.history(homes(folder)).sessions
    return [(session, [*reader.opened(session).messages()]) for session in sessions]


def home_works(sessions: Sequence[_LoadedSession], rules: Sequence[str] = ()) -> list[Work]:
    """Return what can be measured with sessions."""
    if not sessions:
        return []
    n_message_chars = sum(_n_chars(message) for _, several in sessions for message in several)
    n_session_chars = sum(_n_chars(session) for session, _ in sessions)
    texts = [text for _, several in sessions for message in several for text in _redacted_texts(message)]

    def export() -> Iterator[Redactor]:
        return (_redact_session(session, several, rules) for session, several in sessions)

    def redact_messages() -> Iterator[Redactor]:
        return (_redact_messages(several, rules) for _, several in sessions)

    return [
        Work("sessions, as an export redacts them", n_message_chars + n_session_chars, export),
        Work("messages, a redactor for each session", n_message_chars, redact_messages),
        _each_text(texts, rules),
    ]


def file_works(folders: Iterable[Path], rules: Sequence[str] = ()) -> list[Work]:
    """Return what can be measured with files."""
    texts = [text for folder in folders for text in _file_texts(folder)]
    n_chars = sum(map(len, texts))
    return [Work("texts, one redactor", n_chars, lambda: iter([_redact(texts, rules)])), _each_text(texts, rules)]


def _each_text(texts: Sequence[str], rules: Sequence[str]) -> Work:
    def redact() -> Iterator[Redactor]:
        return (_redact((text,), rules) for text in texts)

    return Work("texts, a redactor for each", sum(map(len, texts)), redact)


def _redact_session(session: Session, several: Iterable[Message], rules: Sequence[str]) -> Redactor:
    used = redactor(user_home=_HOME, user_name="mara", rules=rules)
    for message in several:
        used.learn(message)
    used.session(session)
    for message in several:
        used.message(message)
    return used


def _redact_messages(several: Iterable[Message], rules: Sequence[str]) -> Redactor:
    used = redactor(rules=rules)
    for message in several:
        used.message(message)
    return used


def _redact(texts: Iterable[str], rules: Sequence[str]) -> Redactor:
    used = redactor(rules=rules)
    for text in texts:
        used.text(text)
    return used


def _n_chars(value: Message | Session) -> int:
    return sum(map(len, messages.all_texts(value)))


def _redacted_texts(message: Message) -> list[str]:
    """Return the texts of a message that are redacted."""
    recorder = _Recorder()
    messages.redact_message(message, recorder)
    return recorder.texts


class _Recorder:
    """Records the texts it is asked to redact."""

    drop_binary = False
    has_custom_rules = False

    def __init__(self) -> None:
        self.texts: list[str] = []

    def redact_text(self, text: str, where: str) -> str:
        del where
        self.texts.append(text)
        return text

    def redact_joined(self, joined: JoinedText, where: str) -> Sequence[str]:
        del where
        self.texts.append(joined.text)
        return joined.texts

    def note_unscanned(self, media_type: str, size: int) -> None:
        pass


def _file_texts(folder: Path) -> Iterator[str]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_bytes().decode("utf-8", "replace")
        if "\0" not in text:
            yield text


if __name__ == "__main__":
    sys.exit(main())
