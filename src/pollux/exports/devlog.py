"""The session for writers: the filtered dialogue with times, and an index of many sessions to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from itertools import groupby
from urllib.parse import quote

from pollux import __version__
from pollux.exports import Written
from pollux.exports.devlog_entries import TAKEN_BACK, Did, Entry, Noted, Rule, Said, entries, rule_of
from pollux.exports.markdown.escape import code, inert, plain, quoted
from pollux.exports.source import Subject
from pollux.model import Json, Message, Origin, Role, Session
from pollux.prices import Prices
from pollux.text.encode import encode
from pollux.text.numbers import lasted
from pollux.views.attachments import words as attachment_words
from pollux.views.contracts import when
from pollux.views.excerpts import Excerpt, counted
from pollux.views.session_text import TITLE, clock, day, messages_of, period, title
from pollux.views.transcript import FATES, LABELS

SCHEMA = "pollux.devlog/1"
_WORDS, _TITLE = 80, 60
"""Characters of a cell in the index."""
_SPEAKERS = {Origin.HUMAN: "Human", Origin.LOADED: "Human", Origin.AGENT_PROMPT: "Task", Origin.MODEL: "Gemini"}


def render(subject: Subject) -> Iterator[bytes]:
    """Write what was said and done in a session, as Markdown."""
    for piece in _pieces(subject):
        yield piece.encode("utf-8", "replace")


def render_index(subject: Subject) -> Iterator[bytes]:
    """Write what an index says of a session, as one line of JSON."""
    yield encode(subject.clean(index_row(subject.session))) + b"\n"


def pages(written: Sequence[Written], _prices: Prices) -> Iterator[tuple[str, bytes]]:
    """Yield the index of a folder, for people and for programs; a story goes from its beginning to its end."""
    ordered = sorted(written, key=lambda one: (one.session.started is None, one.session.started, one.name))
    yield "index.md", "".join(_index(ordered)).encode("utf-8", "replace")
    rows = [index_row(one.session) | {"dialogue": one.name} for one in ordered]
    yield "index.json", encode({"schema": SCHEMA, "pollux": __version__, "sessions": rows}) + b"\n"


def index_row(session: Session) -> dict[str, Json]:
    """Tell of a session what one needs to choose it."""
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


def _pieces(subject: Subject) -> Iterator[str]:
    session = subject.session
    yield f"# {plain(title(session, TITLE))}\n\n"
    yield from (f"- {name}: {words}\n" for name, words in _facts(subject))
    messages = _counted(subject)
    yield from _dialogue(entries(messages, branches=subject.wanted.branches, root=session.project.path))


def _facts(subject: Subject) -> Iterator[tuple[str, str]]:
    session = subject.session
    path = f", {code(session.project.path)}" if session.project.path else ""
    yield "Project", f"{plain(session.project.name)}{path}"
    if told := period(session, UTC, "UTC"):
        yield "When", told
    yield "What", messages_of(session, subject.by_id)
    if session.models:
        yield "Models", plain(", ".join(session.models))
    yield "Session", code(session.id)
    for source in subject.sources():
        yield "From", f"{code(str(source['path']))}, SHA-256 {code(str(source['sha256']))}"
    if subject.index_page:
        yield "All sessions", f"[{plain(subject.index_page)}]({quote(subject.index_page)})"
    yield "Written by", f"Pollux {__version__}"


def _counted(subject: Subject) -> Iterator[Message]:
    """Count what is left out of the messages that go through here."""
    losses = subject.losses
    for message in subject.messages():
        losses["thoughts"] += len(message.thoughts)
        losses["tokens of a model call"] += message.tokens is not None
        losses["results of tool calls"] += sum(call.status == "success" for call in message.tool_calls)
        losses["messages that nobody said"] += rule_of(message) is Rule.SKIP
        losses["pictures and files"] += len(message.attachments)
        yield message


def _dialogue(found: Iterable[Entry]) -> Iterator[str]:
    before: Entry | None = None
    today = ""
    for entry in found:
        now = clock(entry.at)
        if isinstance(entry, Noted):
            yield f"\n*[{_note(entry)}]*\n"
        else:
            is_new = _begins_turn(before, entry)
            if is_new:
                date = day(entry.at.astimezone(UTC)) if entry.at else today
                yield f"\n## {' '.join(filter(None, ('' if date == today else f'{date},', now, _speaker(entry))))}\n"
                today = date
            if isinstance(entry, Said):
                yield from _said(entry)
            else:
                yield "" if isinstance(before, Did) and not is_new else "\n"
                yield _did(entry, "" if is_new or (before and now == clock(before.at)) else now)
        before = entry


def _begins_turn(before: Entry | None, entry: Said | Did) -> bool:
    """Tell whether somebody else speaks, asks once more, or speaks again some time later."""
    if before is None or isinstance(before, Noted) or _speaker(before) != _speaker(entry):
        return True
    return isinstance(entry, Said) and (entry.origin is not Origin.MODEL or clock(before.at) != clock(entry.at))


def _speaker(entry: Said | Did) -> str:
    origin = entry.origin if isinstance(entry, Said) else Origin.MODEL
    marks = [LABELS[origin]] if origin is Origin.LOADED else []
    marks += [FATES[entry.fate]] if entry.fate in TAKEN_BACK else []
    return _SPEAKERS[origin] + (f" ({', '.join(marks)})" if marks else "")


def _said(entry: Said) -> Iterator[str]:
    """Quote what was asked; the model's own Markdown stays what it is."""
    if entry.origin is Origin.MODEL:
        yield f"\n{inert(entry.text.head)}\n" if entry.text.head else ""
    else:
        yield f"\n{quoted(_excerpt(entry.text))}\n" if entry.text.head else ""
    for attachment in entry.attachments:
        yield f"\n*[{plain(attachment_words(attachment))}]*\n"


def _excerpt(text: Excerpt) -> str:
    gap = f"\n\n*[… {text.hidden} …]*\n\n" if text.hidden else ""
    return inert(text.head, keeps_lines=True) + gap + (inert(text.tail, keeps_lines=True) if text.tail else "")


def _did(entry: Did, now: str) -> str:
    about = f" {code(entry.about)}" if entry.about else ""
    trouble = f" · **{plain(entry.trouble)}**" if entry.trouble else ""
    return f"- {f'{now} ' if now else ''}{code(entry.name)}{about}{trouble}\n"


def _note(entry: Noted) -> str:
    about = f": {code(entry.code)}" if entry.code else ""
    return plain(" ".join(filter(None, (clock(entry.at), entry.words)))) + about


def _index(written: Sequence[Written]) -> Iterator[str]:
    yield f"# {counted(len(written), 'session')}\n"
    of_project = sorted(written, key=lambda one: one.session.project.key)  # stable: still by time
    for _, members in groupby(of_project, lambda one: one.session.project.key):
        some = [*members]
        project = some[0].session.project
        path = f", {code(project.path)}" if project.path else ""
        yield f"\n## {plain(project.name)}{path}\n\n"
        yield "| Date (UTC) | Session | First words | Last words | Time | Prompts | Tools |\n"
        yield "| --- | --- | --- | --- | --- | ---: | ---: |\n"
        yield from map(_index_line, some)
    yield f"\nWritten by Pollux {__version__}.\n"


def _index_line(one: Written) -> str:
    session = one.session
    start, end = session.started, session.ended
    first = session.first_prompt if session.title_from == "summary" else ""  # else it is the title
    last = session.last_prompt if session.last_prompt != session.first_prompt else ""
    cells = (
        f"{start.astimezone(UTC):%Y-%m-%d %H:%M}" if start else "",
        f"[{plain(title(session), _TITLE)}]({quote(one.name)})",
        plain(first, _WORDS),
        plain(last, _WORDS),
        lasted(end - start) if start and end and end > start else "",
        str(session.counts.get("user", 0)),
        str(session.tool_calls),
    )
    return f"| {' | '.join(cells)} |\n"
