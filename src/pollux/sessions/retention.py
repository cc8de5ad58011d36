"""Forecast which files the client will delete at its next start, and why.

At every start the client cleans up the folder of the project in which it is started. It first deletes files that it
cannot use, regardless of age: unreadable files, files without a conversation, and subagents' files in the old location.
It deletes the others by age and by number. Each deletion includes all files whose names end in the same eight
characters, and the subagents of the session that the file's first line names. A stub of a few hundred bytes can thus
cause the deletion of a whole session. The rules were found by running the release `CLIENT`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import cmp_to_key
from pathlib import Path

import msgspec

from pollux.formats import lenient
from pollux.formats.parts import is_resumable
from pollux.formats.records import LAST_UPDATED, SESSION_ID, START_TIME
from pollux.formats.source import Span
from pollux.sessions.client_settings import JS_FALSE, RetentionPolicy
from pollux.sessions.locate import SessionFile
from pollux.sessions.replay.reading import FileReading, shortened_state
from pollux.text.escape import replace_surrogates
from pollux.text.times import parse_time

CLIENT = "0.61.0"
"""The release with these rules; older ones delete less."""
HASHED = "a folder named by hash, which the client may copy but never cleans up"
"""Why the client deletes nothing from a folder that was created before it used slugs."""


class DeletionReason(StrEnum):
    """Why the client deletes a file."""

    AGE = "age"
    COUNT = "count"
    EMPTY = "empty"
    """The file has no content to resume."""
    STUB = "stub"
    """An empty file with the same eight characters causes its deletion."""
    UNREADABLE = "unreadable"
    HEADERLESS = "headerless"
    SUBAGENT = "subagent"
    """A subagent's file next to that of its session, where old releases put it."""


class CleanupFile(msgspec.Struct, frozen=True):
    """What the client's clean-up considers of one file below `chats`."""

    path: Path
    parent: str | None = None
    """The folder of a subagent's file, which is deleted with its session; its other fields do not matter."""
    session_id: str | None = None
    """The ID in the file's first record, by which the client finds the subagents to delete with it."""
    kind: str | None = None
    updated: datetime | None = None
    """None if the recorded value is not a time: such a file never expires."""
    is_readable: bool = True
    is_headerless: bool = False
    is_resumable: bool = True
    size: int = 0

    @property
    def id8(self) -> str | None:
        """The eight characters at the end of the name by which the client groups files; None for other names."""
        match = _ID8.fullmatch(self.path.name)
        return match[1] if match else None

    @property
    def fault(self) -> DeletionReason | None:
        """Why the client cannot use this file, checked in the client's order."""
        if not self.is_readable:
            return DeletionReason.HEADERLESS if self.is_headerless else DeletionReason.UNREADABLE
        if not self.is_resumable:
            return DeletionReason.EMPTY
        return DeletionReason.SUBAGENT if self.kind == "subagent" else None


class CleanupTraits(msgspec.Struct, frozen=True, array_like=True):
    """What the client's clean-up reads from inside a file; stored in the archive."""

    session_id: str | None
    kind: str
    updated: datetime | None
    is_of_now: bool
    """Whether the client always considers it just used."""
    is_readable: bool
    is_headerless: bool
    is_resumable: bool


class Deletion(msgspec.Struct, frozen=True):
    """When and why the client deletes a file."""

    reason: DeletionReason
    due: datetime
    """The client's first start after this time deletes the file."""
    caused_by: Path | None = None
    """The file whose deletion includes this one; None if it is deleted by itself."""


_ID8 = re.compile(r"session(?:-.*)?-([a-zA-Z0-9]{8})\.jsonl?", re.DOTALL)
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_FIRST_LINE = 4096


def forecast_deletions(chats: Iterable[CleanupFile], policy: RetentionPolicy, *, now: datetime) -> dict[Path, Deletion]:
    """Return the files of one project folder that the client will delete; all others stay."""
    if policy.off:
        return {}
    chats = sorted(chats, key=lambda chat: chat.path.name)
    deletions: dict[Path, Deletion] = {}
    takes: dict[str, Deletion] = {}
    companies: dict[str, list[CleanupFile]] = defaultdict(list)
    for chat in chats:
        if chat.parent is None:
            companies[chat.id8 or str(chat.path)].append(chat)
    own = _own_fates([chat for company in companies.values() for chat in company], policy, now)
    for company in companies.values():
        for chat, fate in _in_company(company, own, now):
            deletions[chat.path] = fate
            name = _UNSAFE.sub("_", chat.session_id or "")
            if name and (chat.id8 or not chat.fault):
                taken = Deletion(fate.reason, fate.due, fate.caused_by or chat.path)
                takes[name] = min(takes.get(name, taken), taken, key=lambda one: one.due)
    return deletions | {chat.path: takes[chat.parent] for chat in chats if chat.parent in takes and chat.parent}


def cleanup_file_from_reading(reading: FileReading, file: SessionFile, *, now: datetime) -> CleanupFile:
    """Return what the clean-up considers of a file that was read from the disk or the archive."""
    return cleanup_file(cleanup_traits(reading), file, file.path, now=now)


def cleanup_file(seen: CleanupTraits, file: SessionFile, path: Path, *, now: datetime) -> CleanupFile:
    """Return what the clean-up considers of a file at the client's next start."""
    return CleanupFile(
        path,
        session_id=seen.session_id,
        kind=seen.kind,
        updated=now if seen.is_of_now else seen.updated,
        is_readable=seen.is_readable,
        is_headerless=seen.is_headerless,
        is_resumable=seen.is_resumable,
        size=file.size,
    )


def cleanup_traits(reading: FileReading) -> CleanupTraits:
    """Return what the clean-up reads from inside a file; independent of the current time."""
    result = reading.replay
    metadata = result.metadata
    is_readable = result.is_readable and metadata.get(SESSION_ID) not in JS_FALSE
    updated = _updated(reading)
    return CleanupTraits(
        _first_id(reading),
        "subagent" if metadata.get("kind") == "subagent" else "main",
        updated if isinstance(updated, datetime) else None,
        is_of_now=updated is _NOW,
        is_readable=is_readable,
        is_headerless=not is_readable and reading.format == "log" and bool(result.timeline),
        is_resumable=is_readable and _has_resumable(reading),
    )


def _own_fates(chats: Sequence[CleanupFile], policy: RetentionPolicy, now: datetime) -> dict[Path, Deletion]:
    """Return the files that are deleted by themselves, not because of another file."""
    deletions = {chat.path: Deletion(chat.fault, now) for chat in chats if chat.fault}
    newest_first = sorted((chat for chat in chats if not chat.fault), key=cmp_to_key(_compare))
    for number, chat in enumerate(newest_first):
        due = _due(chat, policy)
        is_too_many = policy.max_count is not None and number >= policy.max_count
        if is_too_many and not (due and due < now):
            deletions[chat.path] = Deletion(DeletionReason.COUNT, now)
        elif due:
            deletions[chat.path] = Deletion(DeletionReason.AGE, due)
    return deletions


def _compare(left: CleanupFile, right: CleanupFile) -> int:
    """Compare as the client does: a missing time equals every other."""
    if left.updated is None or right.updated is None:
        return 0
    return (left.updated < right.updated) - (left.updated > right.updated)


def _due(chat: CleanupFile, policy: RetentionPolicy) -> datetime | None:
    try:
        return chat.updated + policy.max_age if chat.updated and policy.max_age else None
    except OverflowError:
        return None


def _in_company(
    company: Sequence[CleanupFile], own: Mapping[Path, Deletion], now: datetime
) -> Iterable[tuple[CleanupFile, Deletion]]:
    """Yield the deletion of each file in a group with the same eight characters: all are deleted with the first."""
    going = [chat for chat in company if chat.path in own]
    if not going:
        return
    first = min(going, key=lambda chat: own[chat.path].due)
    cause = own[first.path]
    why = DeletionReason.STUB if cause.reason == DeletionReason.EMPTY else cause.reason
    for chat in company:
        fate = own.get(chat.path)
        is_own = chat is first or (fate is not None and fate.due <= max(now, cause.due))
        yield chat, fate if fate and is_own else Deletion(why, cause.due, first.path)


_NOW = "now"


def _updated(reading: FileReading) -> datetime | str | None:
    """Return when the client considers a session last used; `_NOW` for a log without that time."""
    metadata = reading.replay.metadata
    values = [metadata.get(LAST_UPDATED)]
    if reading.format != "log":
        values.append(metadata.get(START_TIME))
    value = next((value for value in values if value not in JS_FALSE), None)
    if value is None:
        return _NOW if reading.format == "log" else reading.source.modified
    if isinstance(value, int | float):
        try:
            return datetime.fromtimestamp(value / 1000, UTC)
        except (OverflowError, ValueError, OSError):
            return None
    return parse_time(value)


def _first_id(reading: FileReading) -> str | None:
    """Return the session ID as the client reads it: from the first line if that is short, else from the document."""
    line = reading.source.slice(Span(0, _FIRST_LINE)).partition(b"\n")[0]
    try:
        value = lenient.decode(line)
    except ValueError:
        value = reading.replay.metadata if reading.format == "document" and reading.replay.is_readable else None
    id_ = value.get(SESSION_ID) if isinstance(value, dict) else None
    return replace_surrogates(id_) if isinstance(id_, str) else None


def _has_resumable(reading: FileReading) -> bool:
    return any(is_resumable(value) for value in shortened_state(reading))
