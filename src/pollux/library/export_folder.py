"""A folder of exports: one file per session with a stable name; only changed sessions are written again."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from pollux.disk.read import NAMED_FILE, read_side_file
from pollux.disk.write import make_private_folder
from pollux.exports.source import side_folder
from pollux.library.outputs import OutputGuard
from pollux.library.snapshot import size_and_time
from pollux.model import Session
from pollux.text.times import client_timestamp

INDEX = ".pollux-export.json"
"""The file in the folder that stores the fingerprint of every other file."""

_OURS = re.compile(r"(?:part|picture|file)-\d+\.\w+")
_LONGEST, _DIGEST = 120, 16
"""Bytes of a name without its suffix, where 255 are allowed with it: temporary files and folders beside it have longer
names, and so has the whole path on Windows."""
_DEVICES = ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"))
_RESERVED = frozenset({*_DEVICES, "index", "readme"})
"""Device names of Windows, and names of our own pages."""


class FolderEntry(msgspec.Struct, frozen=True):
    """The fingerprint of a file, and the files that belong to it."""

    fingerprint: str
    beside: tuple[str, ...] = ()


class FolderIndex(msgspec.Struct, frozen=True):
    """The contents of the index."""

    schema: str = "pollux.folder/1"
    files: dict[str, FolderEntry] = {}


class OutputFile(NamedTuple):
    """A file to be written, and the files that belong to it."""

    folder: Path
    name: str
    guard: OutputGuard
    beside: list[str]
    index_page: str = ""
    """The page of the folder that lists all sessions."""

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.folder / self.name

    def put(self, name: str, data: bytes) -> str:
        """Write a file that belongs to this one, and return its relative path."""
        relative = f"{side_folder(self.name)}/{name}"
        make_private_folder((self.folder / relative).parent)
        self.guard.write(self.folder / relative, [data])
        self.beside.append(relative)
        return relative


def load_index(folder: Path) -> dict[str, FolderEntry]:
    """Return the entries of the index; none if it cannot be read."""
    try:
        return msgspec.json.decode(read_side_file(folder / INDEX, limit=NAMED_FILE), type=FolderIndex).files
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def store_index(folder: Path, files: dict[str, FolderEntry], guard: OutputGuard) -> None:
    """Write the index of a folder."""
    data = msgspec.json.format(msgspec.json.encode(FolderIndex(files=dict(sorted(files.items())))), indent=1)
    guard.write(folder / INDEX, [data + b"\n"])


def is_unchanged(folder: Path, name: str, before: FolderEntry | None, fingerprint: str) -> bool:
    """Return whether a file and those that belong to it exist, and have this fingerprint."""
    if before is None or before.fingerprint != fingerprint:
        return False
    return all(os.path.exists(folder / file) for file in (name, *before.beside))  # noqa: PTH110  thousands of them


def remove_leftovers(file: OutputFile, before: FolderEntry | None) -> None:
    """Delete the files that belonged to the previous version of a file but not to this one."""
    for relative in set(before.beside if before else ()) - set(file.beside):
        folder, _, name = relative.partition("/")
        # The index is untrusted: delete only names that Pollux writes.
        if folder == side_folder(file.name) and _OURS.fullmatch(name):
            (file.folder / relative).unlink(missing_ok=True)


def fingerprint(made_by: str, sessions: Iterable[Session], contents: Callable[[Session], object]) -> str:
    """Return a digest of everything that determines an output: options, facts of the sessions, and their content."""
    digest = hashlib.sha256(made_by.encode())
    for session in sessions:
        facts = [msgspec.structs.replace(session, deleted=False), contents(session)]
        try:
            digest.update(msgspec.msgpack.encode(facts, enc_hook=str))
        except UnicodeEncodeError:  # a file name that is not UTF-8
            digest.update(repr(facts).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def file_states(session: Session) -> list[tuple[int, int] | None]:
    """Return the size and modification time of each file of a session."""
    return [size_and_time(str(ref.path)) for ref in session.files]


def file_name(session: Session, suffix: str, taken: set[str]) -> str:
    """Return a file name made of the session's start and ID, and add it to the taken names.

    The same session always gets the same name, which is valid on every system: at most `_LONGEST` bytes, only letters,
    digits, `-` and `_`, and no device of Windows. Names must differ in more than case.
    """
    began = client_timestamp(session.started)[:16].replace(":", "-") + "_" if session.started else ""
    stem = began + "".join(char if char.isalnum() or char in "-_" else "_" for char in session.id)
    if len(stem.encode()) > _LONGEST:
        digest = hashlib.sha256(session.id.encode("utf-8", "backslashreplace")).hexdigest()[:_DIGEST]
        stem = stem.encode()[: _LONGEST - _DIGEST - 1].decode(errors="ignore") + f"-{digest}"
    if stem.lower() in _RESERVED:
        stem = f"_{stem}"
    others = (f"{stem}-{number}{suffix}" for number in range(2, len(taken) + 3))
    name = next(name for name in chain([f"{stem}{suffix}"], others) if _folded(name) not in taken)
    taken.add(_folded(name))
    return name


def readable_stem(session: Session) -> str:
    """Return a file's name without suffix made of project, date and short ID, in characters that every shell takes."""
    day = client_timestamp(session.started)[:10] if session.started else ""
    name = "-".join(filter(None, [session.project.name, day, session.id[:8]])).lower()
    return re.sub(r"[^a-z0-9_]+", "-", name).strip("-") or "session"


def new_path(folder: Path, stem: str, suffix: str) -> Path:
    """Return the path of a file that does not exist yet, with a number at the end of its stem if needed."""
    path, number = folder / f"{stem}{suffix}", 2
    while os.path.lexists(path):
        path, number = folder / f"{stem}-{number}{suffix}", number + 1
    return path


def _folded(name: str) -> str:
    """Return a name as systems compare it that ignore case and Unicode normalization."""
    return unicodedata.normalize("NFC", name).casefold()
