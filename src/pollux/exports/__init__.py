"""Blocks and rows → bytes: one module a format, and the table that front ends, completion and docs read.

A format's module is imported when something is rendered: completion only reads the table.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from pollux.grouping import Group
    from pollux.model import Session

    Render: TypeAlias = Callable[[Session, Group, Mapping[str, Session]], Iterator[bytes]]


class Exporter(NamedTuple):
    """A format to hand a session over in."""

    suffix: str
    media_type: str
    render: Render
    summary: str
    with_subagents: bool = False
    """Subagents are handed over on their own, too."""


def _gemini(_session: Session, group: Group, _by_id: Mapping[str, Session]) -> Iterator[bytes]:
    from pollux.exports import gemini

    return gemini.render(group.main.reading)


def _json(session: Session, group: Group, by_id: Mapping[str, Session]) -> Iterator[bytes]:
    from pollux.exports import native

    return native.render_json(session, group, by_id)


def _lines(session: Session, group: Group, by_id: Mapping[str, Session]) -> Iterator[bytes]:
    from pollux.exports import native

    return native.render_lines(session, group, by_id)


def _calls(session: Session, group: Group, by_id: Mapping[str, Session]) -> Iterator[bytes]:
    from pollux.exports import calls

    return calls.render_lines(session, group, by_id)


def _calls_csv(session: Session, group: Group, by_id: Mapping[str, Session]) -> Iterator[bytes]:
    from pollux.exports import calls

    return calls.render_csv(session, group, by_id)


EXPORTERS = {
    "gemini": Exporter(
        ".json", "application/json", _gemini, "what the client itself would load; `gemini --session-file` takes it"
    ),
    "json": Exporter(".json", "application/json", _json, "all that Pollux knows, in one object"),
    "jsonl": Exporter(
        ".jsonl", "application/jsonl", _lines, "the same, one record a line, for huge sessions and streams"
    ),
    "calls": Exporter(
        ".jsonl", "application/jsonl", _calls, "one record a model call, for usage dashboards", with_subagents=True
    ),
    "calls-csv": Exporter(".csv", "text/csv", _calls_csv, "the same as CSV", with_subagents=True),
}
