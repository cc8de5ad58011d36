"""A folder of exports: a file a session under a stable name, and only what changed is written again."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pollux.cli.output_guard import check_output
from pollux.disk.private_files import make_private_folder, write_private
from pollux.disk.regular_files import NAMED_FILE, read_side_file
from pollux.exports.source import folder_beside

if TYPE_CHECKING:
    from pollux.model import Session

MEMORY = ".pollux-export.json"
"""Remembers, in the folder itself, what each file was made from."""


_OURS = re.compile(r"(?:part|picture|file)-\d+\.\w+")
_LONGEST, _DIGEST = 120, 16
"""Bytes of a name without its suffix, where 255 are allowed with it: temporary files and folders beside it have longer
names, and so has the whole path on Windows."""
_DEVICES = ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"))
_RESERVED = frozenset({*_DEVICES, "index", "readme"})
"""Names that Windows gives to devices, and those of our own pages."""


class Kept(msgspec.Struct, frozen=True):
    """What a file in the folder was made from."""

    fingerprint: str
    beside: tuple[str, ...] = ()


class Memory(msgspec.Struct, frozen=True):
    """What the files of a folder were made from."""

    schema: str = "pollux.folder/1"
    files: dict[str, Kept] = {}


class Place(NamedTuple):
    """A file to be written, with those that belong to it."""

    folder: Path
    name: str
    beside: list[str]
    index_page: str = ""
    """The page of the folder that leads to all sessions."""

    @property
    def path(self) -> Path:
        """Where it stands."""
        return self.folder / self.name

    def put(self, name: str, data: bytes) -> str:
        """Write a file that belongs to it, and return how to refer to it."""
        relative = f"{folder_beside(self.name)}/{name}"
        make_private_folder((self.folder / relative).parent)
        write(self.folder / relative, [data])
        self.beside.append(relative)
        return relative


def remembered(folder: Path) -> dict[str, Kept]:
    """Tell what the files of a folder were made from; what cannot be read is made anew."""
    try:
        return msgspec.json.decode(read_side_file(folder / MEMORY, limit=NAMED_FILE), type=Memory).files
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def remember(folder: Path, files: dict[str, Kept]) -> None:
    """Write down what the files of a folder were made from."""
    data = msgspec.json.format(msgspec.json.encode(Memory(files=dict(sorted(files.items())))), indent=1)
    write(folder / MEMORY, [data + b"\n"])


def is_unchanged(folder: Path, name: str, before: Kept | None, fingerprint: str) -> bool:
    """Tell whether a file was made from just this, and is still there with all that belongs to it."""
    if before is None or before.fingerprint != fingerprint:
        return False
    return all(os.path.exists(folder / one) for one in (name, *before.beside))  # noqa: PTH110  thousands of them


def tidy(place: Place, before: Kept | None) -> None:
    """Remove what belonged to the file that was here before, and to the new one no more."""
    for name in set(before.beside if before else ()) - set(place.beside):
        folder, _, file = name.partition("/")
        # What is remembered stands in a file that anybody may have written.
        if folder == folder_beside(place.name) and _OURS.fullmatch(file):
            (place.folder / name).unlink(missing_ok=True)


def fingerprint(made_by: str, sessions: Iterable[Session], contents: Callable[[Session], object]) -> str:
    """Sum up what an export is made from: the form, what is known of the sessions, and their bytes."""
    digest = hashlib.sha256(made_by.encode())
    for session in sessions:
        known = [msgspec.structs.replace(session, gone=False), contents(session)]
        try:
            digest.update(msgspec.msgpack.encode(known, enc_hook=str))
        except UnicodeEncodeError:  # a file's name that is not UTF-8
            digest.update(repr(known).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def name_of(session: Session, suffix: str, taken: set[str]) -> str:
    """Return a file's name made of when the session began and its ID, and add it to the names that are taken.

    The same session always gets the same name, which every system takes: no longer than `_LONGEST`, of letters, digits,
    `-` and `_`, and not a device of Windows. Names that differ in case alone are one on some systems.
    """
    from pollux.text.times import stamp

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


def write(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file at once or not at all. Raises `ProtectedOutputError` for one that no output may replace."""
    check_output(path)
    if path.exists() and not path.is_file():  # a device or a pipe
        with path.open("wb") as stream:
            stream.writelines(pieces)
    else:
        write_private(path, pieces)
