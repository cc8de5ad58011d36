"""Export a development log: the filtered dialogue with times, and an index of all sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from itertools import groupby
from urllib.parse import quote

from pollux import __version__
from pollux.exports import ExportedSession
from pollux.exports.devlog_entries import DevlogRule, DialogueEntry, Entry, NoteEntry, ToolEntry, entries, rule_of
from pollux.exports.markdown.escape import code, inert, plain, quoted
from pollux.exports.source import RETRACTED, ExportSource
from pollux.model import Json, Message, Origin, Role, Session
from pollux.prices import Prices
from pollux.text.encode import encode
from pollux.text.numbers import duration, plural
from pollux.views.attachments import describe as attachment_words
from pollux.views.contracts import when
from pollux.views.excerpts import Excerpt
from pollux.views.session_text import TITLE, clock, day, describe_messages, period, title
from pollux.views.transcript import LABELS

SCHEMA = "pollux.devlog/1"
_PROMPT, _TITLE = 80, 60
"""Characters of prompts and titles in the index."""
_SPEAKERS = {Origin.HUMAN: "Human", Origin.LOADED: "Human", Origin.AGENT_PROMPT: "Task", Origin.MODEL: "Gemini"}


def render(source: ExportSource) -> Iterator[bytes]:
    """Yield the dialogue and the actions of a session as Markdown."""
    for piece in _pieces(source):
        yield piece.encode("utf-8", "replace")


def render_index(source: ExportSource) -> Iterator[bytes]:
    """Yield the index row of a session as one line of JSON."""
    yield encode(source.clean(index_row(source.session))) + b"\n"


def pages(exported: Sequence[ExportedSession], _prices: Prices) -> Iterator[tuple[str, bytes]]:
    """Yield the index of a folder as Markdown and as JSON, the oldest session first."""
    ordered = sorted(exported, key=lambda export: (export.session.started is None, export.session.started, export.name))
    yield "index.md", "".join(_index(ordered)).encode("utf-8", "replace")
    rows = [index_row(export.session) | {"dialogue": export.name} for export in ordered]
    yield "index.json", encode({"schema": SCHEMA, "pollux": __version__, "sessions": rows}) + b"\n"


def index_row(session: Session) -> dict[str, Json]:
    """Return what a reader needs to choose a session."""
    project = session.project
    main = [str(ref.path) for ref in session.files if ref.role in (Role.MAIN, Role.IMPORT)]
    return {
        "session_id": session.id,
        "platform": "gemini-cli",
        "file": main[0] if main else None,
        "project": project.name,
        "project_path": project.path,
        "project_slug": project.slug,
        "project_hash": project.hash,
        "started": when(session.started),
        "ended": when(session.ended),
        "modified": when(session.updated),
        "summary": session.title if session.title_from == "summary" else None,
        "first_user_message": session.first_prompt,
        "last_user_message": session.last_prompt,
        "prompts": session.counts.get("user", 0),
        "answers": session.counts.get("gemini", 0),
        "tool_calls": session.tool_calls,
        "models": list(session.models),
    }


def _pieces(source: ExportSource) -> Iterator[str]:
    session = source.session
    yield f"# {plain(title(session, TITLE))}\n\n"
    yield from (f"- {name}: {value}\n" for name, value in _facts(source))
    messages = _count_losses(source)
    yield from _dialogue(entries(messages, branches=source.export_options.branches, root=session.project.path))


def _facts(source: ExportSource) -> Iterator[tuple[str, str]]:
    session = source.session
    path = f", {code(session.project.path)}" if session.project.path else ""
    yield "Project", f"{plain(session.project.name)}{path}"
    if when_text := period(session, UTC, "UTC"):
        yield "When", when_text
    yield "What", describe_messages(session, source.by_id)
    if session.models:
        yield "Models", plain(", ".join(session.models))
    yield "Session", code(session.id)
    for file in source.sources():
        yield "From", f"{code(str(file['path']))}, SHA-256 {code(str(file['sha256']))}"
    if source.index_page:
        yield "All sessions", f"[{plain(source.index_page)}]({quote(source.index_page)})"
    yield "Written by", f"Pollux {__version__}"


def _count_losses(source: ExportSource) -> Iterator[Message]:
    """Yield the messages, and count what the log leaves out."""
    losses = source.losses
    for message in source.messages():
        losses["thoughts"] += len(message.thoughts)
        losses["tokens of a model call"] += message.tokens is not None
        losses["results of tool calls"] += sum(call.status == "success" for call in message.tool_calls)
        losses["messages of the client"] += rule_of(message) is DevlogRule.SKIP
        losses["attachments"] += len(message.attachments)
        yield message


def _dialogue(log: Iterable[Entry]) -> Iterator[str]:
    previous: Entry | None = None
    today = ""
    for entry in log:
        now = clock(entry.at)
        if isinstance(entry, NoteEntry):
            yield f"\n*[{_note_text(entry)}]*\n"
        else:
            is_new = _begins_turn(previous, entry)
            if is_new:
                date = day(entry.at.astimezone(UTC)) if entry.at else today
                yield f"\n## {' '.join(filter(None, ('' if date == today else f'{date},', now, _speaker(entry))))}\n"
                today = date
            if isinstance(entry, DialogueEntry):
                yield from _dialogue_text(entry)
            else:
                yield "" if isinstance(previous, ToolEntry) and not is_new else "\n"
                yield _tool_text(entry, "" if is_new or (previous and now == clock(previous.at)) else now)
        previous = entry


def _begins_turn(previous: Entry | None, entry: DialogueEntry | ToolEntry) -> bool:
    """Return whether an entry needs a heading: another speaker, another prompt, or a later minute."""
    if previous is None or isinstance(previous, NoteEntry) or _speaker(previous) != _speaker(entry):
        return True
    return isinstance(entry, DialogueEntry) and (
        entry.origin is not Origin.MODEL or clock(previous.at) != clock(entry.at)
    )


def _speaker(entry: DialogueEntry | ToolEntry) -> str:
    origin = entry.origin if isinstance(entry, DialogueEntry) else Origin.MODEL
    marks = [LABELS[origin]] if origin is Origin.LOADED else []
    marks += [entry.fate.label] if entry.fate in RETRACTED else []
    return _SPEAKERS[origin] + (f" ({', '.join(marks)})" if marks else "")


def _dialogue_text(entry: DialogueEntry) -> Iterator[str]:
    """Yield prompts as block quotes, and answers as the Markdown that they are."""
    if entry.origin is Origin.MODEL:
        yield f"\n{inert(entry.text.head)}\n" if entry.text.head else ""
    else:
        yield f"\n{quoted(_excerpt(entry.text))}\n" if entry.text.head else ""
    for attachment in entry.attachments:
        yield f"\n*[{plain(attachment_words(attachment))}]*\n"


def _excerpt(text: Excerpt) -> str:
    gap = f"\n\n*[… {text.hidden} …]*\n\n" if text.hidden else ""
    return inert(text.head, keeps_lines=True) + gap + (inert(text.tail, keeps_lines=True) if text.tail else "")


def _tool_text(entry: ToolEntry, now: str) -> str:
    arguments = f" {code(entry.arguments)}" if entry.arguments else ""
    failure = f" · **{plain(entry.failure)}**" if entry.failure else ""
    return f"- {f'{now} ' if now else ''}{code(entry.name)}{arguments}{failure}\n"


def _note_text(entry: NoteEntry) -> str:
    literal = f": {code(entry.code)}" if entry.code else ""
    return plain(" ".join(filter(None, (clock(entry.at), entry.text)))) + literal


def _index(exported: Sequence[ExportedSession]) -> Iterator[str]:
    yield f"# {plural(len(exported), 'session')}\n"
    by_project = sorted(exported, key=_project_key)  # a stable sort: still by time
    for _, members in groupby(by_project, _project_key):
        exports = [*members]
        project = exports[0].session.project
        path = f", {code(project.path)}" if project.path else ""
        yield f"\n## {plain(project.name)}{path}\n\n"
        yield "| Date (UTC) | Session | First words | Last words | Time | Prompts | Tools |\n"
        yield "| --- | --- | --- | --- | --- | ---: | ---: |\n"
        yield from map(_index_line, exports)
    yield f"\nWritten by Pollux {__version__}.\n"


def _project_key(export: ExportedSession) -> str:
    return export.session.project.key


def _index_line(export: ExportedSession) -> str:
    session = export.session
    start, end = session.started, session.ended
    first = session.first_prompt if session.title_from == "summary" else ""  # otherwise it is the title
    last = session.last_prompt if session.last_prompt != session.first_prompt else ""
    cells = (
        f"{start.astimezone(UTC):%Y-%m-%d %H:%M}" if start else "",
        f"[{plain(title(session), _TITLE)}]({quote(export.name)})",
        plain(first, _PROMPT),
        plain(last, _PROMPT),
        duration(end - start) if start and end and end > start else "",
        str(session.counts.get("user", 0)),
        str(session.tool_calls),
    )
    return f"| {' | '.join(cells)} |\n"
