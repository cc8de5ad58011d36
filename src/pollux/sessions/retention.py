"""What the client will delete at its next start, and why.

At every start the client cleans up the folder of the project it is started in, and only that. Whatever it cannot use
goes at once, whatever its age: a file it cannot read, one without a conversation in it, a subagent's file where those
no longer belong. What is left goes by age and by number. Each file that goes takes along all others whose names end in
the same eight characters, and the subagents of the session that its first line names; so a stub of a few hundred bytes
takes the session that it was left behind by. The rules are those of `CLIENT`, found by running it.
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
from pollux.sessions.client_settings import JS_FALSE, Policy
from pollux.sessions.locate import SessionFile
from pollux.sessions.replay.reading import Reading, shortened_state
from pollux.text.times import instant

CLIENT = "0.61.0"
"""The release whose rules these are; older ones delete less."""
HASHED = "a folder named by hash, which the client may copy but never cleans up"
"""Why nothing goes from a folder of the time before slugs."""


class Why(StrEnum):
    """Why a file goes."""

    AGE = "age"
    COUNT = "count"
    EMPTY = "empty"
    """Nothing in it that could be resumed."""
    STUB = "stub"
    """An empty file with the same eight characters takes it along."""
    UNREADABLE = "unreadable"
    HEADERLESS = "headerless"
    SUBAGENT = "subagent"
    """A subagent's file where old releases put them, beside that of its session."""


class Chat(msgspec.Struct, frozen=True):
    """What the clean-up sees of one file below `chats`."""

    path: Path
    parent: str | None = None
    """The folder of a subagent's file; nothing else of it matters, since it goes with its session."""
    session_id: str | None = None
    """As its first record gives it: so the client finds the subagents to delete with it."""
    kind: str | None = None
    updated: datetime | None = None
    """Nothing where it is no time: such a file never grows old."""
    is_readable: bool = True
    is_headerless: bool = False
    is_resumable: bool = True
    size: int = 0

    @property
    def id8(self) -> str | None:
        """The end of the name, if it is one by which the client finds what belongs together."""
        found = _ID8.fullmatch(self.path.name)
        return found[1] if found else None

    @property
    def fault(self) -> Why | None:
        """Why the client has no use for this file, in its own order."""
        if not self.is_readable:
            return Why.HEADERLESS if self.is_headerless else Why.UNREADABLE
        if not self.is_resumable:
            return Why.EMPTY
        return Why.SUBAGENT if self.kind == "subagent" else None


class Look(msgspec.Struct, frozen=True, array_like=True):
    """What the clean-up takes from the inside of a file, as the archive remembers it."""

    session_id: str | None
    kind: str
    updated: datetime | None
    is_of_now: bool
    """Whether it is always as if it had just been used."""
    is_readable: bool
    is_headerless: bool
    is_resumable: bool


class Fate(msgspec.Struct, frozen=True):
    """When a file goes, and why."""

    why: Why
    due: datetime
    """The first start after this deletes it."""
    because: Path | None = None
    """The file that takes it along; nothing if it goes by itself."""


_ID8 = re.compile(r"session(?:-.*)?-([a-zA-Z0-9]{8})\.jsonl?", re.DOTALL)
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_FIRST_LINE = 4096


def fates(chats: Iterable[Chat], policy: Policy, *, now: datetime) -> dict[Path, Fate]:
    """Tell which files of one project folder go; what is not in the answer stays."""
    if policy.off:
        return {}
    chats = sorted(chats, key=lambda chat: chat.path.name)
    found: dict[Path, Fate] = {}
    takes: dict[str, Fate] = {}
    companies: dict[str, list[Chat]] = defaultdict(list)
    for chat in chats:
        if chat.parent is None:
            companies[chat.id8 or str(chat.path)].append(chat)
    own = _own_fates([chat for company in companies.values() for chat in company], policy, now)
    for company in companies.values():
        for chat, fate in _in_company(company, own, now):
            found[chat.path] = fate
            name = _UNSAFE.sub("_", chat.session_id or "")
            if name and (chat.id8 or not chat.fault):
                taken = Fate(fate.why, fate.due, fate.because or chat.path)
                takes[name] = min(takes.get(name, taken), taken, key=lambda one: one.due)
    return found | {chat.path: takes[chat.parent] for chat in chats if chat.parent in takes and chat.parent}


def chat_from(reading: Reading, file: SessionFile, *, now: datetime) -> Chat:
    """Look at a file as the clean-up does, whether it was read from the disk or from the archive."""
    return chat(look(reading), file, file.path, now=now)


def chat(seen: Look, file: SessionFile, path: Path, *, now: datetime) -> Chat:
    """Return what the clean-up sees of a file at its next start."""
    return Chat(
        path,
        session_id=seen.session_id,
        kind=seen.kind,
        updated=now if seen.is_of_now else seen.updated,
        is_readable=seen.is_readable,
        is_headerless=seen.is_headerless,
        is_resumable=seen.is_resumable,
        size=file.size,
    )


def look(reading: Reading) -> Look:
    """Take from a file's reading what the clean-up looks at, whenever that will be."""
    result = reading.replay
    given = result.metadata
    is_readable = result.is_readable and given.get(SESSION_ID) not in JS_FALSE
    updated = _updated(reading)
    return Look(
        _sound(_first_id(reading)),
        "subagent" if given.get("kind") == "subagent" else "main",
        updated if isinstance(updated, datetime) else None,
        is_of_now=updated is _NOW,
        is_readable=is_readable,
        is_headerless=not is_readable and reading.format == "log" and bool(result.timeline),
        is_resumable=is_readable and _has_resumable(reading),
    )


def _own_fates(chats: Sequence[Chat], policy: Policy, now: datetime) -> dict[Path, Fate]:
    """Tell what goes by itself."""
    found = {chat.path: Fate(chat.fault, now) for chat in chats if chat.fault}
    newest_first = sorted((chat for chat in chats if not chat.fault), key=cmp_to_key(_compare))
    for number, chat in enumerate(newest_first):
        due = _due(chat, policy)
        is_too_many = policy.max_count is not None and number >= policy.max_count
        if is_too_many and not (due and due < now):
            found[chat.path] = Fate(Why.COUNT, now)
        elif due:
            found[chat.path] = Fate(Why.AGE, due)
    return found


def _compare(one: Chat, other: Chat) -> int:
    """Order as the client does, to which a time that is none equals every other."""
    if one.updated is None or other.updated is None:
        return 0
    return (one.updated < other.updated) - (one.updated > other.updated)


def _due(chat: Chat, policy: Policy) -> datetime | None:
    try:
        return chat.updated + policy.max_age if chat.updated and policy.max_age else None
    except OverflowError:
        return None


def _in_company(company: Sequence[Chat], own: Mapping[Path, Fate], now: datetime) -> Iterable[tuple[Chat, Fate]]:
    """Let all of a company go with the first of them."""
    going = [chat for chat in company if chat.path in own]
    if not going:
        return
    first = min(going, key=lambda chat: own[chat.path].due)
    cause = own[first.path]
    why = Why.STUB if cause.why == Why.EMPTY else cause.why
    for chat in company:
        fate = own.get(chat.path)
        is_own = chat is first or (fate is not None and fate.due <= max(now, cause.due))
        yield chat, fate if fate and is_own else Fate(why, cause.due, first.path)


def _sound(text: str | None) -> str | None:
    """Replace halves of surrogate pairs, which no folder is named by."""
    return text and text.encode("utf-8", "replace").decode()


_NOW = "now"


def _updated(reading: Reading) -> datetime | str | None:
    """Tell when the client says a session was last used; what it says of a log that does not tell is: now."""
    given = reading.replay.metadata
    values = [given.get(LAST_UPDATED)] if reading.format == "log" else [given.get(LAST_UPDATED), given.get(START_TIME)]
    value = next((value for value in values if value not in JS_FALSE), None)
    if value is None:
        return _NOW if reading.format == "log" else reading.source.modified
    if isinstance(value, int | float):
        try:
            return datetime.fromtimestamp(value / 1000, UTC)
        except (OverflowError, ValueError, OSError):
            return None
    return instant(value)


def _first_id(reading: Reading) -> str | None:
    """Read the id where the client looks for it: on the first line if that is short, else in a whole document."""
    line = reading.source.slice(Span(0, _FIRST_LINE)).partition(b"\n")[0]
    try:
        value = lenient.decode(line)
    except ValueError:
        value = reading.replay.metadata if reading.format == "document" and reading.replay.is_readable else None
    found = value.get(SESSION_ID) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def _has_resumable(reading: Reading) -> bool:
    return any(is_resumable(value) for value in shortened_state(reading))
