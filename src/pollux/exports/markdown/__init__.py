"""Export a session as Markdown that reads well as plain text and on any page that renders it.

Prompts are headings, answers are what the model wrote, and everything else is a line with its output in a fence.
Dropped messages and subagents are in block quotes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date
from itertools import count
from typing import NamedTuple
from urllib.parse import quote

from pollux import __version__
from pollux.exports import ExportedSession
from pollux.exports.markdown.blocks import MarkdownState, block_texts
from pollux.exports.markdown.escape import code, plain
from pollux.exports.site import IndexRow, ProjectGroup, Site, build_site
from pollux.exports.source import ExportSource
from pollux.exports.transcript_files import TranscriptPart, header_facts, part_links, render_parts
from pollux.model import Fate, Usage
from pollux.prices import Prices
from pollux.text.numbers import count as count_text
from pollux.text.numbers import plural
from pollux.views.conversation import PlacedBlock, placed_blocks
from pollux.views.session_text import BRANCHES, TITLE, clock, cost_text, day, describe_messages, describe_tokens, title
from pollux.views.transcript import AnswerBlock, HiddenBlock, ThoughtBlock, ToolBlock

SUFFIX = ".md"
INDEX = "README.md"
_INDEX_HEAD = "| When (UTC) | Session | Prompts | Calls | Tokens | Cost |\n| --- | --- | ---: | ---: | ---: | ---: |"
_QUOTE = "> "


class _Paragraph(NamedTuple):
    text: str
    depth: int = 0
    """Number of block quotes around it."""


def render(source: ExportSource) -> Iterator[bytes]:
    """Yield one session."""
    state = MarkdownState(source, count(1))

    def render_part(part: TranscriptPart) -> Iterator[bytes]:
        return _join(_page(part, replace(state, is_side_file=part.number > 1)))

    return render_parts(source, SUFFIX, render_part)


def pages(exported: Sequence[ExportedSession], prices: Prices) -> Iterator[tuple[str, bytes]]:
    """Yield the page that links to all transcripts of a folder, with a table for each project."""
    yield INDEX, ("\n".join(_index_lines(build_site(exported, prices))) + "\n").encode("utf-8", "replace")


def _page(part: TranscriptPart, state: MarkdownState) -> Iterator[_Paragraph]:
    source = state.source
    yield _Paragraph(f"# {plain(title(source.session, TITLE))}")
    yield _Paragraph("\n".join(_header_lines(source)) if part.number == 1 else f"Part {part.number}")
    yield from _links(part, source)
    yield from _transcript(part.blocks, state)
    yield from _links(part, source, has_next=part.has_next())


def _header_lines(source: ExportSource) -> Iterator[str]:
    for name, value in header_facts(source):
        yield f"- **{name}:** {code(value) if name == 'Session' else plain(value)}"
    for file in source.sources():
        yield f"- **Source:** {code(str(file['path']))} ({file['role']}), sha256 `{file['sha256']}`"
    yield f"- **Written by:** Pollux {__version__}, {source.export_options.detail} detail, times in UTC"


def _links(part: TranscriptPart, source: ExportSource, *, has_next: bool = False) -> Iterator[_Paragraph]:
    links = [f"[{label}]({target})" for label, target in part_links(part, source, SUFFIX, has_next=has_next)]
    if links:
        yield _Paragraph(" · ".join(links))


def _transcript(
    items: Iterable[PlacedBlock[ExportSource]], state: MarkdownState, depth: int = 0
) -> Iterator[_Paragraph]:
    """Yield the paragraphs of a transcript, with a line where the day, the speaker or the branch changes."""
    previous: PlacedBlock[ExportSource] | None = None
    today: date | None = None
    fate = Fate.ACTIVE
    for item in items:
        shown = item
        block = shown.block
        block_depth = depth
        if block is not None:
            at = None if isinstance(block, HiddenBlock) else block.at
            if at and at.astimezone(UTC).date() != today:
                if today:
                    yield _Paragraph(f"*{day(at.astimezone(UTC))}*", depth)
                today = at.astimezone(UTC).date()
            is_dropped = block.fate is not Fate.ACTIVE and not isinstance(block, HiddenBlock)
            block_depth += is_dropped
            if is_dropped and block.fate is not fate:
                yield _Paragraph(f"**{BRANCHES[block.fate]}**", block_depth)
            fate = block.fate if is_dropped else Fate.ACTIVE
            if speaker := _speaker(previous, shown):
                yield _Paragraph(speaker, block_depth)
            for text in block_texts(block, state, item.prompt):
                yield _Paragraph(text, block_depth)
        for agent in shown.agents:
            heading = f"**Subagent** {code(agent.session.id)} · {describe_messages(agent.session, agent.by_id)}"
            yield _Paragraph(heading, block_depth + 1)
            yield from _transcript(placed_blocks(agent, shown.above), state, block_depth + 1)
        previous = shown


def _speaker(previous: PlacedBlock[ExportSource] | None, shown: PlacedBlock[ExportSource]) -> str:
    """Return time and model where a message of the model begins, except for consecutive tool calls."""
    block = shown.block
    if not isinstance(block, AnswerBlock | ThoughtBlock | ToolBlock) or (previous and previous.number == shown.number):
        return ""
    if isinstance(block, ToolBlock) and previous and isinstance(previous.block, ToolBlock):
        return ""
    model = block.model if isinstance(block, AnswerBlock | ThoughtBlock) else None
    text = " · ".join(filter(None, (clock(block.at), plain(model or ""))))
    return f"*{text}*" if text else ""


def _join(paragraphs: Iterable[_Paragraph]) -> Iterator[bytes]:
    """Yield paragraphs with empty lines between them that do not interrupt a block quote."""
    previous: _Paragraph | None = None
    for paragraph in paragraphs:
        lines = paragraph.text.split("\n")
        if paragraph.depth:
            mark = _QUOTE * paragraph.depth
            lines = [f"{mark}{line}" if line else mark.rstrip() for line in lines]
        if previous:
            lines.insert(0, (_QUOTE * min(previous.depth, paragraph.depth)).rstrip())
        yield ("\n".join(lines) + "\n").encode("utf-8", "replace")
        previous = paragraph


def _index_lines(site: Site) -> Iterator[str]:
    yield "# Gemini CLI sessions\n"
    yield f"{plural(site.n_sessions, 'session')} in {plural(len(site.groups), 'project')}. {_usage_text(site.usage)}"
    for project in site.groups:
        yield from _project_lines(project)
    yield f"\nWritten by Pollux {__version__}."


def _project_lines(group: ProjectGroup) -> Iterator[str]:
    yield f"\n## {plain(group.project.name)}\n"
    path = f"{code(group.project.path)} · " if group.project.path else ""
    yield f"{path}{plural(len(group.rows), 'session')}. {_usage_text(group.usage)}\n"
    yield _INDEX_HEAD
    yield from map(_index_row, group.rows)


def _index_row(row: IndexRow) -> str:
    session, usage = row.session, row.usage
    cells = (
        f"{session.started.astimezone(UTC):%Y-%m-%d %H:%M}" if session.started else "",
        f"[{plain(title(session, TITLE))}]({quote(row.name)})",
        str(session.counts.get("user", 0)),
        str(usage.calls),
        count_text(usage.tokens.total),
        cost_text(usage) if usage.calls else "",
    )
    return f"| {' | '.join(cells)} |"


def _usage_text(usage: Usage) -> str:
    if not usage.calls:
        return ""
    return f"{plural(usage.calls, 'model call')}, {describe_tokens(usage.tokens)}, {cost_text(usage)}."
