"""`pollux search`: find messages by their words, and the files and commands in sessions."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import click

from pollux.cli import output
from pollux.cli.completion import query_words
from pollux.cli.context import Context, options

if TYPE_CHECKING:
    from pollux.library.values import HitPage, Page

_SORTS = ("relevance", "newest", "oldest", "cost")
_N_SESSIONS, _N_HITS, _N_ROWS = 20, 3, 50
_OPTION = re.compile(r"--.*|-[a-zA-Z]?|-[np](?:\d+|=.*)", re.DOTALL)
"""An argument that begins with a dash and is not a word that hits must not have."""
_WORD = "\0"
"""Written before such a word, so that Click does not take it for options; no argument of a program contains it."""


class QueryCommand(click.Command):
    """A command with a query: an argument such as `-word` belongs to the query, unless it is one of the options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and join the words of the query."""
        end = args.index("--") if "--" in args else len(args)
        unparsed = super().parse_args(ctx, [*self._escape_words(args[:end]), *args[end:]])
        ctx.params["query"] = " ".join(word.removeprefix(_WORD) for word in ctx.params["query"])
        return unparsed

    def _escape_words(self, args: list[str]) -> Iterator[str]:
        """Yield arguments with a mark before each word with a dash that is neither an option nor an option's value."""
        with_value: set[str] = set()
        for param in self.params:
            if isinstance(param, click.Option) and not param.is_flag:
                with_value.update(param.opts)
        previous = ""
        for argument in args:
            is_word = argument.startswith("-") and not _OPTION.fullmatch(argument) and previous not in with_value
            yield f"{_WORD}{argument}" if is_word else argument
            previous = argument


query_argument = click.argument("query", metavar="[QUERY]...", nargs=-1, shell_complete=query_words)


@contextmanager
def explained_query() -> Iterator[None]:
    """Add the query, and a caret below the mistake, to an error in a query."""
    from pollux.errors import InvalidQueryError

    try:
        yield
    except InvalidQueryError as error:
        from pollux.render.terminal.search import pointed_query

        error.args = (f"{pointed_query(error.query, error.position, output.width())}\n{error}",)
        raise


@click.command(cls=QueryCommand)
@query_argument
@click.option("--files", is_flag=True, help="List files that the model read or changed; words match paths.")
@click.option("--commands", is_flag=True, help="List shell commands that the model ran; words match commands.")
@click.option(
    "--sort",
    type=click.Choice(_SORTS),
    default=_SORTS[0],
    show_default=True,
    help="Order of the sessions.",
)
@output.limit_option(f"Print at most N sessions, files or commands.  [default: {_N_SESSIONS}; {_N_ROWS} in lists]")
@click.option(
    "--hits",
    "n_hits",
    type=click.IntRange(min=1),
    default=_N_HITS,
    show_default=True,
    metavar="N",
    help="Print at most N hits per session.",
)
@click.option("--after", metavar="CURSOR", help="Continue after a page: the `cursor` of its JSON.")
@click.option("--count", is_flag=True, help="Print only how many hits there are, and in how many sessions.")
@click.option("--scan", is_flag=True, help="Read every session instead of the index: slower, and leaves nothing out.")
@output.link_option
@output.table_options
@options(strict=True)
def command(  # noqa: PLR0913  one per option
    scope: Context,
    query: str,
    *,
    files: bool,
    commands: bool,
    sort: str,
    limit: int | None,
    n_hits: int,
    after: str | None,
    count: bool,
    scan: bool,
    link: bool,
    table: output.TableOptions,
) -> None:
    """Find messages by their words, in prompts, answers, thoughts, tool calls, output and notices.

    A message is a hit if one part of it has all words. `pollux show SESSION#NUMBER` opens a hit; rewound and other
    dropped messages are marked. Without a query, the newest sessions are listed. The exit status is 1 if nothing is
    found and 2 if the query has a mistake. In a pipe there is a tab-separated line per hit.

    \b
      alerts mail            both words, in any order
      "false alarm"          a phrase; quote the query: '"false alarm"'
      alert OR alarm         one of them
      alert -mail            without a word
      timeo*                 a beginning of a word
      re:/retry_\\d+/i        a regular expression
      in:prompt              or in:answer, thoughts, args, output, notice
      file:*.py cmd:pytest   messages that touched a file, or ran a command
      last:7d cost:>0.50     sessions by time and by cost in US dollars

    \b
      pollux search duplicate alerts
      pollux search --project . 'timeout OR "connection refused" in:output'
      pollux search --files alerts.py
      pollux search --commands pytest status:error --last 7d
      pollux search SKY-118 --json | jq -r '.hits[].snippet'
    """
    _check_options(files=files, commands=commands, count=count, scan=scan, link=link)
    from pollux.library.values import Page

    address = scope.link(is_wanted=link)
    scope.note_freshness()
    with explained_query():
        if files:
            _list_files(scope, query, Page(limit or _N_ROWS, after), table)
        elif commands:
            _list_commands(scope, query, Page(limit or _N_ROWS, after), table)
        else:
            page = scope.library.search(
                query,
                page=Page(limit or _N_SESSIONS, after),
                wanted=scope.wanted,
                sort=sort,
                scan=scan,
                count=count,
                hits_per_session=n_hits,
            )
            _print(scope, page, table, address, count=count, scan=scan)


def _check_options(*, files: bool, commands: bool, count: bool, scan: bool, link: bool) -> None:
    names = ("--files", "--commands", "--count")
    chosen = [name for name, is_chosen in zip(names, (files, commands, count), strict=True) if is_chosen]
    if len(chosen) > 1:
        raise click.UsageError(f"{chosen[0]} and {chosen[1]} contradict each other: pass one of them.")
    if link and chosen:
        raise click.UsageError(f"--link adds addresses to hits: leave out {chosen[0]}.")
    if scan and (files or commands):
        raise click.UsageError(f"{chosen[0]} lists every recorded file and command, so there is nothing to --scan.")


def _print(
    scope: Context,
    page: HitPage,
    table: output.TableOptions,
    address: Callable[..., str] | None,
    *,
    count: bool,
    scan: bool,
) -> None:
    from pollux.library.filters import ALL
    from pollux.render.terminal import search

    is_found = bool(page.total or page.n_sessions) if count else bool(page.sessions)
    if scope.as_json:
        output.print_json(page)
        scope.finish(page.problems, found=is_found)
    if count:
        lines = [f"{search.count_text(page)}\n"]
        output.print_lines(lines if output.is_terminal() else search.count_lines(page, header=table.header))
    elif not output.is_terminal():
        output.print_lines(search.hit_lines(page.sessions, header=table.header, link=address))
    elif page.sessions:
        hits = search.render_hits(page.sessions, encoding=output.encoding(), link=address)
        output.print_screen(hits, pager=table.pager)
    notes = search.foot_notes(
        page,
        is_found=is_found,
        is_terminal=output.is_terminal(),
        is_scan=scan,
        has_filter=scope.wanted != ALL,
    )
    _print_notes(scope, notes, is_found=is_found)
    scope.finish(page.problems, found=is_found)


def _print_notes(scope: Context, notes: Iterable[str], *, is_found: bool) -> None:
    """Print notes, or instead of them that there are no sessions at all."""
    from pollux.library.values import Page

    if not is_found and not (listing := scope.library.sessions(page=Page(1))).listed:
        notes = [listing.hint]
    for note in notes:
        output.note(note)


def _list_files(scope: Context, query: str, part: Page, table: output.TableOptions) -> NoReturn:
    from pollux.render.terminal import search_lists

    page = scope.library.touched_files(query, part, wanted=scope.wanted)
    if scope.as_json:
        output.print_json(page)
    else:
        output.print_table(
            page.rows,
            lambda: [search_lists.file_table(page.rows, now=output.now())],
            lambda: search_lists.file_lines(page.rows, header=table.header),
            table,
        )
        notes = search_lists.list_notes(page, query, "files", is_terminal=output.is_terminal())
        _print_notes(scope, notes, is_found=bool(page.rows))
    scope.finish(page.problems, found=bool(page.rows))


def _list_commands(scope: Context, query: str, part: Page, table: output.TableOptions) -> NoReturn:
    from pollux.render.terminal import search_lists

    page = scope.library.commands_run(query, part, wanted=scope.wanted)
    if scope.as_json:
        output.print_json(page)
    else:
        output.print_table(
            page.rows,
            lambda: [search_lists.command_table(page.rows, now=output.now())],
            lambda: search_lists.command_lines(page.rows, header=table.header),
            table,
        )
        notes = search_lists.list_notes(page, query, "commands", is_terminal=output.is_terminal())
        _print_notes(scope, notes, is_found=bool(page.rows))
    scope.finish(page.problems, found=bool(page.rows))
