"""Export sessions: one module per format, and the table of formats that front ends, completion and docs read.

A format's module is imported only when a session is rendered: completion needs nothing but the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pollux.exports.source import ExportSource
    from pollux.model import Session
    from pollux.prices import Prices


class ExportedSession(NamedTuple):
    """A session in a folder of exports, and the file it was written to."""

    session: Session
    name: str
    agents: tuple[Session, ...] = ()
    """Its subagents, at every level."""


class Exporter(NamedTuple):
    """An export format."""

    renderer: str
    """Module and function that render one session."""
    suffix: str
    media_type: str
    summary: str
    with_subagents: bool = False
    """Whether subagents are exported separately too."""
    options: tuple[str, ...] = ()
    """The export options that the format supports."""
    pages_renderer: str | None = None
    """Module and function that write further files into a folder of exports."""
    index_page: str = ""
    """The page among them that links to all sessions."""
    is_public: bool = False
    """Whether the format is meant for publication: then exports are always redacted."""
    reads_archive: bool = False
    """Whether the format exports the tables of the archive and cannot render single sessions."""
    empty_reason: str = ""
    """Why a session may give nothing in this format, and what to do then."""

    def render(self, source: ExportSource) -> Iterator[bytes]:
        """Yield the pieces of one exported session."""
        pieces: Iterator[bytes] = _function(self.renderer)(source)
        return pieces

    def pages(self, exported: Sequence[ExportedSession], prices: Prices) -> Iterator[tuple[str, bytes]]:
        """Yield the names and contents of the files that list all sessions of a folder."""
        if self.pages_renderer:
            yield from _function(self.pages_renderer)(exported, prices)

    @property
    def n_header_pieces(self) -> int:
        """The number of pieces before the first session data: CSV has a header line."""
        return int(self.media_type == "text/csv")

    @property
    def is_stream(self) -> bool:
        """Whether several sessions can be concatenated into one file; a published data set has one file each."""
        return self.suffix in (".jsonl", ".csv") and not self.is_public


def _function(name: str) -> Callable[..., Any]:
    module, _, function_name = name.rpartition(".")
    function: Callable[..., Any] = getattr(import_module(f"pollux.exports.{module}"), function_name)
    return function


_JSON, _LINES = "application/json", "application/jsonl"
_TRANSCRIPT = ("detail", "branches", "thoughts", "split")
_NO_COUNTS = (
    "no model call has token counts, as in saved conversations and captured output; "
    "use `--format json` to export everything"
)
_NO_TURNS = (
    "no turn has both a prompt and a complete answer; "
    "`--losses` lists what was left out, `--format json` exports everything"
)

EXPORTERS = {
    "markdown": Exporter(
        "markdown.render",
        ".md",
        "text/markdown",
        "readable transcript; in a folder, with a list of all sessions",
        options=_TRANSCRIPT,
        pages_renderer="markdown.pages",
        index_page="README.md",
    ),
    "html": Exporter(
        "html.render",
        ".html",
        "text/html",
        "self-contained transcript page; in a folder, a browsable site",
        options=_TRANSCRIPT,
        pages_renderer="html.index.pages",
        index_page="index.html",
    ),
    "gemini": Exporter("gemini.render", ".json", _JSON, "state to load with `gemini --session-file`"),
    "json": Exporter("pollux_json.render_json", ".json", _JSON, "everything that Pollux reads, as one object"),
    "jsonl": Exporter(
        "pollux_json.render_lines", ".jsonl", _LINES, "the same, one record per line, for streams and huge sessions"
    ),
    "calls": Exporter(
        "calls.render_lines",
        ".jsonl",
        _LINES,
        "one record per model call, for usage dashboards",
        with_subagents=True,
        empty_reason=_NO_COUNTS,
    ),
    "calls-csv": Exporter(
        "calls.render_csv", ".csv", "text/csv", "the same as CSV", with_subagents=True, empty_reason=_NO_COUNTS
    ),
    "devlog": Exporter(
        "devlog.render",
        ".md",
        "text/markdown",
        "dialogue and actions, for writing about the work",
        options=("branches",),
        pages_renderer="devlog.pages",
        index_page="index.md",
    ),
    "devlog-index": Exporter(
        "devlog.render_index", ".jsonl", _LINES, "one line per session: first and last prompt, summary, times"
    ),
    "events": Exporter(
        "events.render",
        ".jsonl",
        _LINES,
        "normalised events, for detectors of friction",
        with_subagents=True,
        options=("include",),
    ),
    "vac": Exporter(
        "vac.encode.render_json", ".json", _JSON, "verifiable agent record, ready to be signed", options=("branches",)
    ),
    "vac-cbor": Exporter(
        "vac.encode.render_cbor", ".cbor", "application/cbor", "the same as CBOR", options=("branches",)
    ),
    "atif": Exporter(
        "atif.render",
        ".json",
        _JSON,
        "trajectory (ATIF 1.7) for evaluation with Harbor or Inspect",
        options=("branches",),
    ),
    "otlp": Exporter(
        "otlp.render",
        ".jsonl",
        _LINES,
        "OpenTelemetry traces, without message text unless included",
        options=("include", "semconv"),
    ),
    "hf": Exporter(
        "hf.render",
        ".jsonl",
        _LINES,
        "redacted data set of agent traces for Hugging Face",
        with_subagents=True,
        pages_renderer="hf.pages",
        is_public=True,
    ),
    "chat": Exporter(
        "chat.render",
        ".jsonl",
        _LINES,
        "messages and tools, to train models on",
        with_subagents=True,
        options=("include",),
        empty_reason=_NO_TURNS,
    ),
    "sharegpt": Exporter(
        "chat.render_sharegpt",
        ".jsonl",
        _LINES,
        "the same in the ShareGPT format",
        with_subagents=True,
        empty_reason=_NO_TURNS,
    ),
    "parquet": Exporter(
        "",
        ".parquet",
        "application/vnd.apache.parquet",
        "tables of the archive, for DuckDB and Spark",
        with_subagents=True,
        reads_archive=True,
    ),
}
