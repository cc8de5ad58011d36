"""A folder of exports: a file a session under a stable name, and only what changed is written again."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pollux.cli.output_guard import check_output
from pollux.exports.subject import folder_beside
from pollux.private_files import make_private_folder, write_private
from pollux.regular_files import NAMED_FILE, read_side_file

if TYPE_CHECKING:
    from pollux.model import Session

MEMORY = ".pollux-export.json"
"""Remembers, in the folder itself, what each file was made from."""


_OURS = re.compile(r"(?:part|picture|file)-\d+\.\w+")


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
    mode: int
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
        told = msgspec.structs.replace(session, gone=False)
        digest.update(msgspec.msgpack.encode([told, contents(session)], enc_hook=str))
    return digest.hexdigest()


def name_of(session: Session, suffix: str, taken: set[str]) -> str:
    """Name a file by when the session began and its id: the same session always gets the same name."""
    from pollux.times import stamp

    began = stamp(session.started)[:16].replace(":", "-") + "_" if session.started else ""
    safe = began + "".join(char if char.isalnum() or char in "-_" else "_" for char in session.id)
    others = (f"{safe}-{number}{suffix}" for number in range(2, len(taken) + 3))
    return next(name for name in chain([f"{safe}{suffix}"], others) if name not in taken)


def write(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file at once or not at all. Raises `ProtectedOutputError` for one that no output may replace."""
    check_output(path)
    if path.exists() and not path.is_file():  # a device or a pipe
        with path.open("wb") as stream:
            stream.writelines(pieces)
    else:
        write_private(path, pieces)
