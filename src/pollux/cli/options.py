"""Arguments and options that several commands share: the session, the output and the detail of a transcript."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pollux.cli import output

if TYPE_CHECKING:
    from pollux.cli.context import Context
    from pollux.library.outputs import FileSink, Sink, StreamSink
    from pollux.views.transcript import TranscriptOptions

_Function = TypeVar("_Function", bound=Callable[..., Any])
_STDIN = "pollux.stdin"
"""Key in the context of a command: the path of the copy of standard input."""

file_option = click.option(
    "--output", "-o", "target", metavar="FILE", default="-", show_default=True, help="File, or - for stdout."
)


def reference_from_argument(scope: Context, argument: str) -> str | Path:
    """Return the file that an argument names, or else the argument itself, which is then looked up as a session.

    A lookup needs the archive, so the archive is refreshed, and a note is printed if that fails.
    """
    path = path_from_argument(argument)
    if path is not None:
        return path
    scope.note_freshness()
    return argument


def message_from_argument(scope: Context, argument: str) -> str | Path:
    """Return the file or the session that an argument names, with the message of `SESSION#MESSAGE`."""
    session, separator, message = argument.rpartition("#")
    if separator and not os.path.isfile(argument) and os.sep not in message:  # noqa: PTH113  as below
        path = path_from_argument(session)
        if path is not None:
            return path.with_name(f"{path.name}#{message}")
    return reference_from_argument(scope, argument)


def path_from_argument(argument: str) -> Path | None:
    """Return the file if the argument is `-` (standard input), names a file or contains a path separator."""
    if argument == "-":
        return _standard_input()
    if os.path.isfile(argument):  # noqa: PTH113  Path.is_file() raises for some names
        return Path(argument)
    if os.sep not in argument and (os.altsep is None or os.altsep not in argument):
        return None
    if os.path.isdir(argument):  # noqa: PTH112
        from pollux.library.references import folder_error

        raise folder_error(argument)
    return Path(argument)


def is_standard_input(path: object) -> bool:
    """Return whether a path is the copy of standard input."""
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


def export_sink(target: str | None, *, opens: bool) -> Sink:
    """Return the sink for `--output`: `-` is standard output, a name that ends with a slash a folder.

    Without `--output`: standard output in a pipe, but a new file on a terminal or if the file is to be opened.
    """
    from pollux.library.outputs import FolderSink, NamedSink, PathSink, StreamSink

    if target is None and (opens or output.is_terminal()):
        return NamedSink(Path())
    if target in (None, "-"):
        return StreamSink(output.write)
    assert target is not None
    return FolderSink(Path(target)) if target.endswith(("/", os.sep)) else PathSink(Path(target))


def file_sink(target: str) -> StreamSink | FileSink:
    """Return the sink for `--output` of a command that writes one file: `-` is standard output."""
    from pollux.library.outputs import FileSink, StreamSink

    return StreamSink(output.write) if target == "-" else FileSink(Path(target))


def refuse_binary(target: str, advice: str = "name a file with `-o`") -> None:
    """Raise `UsageError` if binary data would go to a terminal."""
    if target == "-" and output.is_terminal():
        raise click.UsageError(f"CBOR is binary and is not printed on a terminal: {advice}.")


def write_data(scope: Context, target: str, data: bytes, advice: str = "name another file with -o") -> None:
    """Write data to standard output, or to a file, and then note its size."""
    from pollux.library.outputs import write_output

    write_output(scope.library.outputs, file_sink(target), [data], advice)
    if target != "-":
        output.note(f"{target}: {len(data)} bytes.")


def transcript_options(function: _Function) -> _Function:
    """Add `--detail`, `--branches` and `--thoughts` to a command; None where the user has not set one."""
    for option in (
        click.option(
            "--thoughts/--no-thoughts",
            default=None,
            help="Show or hide the model's reasoning.  [default: shown with --detail full]",
        ),
        click.option(
            "--branches",
            type=click.Choice(("active", "all")),
            help="Show only active messages, or also those rewound, rolled back or compressed.  [default: active]",
        ),
        click.option(
            "--detail",
            type=click.Choice(("prompts", "dialogue", "normal", "full")),
            help="Show prompts; also answers; also tool calls in brief; or everything.  [default: normal]",
        ),
    ):
        function = option(function)
    return function


def options_from(detail: str | None, branches: str | None, *, thoughts: bool | None) -> TranscriptOptions:
    """Return the transcript options with defaults for those that are None."""
    from pollux.views.transcript import Branches, Detail, TranscriptOptions

    return TranscriptOptions(Detail(detail or Detail.NORMAL), Branches(branches or Branches.ACTIVE), thoughts)
