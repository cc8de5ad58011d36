"""Blocks and rows → bytes: one module a format, and the table that front ends, completion and docs read.

A format's module is imported when something is rendered: completion only reads the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pollux.exports.subject import Subject
    from pollux.model import Session


class Written(NamedTuple):
    """A session in a folder of exports, and the file it was written to."""

    session: Session
    name: str


class Exporter(NamedTuple):
    """A format to hand a session over in."""

    place: str
    """Module and function that render one session."""
    suffix: str
    media_type: str
    summary: str
    with_subagents: bool = False
    """Subagents are handed over on their own, too."""
    heeds: tuple[str, ...] = ()
    """The options that mean something for it."""
    pages_place: str | None = None
    """Module and function that write further files into a folder of exports."""
    is_for_others: bool = False
    """Made to be published: always redacted."""

    def render(self, subject: Subject) -> Iterator[bytes]:
        """Write one session, piece by piece."""
        pieces: Iterator[bytes] = _function(self.place)(subject)
        return pieces

    def pages(self, written: Sequence[Written]) -> Iterator[tuple[str, bytes]]:
        """Give the names and contents of the files that tell of all sessions in a folder."""
        if self.pages_place:
            yield from _function(self.pages_place)(written)

    @property
    def is_stream(self) -> bool:
        """Whether many of them, one after the other, make one."""
        return self.suffix == ".jsonl"


def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.rpartition(".")
    function: Callable[..., Any] = getattr(import_module(f"pollux.exports.{module}"), name)
    return function


_JSON, _LINES = "application/json", "application/jsonl"

EXPORTERS = {
    "gemini": Exporter(
        "gemini.render", ".json", _JSON, "what the client itself would load; `gemini --session-file` takes it"
    ),
    "json": Exporter("native.render_json", ".json", _JSON, "all that Pollux knows, in one object"),
    "jsonl": Exporter(
        "native.render_lines", ".jsonl", _LINES, "the same, one record a line, for huge sessions and streams"
    ),
    "calls": Exporter(
        "calls.render_lines", ".jsonl", _LINES, "one record a model call, for usage dashboards", with_subagents=True
    ),
    "calls-csv": Exporter("calls.render_csv", ".csv", "text/csv", "the same as CSV", with_subagents=True),
}
