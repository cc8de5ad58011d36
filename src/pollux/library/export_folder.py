"""A folder of exports: one file per session under a stable name; only changed sessions are written again."""

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

from pollux.disk.private_files import make_private_folder
from pollux.disk.regular_files import NAMED_FILE, read_side_file
from pollux.exports.source import folder_beside
from pollux.library.output_guard import OutputGuard
from pollux.library.snapshot import size_and_time
from pollux.model import Session
from pollux.text.times import stamp

INDEX = ".pollux-export.json"
"""The file in the folder that says what each of its files was made from."""

_OURS = re.compile(r"(?:part|picture|file)-\d+\.\w+")
_LONGEST, _DIGEST = 120, 16
"""Bytes of a name without its suffix, where 255 are allowed with it: temporary files and folders beside it have longer
names, and so has the whole path on Windows."""
_DEVICES = ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"))
_RESERVED = frozenset({*_DEVICES, "index", "readme"})
"""Names that Windows gives to devices, and those of our own pages."""


class FolderEntry(msgspec.Struct, frozen=True):
    """What a file in the folder was made from."""

    fingerprint: str
    beside: tuple[str, ...] = ()


class FolderIndex(msgspec.Struct, frozen=True):
    """What the files of a folder were made from."""

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
        """Where it is."""
        return self.folder / self.name

    def put(self, name: str, data: bytes) -> str:
        """Write a file that belongs to it, and return how to refer to it."""
        relative = f"{folder_beside(self.name)}/{name}"
        make_private_folder((self.folder / relative).parent)
        self.guard.write(self.folder / relative, [data])
        self.beside.append(relative)
        return relative


def load_index(folder: Path) -> dict[str, FolderEntry]:
    """Return what the files of a folder were made from; nothing if the index cannot be read."""
    try:
        return msgspec.json.decode(read_side_file(folder / INDEX, limit=NAMED_FILE), type=FolderIndex).files
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def store_index(folder: Path, files: dict[str, FolderEntry], guard: OutputGuard) -> None:
    """Write what the files of a folder were made from."""
    data = msgspec.json.format(msgspec.json.encode(FolderIndex(files=dict(sorted(files.items())))), indent=1)
    guard.write(folder / INDEX, [data + b"\n"])


def is_unchanged(folder: Path, name: str, before: FolderEntry | None, fingerprint: str) -> bool:
    """Return whether a file was made from just this, and is still there with all that belongs to it."""
    if before is None or before.fingerprint != fingerprint:
        return False
    return all(os.path.exists(folder / file) for file in (name, *before.beside))  # noqa: PTH110  thousands of them


def remove_leftovers(file: OutputFile, before: FolderEntry | None) -> None:
    """Remove the files that belonged to the previous version of a file and no longer do."""
    for relative in set(before.beside if before else ()) - set(file.beside):
        folder, _, name = relative.partition("/")
        # The index is a file that anybody may have written.
        if folder == folder_beside(file.name) and _OURS.fullmatch(name):
            (file.folder / relative).unlink(missing_ok=True)


def fingerprint(made_by: str, sessions: Iterable[Session], contents: Callable[[Session], object]) -> str:
    """Return a digest of what an export is made from: its options, what is known of the sessions, and their bytes."""
    digest = hashlib.sha256(made_by.encode())
    for session in sessions:
        known = [msgspec.structs.replace(session, gone=False), contents(session)]
        try:
            digest.update(msgspec.msgpack.encode(known, enc_hook=str))
        except UnicodeEncodeError:  # a file's name that is not UTF-8
            digest.update(repr(known).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def file_states(session: Session) -> list[tuple[int, int] | None]:
    """Return size and time of the files of a session, to see whether they have changed."""
    return [size_and_time(str(ref.path)) for ref in session.files]


def file_name(session: Session, suffix: str, taken: set[str]) -> str:
    """Return a file's name made of when the session began and its ID, and add it to the names that are taken.

    The same session always gets the same name, which every system takes: no longer than `_LONGEST`, of letters, digits,
    `-` and `_`, and not a device of Windows. Names that differ in case alone are one on some systems.
    """
    began = stamp(session.started)[:16].replace(":", "-") + "_" if session.started else ""
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


def _folded(name: str) -> str:
    """Return a name as systems compare it that know no difference of case, or of how an accent is written."""
    return unicodedata.normalize("NFC", name).casefold()
