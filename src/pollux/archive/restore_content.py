"""What the files of a restored session hold: as they were kept, but for the time of update, a header and new ids."""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pollux.archive.readings import source_of
from pollux.archive.resumable import Excerpt
from pollux.disk.placing import Writing, below
from pollux.formats import lenient
from pollux.formats.log import SEPARATORS, has_separator
from pollux.formats.source import Source
from pollux.model import Json, Role, Session
from pollux.sessions.locate import name_facts
from pollux.sessions.projects.resolve import project_hash
from pollux.sessions.replay.reading import Reading, state
from pollux.text.times import instant, stamp

EARLIEST = datetime.min.replace(tzinfo=UTC)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_UPDATED = re.compile(rb'^(  "lastUpdated": )"[^"\\\n]*"', re.MULTILINE)
_NOT_SESSIONS = ("chats", "logs", "tool-outputs")


@dataclass(frozen=True, slots=True)
class Kept:
    """A version of a file of the session."""

    version_id: int
    home: str
    folder: str
    name: str
    role: str
    excerpt: Excerpt

    @property
    def reading(self) -> Reading:
        """What can be restored of the file: mostly all of it."""
        return self.excerpt.reading

    @property
    def is_resumable(self) -> bool:
        """Whether the client would find something to resume in it."""
        return self.excerpt.is_resumable

    @property
    def n_messages(self) -> int:
        """How much it holds."""
        return len(self.reading.replay.timeline)

    @property
    def message_ids(self) -> set[str]:
        """What it holds."""
        return {entry.id for entry in self.reading.replay.timeline}

    @property
    def is_import(self) -> bool:
        """Whether it came from another archive, so that this machine has not read the file itself."""
        return self.reading.original.is_import

    def rank(self, main: set[str]) -> tuple[bool, bool, bool, int, bool, datetime, int]:
        """Return how good it is: one that this machine has read itself, the fullest, then the newest.

        Args:
            main: the messages of the file that the client would load; what lacks some of them and is no version of it
                is another stretch of the session, and none to go on from.

        """
        result = self.reading.replay
        updated = instant(result.seen.get("lastUpdated")) or EARLIEST
        is_it = self.role != Role.PART or self.message_ids >= main
        return (
            self.is_resumable,
            not self.is_import,
            is_it,
            self.n_messages,
            result.is_readable,
            updated,
            self.version_id,
        )


def new_ids(database: sqlite3.Connection, old: str, new: str) -> dict[str, str]:
    """Give a session and its subagents other ids."""
    agents = {Path(rest).stem for _, _, rest, _ in _beside(database, [_safe(old)]) if rest.startswith("chats/")}
    fresh = uuid.UUID(new)
    return {old: new, **{agent: str(uuid.uuid5(fresh, agent)) for agent in sorted(agents)}}


def companions(
    database: sqlite3.Connection, id_: str, best: Kept, place: Path, ids: Mapping[str, str]
) -> Iterator[Writing]:
    """Yield the subagents, tool outputs, plans and logs of a session."""
    own = _safe(id_)
    agents = {Path(rest).stem for _, _, rest, _ in _beside(database, [own]) if rest.startswith("chats/")}
    found: dict[str, Source] = {}
    rows = sorted(_beside(database, [own, *agents]), key=lambda row: row[:2] != (best.home, best.folder))
    sources = [(rest, source_of(database, version_id)) for _, _, rest, version_id in rows]
    for rest, source in sorted(sources, key=lambda one: one[1].is_import):
        found.setdefault(rest, source)
    for rest, source in sorted(found.items()):
        yield _companion(source, place, rest, ids)


def pieces_of(best: Kept, session: Session, ids: Mapping[str, str], now: datetime) -> Iterator[bytes]:
    """Yield the session's own file, with a new time of update, and with what the client cannot do without."""
    source, rename = best.reading.original, _renaming(ids)
    fields = _header(best, session, ids, now)
    if best.reading.format == "log" and not _is_one_line(source):
        return _log(source, rename, b"" if best.reading.replay.is_readable else _line(fields), stamp(now))
    n_found = sum(len(_UPDATED.findall(piece)) for piece in _lines(source))
    if best.reading.replay.is_readable and n_found:
        new = rb'\1"' + stamp(now).encode() + b'"'
        return (rename(_UPDATED.sub(new, piece)) for piece in _lines(source))
    return _document(best.reading, rename, fields)


def _safe(id_: str) -> str:
    """Write an id as the client does in names."""
    return _UNSAFE.sub("_", id_)


def _beside(database: sqlite3.Connection, ids: Iterable[str]) -> Iterator[tuple[str, str, str, int]]:
    """Yield what belongs to sessions beside their own files: home, project folder, path below it, version."""
    own = tuple(f"{id_}/" for id_ in ids if id_.lower() not in _NOT_SESSIONS)
    logs = tuple(f"logs/session-{id_}.jsonl" for id_ in ids)
    beginnings = (*own, *(f"{top}{id_}/" for top in ("chats/", "tool-outputs/session-") for id_ in ids))
    rows = database.execute(
        "SELECT home, path, version_id FROM files "
        "WHERE path LIKE 'tmp/%' AND version_id IS NOT NULL AND forgotten_us IS NULL ORDER BY home, path"
    )
    for home, path, version_id in rows:
        _, folder, *rest = path.split("/", 2)
        if rest and (rest[0].startswith(beginnings) or rest[0] in logs):
            yield home, folder, rest[0], version_id


def _companion(source: Source, place: Path, rest: str, ids: Mapping[str, str]) -> Writing:
    parts = [_renamed_part(part, ids) for part in rest.split("/")]
    if not rest.startswith("chats/"):
        return Writing(below(place, *parts), lambda: _lines(source))
    rename = _renaming(ids)
    escape = _escaped if rest.endswith(".jsonl") else _as_it_is
    return Writing(below(place, *parts), lambda: (escape(rename(piece)) for piece in _lines(source)))


def _renamed_part(part: str, ids: Mapping[str, str]) -> str:
    for old, new in ids.items():
        if match := re.fullmatch(rf"(session-)?{re.escape(_safe(old))}(\.jsonl?)?", part):
            return f"{match[1] or ''}{new}{match[2] or ''}"
    return part


def _renaming(ids: Mapping[str, str]) -> Callable[[bytes], bytes]:
    """Return what puts other ids in the place of the old: wherever they stand if nothing else can look like them."""
    if not ids:
        return _as_it_is
    unique = "|".join(re.escape(old) for old in ids if _UUID.fullmatch(old)) or "(?!)"
    others = "|".join(re.escape(old) for old in ids if not _UUID.fullmatch(old)) or "(?!)"
    key = r'(?<="sessionId":")|(?<="sessionId": ")|(?<="agentId":")|(?<="agentId": ")|(?<=tool-outputs/session-)'
    pattern = re.compile(rf'(?:{unique})|(?:{key})(?:{others})(?=["/])'.encode())
    table = {old.encode(): new.encode() for old, new in ids.items()}
    return lambda data: pattern.sub(lambda match: table[match[0]], data)


def _as_it_is(data: bytes) -> bytes:
    return data


def _is_one_line(source: Source) -> bool:
    """Tell whether a file is a document without line ends, which some releases of the client would not read."""
    return sum(1 for _ in source.lines()) == 1


def _header(best: Kept, session: Session, ids: Mapping[str, str], now: datetime) -> dict[str, Json]:
    result = best.reading.replay
    started = session.started or name_facts(best.name)[0] or now
    path = session.project.path
    needed: dict[str, Json] = {
        "sessionId": session.id,
        "projectHash": session.project.hash or (project_hash(path) if path else ""),
        "startTime": stamp(started),
    }
    found = {key: value for key, value in result.seen.items() if key != "messages" and value not in (None, "")}
    return {**needed, **found, "sessionId": ids.get(session.id, session.id), "lastUpdated": stamp(now)}


def _log(source: Source, rename: Callable[[bytes], bytes], header: bytes, updated: str) -> Iterator[bytes]:
    if header:
        yield header
    end = b"\n"
    for piece in _lines(source):
        yield _escaped(rename(piece))
        end = piece[-1:] or end
    if end != b"\n":
        yield b"\n"
    yield _line({"$set": {"lastUpdated": updated}})


def _escaped(data: bytes) -> bytes:
    """Escape the characters at which newer releases of Node.js cut a line; in JSON they only stand in strings."""
    if not has_separator(data):
        return data
    for separator in SEPARATORS:
        data = data.replace(separator, f"\\u{ord(separator.decode()):04x}".encode())
    return data


def _document(reading: Reading, rename: Callable[[bytes], bytes], fields: Mapping[str, Json]) -> Iterator[bytes]:
    """Put a document together from what could be read of it."""
    lines = [b"  " + lenient.encode(key) + b": " + lenient.encode(value) for key, value in fields.items()]
    yield b"{\n" + b",\n".join(lines) + b',\n  "messages": ['
    for number, data in enumerate(state(reading)):
        yield (b"," if number else b"") + b"\n    " + rename(data)
    yield b"\n  ]\n}"


def _line(value: Mapping[str, Json]) -> bytes:
    return lenient.encode(value) + b"\n"


def _lines(source: Source) -> Iterator[bytes]:
    """Yield a file in large pieces that end where a line does."""
    rest: list[bytes] = []
    for block in source.blocks():
        last = block.rfind(b"\n") + 1
        if last:
            yield b"".join([*rest, block[:last]])
            rest = []
        rest.append(block[last:])
    if tail := b"".join(rest):
        yield tail
