"""Files written all or not at all.

Each file is first written under another name beside its place; they get their names when all of them are on the disk,
in the order given. What has a name already is never touched.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from pollux.disk.names import name_fault
from pollux.errors import PolluxError
from pollux.text.escape import printable


class RestoreError(PolluxError):
    """A session cannot be written back."""


class CollisionError(RestoreError):
    """Something is in the way, which another id would avoid."""


@dataclass(frozen=True, slots=True)
class Writing:
    """One file to write."""

    place: Path
    pieces: Callable[[], Iterable[bytes]]


@dataclass(slots=True)
class _Undo:
    """What was made so far, to be taken back if it does not come to an end."""

    made: list[Path] = field(default_factory=list)

    def take_back(self) -> None:
        for path in reversed(self.made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def place_all(files: Sequence[Writing]) -> None:
    """Write everything, or nothing. Raises `RestoreError`."""
    if not files:
        return
    undo = _Undo()
    place = files[-1].place
    staged: list[tuple[Path, Path]] = []
    try:
        try:
            for one in files:
                place = one.place
                staged.append((_staged(one, undo), place))
            for temporary, place in staged:
                _name_it(temporary, place)
                undo.made.append(place)
        except BaseException:
            undo.take_back()
            raise
    except FileExistsError:
        raise CollisionError(f"{printable(str(place))} has come into being meanwhile; nothing was written.") from None
    except OSError as error:
        raise RestoreError(
            f"{printable(str(place))} cannot be written ({error.strerror}); nothing was changed."
        ) from None
    for temporary, _ in staged:
        with suppress(OSError):  # all is done; the client never looks at these
            temporary.unlink(missing_ok=True)
    for folder in dict.fromkeys(chain.from_iterable((one.place.parent, one.place.parent.parent) for one in files)):
        _sync_folder(folder)


def below(folder: Path, *names: str) -> Path:
    """Put names together. Raises `RestoreError` for one that no file of this system can have (`names.py`)."""
    for name in names:
        if fault := name_fault(name):
            raise RestoreError(f"'{printable(name)}' in the archive cannot be the name of a file here: {fault}.")
    return folder.joinpath(*names)


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
