"""The command `pollux`: the border where errors become a sentence and an exit status."""

from __future__ import annotations

import os
import sys

_INTERRUPTED = 130

try:
    import gc
    import time
    from io import TextIOWrapper
    from pathlib import Path
    from typing import TextIO

    import click

    from pollux.errors import PolluxError
except KeyboardInterrupt:  # Ctrl-C while Python still loads the command is no fault either
    os._exit(_INTERRUPTED)

_DIGITS = 4
"""Of the columns and lines of a screen, at most."""
_DAY = 86_400
"""Seconds. A time zone that is a day or more away from UTC is none, and Python refuses to reckon with it."""
SELDOM = (200_000, 20, 50)
"""How often to look for garbage: what a command reads is used to the end, and looking through it costs as much."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(*SELDOM)
    sys.stdout, sys.stderr = (_open(stream) for stream in (sys.stdout, sys.stderr))
    try:
        _settle_time_zone()
        _settle_screen()
        status = _run()
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:  # `pollux ls | head`: who has seen enough has not met a fault
        status = 0
        _close(sys.stdout)
        _close(sys.stderr)
    except OSError as error:
        _close(sys.stdout)
        status = _say(_sentence(error), 1)
    sys.exit(status)


def program() -> None:
    """Run the command line as a process of its own, which ends at once: what it has in memory goes with it anyway."""
    try:
        main()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except KeyboardInterrupt:  # before or after the command itself
        os._exit(_INTERRUPTED)


def _run() -> int:
    try:
        from pollux.cli import pollux  # noqa: PLC0415  after the cheap imports: --version and completion stay quick

        status = pollux.main(prog_name="pollux", standalone_mode=False)
    except click.UsageError as error:
        return _say(_usage(error), error.exit_code)
    except click.ClickException as error:
        return _say(error.format_message(), error.exit_code)
    except PolluxError as error:
        return _say(str(error), error.status)
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    return status if isinstance(status, int) else 0


def _settle_time_zone() -> None:
    """Show times in UTC where the time zone of the system is impossible, and say so."""
    offsets = (time.timezone, time.altzone, time.localtime().tm_gmtoff)
    if hasattr(time, "tzset") and any(abs(one) >= _DAY for one in offsets):
        _say(f"TZ={os.environ.get('TZ', '')} is a day or more away from UTC; times are shown in UTC.", 0)
        os.environ["TZ"] = "UTC"
        time.tzset()


def _settle_screen() -> None:
    """Leave it to the terminal how large it is where a variable says something that no screen can be."""
    for name in ("COLUMNS", "LINES"):
        said = os.environ.get(name, "")
        if not (said.isascii() and said.isdigit() and len(said) <= _DIGITS):
            os.environ.pop(name, None)


def _say(sentence: str, status: int) -> int:
    from pollux.cli import output  # noqa: PLC0415

    try:
        output.words(sentence)
    except BrokenPipeError:  # then the status alone says it
        _close(sys.stderr)
    return status


def _usage(error: click.UsageError) -> str:
    """Say what is wrong, and where to read on unless it says so itself."""
    sentence, ctx = error.format_message(), error.ctx
    if isinstance(error, click.NoSuchOption) and ctx and isinstance(ctx.command, click.Group):
        return f"There is no option {error.option_name} before a command; try it after one, as in `pollux ls --json`."
    if "`" in sentence or ctx is None:
        return sentence
    sentence = sentence.rstrip(".")
    return f"{sentence}{' ' if sentence.endswith(('?', '?)')) else '; '}`{ctx.command_path} --help` tells more."


def _open(stream: TextIO | None) -> TextIO:
    """Make a stream that never fails over a character, and that is there even after `>&-`."""
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream


def _close(stream: TextIO) -> None:
    """Lead what is still to be written into nothing, so that the interpreter's end does not fail over it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _sentence(error: OSError) -> str:
    if error.filename is None and isinstance(error, FileNotFoundError):  # which only the folder itself can be
        return "The folder you are in is gone; go to another one, and try again."
    if error.filename is None:
        return f"The output cannot be written: {error.strerror or error}."
    return f"{error.filename} cannot be used: {error.strerror}."


if __name__ == "__main__":
    program()
