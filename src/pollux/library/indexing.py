"""Keep the search index in step with the archive after commands that change it."""
# ruff: noqa: PLC0415  imported when an archive has changed

from __future__ import annotations

from contextlib import closing, nullcontext
from typing import TYPE_CHECKING

from pollux.errors import PolluxError

if TYPE_CHECKING:
    from pathlib import Path

    from pollux.archive.store import Archive
    from pollux.library.freshness import Reporter
    from pollux.model import Problem
    from pollux.search.build import IndexBuilder


def update_index(
    archive: Archive, report: Reporter, builder: IndexBuilder | None = None
) -> tuple[str, tuple[Problem, ...]]:
    """Index the new sessions of an archive; return a note if that is not possible, and sessions that cannot be read.

    The index has a lock of its own. The caller should have released the archive's lock, since a first build takes a
    while. A caller that updates the index often passes a builder, which keeps the file open.
    """
    from pollux.search.build import IndexBuilder

    opened = closing(IndexBuilder(archive.path)) if builder is None else nullcontext(builder)
    with opened as used, report("indexing") as progress:
        result = used.build(archive.database, progress)
    if not result.reason or result.is_busy:  # another process is at it
        return "", result.problems
    note = f"The search index cannot be updated ({result.reason}); `pollux search` reads the sessions instead."
    return note, result.problems


def remove_index(path: Path) -> None:
    """Delete the index of an archive from which sessions are removed. Raises `PolluxError` if that is not possible."""
    from pollux.archive.index_file import index_path
    from pollux.search.build import delete_index

    try:
        is_gone = delete_index(path)
    except OSError as error:
        reason = error.strerror or "it is in use"
    else:
        if is_gone:
            return
        reason = "it is in use"
    raise PolluxError(
        f"The search index {index_path(path)} cannot be deleted ({reason}), and it contains words of these sessions; "
        "end the process that uses it, and try again."
    )
