"""Blocks and rows → bytes: one module a format, and the table that front ends, completion and docs read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from pollux.exports import gemini, native
from pollux.grouping import Group
from pollux.model import Session


class Exporter(NamedTuple):
    """A format to hand a session over in."""

    suffix: str
    media_type: str
    render: Callable[[Session, Group, Mapping[str, Session]], Iterator[bytes]]
    summary: str


EXPORTERS = {
    "gemini": Exporter(
        ".json",
        "application/json",
        lambda _session, group, _by_id: gemini.render(group.main.reading),
        "what the client itself would load; `gemini --session-file` takes it",
    ),
    "json": Exporter(".json", "application/json", native.render_json, "all that Pollux knows, in one object"),
    "jsonl": Exporter(
        ".jsonl", "application/jsonl", native.render_lines, "the same, one record a line, for huge sessions and streams"
    ),
}
