"""A library over a small home whose sessions a test writes, and what its searches return."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests import builders
from tests.builders import Wire, gemini, header, log, user

from pollux.library.config import configure
from pollux.library.library import Library
from pollux.search.values import HitPage

NOW = builders.instant_of(30_000)


def session_id(number: int) -> str:
    return f"{number:08}-{builders.SESSION[9:]}"


def session_file(root: Path, number: int) -> Path:
    return builders.chats(root) / f"session-2026-11-15T19-30-{number:08}.jsonl"


def put_session(root: Path, number: int, *messages: Wire, **fields: Any) -> Path:  # noqa: ANN401  as on the wire
    """Write a session; those with higher numbers are newer."""
    return builders.put(session_file(root, number), log(header(session_id(number), **fields), *messages))


def put_prompts(root: Path, number: int, *texts: str) -> Path:
    """Write a session with a prompt and an answer without words for each text."""
    messages: list[Wire] = []
    for place, text in enumerate(texts):
        second = number * 10 + place
        messages += [
            user(f"u{number}-{place}", text, second=second),
            gemini(f"g{number}-{place}", "ok", second=second),
        ]
    return put_session(root, number, *messages, startTime=builders.at(number * 10))


def put_subagent(root: Path, parent: int, name: str, *messages: Wire) -> Path:
    """Write a subagent of a session."""
    path = builders.chats(root) / session_id(parent) / f"{name}.jsonl"
    return builders.put(path, log(header(name, kind="subagent"), *messages))


def open_library(root: Path, *, archive: bool = True) -> Library:
    """Open a library that stores everything below the folder of its home."""
    config = configure(named_homes=[root], archive=root / "archive.db" if archive else None, zone="UTC", environ={})
    places = {"user_home": root, "data_dir": root, "config_dir": root, "keys_dir": root / "keys", "clock": lambda: NOW}
    return Library(msgspec.structs.replace(config, **places))


def parts(page: HitPage) -> list[str]:
    """Return the hits of a page as `session:message part`, with the first digits of the session's ID."""
    return [
        f"{int(session.row.id[:8]) if session.row.id[:8].isdecimal() else session.row.id}:{hit.number} {hit.part}"
        for session in page.sessions
        for hit in session.hits
    ]


def numbers(page: HitPage) -> list[int]:
    """Return the numbers of the sessions on a page, in order."""
    return [int(session.row.id[:8]) for session in page.sessions]


def notes_with(page: HitPage, words: str) -> Sequence[str]:
    return [note for note in page.notes if words in note]
