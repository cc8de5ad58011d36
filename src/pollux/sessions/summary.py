"""A session put together → one row of a list."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pollux.formats import lenient
from pollux.formats.origins import one_line
from pollux.formats.records import LAST_UPDATED, PROJECT_HASH, SESSION_ID, START_TIME
from pollux.model import FileRef, Json, Kind, Origin, Project, Session
from pollux.sessions.grouping import Group
from pollux.sessions.replay.reading import Reading
from pollux.text.times import instant

TITLE_KEPT, PROMPT_SHOWN = 200, 400
_NOTICES = (Kind.INFO, Kind.WARNING, Kind.ERROR)
_SUMMED_UP = frozenset({SESSION_ID, PROJECT_HASH, START_TIME, LAST_UPDATED, "kind", "summary", "messages"})


def summary(group: Group, project: Project) -> Session:
    """Sum up a session."""
    entries = group.entries
    human = [entry for entry in entries if entry.origin == Origin.HUMAN]
    prompts = human or [entry for entry in entries if entry.origin in (Origin.AGENT_PROMPT, Origin.LOADED)]
    counts = Counter(entry.kind for entry in entries)
    title, title_from = _title(group, [entry.prompt for entry in prompts])
    return Session(
        id=group.id,
        kind=group.kind,
        project=project,
        title=_sound(title),
        title_from=title_from,
        first_prompt=_sound(prompts[0].prompt)[:PROMPT_SHOWN] if prompts else "",
        last_prompt=_sound(prompts[-1].prompt)[:PROMPT_SHOWN] if prompts else "",
        parent=group.parent,
        parent_call=group.parent_call,
        started=min((at for one in group.speakers if (at := one.started)), default=None),
        ended=max((at for entry in entries if (at := instant(entry.at))), default=None),
        updated=max((at for one in group.speakers if (at := one.updated)), default=None),
        counts={"user": len(human), **{str(kind): counts[kind] for kind in (Kind.GEMINI, *_NOTICES)}},
        fates=dict(Counter(str(entry.fate) for entry in entries)),
        tool_calls=sum(len(entry.own_calls) for entry in entries),
        models=tuple(dict.fromkeys(call.model for call in group.calls.values() if call.model)),
        calls=tuple(group.calls.values()),
        files=_file_refs(group),
        generation=generation(group.main.reading),
        is_stub=all(one.is_stub for one in group.files),
        problems=tuple(problem for one in group.speakers for problem in one.reading.replay.problems),
        extra=_sound_json({key: value for key, value in group.main.seen.items() if key not in _SUMMED_UP}),
    )


def _sound(text: str) -> str:
    """Replace halves of surrogate pairs: a list is for screens and tables, the truth is in the file."""
    return text.encode("utf-8", "replace").decode()


def _sound_json(value: dict[str, Json]) -> dict[str, Json]:
    return lenient.decode(lenient.encode(value)) if value else {}


def _file_refs(group: Group) -> tuple[FileRef, ...]:
    """Return the files of a session, each once, also where one holds several stretches of it."""
    refs: dict[tuple[Path, int], FileRef] = {}
    for one in group.files:
        key = (one.reading.path, one.version_id)
        if key not in refs or one.is_main:
            refs[key] = FileRef(one.reading.path, one.role, one.reading.format)
    return tuple(refs.values())


def generation(reading: Reading) -> str:
    """Tell which generation of the client wrote a file, in the words of the formats page."""
    result = reading.replay
    if reading.format == "log":
        return "L2" if result.has_checkpoints else "L1"
    if reading.format != "document":
        return reading.format
    users = (entry.content.span for entry in result.timeline if entry.kind == Kind.USER)
    if any(reading.source.contains(b'"content": [', span) for span in users):
        return "J3"
    has_notices = any(entry.kind in _NOTICES for entry in result.timeline)
    return "J2" if has_notices or "summary" in result.seen else "J1"


def _title(group: Group, prompts: list[str]) -> tuple[str, str]:
    """Take the client's own summary, else the first prompt; every character is kept, also those it would drop."""
    for one in (group.main, *group.speakers):
        given = one.seen.get("summary")
        if isinstance(given, str) and given.strip():
            return one_line(given)[:TITLE_KEPT], "summary"
    first = next((one_line(prompt) for prompt in prompts if prompt.strip()), "")
    return first[:TITLE_KEPT], "prompt" if first else "none"
