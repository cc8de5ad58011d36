"""Write files and folders that only this user may read, each file at once or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def private_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write to, beside a path; it takes that path when all is written, and goes away if that fails.

    The file has mode 0600. Where the path is a link, the file that it leads to is replaced and the link stays.
    """
    import tempfile  # noqa: PLC0415  slow to load, and few commands write

    path = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(prefix=".pollux-", suffix=".part", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # the first error is the one that tells
            temporary.unlink()
        raise


def write_private(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that only this user may read; it is replaced when all is written, and stays as it was otherwise."""
    with private_file(path) as file:
        file.writelines(pieces)


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone (0700)."""
    missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)  # raises where something else is in the way
