"""Render the blocks of a transcript as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never
from urllib.parse import quote

from pollux.exports.markdown.escape import code, fence, inert, plain, quoted
from pollux.exports.source import ExportSource
from pollux.model import Attachment, Cell, Kind, Origin
from pollux.text.numbers import plural
from pollux.views import attachments
from pollux.views.bodies import Agent, Body, Data, FileList, Input, Matches, Output, Questions, Screen, Todos
from pollux.views.diffs import Diff, LineChange
from pollux.views.excerpts import Excerpt, line
from pollux.views.session_text import clock, describe_tokens
from pollux.views.transcript import (
    LABELS,
    AnswerBlock,
    AttachmentBlock,
    Block,
    HiddenBlock,
    NoticeBlock,
    PromptBlock,
    SyntheticBlock,
    ThoughtBlock,
    ToolBlock,
    UnknownBlock,
    UsageBlock,
)

HEADING = 100
"""Characters of a prompt in its heading."""
LONG = 40
"""Lines above which an output is folded."""
_NOTICE = {Kind.INFO: "Note", Kind.WARNING: "Warning", Kind.ERROR: "Error"}
_TODO = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]", "cancelled": "[-]", "blocked": "[!]"}
_CHANGE = {LineChange.ADD: "+", LineChange.DELETE: "-", LineChange.CONTEXT: " ", LineChange.HUNK: ""}
_LANGUAGES = {"sh", "python", "text"}


@dataclass(frozen=True, slots=True)
class MarkdownState:
    """The document that is being rendered, and the numbering of its side files."""

    source: ExportSource
    numbers: Iterator[int]
    """For the names of attachments, across all parts."""
    is_side_file: bool = False
    """Whether this document is a later part, next to the attachments."""

    def attachment(self, attachment: Attachment) -> str:
        """Return a link to an attachment, and write its bytes to a side file if they are available."""
        label = plain(attachments.describe(attachment))
        data = attachments.decode(attachment)
        if data is None or self.source.write_side_file is None:
            if data is not None:
                self.source.losses["attachments"] += 1
            address = attachments.web_address(attachment.uri)
            return f"▣ [{label}](<{address}>)" if address else f"▣ {label}"
        path = self.source.write_side_file(attachments.file_name(attachment, next(self.numbers)), data)
        target = quote(path.rpartition("/")[2] if self.is_side_file else path)
        return f"{'!' if attachments.is_picture(attachment) else '▣ '}[{label}]({target})"


def block_texts(block: Block, state: MarkdownState, number: int) -> Iterator[str]:
    """Yield the paragraphs of a block; `number` is that of its prompt."""
    match block:
        case PromptBlock():
            yield from _prompt(block, state, number)
        case AnswerBlock(text=text):
            yield inert(text)
        case ThoughtBlock(subject=subject, text=text):
            heading = f"**Thought:** {plain(subject)}".rstrip()
            yield quoted("\n\n".join(filter(None, (heading, inert(text)))))
        case ToolBlock():
            yield from _tool(block, state)
        case NoticeBlock(kind=kind, text=text):
            yield from _labelled(f"**{_NOTICE.get(kind, 'Unknown message')}:**", text)
        case SyntheticBlock():
            yield from _synthetic(block)
        case AttachmentBlock(attachment=attachment):
            yield state.attachment(attachment)
        case UnknownBlock(text=text):
            yield "**A part that Pollux does not know:**"
            yield fence(_excerpt_text(text), "json")
        case UsageBlock(model=model, tokens=tokens):
            yield f"*{' · '.join(filter(None, (plain(model or ''), describe_tokens(tokens))))}*"
        case HiddenBlock(text=words):
            yield f"*… {words}*"
        case _:
            assert_never(block)


def _prompt(block: PromptBlock, state: MarkdownState, number: int) -> Iterator[str]:
    text = block.text.head.strip()
    if block.origin is Origin.AGENT_PROMPT:
        heading = f"**{LABELS[block.origin].capitalize()}**"
        is_complete = False
    else:
        first, _, others = text.partition("\n")
        shown = line(first, HEADING) + (" …" if others and len(first) < HEADING else "")
        heading = f"## {number}. {plain(shown) or '(no words)'}"
        is_complete = shown == text and not block.text.hidden
    yield heading
    label = "" if block.origin is Origin.HUMAN else LABELS[block.origin]
    if about := " · ".join(filter(None, (clock(block.at), label if number else ""))):
        yield f"*{about}*"
    if text and not is_complete:
        yield quoted(_prompt_text(block.text))
    yield from map(state.attachment, block.attachments)


def _prompt_text(excerpt: Excerpt) -> str:
    hidden = f"*… {excerpt.hidden}*" if excerpt.hidden else ""
    tail = inert(excerpt.tail, keeps_lines=True) if excerpt.tail else ""
    return "\n\n".join(filter(None, (inert(excerpt.head, keeps_lines=True), hidden, tail)))


def _tool(block: ToolBlock, state: MarkdownState) -> Iterator[str]:
    summary = block.summary
    texts = [f"**{plain(summary.label)}**" + (f" {code(summary.text)}" if summary.text else "")]
    if summary.outcome:
        texts.append(plain(summary.outcome))
    if block.is_failed and summary.outcome != "failed":
        texts.append("**failed**")
    yield " · ".join(texts)
    yield from map(_body_text, block.bodies)
    yield from map(state.attachment, block.attachments)
    yield from (f"*({plain(note)})*" for note in block.notes)


def _synthetic(block: SyntheticBlock) -> Iterator[str]:
    label = block.label
    if block.summary:
        label += f": {plain(block.summary)}"
    if block.text.hidden and not block.text.head:
        label += f" ({block.text.hidden})"
    yield f"*{label}*"
    if block.text.head:
        fenced = fence(_excerpt_text(block.text))
        yield _folded(fenced, block.label) if fenced.count("\n") - 1 > LONG else fenced


def _labelled(label: str, text: Excerpt) -> Iterator[str]:
    if text.hidden or "\n" in text.head:
        yield label
        yield fence(_excerpt_text(text))
    else:
        yield f"{label} {plain(text.head) or '(no words)'}"


def _body_text(body: Body) -> str:
    """Return the input or output of a tool call, folded if it is long."""
    match body:
        case Input(text=text, language=language):
            return _fenced(_excerpt_text(text), language if language in _LANGUAGES else "text")
        case Output(text=text):
            return _fenced(_excerpt_text(text))
        case Data(text=text):
            return _fenced(_excerpt_text(text), "json" if not text.hidden else "text")
        case Diff():
            changes = [f"{_CHANGE[change.change]}{change.text}" for change in body.lines]
            return _fenced("\n".join([*changes, *_more(body.hidden_lines, "line")]), "diff")
        case Screen(head=head, tail=tail, hidden_lines=hidden):
            lines = [*map(_screen_line, head), *_more(hidden, "line"), *map(_screen_line, tail)]
            return _fenced("\n".join(lines))
        case Todos(todos=todos):
            items = (f"{_TODO.get(todo.status, '[?]')} {_one_line(todo.description)}" for todo in todos)
            return _fenced("\n".join(items))
        case Matches(matches=matches, hidden=hidden):
            matched = [
                f"{_one_line(match.path)}:{'' if match.line is None else f'{match.line}:'} {match.text}"
                for match in matches
            ]
            return _fenced("\n".join([*matched, *_more(hidden, "line")]))
        case FileList(files=files, hidden=hidden):
            return _fenced("\n".join([*map(_one_line, files), *_more(hidden, "name")]))
        case Agent():
            return _fenced("\n".join(_agent_lines(body)))
        case Questions(questions=questions):
            return "\n\n".join(
                f"**?** {plain(question.question)}{_choices(question.choices)}  \n"
                f"**→** {plain(question.answer) or '(no answer)'}"
                for question in questions
            )
        case _:
            assert_never(body)


def _excerpt_text(excerpt: Excerpt) -> str:
    hidden = f"… {excerpt.hidden}" if excerpt.hidden else ""
    return "\n".join(filter(None, (excerpt.head, hidden, excerpt.tail)))


def _folded(text: str, summary: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def _fenced(text: str, language: str = "text") -> str:
    n_lines = text.count("\n") + 1
    fenced = fence(text, language)
    return _folded(fenced, plural(n_lines, "line")) if n_lines > LONG else fenced


def _more(hidden: int, noun: str) -> Iterator[str]:
    if hidden:
        yield f"… {plural(hidden, f'more {noun}')}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _screen_line(cells: tuple[Cell, ...]) -> str:
    return "".join(cell.text for cell in cells).rstrip()


def _agent_lines(body: Agent) -> Iterator[str]:
    for activity in body.activity:
        text = _one_line(f"{activity.content} {activity.description}")
        is_normal = activity.status in {"", "completed", "running"}
        yield f"- {text}" if is_normal else f"- {text} ({_one_line(activity.status)})"
    yield from _more(body.hidden, "step")
    if body.result is not None:
        yield _excerpt_text(body.result)


def _choices(choices: tuple[str, ...]) -> str:
    return f" ({plain(' / '.join(choices))})" if choices else ""
