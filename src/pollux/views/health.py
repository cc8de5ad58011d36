"""What was found, what could not be read, and what nobody knows yet: the doctor's findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pollux.formats import lenient
from pollux.formats.messages import KNOWN_FIELDS, KNOWN_FIELDS_OF_CALLS
from pollux.formats.prompts import LoggedPrompt
from pollux.locate import SessionFile
from pollux.model import Json, Session
from pollux.reading import read
from pollux.tools import is_known

HEALTH = "pollux.doctor/1"


@dataclass(slots=True)
class Unknowns:
    """Names that no table of ours has, with how often each was met."""

    fields: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)


def look_into(file: SessionFile, unknowns: Unknowns) -> None:
    """Note every unknown field, kind and tool of one file."""
    reading = read(file.path)
    with reading.source:
        for entry in reading.replay.timeline:
            if entry.kind not in _KINDS:
                unknowns.kinds[entry.kind] += 1
            for call in entry.calls:
                if not is_known(call.name, call.display_name):
                    unknowns.tools[call.name] += 1
            for record in {entry.content, entry.calls_from or entry.content}:
                _note_fields(reading.source.slice(record.span), unknowns)


def generations(sessions: Iterable[Session]) -> dict[str, int]:
    """Count sessions by the generation of the client that wrote them."""
    return dict(sorted(Counter(one.generation for one in sessions).items()))


def lost(prompts: Sequence[LoggedPrompt], sessions: Iterable[Session]) -> dict[str, list[LoggedPrompt]]:
    """Return the sessions that only the log of prompts still knows: the client has deleted the rest."""
    known = {one.id for one in sessions}
    found: dict[str, list[LoggedPrompt]] = {}
    for prompt in prompts:
        if prompt.session_id not in known:
            found.setdefault(prompt.session_id, []).append(prompt)
    return {id_: typed for id_, typed in found.items() if any(not one.text.startswith(("/", "?")) for one in typed)}


def _note_fields(data: bytes, unknowns: Unknowns) -> None:
    try:
        value: Json = lenient.decode(data)
    except ValueError:
        return  # the file changed meanwhile
    if not isinstance(value, dict):
        return
    unknowns.fields.update(key for key in value if key not in KNOWN_FIELDS)
    calls = value.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            unknowns.fields.update(f"toolCalls.{key}" for key in call if key not in KNOWN_FIELDS_OF_CALLS)


_KINDS = frozenset({"user", "gemini", "info", "warning", "error"})
