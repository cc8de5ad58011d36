"""Blocks and rows → bytes: one module a format, and the table that front ends, completion and docs read.

A format's module is imported when something is rendered: completion only reads the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pollux.exports.source import Subject
    from pollux.model import Session
    from pollux.prices import Prices


class Written(NamedTuple):
    """A session in a folder of exports, and the file it was written to."""

    session: Session
    name: str
    agents: tuple[Session, ...] = ()
    """Its subagents, and theirs."""


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
    index_page: str = ""
    """The one of them that leads to all sessions."""
    is_for_others: bool = False
    """Made to be published: always redacted."""
    is_of_archive: bool = False
    """Made of the archive's tables, of all sessions together: it renders none."""
    lacks: str = ""
    """What is not in a session that gives nothing in this form, and what to do then, in words."""

    def render(self, subject: Subject) -> Iterator[bytes]:
        """Write one session, piece by piece."""
        pieces: Iterator[bytes] = _function(self.place)(subject)
        return pieces

    def pages(self, written: Sequence[Written], prices: Prices) -> Iterator[tuple[str, bytes]]:
        """Yield the names and contents of the files that list all sessions in a folder."""
        if self.pages_place:
            yield from _function(self.pages_place)(written, prices)

    @property
    def n_heads(self) -> int:
        """How many pieces come before the first that tells of the session: a table names its columns."""
        return int(self.media_type == "text/csv")

    @property
    def is_stream(self) -> bool:
        """Whether many of them, one after the other and without their heads, make one; a data set has a file each."""
        return self.suffix in (".jsonl", ".csv") and not self.is_for_others


def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.rpartition(".")
    function: Callable[..., Any] = getattr(import_module(f"pollux.exports.{module}"), name)
    return function


_JSON, _LINES = "application/json", "application/jsonl"
_TRANSCRIPT = ("detail", "branches", "thoughts", "split")
_NO_COUNTS = (
    "no model call with token counts, as in saved conversations and captured output; `--format json` gives all there is"
)
_NO_TURNS = "no turn with a prompt and a whole answer; `--losses` tells what was left out, `--format json` gives it all"

EXPORTERS = {
    "markdown": Exporter(
        "markdown.render",
        ".md",
        "text/markdown",
        "a transcript to read anywhere; in a folder with a list of all",
        heeds=_TRANSCRIPT,
        pages_place="markdown.index.pages",
        index_page="README.md",
    ),
    "html": Exporter(
        "html.render",
        ".html",
        "text/html",
        "a transcript as one page for any browser; in a folder a site",
        heeds=_TRANSCRIPT,
        pages_place="html.index.pages",
        index_page="index.html",
    ),
    "gemini": Exporter("gemini.render", ".json", _JSON, "what the client would load; `gemini --session-file` takes it"),
    "json": Exporter("pollux_json.render_json", ".json", _JSON, "all that Pollux knows, in one object"),
    "jsonl": Exporter(
        "pollux_json.render_lines", ".jsonl", _LINES, "the same, one record a line, for huge sessions and streams"
    ),
    "calls": Exporter(
        "calls.render_lines",
        ".jsonl",
        _LINES,
        "one record a model call, for usage dashboards",
        with_subagents=True,
        lacks=_NO_COUNTS,
    ),
    "calls-csv": Exporter(
        "calls.render_csv", ".csv", "text/csv", "the same as CSV", with_subagents=True, lacks=_NO_COUNTS
    ),
    "devlog": Exporter(
        "devlog.render",
        ".md",
        "text/markdown",
        "what was said and done, for writers; in a folder with an index",
        heeds=("branches",),
        pages_place="devlog.pages",
        index_page="index.md",
    ),
    "devlog-index": Exporter(
        "devlog.render_index", ".jsonl", _LINES, "a line a session: first and last words, summary, times"
    ),
    "events": Exporter(
        "events.render",
        ".jsonl",
        _LINES,
        "what happened, event by event, for detectors of friction",
        with_subagents=True,
        heeds=("include",),
    ),
    "vac": Exporter(
        "vac.encode.render_json", ".json", _JSON, "a verifiable agent record, to be signed", heeds=("branches",)
    ),
    "vac-cbor": Exporter(
        "vac.encode.render_cbor", ".cbor", "application/cbor", "the same as CBOR", heeds=("branches",)
    ),
    "atif": Exporter(
        "atif.trajectory.render",
        ".json",
        _JSON,
        "a trajectory (ATIF 1.7) for evaluation: Harbor, Inspect",
        heeds=("branches",),
    ),
    "otlp": Exporter(
        "otlp.traces.render",
        ".jsonl",
        _LINES,
        "traces for OpenTelemetry, without words unless asked",
        heeds=("include", "semconv"),
    ),
    "hf": Exporter(
        "hf.session.render",
        ".jsonl",
        _LINES,
        "a data set of agent traces for Hugging Face, redacted",
        with_subagents=True,
        pages_place="hf.card.pages",
        is_for_others=True,
    ),
    "chat": Exporter(
        "chat.rows.render",
        ".jsonl",
        _LINES,
        "messages and tools, to train on",
        with_subagents=True,
        heeds=("include",),
        lacks=_NO_TURNS,
    ),
    "sharegpt": Exporter(
        "chat.rows.render_sharegpt",
        ".jsonl",
        _LINES,
        "the same as ShareGPT had it",
        with_subagents=True,
        lacks=_NO_TURNS,
    ),
    "parquet": Exporter(
        "",
        ".parquet",
        "application/vnd.apache.parquet",
        "the archive's tables, for DuckDB and Spark",
        with_subagents=True,
        is_of_archive=True,
    ),
}
