"""The `pollux` command: run the command line, and turn errors into one sentence and an exit status.

Nothing is imported here before `program` runs, so that Ctrl-C prints no traceback from then on. In the milliseconds
before, in which Python starts and the installed script imports `re` and this module, Python prints its own.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    import click

_INTERRUPTED = 130
GC_THRESHOLDS = (200_000, 20, 50)
"""Collect garbage rarely: a command needs most of what it has read until it ends, so there is little to collect."""


def program() -> None:
    """Run the command line as a process of its own and end it at once, without freeing memory first.

    While modules load, Ctrl-C kills the process without Python's help; afterwards it raises an exception, so that
    commands can remove temporary files (`pollux.cli.interrupts`).
    """
    try:
        import signal

        is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so under nohup
        if is_interruptible:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        import pollux.library.environment  # noqa: F401
        from pollux.cli.interrupts import handle_interrupts

        if is_interruptible:
            handle_interrupts()
        main()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)
    os._exit(0)


def main() -> None:
    """Run the command line and raise `SystemExit` with its status."""
    import gc

    gc.set_threshold(*GC_THRESHOLDS)
    sys.stdout, sys.stderr = _prepare(sys.stdout), _prepare(sys.stderr)
    try:
        status = _run()
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:  # `pollux ls | head` is not an error
        status = 0
        _discard(sys.stdout)
        _discard(sys.stderr)
    except OSError as error:
        _discard(sys.stdout)
        status = _report(_sentence(error), 1)
    sys.exit(status)


def _run() -> int:
    import click

    from pollux.errors import PolluxError

    try:
        from pollux.cli import pollux
        from pollux.library.environment import correct_environment

        if note := correct_environment():
            _report(note, 0)
        status = pollux.main(prog_name="pollux", standalone_mode=False)
    except click.UsageError as error:
        return _report(_usage(error), error.exit_code)
    except click.ClickException as error:
        return _report(error.format_message(), error.exit_code)
    except PolluxError as error:
        return _report(str(error), error.status)
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    return status if isinstance(status, int) else 0


def _report(sentence: str, status: int) -> int:
    from pollux.cli import output

    try:
        output.note(sentence)
    except BrokenPipeError:
        _discard(sys.stderr)
    return status


def _usage(error: click.UsageError) -> str:
    from pollux.cli.suggestions import usage_sentence

    return usage_sentence(error)


def _prepare(stream: TextIO | None) -> TextIO:
    """Return a stream that replaces characters it cannot encode; one to nowhere if the shell closed it (`>&-`)."""
    from io import TextIOWrapper

    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream


def _discard(stream: TextIO) -> None:
    """Redirect buffered output to nowhere, so that flushing it when the interpreter exits does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _sentence(error: OSError) -> str:
    if error.filename is None and isinstance(error, FileNotFoundError):  # only the current folder has no name
        return "The current folder was deleted. Change to another folder and try again."
    if error.filename is None:
        return f"Cannot write the output: {error.strerror or error}."
    return f"Cannot use {error.filename}: {error.strerror}."


if __name__ == "__main__":
    program()
