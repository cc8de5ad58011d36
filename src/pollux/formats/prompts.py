"""Read `logs.json`: all prompts that were ever typed in a project.

The client never prunes this file, so it also names deleted sessions, and contains the full IDs that file names only
abbreviate. It has no answers, and nothing from headless runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from pollux.formats.converted import decode, head_text, keys, salvage, utf8
from pollux.model import Json, Problem
from pollux.text.times import parse_time


class LoggedPrompt(msgspec.Struct, frozen=True):
    """One prompt, slash command or shell command that was typed."""

    session_id: str
    message_id: int | None
    """0-based in its session; clients that run at the same time may use the same number."""
    at: datetime | None
    text: str
    kind: str = "user"
    extra: Mapping[str, Json] = {}


class Prompts(msgspec.Struct, frozen=True):
    """The prompts of a file, in order."""

    prompts: tuple[LoggedPrompt, ...] = ()
    problems: tuple[Problem, ...] = ()


_KNOWN = frozenset({"sessionId", "messageId", "timestamp", "type", "message"})
_ENTRY = re.compile(r'\{\s*"(?:sessionId|messageId|timestamp|type|message)"\s*:')
_MOST_FAULTS = 1000  # after which to give up on a file
_EMPTY = re.compile(r"\[\s*\]?\s*")


def sniff(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is a log of prompts; an empty list is an unused log."""
    text = head_text(head)
    if not text.startswith("["):
        return False
    seen: set[str] = set()
    for key in keys(text):
        if key.depth == 2:  # noqa: PLR2004  list, object
            seen.add(key.name)
            if {"sessionId", "messageId"} <= seen:
                return True
    return _EMPTY.fullmatch(text) is not None


def read(data: bytes) -> Prompts:
    """Parse one file or one of its backups; of a broken file all complete entries, also those after a fault."""
    value, torn = decode(data)
    problems = [*torn]
    if torn:
        value = [*_complete_entries(utf8(data).decode())]
    elif not isinstance(value, list):
        problems.append(Problem("no-prompts", "is not a list, and so not a log of prompts"))
    prompts: list[LoggedPrompt] = []
    for index, entry in enumerate(value if isinstance(value, list) else ()):
        prompt, fault = _prompt(entry)
        if prompt:
            prompts.append(prompt)
        if fault:
            problems.append(Problem("bad-entry", f"entry {index}: {fault}"))
    return Prompts(tuple(prompts), tuple(problems))


def _complete_entries(text: str) -> Iterator[Json]:
    position, n_faults = 0, 0
    while n_faults < _MOST_FAULTS and (entry := _ENTRY.search(text, position)):
        value, end, fault = salvage(text, entry.start())
        if fault:
            position = entry.end()
            n_faults += 1
        else:
            position = end
            yield value


def _prompt(entry: Json) -> tuple[LoggedPrompt | None, str | None]:
    if not isinstance(entry, dict):
        return None, "not an object"
    text = entry.get("message")
    if not isinstance(text, str):
        return None, "no message"
    session_id, message_id, kind = entry.get("sessionId"), entry.get("messageId"), entry.get("type")
    at = parse_time(entry.get("timestamp"))
    prompt = LoggedPrompt(
        session_id=session_id if isinstance(session_id, str) and session_id else "unknown",
        message_id=message_id if isinstance(message_id, int) and not isinstance(message_id, bool) else None,
        at=at,
        text=text,
        kind=kind if isinstance(kind, str) else "unknown",
        extra={key: value for key, value in entry.items() if key not in _KNOWN},
    )
    if prompt.session_id != session_id:
        return prompt, "no session ID"
    return prompt, None if at else "no time"
