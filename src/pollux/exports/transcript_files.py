"""What the Markdown and HTML transcripts share: the facts above a session, and splitting it into several files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC
from itertools import groupby
from urllib.parse import quote

from pollux.exports.source import ExportSource, side_folder
from pollux.model import Usage
from pollux.text.numbers import plural
from pollux.views.conversation import PlacedBlock, placed_blocks
from pollux.views.session_text import cost_text, describe_messages, describe_tokens, period, shares, usage_of_session


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """One file of a transcript."""

    number: int
    """From 1."""
    blocks: Iterable[PlacedBlock[ExportSource]]
    has_next: Callable[[], bool]
    """Whether another part follows; call it after all blocks are consumed."""


PartRenderer = Callable[[TranscriptPart], Iterator[bytes]]


def header_facts(source: ExportSource) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the facts above a transcript; usage includes subagents."""
    session = source.session
    if session.kind != "main":
        yield "Kind", session.kind
    yield "Project", " · ".join(filter(None, (session.project.name, session.project.path)))
    if when := period(session, UTC, "UTC"):
        yield "When", when
    if session.models:
        yield "Models", ", ".join(session.models)
    yield "Messages", describe_messages(session, source.by_id)
    usage, own_usage = usage_of_session(session, source.by_id, source.prices)
    if usage.calls:
        yield "Usage", "; ".join(shares(_usage_text(usage), _usage_text(own_usage)))
        yield "Cost", "; ".join(shares(_cost_text(usage), _cost_text(own_usage)))
    yield "Session", session.id
    if session.problems:
        yield "Problems", f"{plural(len(session.problems), 'problem')} while reading its files"


def render_parts(source: ExportSource, suffix: str, render: PartRenderer) -> Iterator[bytes]:
    """Yield the first part; write the others, if the user asked to split, as side files, one at a time in memory."""
    split = source.export_options.split if source.write_side_file else None
    parts = groupby(placed_blocks(source), lambda block: max(block.prompt - 1, 0) // split if split else 0)
    _, first = next(parts, (0, ()))
    queue: list[Iterable[PlacedBlock[ExportSource]]] = []

    def has_next() -> bool:
        _, blocks = next(parts, (0, None))
        if blocks is not None:
            queue.append(blocks)
        return bool(queue)

    yield from render(TranscriptPart(1, first, has_next))
    number = 1
    while queue and source.write_side_file:
        number += 1
        part = TranscriptPart(number, queue.pop(), has_next)
        source.write_side_file(_part_name(number, suffix), b"".join(render(part)))


def part_links(
    part: TranscriptPart, source: ExportSource, suffix: str, *, has_next: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield labels and targets of the links of a part: all sessions, the first, previous and next part."""
    up = "../" if part.number > 1 else ""
    if source.index_page:
        yield "All sessions", f"{up}{quote(source.index_page)}"
    if part.number > 1:
        first = f"{up}{quote(source.name)}"
        yield "First part", first
        yield "Part before", _part_name(part.number - 1, suffix) if part.number - 1 > 1 else first
    if has_next:
        folder = "" if up else f"{quote(side_folder(source.name))}/"
        yield "Next part", f"{folder}{_part_name(part.number + 1, suffix)}"


def _part_name(number: int, suffix: str) -> str:
    return f"part-{number}{suffix}"


def _usage_text(usage: Usage) -> str:
    return f"{plural(usage.calls, 'model call')}, {describe_tokens(usage.tokens)}"


def _cost_text(usage: Usage) -> str:
    n_unpriced = usage.cost.unpriced_calls
    return cost_text(usage) + (f" ({plural(n_unpriced, 'call')} without a price)" if n_unpriced else "")
