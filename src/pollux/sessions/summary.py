"""Summarize an assembled session: title, times, counts, models and files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pollux.formats import lenient
from pollux.formats.origins import one_line
from pollux.formats.records import LAST_UPDATED, PROJECT_HASH, SESSION_ID, START_TIME
from pollux.model import FileRef, Json, Kind, Origin, Project, Session
from pollux.sessions.grouping import OpenSession
from pollux.sessions.replay.reading import FileReading
from pollux.text.escape import replace_surrogates
from pollux.text.times import parse_time

MAX_TITLE, MAX_PROMPT = 200, 400
"""Characters of a title and of a prompt in a list of sessions."""
_NOTICES = (Kind.INFO, Kind.WARNING, Kind.ERROR)
_SUMMARIZED = frozenset({SESSION_ID, PROJECT_HASH, START_TIME, LAST_UPDATED, "kind", "summary", "messages"})


def summarize(group: OpenSession, project: Project) -> Session:
    """Return the values of a session that lists and reports need."""
    entries = group.entries
    human = [entry for entry in entries if entry.origin == Origin.HUMAN]
    prompts = human or [entry for entry in entries if entry.origin in (Origin.AGENT_PROMPT, Origin.LOADED)]
    counts = Counter([entry.kind for entry in entries])
    fates = Counter([entry.fate for entry in entries])
    title, title_from = _title(group, [entry.prompt for entry in prompts])
    return Session(
        id=group.id,
        kind=group.kind,
        project=project,
        title=replace_surrogates(title),
        title_from=title_from,
        first_prompt=replace_surrogates(prompts[0].prompt)[:MAX_PROMPT] if prompts else "",
        last_prompt=replace_surrogates(prompts[-1].prompt)[:MAX_PROMPT] if prompts else "",
        parent=group.parent,
        parent_call=group.parent_call,
        started=min(filter(None, (located.started for located in group.primary_files)), default=None),
        ended=max(filter(None, [parse_time(entry.at) for entry in entries]), default=None),
        updated=max(filter(None, (located.updated for located in group.primary_files)), default=None),
        counts={"user": len(human), **{str(kind): counts[kind] for kind in (Kind.GEMINI, *_NOTICES)}},
        fates={str(fate): count for fate, count in fates.items()},
        tool_calls=sum(len(entry.own_calls) for entry in entries),
        models=tuple(dict.fromkeys(call.model for call in group.calls.values() if call.model)),
        calls=tuple(group.calls.values()),
        files=_file_refs(group),
        generation=generation(group.main.reading),
        is_stub=all(located.is_stub for located in group.files),
        problems=tuple(problem for located in group.primary_files for problem in located.reading.replay.problems),
        extra=_extra(group.main.seen),
    )


def _extra(metadata: dict[str, Json]) -> dict[str, Json]:
    extra = {key: value for key, value in metadata.items() if key not in _SUMMARIZED}
    return lenient.decode(lenient.encode(extra)) if extra else {}  # replaces lone surrogates


def _file_refs(group: OpenSession) -> tuple[FileRef, ...]:
    """Return the files of a session, each once even if it contains several parts of the session."""
    refs: dict[tuple[Path, int], FileRef] = {}
    for located in group.files:
        key = (located.reading.path, located.version_id)
        if key not in refs or located.is_main:
            refs[key] = FileRef(located.reading.path, located.role, located.reading.format)
    return tuple(refs.values())


def generation(reading: FileReading) -> str:
    """Return the generation of a file as `docs/formats.md` names it, such as `json-parts` or `jsonl`."""
    result = reading.replay
    if reading.format == "log":
        return "jsonl-checkpoints" if result.has_checkpoints else "jsonl"
    if reading.format != "document":
        return reading.format
    users = (entry.content.span for entry in result.timeline if entry.kind == Kind.USER)
    if any(reading.source.contains(b'"content": [', span) for span in users):
        return "json-parts"
    has_notices = any(entry.kind in _NOTICES for entry in result.timeline)
    return "json-notices" if has_notices or "summary" in result.seen else "json"


def _title(group: OpenSession, prompts: list[str]) -> tuple[str, str]:
    """Return the client's own summary, else the first prompt, and which of them it is."""
    for located in (group.main, *group.primary_files):
        recorded = located.seen.get("summary")
        if isinstance(recorded, str) and recorded.strip():
            return one_line(recorded)[:MAX_TITLE], "summary"
    first = next((one_line(prompt) for prompt in prompts if prompt.strip()), "")
    return first[:MAX_TITLE], "prompt" if first else "none"
