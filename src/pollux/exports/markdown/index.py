"""The page that leads to all Markdown transcripts of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from urllib.parse import quote

from pollux import __version__
from pollux.exports import Written
from pollux.exports.markdown.escape import code, plain
from pollux.exports.site import Row, Shelf, Site, site_of
from pollux.model import Usage
from pollux.prices import Prices
from pollux.text.numbers import count
from pollux.views.excerpts import counted
from pollux.views.session_text import TITLE, cost_text, title, tokens_of

NAME = "README.md"
_HEAD = "| When (UTC) | Session | Prompts | Calls | Tokens | Cost |\n| --- | --- | ---: | ---: | ---: | ---: |"


def pages(written: Sequence[Written], prices: Prices) -> Iterator[tuple[str, bytes]]:
    """Write one page: a table for each project."""
    yield NAME, ("\n".join(_lines(site_of(written, prices))) + "\n").encode("utf-8", "replace")


def _lines(site: Site) -> Iterator[str]:
    yield "# Gemini CLI sessions\n"
    yield f"{counted(site.n_sessions, 'session')} in {counted(len(site.shelves), 'project')}. {_words(site.usage)}"
    for shelf in site.shelves:
        yield from _shelf(shelf)
    yield f"\nWritten by Pollux {__version__}."


def _shelf(shelf: Shelf) -> Iterator[str]:
    yield f"\n## {plain(shelf.project.name)}\n"
    place = f"{code(shelf.project.path)} · " if shelf.project.path else ""
    yield f"{place}{counted(len(shelf.rows), 'session')}. {_words(shelf.usage)}\n"
    yield _HEAD
    yield from map(_row, shelf.rows)


def _row(row: Row) -> str:
    session, usage = row.session, row.usage
    began = f"{session.started.astimezone(UTC):%Y-%m-%d %H:%M}" if session.started else ""
    link = f"[{plain(title(session, TITLE))}]({quote(row.name)})"
    numbers = (session.counts.get("user", 0), usage.calls, count(usage.tokens.total))
    return f"| {' | '.join([began, link, *map(str, numbers), cost_text(usage) if usage.calls else ''])} |"


def _words(usage: Usage) -> str:
    if not usage.calls:
        return ""
    return f"{counted(usage.calls, 'model call')}, {tokens_of(usage.tokens)}, {cost_text(usage)}."
