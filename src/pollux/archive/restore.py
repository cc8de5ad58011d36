"""Write a session back below a Gemini home, so that the client can resume it and does not delete it at once.

All is decided first (`plan`), and written then (`carry_out`). The session's own file is the best that was kept, byte
for byte; only the time of its last update becomes now, since the client goes by that, and where the header is lost it
gets one. Each file is first written under another name beside its place; they get their names when all of them are on
the disk, the session's own last. What has a name already is never touched.
"""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

from pollux.archive.readings import read_on, source_of
from pollux.errors import PolluxError
from pollux.formats import lenient
from pollux.formats.parts import is_resumable
from pollux.formats.source import Source
from pollux.formats.times import instant, stamp
from pollux.locate import Home, name_facts
from pollux.model import Json, Role, Session
from pollux.projects import Known, known_paths, project_hash, slug
from pollux.reading import Reading, read, state


class RestoreError(PolluxError):
    """A session cannot be written back."""


class CollisionError(RestoreError):
    """Something is in the way, which another id would avoid."""


@dataclass(frozen=True, slots=True)
class Writing:
    """One file to write."""

    place: Path
    pieces: Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a restore comes to."""

    id: str
    """To resume it by."""
    home: Home
    main: Path
    """The session's own file."""
    n_messages: int
    files: tuple[Writing, ...] = ()
    """What is to be written, the session's own file last; nothing if all of it is there."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A version of a file of the session."""

    version_id: int
    home: str
    folder: str
    name: str
    role: str
    reading: Reading
    is_resumable: bool

    @property
    def n_messages(self) -> int:
        return len(self.reading.replay.timeline)

    @property
    def message_ids(self) -> set[str]:
        return {entry.id for entry in self.reading.replay.timeline}

    def rank(self, main: set[str]) -> tuple[bool, bool, int, bool, datetime, int]:
        """Tell how good it is: the fullest that the client can go on from, then the newest.

        Args:
            main: the messages of the file that the client would load; what lacks some of them and is no version of it
                is another stretch of the session, and none to go on from.

        """
        result = self.reading.replay
        updated = instant(result.seen.get("lastUpdated")) or _EARLIEST
        is_it = self.role != Role.PART or self.message_ids >= main
        return self.is_resumable, is_it, self.n_messages, result.is_readable, updated, self.version_id


@dataclass(slots=True)
class _Undo:
    """What was made so far, to be taken back if it does not come to an end."""

    made: list[Path] = field(default_factory=list)

    def take_back(self) -> None:
        for path in reversed(self.made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


_EARLIEST = datetime.min.replace(tzinfo=UTC)
_HASH = re.compile(r"[0-9a-f]{64}")
_SLUG = re.compile(r"[a-z0-9-]+")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_UPDATED = re.compile(rb'^(  "lastUpdated": )"[^"\\\n]*"', re.MULTILINE)
_LEFTOVER = re.compile(r"\.(?:unreadable|tmp)-[\w-]+$")
_SUFFIXES = (".json", ".jsonl")
_NOT_SESSIONS = ("chats", "logs", "tool-outputs")
_FORMATS = ("log", "document")


def plan(
    database: sqlite3.Connection,
    session: Session,
    homes: Iterable[Home],
    *,
    now: datetime,
    to: Home | None = None,
    new_id: str | None = None,
) -> Plan:
    """Decide what to write where. Raises `RestoreError` if it cannot be done.

    Args:
        database: the archive's.
        session: one of its sessions.
        homes: those that are looked at; the session goes back to its own, or to the first if that is not there.
        now: what becomes the time of its last update.
        to: another home.
        new_id: another id, under which nothing can be in the way.

    """
    found = _all_kept(database, session)
    best = _best(session, found)
    home = to or _own_home(best.home, tuple(homes))
    path = session.project.path
    folder, has_marker = _folder(home, path, best.folder)
    place = _below(home.tmp, folder)
    main = _below(place, "chats", _name(best, session, new_id))
    if there := _same_name(main):
        if done := _is_there(there, session, best, home):
            return done
        raise CollisionError(_in_the_way(there, main, session, best))
    ids = _new_ids(database, session.id, new_id) if new_id else {}
    marker = [] if has_marker or path is None else [Writing(place / ".project_root", lambda: [os.fsencode(path)])]
    companions = list(_companions(database, session.id, best, place, ids))
    new = [one for one in companions if not os.path.lexists(one.place)]
    kept = [one.place for one in companions if one not in new and not _is_same(one)]
    own = Writing(main, lambda: _pieces(best, session, ids, now))
    notes = (*_notes(best, found), *(f"{one} has other contents now, and keeps them." for one in kept))
    return Plan(new_id or session.id, home, main, best.n_messages, (*marker, *new, own), notes)


def carry_out(plan: Plan) -> None:
    """Write everything, or nothing. Raises `RestoreError`."""
    undo = _Undo()
    place = plan.main
    staged: list[tuple[Path, Path]] = []
    try:
        try:
            for one in plan.files:
                place = one.place
                staged.append((_staged(one, undo), place))
            for temporary, place in staged:
                _name_it(temporary, place)
                undo.made.append(place)
        except BaseException:
            undo.take_back()
            raise
    except FileExistsError:
        raise CollisionError(f"{place} has come into being meanwhile; nothing was written.") from None
    except OSError as error:
        raise RestoreError(f"{place} cannot be written ({error.strerror}); nothing was changed.") from None
    for temporary, _ in staged:
        with suppress(OSError):  # all is done; the client never looks at these
            temporary.unlink(missing_ok=True)
    for folder in dict.fromkeys(chain.from_iterable((one.place.parent, one.place.parent.parent) for one in plan.files)):
        _sync_folder(folder)


def _all_kept(database: sqlite3.Connection, session: Session) -> list[_Kept]:
    """Read all that was kept of a session's own files."""
    rows = database.execute(
        """
        SELECT versions.id, files.home, files.path, session_files.role FROM session_files
        JOIN versions ON versions.id = session_files.file_version_id JOIN files ON files.id = versions.file_id
        WHERE session_files.session_id = ? AND session_files.role != 'stub' AND files.forgotten_us IS NULL
        """,
        (session.id,),
    ).fetchall()
    return [_kept(database, *row) for row in rows]


def _best(session: Session, found: list[_Kept]) -> _Kept:
    """Choose what to restore."""
    if session.kind != "main":
        parent = f": `pollux restore {session.parent}` restores that, and this with it" if session.parent else ""
        raise RestoreError(f"{session.id} is the session of a subagent and part of another{parent}.")
    main = {id_ for one in found if one.role in (Role.MAIN, Role.IMPORT) for id_ in one.message_ids}
    fitting = (one for one in found if one.reading.format in _FORMATS)
    best = max(fitting, key=lambda one: one.rank(main), default=None)
    if best is None or not best.is_resumable:
        raise RestoreError(f"{session.id} holds nothing that could be resumed; `pollux show` reads what there is.")
    return best


def _kept(database: sqlite3.Connection, version_id: int, home: str, path: str, role: str) -> _Kept:
    _, folder, _, name = path.split("/", 3)
    reading = read_on(source_of(database, version_id), None)[0]
    return _Kept(version_id, home, folder, name, role, reading, _can_go_on(reading))


def _can_go_on(reading: Reading) -> bool:
    values = (lenient.decode(data) for data in state(reading))
    return any(isinstance(value, dict) and is_resumable(value) for value in values)


def _notes(best: _Kept, found: Iterable[_Kept]) -> Iterator[str]:
    if not best.reading.replay.is_readable:
        yield "The client could not read this file as it was kept; what it lacks was added."
    ids = best.message_ids
    parts = {one.name for one in found if one.role == Role.PART and not one.message_ids <= ids}
    if parts:
        yield f"Not restored, since the client can only go on from one file, but kept: {', '.join(sorted(parts))}."


def _own_home(root: str, homes: tuple[Home, ...]) -> Home:
    """Return the home that a session was kept from; one that is not there gives way to the first of the others."""
    same = next((home for home in homes if str(home.root) == root), None)
    if same is None and (not homes or Path(root).is_dir()):
        same = Home(Path(root), Path(root) / "tmp", "archive")
    return same or homes[0]


def _folder(home: Home, path: str | None, kept: str) -> tuple[str, bool]:
    """Name the folder below `tmp` where the client looks for a project, and say whether it would find it by itself.

    The registry decides, as long as no marker contradicts it; then the markers. A project that a home does not know yet
    gets a marker, and the client takes the folder over with its next start. Where there is no registry, the client may
    be of the time of hashes; newer ones copy such a folder.
    """
    if path is None:
        return kept, True
    known = known_paths(home)
    markers = [claim for claim in known.claims if claim.how == "project_root"]
    registered = {_normal(one.path): one.folder for one in known.claims if one.how == "projects.json" and one.folder}
    name = registered.get(_normal(path))
    if name and not _is_foreign(known, name, path):
        return name, True
    for claim in markers:
        if claim.folder and _normal(claim.path) == _normal(path):
            return claim.folder, True
    if kept == project_hash(path) and not (home.root / "projects.json").exists():
        return kept, True
    wanted, taken = slug(path), set(registered.values())
    names = chain([kept] if _is_slug(kept) else [], [wanted], (f"{wanted}-{number}" for number in count(1)))
    free = (one for one in names if one not in taken and not _is_foreign(known, one, path))
    return next(one for one in free if not os.path.lexists(home.tmp / one / ".project_root")), False


def _is_slug(name: str) -> bool:
    return bool(_SLUG.fullmatch(name)) and not _HASH.fullmatch(name)


def _is_foreign(known: Known, folder: str, path: str) -> bool:
    owners = (one.path for one in known.claims if one.how == "project_root" and one.folder == folder)
    return any(_normal(owner) != _normal(path) for owner in owners)


def _normal(path: str) -> str:
    return os.path.normcase(path)


def _below(folder: Path, *names: str) -> Path:
    """Put names together; an archive may come from another system, where other names are possible."""
    for name in names:
        if name in ("", ".", "..") or Path(name).name != name:
            raise RestoreError(f"'{name}', as the archive has it, is no name for a file here.")
    return folder.joinpath(*names)


def _name(best: _Kept, session: Session, new_id: str | None) -> str:
    """Name the session's own file as the client did; another id has another end."""
    name = _LEFTOVER.sub("", best.name)
    if new_id is None:
        return name
    id8 = name_facts(name)[1]
    suffix = Path(name).suffix
    if id8 is None:
        started = stamp(session.started or _EARLIEST)[:16].replace(":", "-")
        return f"session-{started}-{new_id[:8]}{suffix}"
    return name.removesuffix(id8 + suffix) + new_id[:8] + suffix


def _same_name(main: Path) -> list[Path]:
    """Return the files that the client deletes together: those whose names end in the same characters."""
    id8 = name_facts(main.name)[1]
    ends = tuple(f"-{id8}{suffix}" for suffix in _SUFFIXES) if id8 else (main.name,)
    try:
        names = sorted(os.listdir(main.parent))  # noqa: PTH208  names only
    except FileNotFoundError:
        return []
    return [main.parent / name for name in names if name.startswith("session-") and name.endswith(ends)]


def _is_there(there: list[Path], session: Session, best: _Kept, home: Home) -> Plan | None:
    """Tell whether one of these files is the session, with nothing missing."""
    readings = {path: found for path in there if (found := _read(path))}
    for path, found in readings.items():
        is_it = found.id == session.id and found.replay.is_readable and _can_go_on(found)
        if is_it and len(found.replay.timeline) >= best.n_messages:
            others = [one for one in there if one != path and not (one in readings and _can_go_on(readings[one]))]
            notes = tuple(
                f"{one} is a stub: the next session that is started in this project makes the client delete both."
                for one in others
            )
            return Plan(session.id, home, path, len(found.replay.timeline), notes=notes)
    return None


def _in_the_way(there: list[Path], main: Path, session: Session, best: _Kept) -> str:
    found = _read(main) if main in there else None
    if found and found.id == session.id and found.replay.is_readable:
        n = len(found.replay.timeline)
        return (
            f"{main} is there, with {n} of {best.n_messages} messages, and is not overwritten; "
            "--new-id writes the fuller version beside it."
        )
    if main in there:
        return f"{main} is there already and is not overwritten; --new-id writes the session under another id."
    return (
        f"{there[0]} is in the way: the client deletes files of that ending together, the restored one too. "
        "Start the client in the project once, which removes it, or use --new-id."
    )


def _read(path: Path) -> Reading | None:
    try:
        return read(path)
    except OSError:
        return None


def _safe(id_: str) -> str:
    """Write an id as the client does in names."""
    return _UNSAFE.sub("_", id_)


def _new_ids(database: sqlite3.Connection, old: str, new: str) -> dict[str, str]:
    """Give a session and its subagents other ids."""
    agents = {Path(rest).stem for _, _, rest, _ in _beside(database, [_safe(old)]) if rest.startswith("chats/")}
    fresh = uuid.UUID(new)
    return {old: new, **{agent: str(uuid.uuid5(fresh, agent)) for agent in sorted(agents)}}


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


def _companions(
    database: sqlite3.Connection, id_: str, best: _Kept, place: Path, ids: Mapping[str, str]
) -> Iterator[Writing]:
    """Yield the subagents, tool outputs, plans and logs of a session."""
    own = _safe(id_)
    agents = {Path(rest).stem for _, _, rest, _ in _beside(database, [own]) if rest.startswith("chats/")}
    found: dict[str, int] = {}
    rows = sorted(_beside(database, [own, *agents]), key=lambda row: row[:2] != (best.home, best.folder))
    for _, _, rest, version_id in rows:
        found.setdefault(rest, version_id)
    for rest, version_id in sorted(found.items()):
        yield _companion(source_of(database, version_id), place, rest, ids)


def _companion(source: Source, place: Path, rest: str, ids: Mapping[str, str]) -> Writing:
    parts = [_renamed_part(part, ids) for part in rest.split("/")]
    rename = _renaming(ids) if rest.startswith("chats/") else _as_it_is
    return Writing(_below(place, *parts), lambda: map(rename, _lines(source)))


def _is_same(writing: Writing) -> bool:
    try:
        with writing.place.open("rb") as file:
            return all(file.read(len(piece)) == piece for piece in writing.pieces()) and not file.read(1)
    except OSError:
        return False


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


def _pieces(best: _Kept, session: Session, ids: Mapping[str, str], now: datetime) -> Iterator[bytes]:
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


def _is_one_line(source: Source) -> bool:
    """Tell whether a file is a document without line ends, which some releases of the client would not read."""
    return sum(1 for _ in source.lines()) == 1


def _header(best: _Kept, session: Session, ids: Mapping[str, str], now: datetime) -> dict[str, Json]:
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
        yield rename(piece)
        end = piece[-1:] or end
    if end != b"\n":
        yield b"\n"
    yield _line({"$set": {"lastUpdated": updated}})


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


def _staged(writing: Writing, undo: _Undo) -> Path:
    """Write a file beside its place, under a name that the client does not look at."""
    for folder in reversed([one for one in (writing.place.parent, *writing.place.parent.parents) if not one.exists()]):
        folder.mkdir(mode=0o700)
        undo.made.append(folder)
    descriptor, name = tempfile.mkstemp(prefix=".pollux-", suffix=".tmp", dir=writing.place.parent)  # 0600
    temporary = Path(name)
    undo.made.append(temporary)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(writing.pieces())
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _name_it(temporary: Path, place: Path) -> None:
    """Give a file its name, unless something has it."""
    try:
        os.link(temporary, place)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(place):
            raise FileExistsError(place) from None
        temporary.rename(place)


def _sync_folder(folder: Path) -> None:
    """Make names last; where folders cannot be opened, the system does it in its own time."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
