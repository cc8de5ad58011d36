"""The prompts of `logs.json`: all that was ever typed in a project, session by session.

The client never prunes this file, so it names sessions that are deleted, and the whole id of those that a file name
only abbreviates. It has no answers, and nothing from headless runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from pollux.formats.converted import Converted, Wire, decode, head_text, keys, salvage, time_from, utf8
from pollux.model import Json, Problem
from pollux.text.times import stamp


class LoggedPrompt(msgspec.Struct, frozen=True):
    """One line that somebody typed, slash and shell commands included."""

    session_id: str
    message_id: int | None
    """0-based in its session; instances that run at the same time may give it twice."""
    at: datetime | None
    text: str
    kind: str = "user"
    extra: Mapping[str, Json] = {}


class Prompts(msgspec.Struct, frozen=True):
    """What a file of logged prompts holds, in its order."""

    prompts: tuple[LoggedPrompt, ...] = ()
    problems: tuple[Problem, ...] = ()


_KNOWN = frozenset({"sessionId", "messageId", "timestamp", "type", "message"})
_ENTRY = re.compile(r'\{\s*"(?:sessionId|messageId|timestamp|type|message)"\s*:')
_BREAKS = 1000  # after so many there is no hope, only work
_EMPTY = re.compile(r"\[\s*\]?\s*")


def sniff(head: bytes) -> bool:
    """Tell from the first bytes of a file whether it is a log of prompts; an empty list is one that nobody used yet."""
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
    """Read one file or one of its backups; of a broken one, all entries that are whole, also behind the break."""
    value, torn = decode(data)
    problems = [*torn]
    if torn:
        value = [*_whole_entries(utf8(data).decode())]
    elif not isinstance(value, list):
        problems.append(Problem("no-prompts", "no list: this is not a log of prompts"))
    prompts: list[LoggedPrompt] = []
    for index, entry in enumerate(value if isinstance(value, list) else ()):
        prompt, fault = _prompt(entry)
        if prompt:
            prompts.append(prompt)
        if fault:
            problems.append(Problem("bad-entry", f"entry {index}: {fault}"))
    return Prompts(tuple(prompts), tuple(problems))


def sessions(prompts: Prompts) -> tuple[Converted, ...]:
    """Show each session that a log names as far as the log goes: what was asked, in the order of the file."""
    found: dict[str, list[LoggedPrompt]] = {}
    for prompt in prompts.prompts:
        found.setdefault(prompt.session_id, []).append(prompt)
    return tuple(_session(session_id, logged) for session_id, logged in found.items())


def _whole_entries(text: str) -> Iterator[Json]:
    position, n_breaks = 0, 0
    while n_breaks < _BREAKS and (entry := _ENTRY.search(text, position)):
        value, end, fault = salvage(text, entry.start())
        if fault:
            position = entry.end()
            n_breaks += 1
        else:
            position = end
            yield value


def _prompt(entry: Json) -> tuple[LoggedPrompt | None, str | None]:
    """Make the prompt of one entry, and say what is wrong with it."""
    if not isinstance(entry, dict):
        return None, "not an object"
    text = entry.get("message")
    if not isinstance(text, str):
        return None, "no message"
    session_id, message_id, kind = entry.get("sessionId"), entry.get("messageId"), entry.get("type")
    at = time_from(entry.get("timestamp"))
    prompt = LoggedPrompt(
        session_id=session_id if isinstance(session_id, str) and session_id else "unknown",
        message_id=message_id if isinstance(message_id, int) and not isinstance(message_id, bool) else None,
        at=at,
        text=text,
        kind=kind if isinstance(kind, str) else "unknown",
        extra={key: value for key, value in entry.items() if key not in _KNOWN},
    )
    if prompt.session_id != session_id:
        return prompt, "no session id"
    return prompt, None if at else "no time"


def _session(session_id: str, logged: list[LoggedPrompt]) -> Converted:
    times = [prompt.at for prompt in logged if prompt.at]
    header: Wire = {"sessionId": session_id}
    if times:
        header |= {"startTime": stamp(min(times)), "lastUpdated": stamp(max(times))}
    messages = tuple(_message(f"{session_id}#{index}", prompt) for index, prompt in enumerate(logged))
    return Converted(header, messages, synthesised=frozenset({"id"}))


def _message(own: str, prompt: LoggedPrompt) -> Wire:
    message: Wire = {"id": own, "type": prompt.kind, "content": [{"text": prompt.text}]}
    if prompt.extra:
        message["entry"] = prompt.extra
    if prompt.at:
        message["timestamp"] = stamp(prompt.at)
    return message
