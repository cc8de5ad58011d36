"""The session that an argument names: an id, its beginning, a stem, `latest`, `@2`, or a file."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pollux.cli.scope import Scope

_STDIN = "pollux.stdin"
"""Where a command's context keeps the name of the copy of standard input."""


def reference_from_argument(scope: Scope, wanted: str) -> str | Path:
    """Return the file that an argument means, or else the argument itself, which then names a session.

    A name needs the archive, so it is brought up to date, and a note is printed if that is not possible.
    """
    path = path_from_argument(wanted)
    if path is not None:
        return path
    scope.note_freshness()
    return wanted


def path_from_argument(wanted: str) -> Path | None:
    """Return the file that an argument means: it names one, is `-` for standard input, or can mean nothing else."""
    if wanted == "-":
        return _standard_input()
    path = Path(wanted)
    if os.path.isfile(wanted):  # noqa: PTH113  which answers no where Path.is_file() raises
        return path
    if os.sep not in wanted and (os.altsep is None or os.altsep not in wanted):
        return None
    if os.path.isdir(wanted):  # noqa: PTH112
        from pollux.library.references import folder_error

        raise folder_error(wanted)
    return path


def is_standard_input(path: object) -> bool:
    """Return whether a file is the copy of standard input."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_STDIN) == str(path)


def _standard_input() -> Path:
    """Copy standard input to a private file that is deleted when the command ends, since readers need to seek."""
    import shutil
    import sys
    import tempfile

    context = click.get_current_context()
    if _STDIN in context.meta:
        return Path(context.meta[_STDIN])
    if sys.stdin.isatty():
        raise click.UsageError("`-` reads a session from a pipe, as in `gemini -o json -p hello | pollux show -`.")
    folder = tempfile.TemporaryDirectory(prefix="pollux-")
    context.call_on_close(folder.cleanup)
    path = Path(folder.name) / "stdin"
    context.meta[_STDIN] = str(path)
    with path.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return path
