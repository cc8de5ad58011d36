"""The options that every reading command shares, and what they lead to: homes, history, the sessions meant."""
# ruff: noqa: PLC0415  imported when a command runs: completion needs the options alone

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import click
import msgspec

from pollux.cli import output
from pollux.cli.complete import project_names
from pollux.cli.progress import announce, progress

if TYPE_CHECKING:
    from types import TracebackType

    from pollux.library.filters import Filter
    from pollux.library.library import Library

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Scope(msgspec.Struct):
    """What a command was asked to look at, and the library that answers."""

    library: Library
    wanted: Filter
    as_json: bool = False
    named_homes: tuple[Path, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the library."""
        self.library.close()
        _name_standard_input(error)

    @property
    def archive_path(self) -> Path | None:
        """The archive's file; None if session files are read directly."""
        return self.library.config.archive

    def note_freshness(self) -> None:
        """Print a note if the archive could not be brought up to date."""
        if note := self.library.freshness().note:
            output.words(note)


def _name_standard_input(error: BaseException | None) -> None:
    """Raise the error for a file without a session again, if the file is the copy of standard input."""
    from pollux.cli.arguments import is_standard_input
    from pollux.errors import PolluxError

    if not isinstance(error, PolluxError):
        return
    from pollux.library.references import NoSessionInFileError

    if isinstance(error, NoSessionInFileError) and is_standard_input(error.path):
        raise NoSessionInFileError(error.path, error.reason, "Standard input") from None


class FilterHelp(NamedTuple):
    """What the filter options of a command choose, for their help."""

    since: str = "sessions active"
    until: str = "sessions begun"
    model: str = "sessions in which such a model answered"


_OF_SESSIONS = FilterHelp()


def options(
    *,
    json: bool = True,
    filters: FilterHelp | None = _OF_SESSIONS,
    all_homes: bool = True,
    timezone: bool = False,
    prices: bool = False,
) -> Callable[[_Function], _Function]:
    """Add the shared options to a command, which receives them as one `scope`.

    Args:
        json: whether the command has `--json`.
        filters: what its filters choose, or None if it has none.
        all_homes: whether it has `--all-homes`; it answers questions about sessions then.
        timezone: whether days are those of a zone of the user's choice.
        prices: whether it takes a price file.

    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapped(home: tuple[Path, ...], archive: Path | None, *, no_archive: bool, **rest: Any) -> object:  # noqa: ANN401  click's
            if no_archive and archive:
                raise click.UsageError("--archive and --no-archive say the opposite: give one of them.")
            from pollux.library.filters import parse_filter

            typed = {name: rest.pop(name, None) for name in _FILTER_NAMES}
            with usage_errors():
                scope = open_scope(
                    home,
                    archive,
                    all_homes=rest.pop("all_homes", False),
                    no_archive=no_archive,
                    prices=rest.pop("price_file", None),
                    zone=rest.pop("timezone", None),
                )
            with scope, usage_errors():
                zone = scope.library.config.zone()[0] if timezone else None
                scope.wanted = parse_filter(**typed, now=output.now(), zone=zone)
                scope.as_json = rest.pop("as_json", False)
                click.get_current_context().obj = scope  # for `output_guard`, which protects what the options name
                return function(scope=scope, **rest)

        chosen = [_HOME, *([_ALL_HOMES] if all_homes else []), *_ARCHIVE]
        chosen += _filter_options(filters) if filters else []
        chosen += [_TIMEZONE] if timezone else []
        chosen += [_PRICES] if prices else []
        chosen += [_JSON] if json else []
        for option in reversed(chosen):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[return-value]

    return decorate


@contextmanager
def usage_errors() -> Iterator[None]:
    """Raise what the library says about contradicting options as an error of the command line, which names its help."""
    from pollux.library.config import UsageError

    try:
        yield
    except UsageError as error:
        raise click.UsageError(str(error)) from None


def open_scope(
    homes: tuple[Path, ...] = (),
    archive: Path | None = None,
    *,
    all_homes: bool = False,
    no_archive: bool = False,
    prices: Path | None = None,
    zone: str | None = None,
) -> Scope:
    """Open a library as options and the environment say."""
    from pollux.library.config import DEFAULT, configure
    from pollux.library.filters import ALL
    from pollux.library.library import Library

    config = configure(
        named_homes=homes,
        all_homes=all_homes,
        archive=None if no_archive else archive or DEFAULT,
        prices=prices,
        zone=zone,
        clock=output.now,
    )
    return Scope(Library(config, progress, announce), ALL, named_homes=homes)


_HOME = click.option(
    "--home",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Gemini home to read: the folder that contains .gemini, .gemini itself or its tmp folder. Repeatable.",
)
_ALL_HOMES = click.option("--all-homes", is_flag=True, help="Include every home that the archive has ever read.")
_ARCHIVE = (
    click.option("--archive", type=click.Path(path_type=Path), help="Another archive than your own."),
    click.option("--no-archive", is_flag=True, help="Read the files alone, and store nothing."),
)
_FILTER_NAMES = ("project", "since", "until", "last", "model")
_TIMEZONE = click.option("--timezone", "-z", metavar="ZONE", help="Whose days: Europe/Berlin, UTC.  [default: yours]")
_PRICES = click.option(
    "--prices",
    "price_file",
    type=click.Path(path_type=Path),
    help="TOML file with prices that override the built-in table.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object instead of words.")


def _filter_options(help_: FilterHelp) -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--project",
            "-p",
            metavar="NAME|PATH|.",
            shell_complete=project_names,
            help="Only sessions of this project.",
        ),
        click.option("--since", metavar="WHEN", help=f"Only {help_.since} after this: 2026-11-01, yesterday, 7d."),
        click.option("--until", metavar="WHEN", help=f"Only {help_.until} before this."),
        click.option("--last", metavar="SPAN", help="Only the last 7d, 12h, 2w."),
        click.option("--model", metavar="NAME", help=f"Only {help_.model}."),
    ]
