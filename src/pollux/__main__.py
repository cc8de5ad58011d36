"""The command `pollux`: the border where errors become a sentence and an exit status."""

from __future__ import annotations

import os
import sys

import click

from pollux.errors import PolluxError


def main() -> None:
    """Run the command line."""
    from pollux.cli import pollux  # noqa: PLC0415  after the cheap imports: --version and completion stay quick

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        status = pollux.main(standalone_mode=False)
    except click.exceptions.Exit as end:
        status = end.exit_code
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        status = 130
    except BrokenPipeError:  # `pollux ls | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except PolluxError as error:
        click.echo(str(error), err=True)
        status = error.status
    except OSError as error:
        click.echo(_sentence(error), err=True)
        status = 2
    sys.exit(status if isinstance(status, int) else 0)


def _sentence(error: OSError) -> str:
    if error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}."
    return str(error)


if __name__ == "__main__":
    main()
