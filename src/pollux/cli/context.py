"""The options that commands share, and the library that they open."""
# ruff: noqa: PLC0415  imported when a command runs: shell completion needs only the options

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, TypeVar

import click
import msgspec

from pollux.cli import output
from pollux.cli.completion import project_names

if TYPE_CHECKING:
    from types import TracebackType

    from pollux.library.filters import Filter
    from pollux.library.library import Library
    from pollux.model import Problem

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Context(msgspec.Struct):
    """The library and the shared options of a command."""

    library: Library
    wanted: Filter
    as_json: bool = False
    named_homes: tuple[Path, ...] = ()
    strict: bool = False
    """End with status 1 if any file has problems."""

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

    def link(self, *, is_wanted: bool) -> Callable[..., str] | None:
        """Return what makes addresses in the running viewer for `--link`; None if they are not wanted."""
        if not is_wanted:
            return None
        if self.as_json:
            raise click.UsageError("JSON has no addresses: leave out --link or --json.")
        from pollux.library.viewer_files import viewer_links

        return viewer_links(self.library.config).session

    def note_freshness(self) -> None:
        """Print a note if the archive could not be brought up to date."""
        if note := self.library.freshness().note:
            output.note(note)

    def finish(
        self,
        problems: Iterable[Problem] = (),
        *,
        asked: Iterable[Problem] = (),
        found: bool = True,
        hint: str = output.LIST_PROBLEMS,
    ) -> NoReturn:
        """Report problems and end the command, with status 1 if what the user asked for is missing or damaged.

        Args:
            problems: of other files; they are counted in one line, and are a failure only with --strict.
            asked: of what the user asked for; the first few are printed, and the command fails.
            found: whether there was any result.
            hint: how to list all problems.

        """
        others, own = self.library.problems() if self.strict else [*problems], [*asked]
        if not self.as_json:  # the document contains them
            output.print_problems(own, hint=hint)
            output.count_problems(others)
        is_failure = bool(own) or not found or (self.strict and bool(others))
        click.get_current_context().exit(int(is_failure))


def _name_standard_input(error: BaseException | None) -> None:
    """Raise the error again with "Standard input" in place of the temporary file that holds it."""
    from pollux.cli.options import is_standard_input
    from pollux.errors import PolluxError

    if not isinstance(error, PolluxError):
        return
    from pollux.library.references import NoSessionInFileError

    if isinstance(error, NoSessionInFileError) and is_standard_input(error.path):
        raise NoSessionInFileError(error.path, error.reason, "Standard input") from None


class FilterHelp(NamedTuple):
    """Help texts: what the filter options of a command select."""

    since: str = "sessions active"
    until: str = "sessions begun"
    model: str = "sessions that used a model with this name"


_OF_SESSIONS = FilterHelp()


def options(
    *,
    json: bool = True,
    filters: FilterHelp | None = _OF_SESSIONS,
    all_homes: bool = True,
    strict: bool = False,
    timezone: bool = False,
    prices: bool = False,
) -> Callable[[_Function], _Function]:
    """Add the shared options to a command, which receives them as one `scope`.

    Args:
        json: add `--json`.
        filters: add filters with these help texts; None for no filters.
        all_homes: add `--all-homes`.
        strict: add `--strict`, for commands that read files which the user did not name.
        timezone: add `--timezone`.
        prices: add `--prices`.

    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapped(home: tuple[Path, ...], archive: Path | None, *, no_archive: bool, **rest: Any) -> object:  # noqa: ANN401  click's
            if no_archive and archive:
                raise click.UsageError("--archive and --no-archive contradict each other: pass one of them.")
            from pollux.library.filters import parse_filter

            typed = {name: rest.pop(name, None) for name in _FILTER_NAMES}
            with usage_errors():
                scope = open_context(
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
                scope.strict = rest.pop("strict", False)
                click.get_current_context().obj = scope  # `outputs` protects the files that the options name
                return function(scope=scope, **rest)

        chosen = [_HOME, *([_ALL_HOMES] if all_homes else []), *_ARCHIVE]
        chosen += _filter_options(filters) if filters else []
        chosen += [_TIMEZONE] if timezone else []
        chosen += [_PRICES] if prices else []
        chosen += [_STRICT] if strict else []
        chosen += [_JSON] if json else []
        for option in reversed(chosen):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[return-value]

    return decorate


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn the library's `UsageError` into that of click, which adds a hint at `--help`."""
    from pollux.library.config import UsageError

    try:
        yield
    except UsageError as error:
        raise click.UsageError(str(error)) from None


def open_context(
    homes: tuple[Path, ...] = (),
    archive: Path | None = None,
    *,
    all_homes: bool = False,
    no_archive: bool = False,
    prices: Path | None = None,
    zone: str | None = None,
) -> Context:
    """Open a library with options and the environment."""
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
    return Context(Library(config, output.progress, output.announce), ALL, named_homes=homes)


_HOME = click.option(
    "--home",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Gemini home to read: the folder that contains .gemini, .gemini itself or its tmp folder. Repeatable.",
)
_ALL_HOMES = click.option("--all-homes", is_flag=True, help="Include every home that the archive has ever read.")
_ARCHIVE = (
    click.option("--archive", type=click.Path(path_type=Path), help="Archive file to use instead of your own."),
    click.option(
        "--no-archive", is_flag=True, help="Read session files directly without using or updating the archive."
    ),
)
_FILTER_NAMES = ("project", "since", "until", "last", "model")
_TIMEZONE = click.option(
    "--timezone", "-z", metavar="ZONE", help="Time zone in which days begin: Europe/Berlin, UTC.  [default: yours]"
)
_PRICES = click.option(
    "--prices",
    "price_file",
    type=click.Path(path_type=Path),
    help="TOML file with prices that override the built-in table.",
)
_STRICT = click.option("--strict", is_flag=True, help="End with status 1 if any file has problems.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def _filter_options(help_: FilterHelp) -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--project",
            "-p",
            metavar="NAME|PATH|.",
            shell_complete=project_names,
            help="Only sessions of this project.",
        ),
        click.option("--since", metavar="DATE", help=f"Only {help_.since} since then: 2026-11-01, yesterday, 7d."),
        click.option("--until", metavar="DATE", help=f"Only {help_.until} before then."),
        click.option("--last", metavar="AGE", help="Same as --since, for an age only: 7d, 12h, 2w."),
        click.option("--model", metavar="NAME", help=f"Only {help_.model}."),
    ]
